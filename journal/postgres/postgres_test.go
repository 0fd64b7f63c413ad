package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"qm/internal/testenv"
	"qm/journal"
	"qm/journal/journaltest"
	"qm/journal/postgres"
	"qm/projection"
	"qm/projection/projectiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, url string, o postgres.Options) *postgres.Journal {
	t.Helper()
	j, err := postgres.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

// serverRole makes a role without any rights and returns the database URL of a server that runs as it.
func serverRole(t *testing.T, pg *testenv.PG) (role, dsn string) {
	t.Helper()
	role = pg.Schema + "_qm"
	conn := pg.Conn(t)
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run("create role " + role + " login password 'server'")
	t.Cleanup(func() {
		run("drop owned by " + role)
		run("drop role " + role)
	})
	u, err := url.Parse(pg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "server")
	return role, u.String()
}

// So does the history's.
func TestPostgresSeries(t *testing.T) {
	projectiontest.RunSeries(t, func(t *testing.T) projection.Series {
		pg := testenv.Postgres(t)
		_, dsn := serverRole(t, pg)
		return open(t, dsn, postgres.Options{MigrateURL: pg.DSN}).Series()
	})
}

// The suite runs as a server whose role owns nothing: what it is granted is enough.
func TestPostgres(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) (journal.Journal, journal.Vault) {
		pg := testenv.Postgres(t)
		_, dsn := serverRole(t, pg)
		j := open(t, dsn, postgres.Options{MigrateURL: pg.DSN})
		return j, j
	})
}

// record returns a sealed batch of one that follows head.
func record(head journal.Head) []journal.Record {
	batch := []journal.Record{{Stream: head.Stream, At: time.Unix(1, 0).UTC(), Kind: "join", Version: 1, Actor: "visitor", Body: []byte(`{"n": 1}`)}}
	journal.Seal(head, batch)
	return batch
}

func write(t *testing.T, j journal.Journal, stream string, n int) journal.Lease {
	t.Helper()
	l, err := j.Acquire(t.Context(), stream, "a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		batch := record(l.Head)
		if err := j.Append(t.Context(), l.Epoch, batch); err != nil {
			t.Fatal(err)
		}
		l.Head.Seq, l.Head.Hash = batch[0].Seq, batch[0].Hash
	}
	return l
}

// changes are the ways to falsify the journal.
var changes = []string{
	"update journal set body = '{}'",
	"update journal set seq = 7 where seq = 1",
	"delete from journal",
	"delete from journal where false",
	"truncate journal",
	"insert into journal select * from journal on conflict (stream, seq) do update set body = '{}'",
	"alter table journal disable trigger all",
	"drop table journal",
}

func TestServerRoleCannotChangeTheJournal(t *testing.T) {
	pg := testenv.Postgres(t)
	_, dsn := serverRole(t, pg)
	j := open(t, dsn, postgres.Options{MigrateURL: pg.DSN})
	if !j.Guarded() {
		t.Error("with a role of its own the journal counts as not guarded")
	}
	write(t, j, "production/shop", 2)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, sql := range changes {
		refused(t, conn, sql)
	}
	refused(t, conn, "create table more (n int)")
}

func refused(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	var bad *pgconn.PgError
	if !errors.As(err, &bad) || bad.Code != "42501" {
		t.Errorf("%s: got %v", sql, err)
	}
}

func TestTriggerRefusesTheOwner(t *testing.T) {
	pg := testenv.Postgres(t)
	j := open(t, pg.DSN, postgres.Options{})
	if j.Guarded() {
		t.Error("with one role for everything the journal counts as guarded")
	}
	write(t, j, "production/shop", 2)
	conn := pg.Conn(t)
	for _, sql := range changes {
		if strings.HasPrefix(sql, "alter") || strings.HasPrefix(sql, "drop") {
			continue // an owner may, which is why it is not guarded
		}
		refused(t, conn, sql)
	}
}

// Several processes start at once on an empty schema, and again on one that is there.
func TestOpenAtOnce(t *testing.T) {
	pg := testenv.Postgres(t)
	_, dsn := serverRole(t, pg)
	for range 2 {
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				j, err := postgres.Open(t.Context(), dsn, postgres.Options{MigrateURL: pg.DSN})
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				j.Close()
			})
		}
		wg.Wait()
	}
	// A tool looks on with the server's role and migrates nothing.
	open(t, dsn, postgres.Options{SkipMigrate: true})
}

