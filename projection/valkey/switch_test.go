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

// The switch compares for itself: whoever checked before it wrote its pages may have been overtaken meanwhile.
func TestSwitchComparesEpochAndSeq(t *testing.T) {
	vk := testenv.Valkey(t)
	s, err := Open(t.Context(), vk.URL, Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	const stream = "production/sale"
	attempt := func(mode, epoch, after, last string) string {
		t.Helper()
		args := []string{mode, epoch, after, last, "new", "{}", "0", "0", s.channel(stream)}
		answer, err := s.run(t.Context(), switchScript, stream, args).AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		return answer[0]
	}
	if verdict := attempt("apply", "3", "0", "5"); verdict != "gap" {
		t.Errorf("a batch without a projection: %s", verdict)
	}
	if err := s.Reset(t.Context(), stream, 3, 10, room.New()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ mode, epoch, after, last, want string }{
		{"apply", "2", "10", "11", "stale"},
		{"reset", "2", "0", "11", "stale"},
		{"apply", "3", "11", "12", "gap"},
		{"apply", "3", "8", "10", "seen"},
		{"apply", "4", "8", "9", "seen"},
	} {
		if verdict := attempt(c.mode, c.epoch, c.after, c.last); verdict != c.want {
			t.Errorf("%+v: %s", c, verdict)
		}
		if at, err := s.Position(t.Context(), stream); err != nil || at.Epoch != 3 || at.Seq != 10 || at.Incarnation == "new" {
			t.Errorf("after %+v: position %+v, %v", c, at, err)
		}
	}
	if verdict := attempt("apply", "4", "9", "12"); verdict != "ok" {
		t.Errorf("a batch that overlaps: %s", verdict)
	}
	if at, err := s.Position(t.Context(), stream); err != nil || at != (projection.Position{Incarnation: "new", Epoch: 4, Seq: 12}) {
		t.Errorf("position %+v, %v", at, err)
	}
}
