package postgres_test

import (
	"testing"

	"qm/internal/testenv"
	"qm/journal/journaltest"
	"qm/journal/postgres"
)

// As in TestPostgres, with a role that owns nothing.
func TestPostgresNotes(t *testing.T) {
	journaltest.RunNotes(t, func(t *testing.T) journaltest.Audited {
		pg := testenv.Postgres(t)
		_, dsn := serverRole(t, pg)
		return open(t, dsn, postgres.Options{MigrateURL: pg.DSN})
	})
}
