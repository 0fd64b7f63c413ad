package valkey_test

import (
	"testing"

	"qm/internal/testenv"
	"qm/projection"
	"qm/projection/projectiontest"
	"qm/projection/valkey"
)

func open(t testing.TB) *valkey.Store {
	vk := testenv.Valkey(t)
	s, err := valkey.Open(t.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestStore(t *testing.T) {
	projectiontest.Run(t, func(t *testing.T) projection.Store { return open(t) })
}
