package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// grants is what the server's own role (the first argument) may do in the schema (the second), when another role owns the tables.
const grants = `
grant usage on schema %[2]s to %[1]s;
grant select, insert, update, delete on river_job, river_leader, river_queue, river_notification to %[1]s;
grant select on river_migration to %[1]s;
grant usage on sequence river_job_id_seq, river_notification_id_seq to %[1]s;`

// migrate brings River's tables up to date with the role of o.MigrateURL, or the server's own. Processes that do so at once take turns
// under an advisory lock of the schema.
func migrate(ctx context.Context, server *pgxpool.Config, o Options) (err error) {
	config, role := server.Copy(), ""
	if o.MigrateURL != "" {
		if config, err = pgxpool.ParseConfig(o.MigrateURL); err != nil {
			return fmt.Errorf("parse the migration URL: %w", err)
		}
		prepare(config)
		// The tables belong where the server looks for them.
		if path := server.ConnConfig.RuntimeParams["search_path"]; path != "" && config.ConnConfig.RuntimeParams["search_path"] == "" {
			config.ConnConfig.RuntimeParams["search_path"] = path
		}
		if role, err = currentUser(ctx, server.ConnConfig); err != nil {
			return fmt.Errorf("ask for the server's role: %w", err)
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) (err error) {
		var owner string
		var schema *string
		if err = conn.QueryRow(ctx, "select current_user, current_schema()").Scan(&owner, &schema); err != nil {
			return err
		}
		if schema == nil {
			return errNoSchema
		}
		const lock = "hashtextextended('qm jobs ' || $1, 0)"
		if _, err = conn.Exec(ctx, "select pg_advisory_lock("+lock+")", *schema); err != nil {
			return fmt.Errorf("wait for other processes that migrate: %w", err)
		}
		defer func() {
			_, unlock := conn.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock("+lock+")", *schema)
			err = errors.Join(err, unlock)
		}()
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
		if role == "" || role == owner {
			return nil
		}
		sql := fmt.Sprintf(grants, pgx.Identifier{role}.Sanitize(), pgx.Identifier{*schema}.Sanitize())
		if _, err = conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("grant role %s its rights: %w", role, err)
		}
		return nil
	})
}

func currentUser(ctx context.Context, config *pgx.ConnConfig) (role string, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	err = conn.QueryRow(ctx, "select current_user").Scan(&role)
	return role, err
}
