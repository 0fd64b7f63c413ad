package postgres_test

import (
	"testing"

	"qm/internal/testenv"
	"qm/journal"
	"qm/journal/journaltest"
	"qm/journal/postgres"
)

func open(t testing.TB, url string, o postgres.Options) *postgres.Journal {
	t.Helper()
	j, err := postgres.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

func TestPostgres(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) (journal.Journal, journal.Vault) {
		j := open(t, testenv.Postgres(t).DSN, postgres.Options{})
		return j, j
	})
}
