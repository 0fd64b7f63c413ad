package room

import (
	"slices"
	"testing"
)

// The sentences of domain.md rule 5, one after the other.

func TestTheClockPassesAtTheRate(t *testing.T) {
	for _, rate := range []int64{1, 7, 60, 90, 600, 6000, 100_000} {
		d := newRoom(t, func(s *Settings) { s.RatePerMinute = rate })
		d.thrift = true
		people := min(int(rate)+10, 2000)
		d.join(1, people)
		minute := Instant(60_000)
		if rate > 1500 { // enough people for a part of a minute
			minute = 60_000 * 1500 / Instant(rate) / 200 * 200
		}
		passed := d.wait(minute, nil)
		// What accrued before the first join is nothing: the room was made in the same millisecond.
		if want := int(rate * int64(minute) / 60_000); len(passed) != want {
			t.Errorf("%d passed in %d ms at %d a minute, not %d", len(passed), minute, rate, want)
		}
		if !slices.IsSorted(passed) || len(passed) > 0 && passed[0] != 1 {
			t.Errorf("at %d a minute they passed in the order %v", rate, passed)
		}
	}
}

func TestSlicesAreSmooth(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 600 })
	d.join(1, 200)
	for i := range 50 {
		d.now += 200
		if n := len(passedIn(d.must(Tick{}))); n != 2 {
			t.Fatalf("tick %d passed %d, not 2", i, n)
		}
	}
}

func TestAStalledClockMakesNothingUp(t *testing.T) {
	for _, gap := range []Instant{1000, 1001, 5000, 3_600_000} {
		d := newRoom(t, func(s *Settings) { s.RatePerMinute = 600 })
		d.join(1, 100)
		d.now += gap
		if n := len(passedIn(d.must(Tick{}))); n != 10 {
			t.Errorf("%d passed after a stall of %d ms; one second's worth is 10", n, gap)
		}
	}
}

// A stall in which commands are decided, but no tick, is a stall all the same.
func TestJoinsDuringAStallMakeNothingUp(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 600 })
	d.join(1, 100)
	for i := range 12 {
		d.now += 500
		d.join(101+i, 101+i)
	}
	if n := len(passedIn(d.must(Tick{}))); n != 10 {
		t.Errorf("%d passed after a stall of 6 s with joins in it; one second's worth is 10", n)
	}
}

func TestIdleTimeIsForgiven(t *testing.T) {
	for _, c := range []struct {
		rate int64
		want int // at once, after an hour in which nobody waited
	}{{1, 1}, {59, 1}, {60, 1}, {120, 2}, {600, 10}, {6000, 100}} {
		d := newRoom(t, func(s *Settings) { s.RatePerMinute = c.rate })
		d.wait(3_600_00, nil)
		d.now += 3_600_000
		d.must(Tick{})
		if limit := max(60_000, c.rate*1000); d.meter.Credit > limit {
			t.Errorf("credit %d is kept while nobody waits; the cap is %d", d.meter.Credit, limit)
		}
		d.join(1, 300)
		if n := len(passedIn(d.must(Tick{}))); n != c.want {
			t.Errorf("at %d a minute %d passed at once after an idle hour, not %d", c.rate, n, c.want)
		}
	}
}

func TestNothingIsSavedUpWhileTheSlotsAreFull(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.MaxConcurrent, s.PresenceSec = 600, num(5), nil })
	d.join(1, 100)
	if n := len(d.wait(60_000, nil)); n != 5 {
		t.Fatalf("%d passed into 5 slots", n)
	}
	for i := 1; i <= 5; i++ {
		d.kinds(GiveBack{Generation: 1, Holder: who(i)}, "leave")
	}
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute, s.PresenceSec = 600, nil })})
	if n := len(passedIn(d.must(Tick{}))); n != 10 {
		t.Fatalf("%d passed at once when a full room was opened; a second's worth is 10", n)
	}
}

