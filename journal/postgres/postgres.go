// Package postgres keeps the journal in PostgreSQL 15 or newer: the storage of record, and the vault beside it
// (architecture.md, "The journal"). Only cmd names it; everybody else sees [journal.Journal] and [journal.Vault].
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"qm/journal"
)

// Options of [Open]. The zero value is good for one process and one role.
type Options struct {
	// MigrateURL is DATABASE_MIGRATE_URL: an owner role, used for migrations alone. With it the server's own role, the user of
	// the database URL, may add to the journal but never change it.
	MigrateURL string
	// SkipMigrate takes the schema as it is: for tools that look at a database that a server owns.
	SkipMigrate bool
	// MaxConns bounds the pool, unless the URL says pool_max_conns. 0 is 16.
	MaxConns int
}

// Journal implements [journal.Journal] and [journal.Vault] over a pool of connections. It needs no care when the database goes away and comes
// back: calls fail while it is gone, broken connections are dropped, and new ones are made on demand.
type Journal struct {
	pool    *pgxpool.Pool
	guarded bool
	// reading holds a token for each long read. Half the pool is left to appends and renewals: a start that replays many rooms
	// must not cost the leases of those that run.
	reading chan struct{}
}

var (
	_ journal.Journal = (*Journal)(nil)
	_ journal.Vault   = (*Journal)(nil)
)

const (
	defaultConns   = 16
	connectTimeout = 3 * time.Second
	pingTimeout    = 2 * time.Second
	healthPeriod   = 5 * time.Second
)

// Open migrates the schema that the URL's search_path names and connects to it. It fails when the database cannot be reached:
// whether to try again is the caller's to say.
func Open(ctx context.Context, databaseURL string, o Options) (*Journal, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("postgres: parse the database URL: %w", err)
	}
	prepareConfig(&config.ConnConfig.Config)
	if !strings.Contains(databaseURL, "pool_max_conns") {
		if config.MaxConns = defaultConns; o.MaxConns > 0 {
			config.MaxConns = int32(o.MaxConns)
		}
	}
	config.MaxConns = max(config.MaxConns, 2) // a read and an append
	config.HealthCheckPeriod = healthPeriod
	config.PingTimeout = pingTimeout
	config.AfterConnect = prepareConn

	if !o.SkipMigrate {
		if err := migrate(ctx, config.ConnConfig, o.MigrateURL); err != nil {
			return nil, fmt.Errorf("postgres: migrate: %w", err)
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: open the pool: %w", err)
	}
	j := &Journal{pool: pool, reading: make(chan struct{}, config.MaxConns/2)}
	if j.guarded, err = guarded(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: look at the journal: %w", err)
	}
	return j, nil
}

// Close gives up all connections. Calls that are under way end first.
func (j *Journal) Close() { j.pool.Close() }

// Guarded tells whether the server's role is unable to change or delete what the journal holds. If not, only the trigger stands in the
// way, which protects from bugs alone; health says so.
func (j *Journal) Guarded() bool { return j.guarded }

// guarded looks at what is, not at what was configured.
func guarded(ctx context.Context, pool *pgxpool.Pool) (ok bool, err error) {
	err = pool.QueryRow(ctx, `select not has_table_privilege(oid, 'update, delete, truncate, trigger') and not pg_has_role(relowner, 'member')
		from pg_class where oid = 'journal'::regclass`).Scan(&ok)
	return ok, err
}

// Ping implements [journal.Journal]: the database answers and would take a write.
func (j *Journal) Ping(ctx context.Context) error {
	var readOnly bool
	if err := j.pool.QueryRow(ctx, "select pg_is_in_recovery() or current_setting('transaction_read_only')::bool").Scan(&readOnly); err != nil {
		return fmt.Errorf("postgres: ping: %w", err)
	}
	if readOnly {
		return errors.New("postgres: ping: the database is read-only")
	}
	return nil
}

func prepareConfig(c *pgconn.Config) {
	if c.ConnectTimeout <= 0 || c.ConnectTimeout > connectTimeout {
		c.ConnectTimeout = connectTimeout
	}
	c.RuntimeParams["application_name"] = "qm"
}

// prepareConn makes a session fit for the journal. Its statements all go by primary keys, and the planner is not to change its mind about
// that when statistics are young or tables large: a replay that sorted ten million rows first would stall a start.
// An append is durable when it is answered, so synchronous_commit may be stricter than on, but never off.
func prepareConn(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `select set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false),
		set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false),
		set_config('max_parallel_workers_per_gather', '0', false), set_config('synchronous_commit',
			case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end, false)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	_, err = conn.PgConn().Prepare(ctx, appendName, appendSQL, nil)
	return err
}

// wrap says what failed. What the database calls a data exception or a limit is a batch or name that it could never hold.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "54")) {
		return fmt.Errorf("postgres: %s: %w: %w", what, journal.ErrInvalid, err)
	}
	return fmt.Errorf("postgres: %s: %w", what, err)
}
