package postgres_test

import (
	"context"
	"testing"
	"time"

	"qm/internal/testenv"
	"qm/journal/postgres"
	"qm/notify/notifytest"
)

// The suite runs as a server whose role owns nothing.
func TestRegistrations(t *testing.T) {
	notifytest.Registrations(t, func(t *testing.T) notifytest.Table {
		pg := testenv.Postgres(t)
		_, dsn := serverRole(t, pg)
		j := open(t, dsn, postgres.Options{MigrateURL: pg.DSN})
		conn := pg.Conn(t)
		return notifytest.Table{Registrations: j.Registrations(), Age: func(d time.Duration) {
			if _, err := conn.Exec(context.Background(), "update registration_given set at = at - $1::interval", d); err != nil {
				t.Fatal(err)
			}
		}}
	})
}