func TestNothingIsSavedUpWhileOnlyGhostsWait(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.PresenceSec = 600, num(30) })
	w := d.watching()
	d.join(1, 20)
	d.meter.Credit = 0
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute, s.PresenceSec = 0, num(30) })})
	d.wait(31_000, w)
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute, s.PresenceSec = 600, num(30) })})
	if n := len(d.wait(60_000, w)); n != 0 {
		t.Fatalf("%d ghosts passed by themselves", n)
	}
	d.join(21, 200)
	for n := Ticket(21); n <= 200; n++ {
		d.sees(w, n)
	}
	d.now += 200
	passed := passedIn(d.must(Tick{Presence: w}))
	if paid := len(passed) - 20; paid > 12 { // a second's worth is kept, and this tick's share is earned
		t.Fatalf("%d paid passes at once after a minute in which only ghosts waited", paid)
	}
}

func TestARateChangeCountsFromItsInstant(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 60 })
	d.join(1, 200)
	d.now += 900
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute = 6000 })})
	equal(t, "credit at the change", d.s.credit, 60*900)
	d.now += 100
	if n, want := len(passedIn(d.must(Tick{}))), (60*900+6000*100)/60_000; n != want {
		t.Fatalf("%d passed, not %d", n, want)
	}
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute = 0 })})
	if n := len(d.wait(60_000, nil)); n != 0 {
		t.Fatalf("%d passed at rate 0", n)
	}
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute = 60 })})
	if n := len(d.wait(10_000, nil)); n < 9 || n > 11 {
		t.Fatalf("%d passed in 10 s at 60 a minute", n)
	}
}

// An idle room's credit at a high rate is not spent after the rate was lowered.
func TestLoweringTheRateForgivesTheOldCap(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 100_000 })
	d.now += 1000
	d.must(Tick{})
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute = 60 })})
	d.join(1, 100)
	if n := len(passedIn(d.must(Tick{}))); n > 1 {
		t.Fatalf("%d passed at once on credit of the rate before", n)
	}
}

func TestPauseStopsTheClock(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 60 })
	w := d.watching()
	d.join(1, 100)
	d.now += 500
	d.kinds(SetMode{Mode: Paused}, "state")
	d.nothing(SetMode{Mode: Paused})
	if n := len(d.wait(120_000, w)); n != 0 {
		t.Fatalf("%d passed while paused, ghosts included", n)
	}
	d.kinds(SetMode{Mode: Active}, "state")
	d.now += 400
	d.sees(w, 1, 2, 3)
	if n := len(passedIn(d.must(Tick{}))); n != 0 {
		t.Fatalf("%d passed 900 ms of active time after the start, at 60 a minute", n)
	}
	d.now += 100
	if n := len(passedIn(d.must(Tick{}))); n != 1 {
		t.Fatalf("%d passed after 1,000 ms of active time, at 60 a minute", n)
	}
}

func TestThePaidPassTakesTheGhostsBeforeItAlong(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.MaxConcurrent = 180, num(2) })
	w := d.watching()
	d.join(1, 9)
	d.must(SetMode{Mode: Paused})
	d.now += 30_000
	d.sees(w, 3, 6, 9)
	d.must(SetMode{Mode: Active})
	d.now++                           // beyond the 30 s now
	d.meter.Credit = 3*PassCost - 180 // this millisecond earns the rest
	e := d.kinds(Tick{Presence: w}, "pass")[0].Body.(*Pass)
	equal(t, "pass", e, &Pass{By: "clock", Spans: []Span{{1, 6}}, Ghosts: []Span{{1, 2}, {4, 5}}, Credit: PassCost})
	equal(t, "slots", d.s.slots, 2)
	for n := Ticket(1); n <= 6; n++ {
		if p := d.s.Ticket(n); p.Slot != (n == 3 || n == 6) {
			t.Errorf("ticket %d: slot %v", n, p.Slot)
		}
	}
	d.now += 1000
	d.sees(w, 3, 6, 9)
	d.nothing(Tick{Presence: w}) // full slots stop the ghosts 7 and 8 too
	d.kinds(GiveBack{Generation: 1, Holder: who(3)}, "leave")
	e = d.kinds(Tick{Presence: w}, "pass")[0].Body.(*Pass)
	equal(t, "spans", e.Spans, []Span{{7, 9}})
	equal(t, "ghosts", e.Ghosts, []Span{{7, 8}})
}