// The tables are made where the server looks, though the migrating role's URL does not say so.
func TestMigrateInTheServersSchema(t *testing.T) {
	pg := testenv.Postgres(t)
	_, dsn := serverRole(t, pg)
	u, err := url.Parse(pg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("search_path")
	u.RawQuery = q.Encode()
	j := open(t, dsn, postgres.Options{MigrateURL: u.String(), MaxConns: 1})
	write(t, j, "production/shop", 1)
	var n int
	if err := pg.Conn(t).QueryRow(t.Context(), "select count(*) from "+pg.Schema+".journal").Scan(&n); err != nil || n != 1 {
		t.Fatalf("%d rows, %v", n, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	pg := testenv.Postgres(t)
	u, err := url.Parse(pg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", "no_such_schema")
	u.RawQuery = q.Encode()
	for name, c := range map[string]struct {
		url  string
		o    postgres.Options
		want string
	}{
		"no URL":          {"postgres://%zz", postgres.Options{}, "parse the database URL"},
		"no migrate URL":  {pg.DSN, postgres.Options{MigrateURL: "postgres://%zz"}, "parse the migration URL"},
		"no schema":       {u.String(), postgres.Options{}, "no_such_schema"},
		"no tables":       {pg.DSN, postgres.Options{SkipMigrate: true}, "journal"},
		"nobody is there": {"postgres://qm@127.0.0.1:1/x", postgres.Options{}, "connect"},
	} {
		j, err := postgres.Open(t.Context(), c.url, c.o)
		if err == nil {
			j.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What is not what was written is named by its seq, by the reader where it cannot even be read.
//
// Proves: journal.chain
func TestDamagedRows(t *testing.T) {
	pg := testenv.Postgres(t)
	j := open(t, pg.DSN, postgres.Options{})
	write(t, j, "production/shop", 5)
	conn := pg.Conn(t)
	for _, c := range []struct{ sql, want string }{
		{"update journal set body = '{\"n\":1}' where seq = 4", "seq 4: wrong hash"},
		{"delete from journal where seq = 3", "seq 4: gap"},
		{"update journal set hash = '\\x00' where seq = 2", "seq 2: its hash has 1 bytes"},
	} {
		for _, sql := range []string{"alter table journal disable trigger all", c.sql, "alter table journal enable trigger all"} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		chain := journal.NewChain(journal.Head{Stream: "production/shop"})
		if err := j.Read(t.Context(), "production/shop", 0, chain.Check); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.sql, err)
		}
	}
}

// The PostgreSQL expression in chain.go computes the same hashes.
func TestHashInSQL(t *testing.T) {
	pg := testenv.Postgres(t)
	j := open(t, pg.DSN, postgres.Options{})
	write(t, j, "production/läden", 4)
	var n, good int
	err := pg.Conn(t).QueryRow(t.Context(), `
		with text_field as (select stream, seq, hash, lag(hash, 1, decode(repeat('00', 32), 'hex')) over (partition by stream order by seq) prev,
			convert_to(stream, 'UTF8') s, convert_to(kind, 'UTF8') k, convert_to(actor, 'UTF8') a, convert_to(cause, 'UTF8') c, convert_to(body::text, 'UTF8') b,
			(extract(epoch from at) * 1000000)::bigint us, version from journal)
		select count(*), count(*) filter (where hash = sha256(prev || int4send(length(s)) || s || int4send(8) || int8send(seq) || int4send(8) || int8send(us)
			|| int4send(length(k)) || k || int4send(8) || int8send(version) || int4send(length(a)) || a || int4send(length(c)) || c || int4send(length(b)) || b))
		from text_field`).Scan(&n, &good)
	if err != nil || n != 4 || good != 4 {
		t.Fatalf("%d of %d hashes are the same, %v", good, n, err)
	}
}

// tryFor calls until it succeeds: for things that take a moment and announce it by nothing.
func tryFor(t *testing.T, limit time.Duration, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		err := call(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("still failing: %v", err)
		}
	}
}

// The server is killed, stays away and comes back; then it stalls and goes on. The journal is the same object all the time.
func TestRecovery(t *testing.T) {
	pg := testenv.OwnPostgres(t)
	j := open(t, pg.DSN, postgres.Options{})
	l := write(t, j, "production/shop", 3)
	// Several sessions, so that more than one is broken.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _ = j.Ping(t.Context()) })
	}
	wg.Wait()

	next := record(l.Head)
	fails := func(what string) {
		t.Helper()
		for name, call := range map[string]func(context.Context) error{
			"append": func(ctx context.Context) error { return j.Append(ctx, l.Epoch, next) },
			"read": func(ctx context.Context) error {
				return j.Read(ctx, l.Stream, 0, func(*journal.Record) error { return nil })
			},
			"renew": func(ctx context.Context) error { _, err := j.Renew(ctx, []journal.Lease{l}, time.Hour); return err },
			"ping":  j.Ping,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			err := call(ctx)
			cancel()
			if err == nil || errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrInvalid) {
				t.Errorf("%s while the server %s: got %v", name, what, err)
			}
		}
	}
	works := func() {
		t.Helper()
		tryFor(t, 30*time.Second, j.Ping)
		// The append that failed may have been written (the caller reads again, as the contract says).
		head, err := j.Acquire(t.Context(), l.Stream, "a", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if head.Epoch != l.Epoch {
			t.Fatalf("epoch %d after %d", head.Epoch, l.Epoch)
		}
		l = head
		l = write(t, j, l.Stream, 1)
		chain := journal.NewChain(journal.Head{Stream: l.Stream})
		if err := j.Read(t.Context(), l.Stream, 0, chain.Check); err != nil {
			t.Fatal(err)
		}
		if chain.Head().Seq != l.Head.Seq {
			t.Fatalf("read to %d, the head is at %d", chain.Head().Seq, l.Head.Seq)
		}
		next = record(l.Head)
	}

	pg.Kill()
	fails("is gone")
	pg.Start()
	works()
	if l.Head.Seq < 4 {
		t.Fatalf("acknowledged records are missing: the head is at %d", l.Head.Seq)
	}

	pg.Pause()
	fails("stalls")
	pg.Resume()
	works()
}

// Sessions that somebody ends are replaced, and so is one whose prepared statement a pooler has dropped.
func TestBrokenSessions(t *testing.T) {
	pg := testenv.Postgres(t)
	j := open(t, pg.DSN, postgres.Options{MaxConns: 2})
	l := write(t, j, "production/shop", 1)
	conn := pg.Conn(t)
	for _, sql := range []string{
		"select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'qm' and pid <> pg_backend_pid()",
		"alter table journal alter column kind type varchar",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		tryFor(t, 30*time.Second, func(ctx context.Context) error {
			got, err := j.Acquire(ctx, l.Stream, "a", time.Hour)
			if err != nil {
				return err
			}
			return j.Append(ctx, got.Epoch, record(got.Head))
		})
	}
	if n := write(t, j, l.Stream, 1).Head.Seq; n != 4 {
		t.Fatalf("the head is at %d", n)
	}
}
