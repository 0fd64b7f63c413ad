package alert

import (
	"testing"
	"time"

	"qm/engine/room"
)

// What is read of a room: each rule at its limit, just below, and well within.
func TestReadingsOfARoom(t *testing.T) {
	now := start
	at := room.Instant(now.UnixMilli())
	bucket := int64(at) / 10_000
	size := int64(len(room.Flow{}.Joined))
	flow := func(joined, passed uint32) (f room.Flow) {
		f.Newest = bucket
		f.Joined[bucket%size], f.Passed[bucket%size] = joined, passed
		return f
	}
	house := func(rate int64, waiting int, f room.Flow) room.Summary {
		return room.Summary{Exists: true, Mode: room.Active, Settings: &room.Settings{RatePerMinute: rate, TargetURL: "https://shop.example/"}, Waiting: waiting, Flow: f, CreatedAt: at - 3_600_000}
	}
	changed := func(s room.Summary, change func(*room.Summary)) room.Summary { change(&s); return s }
	s := &Service{rules: map[string]Rule{}}
	for _, r := range Defaults() {
		s.rules[r.ID] = r
	}
	const bad, good, between = "bad", "good", "between"
	for _, c := range []struct {
		name, rule string
		sum        room.Summary
		lag        int64
		want       string
	}{
		{"a surge", Surge, house(60, 0, flow(3000, 0)), 0, bad},
		{"just below one", Surge, house(60, 0, flow(2999, 0)), 0, between},
		{"a few who join", Surge, house(60, 0, flow(100, 0)), 0, good},
		{"somebody waits, nobody passes", NotMoving, house(60, 1, flow(0, 0)), 0, bad},
		{"likewise, by an operator's pause", NotMoving, changed(house(60, 1, flow(0, 0)), func(s *room.Summary) { s.Mode = room.Paused }), 0, bad},
		{"somebody passes", NotMoving, house(60, 1, flow(0, 1)), 0, good},
		{"nobody waits", NotMoving, house(60, 0, flow(0, 0)), 0, good},
		{"the doors are still shut", NotMoving, changed(house(60, 5, flow(0, 0)), func(s *room.Summary) { s.OpensAt = at + 60_000 }), 0, good},
		{"the room is closed", NotMoving, changed(house(60, 5, flow(0, 0)), func(s *room.Summary) { s.Mode = room.Idle }), 0, good},
		{"a line of hours", ETA, house(1, 100_000, flow(0, 1)), 0, bad},
		{"a short line", ETA, house(600, 10, flow(0, 10)), 0, good},
		{"a line that stands still has no end to quote", ETA, house(0, 100_000, flow(0, 0)), 0, good},
		{"behind", Lag, house(60, 0, flow(0, 0)), 10_000, bad},
		{"catching up", Lag, house(60, 0, flow(0, 0)), 9_000, between},
		{"caught up", Lag, house(60, 0, flow(0, 0)), 0, good},
	} {
		got := ""
		for _, r := range s.ofRoom("sale", &c.sum, c.lag, now) {
			if r.Rule == c.rule {
				got = map[[2]bool]string{{true, false}: bad, {false, true}: good, {false, false}: between}[[2]bool{r.Bad, r.Good}]
			}
		}
		if got != c.want {
			t.Errorf("%s: %s is %q, not %q", c.name, c.rule, got, c.want)
		}
	}
}

// Refusals of the last minute are counted, whatever came before.
func TestRefusalsOfTheLastMinute(t *testing.T) {
	var r refusals
	total := int64(5_000) // from before anybody looked
	for i := range 200 {
		total += 10
		got := r.lastMinute(total, start.Add(time.Duration(i)*time.Second))
		if want := int64(10 * min(i, 60)); got != want {
			t.Fatalf("after %d s %d, not %d", i, got, want)
		}
	}
	if got := r.lastMinute(total, start.Add(time.Hour)); got != 0 || len(r.marks) > 2 {
		t.Errorf("an hour later %d, with %d marks", got, len(r.marks))
	}
}
