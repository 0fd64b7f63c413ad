package room

import "testing"

// inside is a room with tickets 1 to n at the door.
func inside(t *testing.T, n int, change func(*Settings)) *desk {
	d := newRoom(t, change)
	d.join(1, n)
	d.kinds(Flush{Count: n}, "pass")
	for i := 1; i <= n; i++ {
		d.kinds(EnterDoor{Generation: 1, Ticket: Ticket(i), Holder: who(i), Door: Holder{byte(i)}}, "enter")
	}
	return d
}

func TestAPassIsGoodForPassedTtlSec(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.PassedTTLSec, s.MaxConcurrent, s.RatePerMinute = 60, num(1), 6000 })
	d.join(1, 2)
	d.wait(200, nil)
	d.status(Passed, 1)
	d.now = d.s.Ticket(1).PassedAt + 60_000
	d.nothing(Tick{})
	if d.s.Ticket(1).Expired(d.s.settings, d.now) || !d.s.Ticket(1).Expired(d.s.settings, d.now+1) {
		t.Fatal("a pass is over after passedTtlSec, not before")
	}
	d.now++
	events := d.kinds(Tick{}, "lapse pass")
	equal(t, "lapse", events[0].Body.(*Lapse), &Lapse{Why: "pass", Tickets: []Ticket{1}})
	equal(t, "into the slot it held", passedIn(events), []Ticket{2})
	d.compare()
}

func TestADoorSessionIsReclaimedByItsOwner(t *testing.T) {
	d := inside(t, 1, nil)
	entered := d.s.Ticket(1)
	d.now += 5000
	d.kinds(EnterDoor{Generation: 1, Ticket: 1, Holder: who(1), Door: Holder{7}}, "enter")
	p := d.s.Ticket(1)
	if p.Door != (Holder{7}) || p.EnteredAt != entered.EnteredAt || p.PassedAt != entered.PassedAt || p.SeenAt != d.now {
		t.Fatalf("the reclaimed session is %+v", p)
	}
	equal(t, "slots", d.s.slots, 1)
	d.refused(EnterDoor{Generation: 1, Ticket: 1, Holder: who(2), Door: Holder{8}}, ErrNotOwner)
	d.compare()
}

// contract.md 19: single use, bound to its ticket; the enter event spends it.
func TestACodeIsSpentOnce(t *testing.T) {
	d := newRoom(t, nil)
	d.join(1, 1)
	d.kinds(Flush{Count: 1}, "pass")
	first, second := d.now+100, d.now+200
	d.now += 1000
	code := func(at Instant) EnterDoor { return EnterDoor{Generation: 1, Ticket: 1, CodeAt: at, Door: Holder{1}} }
	e := d.kinds(code(first), "enter")[0].Body.(*Enter)
	equal(t, "the code is in the event", e.CodeAt, first)
	d.refused(code(first), ErrCodeSpent)
	d.kinds(EnterDoor{Generation: 1, Ticket: 1, Holder: who(1), Door: Holder{2}}, "enter") // the owner's own way in spends none,
	d.refused(code(first), ErrCodeSpent)                                                   // and unspends none
	d.kinds(code(second), "enter")
	d.refused(code(first), ErrCodeSpent)
	d.refused(code(second), ErrCodeSpent)
	equal(t, "code", d.s.Ticket(1).CodeAt, second)
	d.compare()
}

func TestDoorSessionsRenewAndLapse(t *testing.T) {
	d := inside(t, 3, func(s *Settings) { s.SessionTTLSec, s.SessionMaxSec = 300, 1000 })
	start := d.now
	w := d.watching()
	d.now = start + 99_999
	d.nothing(Tick{Presence: w, Doors: []Ticket{1, 2}}) // no third of the time has gone yet
	d.now = start + 100_000
	e := d.kinds(Tick{Presence: w, Doors: []Ticket{1, 2}}, "renew")[0].Body.(*Renew)
	equal(t, "renewed", e.Tickets, []Ticket{1, 2})
	equal(t, "seen", d.s.Ticket(2).SeenAt, d.now)
	d.now = start + 300_000
	d.nothing(Tick{Presence: w})
	d.now++
	l := d.kinds(Tick{Presence: w}, "lapse")[0].Body.(*Lapse)
	equal(t, "unseen", l, &Lapse{Why: "door", Tickets: []Ticket{3}})
	events := d.kinds(Tick{Presence: w, Doors: []Ticket{1}}, "renew") // 2 is within its time still
	equal(t, "renewed", events[0].Body.(*Renew).Tickets, []Ticket{1})
	d.now = start + 400_001
	events = d.kinds(Tick{Presence: w, Doors: []Ticket{1}}, "renew lapse")
	equal(t, "unseen", events[1].Body.(*Lapse).Tickets, []Ticket{2})
	for d.now < start+1_000_000 { // seen all along
		d.now = min(d.now+50_000, start+1_000_000)
		d.must(Tick{Presence: w, Doors: []Ticket{1}})
	}
	d.status(Inside, 1)
	d.now++
	l = d.kinds(Tick{Presence: w, Doors: []Ticket{1}}, "lapse")[0].Body.(*Lapse)
	equal(t, "at sessionMaxSec", l, &Lapse{Why: "door", Tickets: []Ticket{1}})
	equal(t, "slots", d.s.slots, 0)
	d.compare()
}