func TestPresenceIsJudgedByUnbrokenObservation(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 60 })
	d.join(1, 1)
	d.now += 3_600_000
	w := d.watching() // a new owner: everyone counts as present for presenceSec
	for _, c := range []struct {
		later Instant
		ghost bool
	}{{0, false}, {30_000, false}, {30_001, true}} {
		if got := d.s.absent(w, 1, w.since+c.later); got != c.ghost {
			t.Errorf("%d ms after the start of observation: ghost %v", c.later, got)
		}
	}
	w.seen[1] = w.since + 10_000
	if d.s.absent(w, 1, w.since+40_000) || !d.s.absent(w, 1, w.since+40_001) {
		t.Error("a ticket seen at 10 s is a ghost from 40 s on, not before")
	}
	if d.s.absent(nil, 1, w.since+1e9) {
		t.Error("without observation nobody is a ghost")
	}
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.PresenceSec = nil })})
	if d.s.absent(w, 1, w.since+1e9) {
		t.Error("with the rule off nobody is a ghost")
	}
}

func TestFlush(t *testing.T) {
	t.Run("ignores rate and pause", func(t *testing.T) {
		d := newRoom(t, func(s *Settings) { s.RatePerMinute = 0 })
		d.must(SetMode{Mode: Paused})
		d.join(1, 10)
		e := d.kinds(Flush{Count: 4}, "pass")[0].Body.(*Pass)
		equal(t, "pass", e, &Pass{By: "flush", Spans: []Span{{1, 4}}})
		equal(t, "the rest", passedIn(d.must(Flush{Count: 100})), []Ticket{5, 6, 7, 8, 9, 10})
		d.nothing(Flush{Count: 1})
	})
	t.Run("leaves the clock's credit", func(t *testing.T) {
		d := newRoom(t, func(s *Settings) { s.RatePerMinute = 60 })
		d.join(1, 10)
		d.now += 700
		d.must(Flush{Count: 2})
		equal(t, "credit", d.s.credit, 42_000)
		d.now += 300
		equal(t, "the clock's next", passedIn(d.must(Tick{})), []Ticket{3})
	})
	t.Run("counts ghosts among its number", func(t *testing.T) {
		d := newRoom(t, nil)
		w := d.watching()
		d.join(1, 10)
		d.now += 60_000
		d.sees(w, 3, 4)
		e := d.kinds(Flush{Count: 3, Presence: w}, "pass")[0].Body.(*Pass)
		equal(t, "spans", e.Spans, []Span{{1, 3}})
		equal(t, "ghosts", e.Ghosts, []Span{{1, 2}})
		equal(t, "slots", d.s.slots, 1)
	})
	t.Run("never exceeds the slots", func(t *testing.T) {
		d := newRoom(t, func(s *Settings) { s.MaxConcurrent = num(3) })
		d.join(1, 10)
		equal(t, "passed", passedIn(d.must(Flush{Count: 10})), []Ticket{1, 2, 3})
		d.nothing(Flush{Count: 10})
	})
	t.Run("of nobody, none or less", func(t *testing.T) {
		d := newRoom(t, nil)
		d.nothing(Flush{Count: 5})
		d.join(1, 2)
		d.nothing(Flush{Count: 0})
		d.nothing(Flush{Count: -1})
	})
	t.Run("steps over held tickets", func(t *testing.T) {
		d := newRoom(t, nil)
		c := d.arrival(1)
		c.Score = 70
		d.kinds(c, "join")
		d.join(2, 3)
		equal(t, "passed", passedIn(d.must(Flush{Count: 5})), []Ticket{2, 3})
	})
}

