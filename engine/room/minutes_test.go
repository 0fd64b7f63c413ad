package room

import "testing"

// row is the newest row without what the test does not speak of.
func (d *desk) row() Minute {
	d.t.Helper()
	m, ok := d.s.LastMinute()
	if !ok {
		d.t.Fatalf("the room has no history")
	}
	return m
}

// Each row holds what happened in its minute, and how the room stood after the last event of it.
func TestMinutesCountWhatHappened(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.PassedTTLSec = 60, 5 })
	d.now = (d.now/msPerMinute + 1) * msPerMinute // a minute of its own
	first := int64(d.now / msPerMinute)
	d.join(1, 10)
	equal(t, "after ten joins", d.row(), Minute{Minute: first, Joined: 10, Depth: 10, DepthMost: 10, Generation: 1})

	d.now += 4000
	d.must(Flush{Count: 3})
	d.must(EnterDoor{Generation: 1, Ticket: 1, Holder: d.arrival(1).Holder, Door: Holder{9}})
	d.must(EnterDoor{Generation: 1, Ticket: 1, Holder: d.arrival(1).Holder, Door: Holder{8}}) // taken up again: no second entry
	d.must(EjectTicket{Ticket: 4})
	d.must(GiveBack{Generation: 1, Holder: d.arrival(5).Holder})
	equal(t, "after a flush, an entry, an eject and a leave", d.row(), Minute{
		Minute: first, Joined: 10, Passed: 3, Entered: 1, Left: 1, Removed: 1, WaitSum: 12_000, WaitMost: 4000,
		Depth: 6, DepthMost: 10, Doors: 1, Generation: 1,
	})

	d.now += 3 * msPerMinute // two minutes without events have no rows
	d.must(SetMode{Mode: Paused})
	d.must(Tick{})
	equal(t, "after two passes have lapsed", d.row(), Minute{Minute: first + 3, Lapsed: 2, Depth: 6, DepthMost: 6, Doors: 1, Generation: 1})
	d.must(PurgeLine{})
	d.must(DeleteRoom{})
	equal(t, "after purge and delete", d.row(), Minute{Minute: first + 3, Lapsed: 2, Removed: 6, DepthMost: 6, Generation: 1})
	if n := len(d.s.Minutes()); n < 2 {
		t.Fatalf("a deleted room has %d rows of history", n)
	}
}

// A room keeps the newest rows.
func TestMinutesKept(t *testing.T) {
	d := newRoom(t, nil)
	d.must(SetMode{Mode: Paused})
	for i := range MinutesKept + 10 {
		d.now += msPerMinute
		d.join(i+1, i+1)
	}
	rows := d.s.Minutes()
	equal(t, "rows", len(rows), MinutesKept)
	for i, m := range rows {
		equal(t, "minute", m.Minute, int64(d.now/msPerMinute)-int64(MinutesKept-1-i))
		equal(t, "joined", m.Joined, uint32(1))
	}
	d.compare()
}

// What drawn tickets had waited counts from their entry.
func TestMinutesCountAWaitFromTheEntry(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 6000 })
	d.drop(60_000, 7)
	d.kinds(d.arrival(1), "enqueue")
	equal(t, "entries", d.row().PreQueue, uint32(1))
	d.now += 60_000
	d.draw(7)
	passed := d.wait(1000, nil)
	equal(t, "passed", passed, []Ticket{1})
	if m := d.row(); m.Joined != 0 || m.Passed != 1 || m.WaitMost < 60_000 || m.WaitMost > 61_000 || m.PreQueue != 0 {
		t.Fatalf("after the draw: %+v", m)
	}
}