// After a recovery no session lapses for one sessionTtlSec, within sessionMaxSec.
func TestANewOwnerLetsDoorSessionsBe(t *testing.T) {
	d := inside(t, 1, func(s *Settings) { s.SessionTTLSec, s.SessionMaxSec = 300, 1000 })
	start := d.now
	d.now = start + 500_000
	w := d.watching()
	d.nothing(Tick{Presence: w})
	d.now = start + 800_000
	d.nothing(Tick{Presence: w})
	d.now++
	d.kinds(Tick{Presence: w}, "lapse")

	d = inside(t, 1, func(s *Settings) { s.SessionTTLSec, s.SessionMaxSec = 300, 1000 })
	d.now += 1_000_001
	d.kinds(Tick{Presence: d.watching()}, "lapse")
}

func TestTheSlotOfALapsedSessionIsUsedAtOnce(t *testing.T) {
	d := inside(t, 2, func(s *Settings) { s.RatePerMinute, s.MaxConcurrent, s.SessionTTLSec = 600, num(2), 60 })
	d.join(3, 5)
	w := &watch{since: d.now, seen: map[Ticket]Instant{3: d.now + 60_000, 4: d.now + 60_000, 5: d.now + 60_000}}
	if n := len(d.wait(60_000, w)); n != 0 {
		t.Fatalf("%d passed into a full room", n)
	}
	d.now++
	events := d.kinds(Tick{Presence: w}, "lapse pass")
	equal(t, "passed", passedIn(events), []Ticket{3, 4})
	d.compare()
}

// A waiting ticket that nobody polls for a day of unbroken observation lapses (domain.md rule 6).
func TestAbandonedTicketsLapse(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.PresenceSec = 0, nil })
	d.join(1, 3)
	c := d.arrival(4)
	c.Score = 90
	d.kinds(c, "join")
	d.now += 100 * abandonedAfter // without an owner: counts for nothing
	w := d.watching()
	d.now += abandonedAfter
	d.sees(w, 2)
	d.nothing(Tick{Presence: w, Sweep: true})
	d.now++
	d.nothing(Tick{Presence: w})
	d.nothing(Tick{Sweep: true})
	l := d.kinds(Tick{Presence: w, Sweep: true}, "lapse")[0].Body.(*Lapse)
	equal(t, "lapse", l, &Lapse{Why: "wait", Tickets: []Ticket{1, 3, 4}})
	d.status(Expired, 1, 3, 4)
	d.status(Waiting, 2)
	d.now += abandonedAfter
	d.kinds(Tick{Presence: w, Sweep: true}, "lapse")
	d.compare()
}

// A door session older than sessionMaxSec is over for every decision, before the clock has recorded it.
func TestADoorSessionPastItsEndIsOver(t *testing.T) {
	d := inside(t, 1, func(s *Settings) { s.SessionMaxSec = 100 })
	d.now = d.s.Ticket(1).EnteredAt + 100_000
	if d.s.Ticket(1).Expired(d.s.settings, d.now) {
		t.Fatal("a door session is over after sessionMaxSec, not before")
	}
	d.now++
	d.refused(EnterDoor{Generation: 1, Ticket: 1, Holder: who(1), Door: Holder{7}}, ErrNotPassed)
	d.refused(EjectTicket{Ticket: 1}, ErrTicketNotFound)
	events := d.kinds(TakePlace{Generation: 1, Holder: who(1)}, "lapse join")
	equal(t, "lapse", events[0].Body.(*Lapse), &Lapse{Why: "door", Tickets: []Ticket{1}})
	d.compare()
}
