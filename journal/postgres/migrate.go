package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed grants.sql
var grants string

// versions is goose's table. Other packages may keep migrations of their own in the same schema.
const versions = "journal_migration"

// migrate brings the schema up to date with the role of migrateURL, or the server's own where that is "". Any number of processes may do so
// at once: they take turns under an advisory lock of the schema.
func migrate(ctx context.Context, server *pgx.ConnConfig, migrateURL string) (err error) {
	config, role := server.Copy(), ""
	if migrateURL != "" {
		if config, err = pgx.ParseConfig(migrateURL); err != nil {
			return fmt.Errorf("parse the migration URL: %w", err)
		}
		prepareConfig(&config.Config)
		// The tables belong where the server looks for them.
		if path := server.RuntimeParams["search_path"]; path != "" && config.RuntimeParams["search_path"] == "" {
			config.RuntimeParams["search_path"] = path
		}
		if role, err = currentUser(ctx, server); err != nil {
			return fmt.Errorf("ask for the server's role: %w", err)
		}
	}

	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }() // gives up the lock, too
	var owner string
	var schema *string
	err = conn.QueryRow(ctx, "select current_user, current_schema()").Scan(&owner, &schema)
	if err != nil {
		return err
	}
	if schema == nil {
		return fmt.Errorf("no schema of search_path %q exists", config.RuntimeParams["search_path"])
	}
	if _, err = conn.Exec(ctx, "select pg_advisory_lock(hashtextextended('qm journal ' || $1, 0))", *schema); err != nil {
		return fmt.Errorf("wait for other processes that migrate: %w", err)
	}

	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithTableName(versions), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	if _, err = provider.Up(ctx); err != nil {
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
