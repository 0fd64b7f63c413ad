package valkey

import (
	"strings"
	"testing"

	"qm/engine/room"
	"qm/internal/testenv"
	"qm/projection"
)

// A rewrite that took longer than its pages live has lost some of them, and must not become what readers see.
func TestSwitchRefusesPagesThatExpired(t *testing.T) {
	vk := testenv.Valkey(t)
	s, err := Open(t.Context(), vk.URL, Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	const stream = "production/sale"
	if err := s.Reset(t.Context(), stream, 1, 0, room.New()); err != nil {
		t.Fatal(err)
	}
	before, err := s.Position(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	kept := s.base(stream) + "new:s:0"
	if err := s.do(t.Context(), s.client.B().Set().Key(kept).Value("x").ExSeconds(60).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	args := []string{"reset", "1", "0", "5", "new", "{}", "1", "0", s.channel(stream), "s:0", "t:0"}
	if err := s.run(t.Context(), switchScript, stream, args).Error(); err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("switch: %v", err)
	}
	if at, err := s.Position(t.Context(), stream); err != nil || at != before || before == (projection.Position{}) {
		t.Errorf("position %+v, was %+v (%v)", at, before, err)
	}
	if ttl, err := s.do(t.Context(), s.client.B().Ttl().Key(kept).Build()).AsInt64(); err != nil || ttl <= 0 {
		t.Errorf("a page of the rewrite stays for ever: ttl %d (%v)", ttl, err)
	}
}
