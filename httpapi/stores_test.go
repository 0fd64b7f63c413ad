package httpapi

import (
	"testing"

	"qm/engine"
	"qm/internal/testenv"
	"qm/journal"
	"qm/journal/postgres"
	"qm/projection"
	"qm/projection/valkey"
)

// stores are the pairs of stores that every case runs on (domain.md rule 2). On the memory pair a case lives in a bubble: time is
// synctest's, and a minute costs nothing. On the real pair it takes the time that it says, beside the others.
var stores = []struct {
	name   string
	bubble bool
	open   func(*testing.T) engine.Options
}{
	{"memory", true, inProcess},
	{"valkey+pg", false, real},
}

func inProcess(*testing.T) engine.Options {
	m := journal.NewMemory()
	return engine.Options{Journal: m, Vault: m, Series: projection.NewMemorySeries()}
}

func real(t *testing.T) engine.Options {
	pg, vk := testenv.Postgres(t), testenv.Valkey(t)
	j, err := postgres.Open(t.Context(), pg.DSN, postgres.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	shared, err := valkey.Open(t.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shared.Close)
	return engine.Options{Journal: j, Vault: j, Series: j.Series(), Shared: shared}
}