// A slotless pass enters even when the room is full; it is counted, and paid passes wait.
func TestASlotlessPassEntersAFullRoom(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.MaxConcurrent = 600, num(1) })
	w := d.watching()
	d.join(1, 4)
	d.must(SetMode{Mode: Paused})
	d.now += 31_000
	d.sees(w, 2, 3, 4)
	d.must(SetMode{Mode: Active})
	d.meter.Credit = PassCost
	equal(t, "passed", passedIn(d.must(Tick{Presence: w})), []Ticket{1, 2})
	equal(t, "slots", d.s.slots, 1)
	d.kinds(EnterDoor{Generation: 1, Ticket: 1, Holder: who(1), Door: Holder{1}}, "enter")
	equal(t, "slots after the slotless one entered", d.s.slots, 2)
	d.kinds(GiveBack{Generation: 1, Holder: who(2)}, "leave")
	if n := len(d.wait(10_000, nil)); n != 0 || d.s.slots != 1 {
		t.Fatalf("%d paid passes while the room was over its limit", n)
	}
	d.kinds(GiveBack{Generation: 1, Holder: who(1)}, "leave")
	equal(t, "the next", d.wait(200, nil), []Ticket{3})
}

func TestUnslot(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.MaxConcurrent = 6000, num(2) })
	w := d.watching()
	d.join(1, 4)
	d.sees(w, 1, 2, 3, 4)
	d.meter.Credit = 2 * PassCost
	equal(t, "passed", passedIn(d.must(Tick{Presence: w})), []Ticket{1, 2})
	d.now += 5000
	d.sees(w, 1, 3, 4) // 1 was told; 2 never was
	d.now = d.s.Ticket(2).PassedAt + 30_000
	d.sees(w, 3, 4)
	d.nothing(Tick{Presence: w})
	d.now++
	events := d.kinds(Tick{Presence: w}, "unslot pass")
	equal(t, "unslotted", events[0].Body.(*Unslot).Tickets, []Ticket{2})
	equal(t, "passed into the slot", passedIn(events), []Ticket{3})
	if p := d.s.Ticket(2); p.Status != Passed || p.Slot || p.Expired(d.s.settings, d.now) {
		t.Fatalf("the pass without its slot is %+v", p)
	}
	d.now += 60_000
	d.sees(w, 3, 4)
	d.nothing(Tick{Presence: w}) // 1 was told: its slot stays until passedTtlSec
	d.kinds(EnterDoor{Generation: 1, Ticket: 2, Holder: who(2), Door: Holder{2}}, "enter")
	equal(t, "slots", d.s.slots, 3)
}

func TestACreditIsNeverNegativeAndNeverLost(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 7 })
	d.thrift = true
	d.join(1, 900)
	passed := 0
	for range 36_000 { // two hours, in uneven ticks
		d.now += 199 + Instant(passed%3)
		passed += len(passedIn(d.must(Tick{})))
	}
	want := int(7 * int64(d.now-dawn) / 60_000)
	if passed != want {
		t.Fatalf("%d passed in %d ms at 7 a minute, not %d", passed, d.now-dawn, want)
	}
}

// An owner whose clock is behind the room's earns nothing until it has caught up.
func TestAnOwnerWhoseClockIsBehindEarnsNothing(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 600 })
	d.join(1, 20)
	d.now = dawn - 10_000
	d.meter = NewMeter(d.s, d.now)
	if n := len(d.wait(10_000, nil)); n != 0 {
		t.Fatalf("%d passed while the room's clock stood", n)
	}
	if n := len(d.wait(1000, nil)); n != 10 {
		t.Fatalf("%d passed in the first second after", n)
	}
}
