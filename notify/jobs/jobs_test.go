package jobs_test

import (
	"context"
	"log/slog"
	"net/url"
	"testing"

	"go.uber.org/goleak"

	"qm/internal/testenv"
	"qm/notify"
	"qm/notify/jobs"
	"qm/notify/notifytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The suite runs as a server whose role owns nothing: what it is granted is enough.
func TestQueue(t *testing.T) {
	notifytest.Queue(t, func(t *testing.T) notifytest.Store {
		pg := testenv.Postgres(t)
		dsn := serverRole(t, pg)
		return notifytest.Store{Durable: true, Open: func(t *testing.T, log *slog.Logger, kinds notify.Kinds) notify.Queue {
			q, err := jobs.Open(t.Context(), dsn, jobs.Options{MigrateURL: pg.DSN, Log: log}, kinds)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(q.Close)
			return q
		}}
	})
}

// serverRole makes a role without any rights and returns the database URL of a server that runs as it.
func serverRole(t *testing.T, pg *testenv.PG) (dsn string) {
	t.Helper()
	role := pg.Schema + "_qm"
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
	return u.String()
}
