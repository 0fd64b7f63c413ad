package room

import (
	"bytes"
	"testing"
)

// Every refusal of the core, and what has to be true for it.
func TestRefusals(t *testing.T) {
	passedRoom := func(t *testing.T) *desk { // ticket 1 has passed
		d := newRoom(t, nil)
		d.join(1, 2)
		d.kinds(Flush{Count: 1}, "pass")
		return d
	}
	enter := func(d *desk, n Ticket, h Holder, codeAt Instant) EnterDoor {
		return EnterDoor{Generation: d.s.Generation(), Ticket: n, Holder: h, CodeAt: codeAt, Door: Holder{9}}
	}
	cases := []struct {
		name string
		room func(*testing.T) *desk
		ask  func(*desk) Command
		want Refusal
	}{
		{"a room that is there cannot be created", func(t *testing.T) *desk { return newRoom(t, nil) },
			func(*desk) Command { return NewRoom{Settings: settingsOf(nil), Mode: Active} }, ErrRoomExists},
		{"a closed room is there", func(t *testing.T) *desk { d := newRoom(t, nil); d.must(CloseRoom{}); return d },
			func(*desk) Command { return NewRoom{Settings: settingsOf(nil), Mode: Active} }, ErrRoomExists},
		{"a join to another generation", func(t *testing.T) *desk { return newRoom(t, nil) },
			func(d *desk) Command { c := d.arrival(1); c.Generation = 2; return c }, ErrGeneration},
		{"an enter to another generation", passedRoom,
			func(d *desk) Command { c := enter(d, 1, who(1), 0); c.Generation = 0; return c }, ErrGeneration},
		{"a leave to another generation", passedRoom,
			func(*desk) Command { return GiveBack{Generation: 7, Holder: who(1)} }, ErrGeneration},
		{"an identity with its share of the line", func(t *testing.T) *desk {
			d := newRoom(t, func(s *Settings) { s.QueueMaxPerIP = num(2) })
			for i := 1; i <= 2; i++ {
				d.kinds(TakePlace{Generation: 1, Holder: who(i), Identity: 5}, "join")
			}
			return d
		}, func(*desk) Command { return TakePlace{Generation: 1, Holder: who(3), Identity: 5} }, ErrQueueIdentityLimit},
		{"held tickets count in that share", func(t *testing.T) *desk {
			d := newRoom(t, func(s *Settings) { s.QueueMaxPerIP = num(1) })
			d.kinds(TakePlace{Generation: 1, Holder: who(1), Identity: 5, Score: 99}, "join")
			return d
		}, func(*desk) Command { return TakePlace{Generation: 1, Holder: who(3), Identity: 5} }, ErrQueueIdentityLimit},
		{"an identity with its share of the pre-queue", func(t *testing.T) *desk {
			d := newRoom(t, func(s *Settings) { s.PreQueueMaxPerIP = num(1) })
			d.drop(60_000, 1)
			d.kinds(TakePlace{Generation: 1, Holder: who(1), Identity: 5}, "enqueue")
			return d
		}, func(*desk) Command { return TakePlace{Generation: 1, Holder: who(3), Identity: 5} }, ErrPrequeueIdentityLimit},
		{"a full pre-queue", func(t *testing.T) *desk {
			d := newRoom(t, nil)
			d.drop(60_000, 1)
			for q := Ticket(1); q <= MaxEntries; q++ {
				d.s.entries.Add(q)
			}
			d.s.lastHandle, d.thrift = MaxEntries, true
			return d
		}, func(d *desk) Command { return d.arrival(1) }, ErrPrequeueFull},
		{"a generation without ticket numbers", func(t *testing.T) *desk {
			d := newRoom(t, nil)
			d.s.last, d.thrift = MaxTicket, true
			return d
		}, func(d *desk) Command { return d.arrival(1) }, ErrRoomFull},
		{"a closed room takes no joins", func(t *testing.T) *desk { d := newRoom(t, nil); d.must(CloseRoom{}); return d },
			func(d *desk) Command { return d.arrival(1) }, ErrRoomIdle},
		{"an eject of a ticket never given", func(t *testing.T) *desk { return newRoom(t, nil) },
			func(*desk) Command { return EjectTicket{1} }, ErrTicketNotFound},
		{"an eject of ticket 0", passedRoom, func(*desk) Command { return EjectTicket{0} }, ErrTicketNotFound},
		{"an eject of a ticket that was given back", func(t *testing.T) *desk {
			d := passedRoom(t)
			d.kinds(GiveBack{Generation: 1, Holder: who(2)}, "leave")
			return d
		}, func(*desk) Command { return EjectTicket{2} }, ErrTicketNotFound},
		{"an eject of a pass that is over, though no tick has said so", func(t *testing.T) *desk {
			d := passedRoom(t)
			d.now += 600_001
			return d
		}, func(*desk) Command { return EjectTicket{1} }, ErrTicketNotFound},
		{"an enter of a waiting ticket", passedRoom, func(d *desk) Command { return enter(d, 2, who(2), 0) }, ErrNotPassed},
		{"an enter of no ticket", passedRoom, func(d *desk) Command { return enter(d, 0, who(2), 0) }, ErrNotPassed},
		{"an enter of a ticket never given", passedRoom, func(d *desk) Command { return enter(d, 3, who(2), 0) }, ErrNotPassed},
		{"an enter past passedTtlSec", func(t *testing.T) *desk {
			d := passedRoom(t)
			d.now += 600_001
			return d
		}, func(d *desk) Command { return enter(d, 1, who(1), 0) }, ErrNotPassed},
		{"an enter without proof", passedRoom, func(d *desk) Command { return enter(d, 1, Holder{}, 0) }, ErrNotOwner},
		{"an enter with somebody else's proof", passedRoom, func(d *desk) Command { return enter(d, 1, who(2), 0) }, ErrNotOwner},
		{"a code that was spent", func(t *testing.T) *desk {
			d := passedRoom(t)
			d.kinds(enter(d, 1, Holder{}, d.now), "enter")
			return d
		}, func(d *desk) Command { return enter(d, 1, Holder{}, d.now) }, ErrCodeSpent},
		{"a code older than the one spent", func(t *testing.T) *desk {
			d := passedRoom(t)
			d.kinds(enter(d, 1, Holder{}, d.now), "enter")
			return d
		}, func(d *desk) Command { return enter(d, 1, Holder{}, d.now-1) }, ErrCodeSpent},
		{"doors that open now", func(t *testing.T) *desk { return newRoom(t, nil) },
			func(d *desk) Command { return Reschedule{OpensAt: d.now, Commitment: Digest{1}} }, ErrInvalidOpensAt},
		{"doors that opened before", func(t *testing.T) *desk { return newRoom(t, nil) },
			func(d *desk) Command { return Reschedule{OpensAt: d.now - 1, Commitment: Digest{1}} }, ErrInvalidOpensAt},
		{"a draw of nothing scheduled", func(t *testing.T) *desk { return newRoom(t, nil) },
			func(*desk) Command { return DrawNow{} }, ErrDrawNotDue},
		{"a draw before its time", func(t *testing.T) *desk {
			d := newRoom(t, nil)
			d.drop(60_000, 1)
			d.now += 59_999
			return d
		}, func(*desk) Command { return DrawNow{Secret: Digest{1}} }, ErrDrawNotDue},
		{"a draw by another secret", func(t *testing.T) *desk {
			d := newRoom(t, nil)
			d.drop(60_000, 1)
			d.now += 60_000
			return d
		}, func(*desk) Command { return DrawNow{Secret: Digest{2}} }, ErrCommitment},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := c.room(t)
			d.t = t
			d.refused(c.ask(d), c.want)
		})
	}
}

// What a command may ask of a room that is not there, and of one whose draw is due.
func TestNoCommandGoesPastAMissingRoomOrADueDraw(t *testing.T) {
	commands := []Command{
		Reconfigure{}, SetMode{}, Reschedule{}, TakePlace{}, Tick{}, Flush{}, EjectTicket{}, PurgeLine{}, EnterDoor{}, GiveBack{},
		CloseRoom{}, DeleteRoom{},
	}
	for _, c := range commands {
		openDesk(t).refused(c, ErrRoomNotFound)
		d := newRoom(t, nil)
		d.must(DeleteRoom{})
		d.refused(c, ErrRoomNotFound)

		d = newRoom(t, nil)
		d.drop(60_000, 1)
		d.kinds(d.arrival(1), "enqueue")
		d.now += 60_000
		d.refused(c, ErrDrawDue)
	}
	openDesk(t).refused(DrawNow{}, ErrRoomNotFound)
}

func TestAHolderHasOnePlace(t *testing.T) {
	d := newRoom(t, nil)
	d.join(1, 3)
	d.nothing(d.arrival(2))
	other := d.arrival(2)
	other.Identity, other.Score = from(9), 80 // another address and another score change nothing
	d.nothing(other)
	if p, ok := d.s.PlaceOf(who(2)); !ok || p.Ticket != 2 || p.Held {
		t.Fatalf("the holder's place is %+v", p)
	}
	d.kinds(Flush{Count: 2}, "pass")
	d.nothing(d.arrival(2)) // a pass is a place
	d.kinds(EnterDoor{Generation: 1, Ticket: 2, Holder: who(2)}, "enter")
	d.nothing(d.arrival(2)) // so is a door session
	d.compare()
}

func TestAnExpiredPassIsNoPlace(t *testing.T) {
	d := newRoom(t, nil)
	d.join(1, 2)
	d.kinds(Flush{Count: 1}, "pass")
	d.now += 600_000
	d.nothing(d.arrival(1))
	d.now++
	events := d.kinds(d.arrival(1), "lapse join")
	equal(t, "lapse", events[0].Body.(*Lapse), &Lapse{Why: "pass", Tickets: []Ticket{1}})
	d.status(Expired, 1)
	d.status(Waiting, 3)
	d.compare()
}

// The refusal of the new place does not end the old one.
func TestARefusedRejoinRecordsNothing(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.QueueMaxPerIP = 0, num(1) })
	d.kinds(TakePlace{Generation: 1, Holder: who(1), Identity: 5}, "join")
	d.kinds(Flush{Count: 1}, "pass")
	d.kinds(TakePlace{Generation: 1, Holder: who(2), Identity: 5}, "join") // a pass is not in line
	d.now += 600_001
	d.refused(TakePlace{Generation: 1, Holder: who(1), Identity: 5}, ErrQueueIdentityLimit)
	d.kinds(Tick{}, "lapse")
	d.compare()
}

func TestCapsCountWhatWaits(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.QueueMaxPerIP = num(2) })
	take := func(i int) TakePlace { return TakePlace{Generation: 1, Holder: who(i), Identity: 5} }
	d.kinds(take(1), "join")
	d.kinds(take(2), "join")
	d.nothing(take(1))
	d.refused(take(3), ErrQueueIdentityLimit)
	d.kinds(GiveBack{Generation: 1, Holder: who(1)}, "leave")
	d.kinds(take(3), "join")
	d.kinds(EjectTicket{2}, "eject") // from the line to its back: still in line
	d.refused(take(4), ErrQueueIdentityLimit)
	d.kinds(Flush{Count: 2}, "pass")
	d.kinds(take(4), "join")
	d.kinds(EjectTicket{3}, "eject") // a revoked pass is in line again
	d.refused(take(5), ErrQueueIdentityLimit)
	d.kinds(PurgeLine{}, "purge")
	d.kinds(take(5), "join")
	d.kinds(take(6), "join")
	d.refused(take(7), ErrQueueIdentityLimit)
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.QueueMaxPerIP = nil })})
	d.kinds(take(7), "join")
	d.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.QueueMaxPerIP = num(1) })})
	for i := 10; i < 20; i++ { // no recorded address: exempt
		d.kinds(TakePlace{Generation: 1, Holder: who(i)}, "join")
	}
	d.compare()
	restored, err := Restore(d.s.AppendBinary(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := restored.waitingBy.Get(5); got != 3 {
		t.Fatalf("a restored room counts %d places of the identity, not 3", got)
	}
}

func TestCapsOfThePreQueue(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.PreQueueMaxPerIP, s.QueueMaxPerIP = num(2), num(1) })
	take := func(i int) TakePlace { return TakePlace{Generation: 1, Holder: who(i), Identity: 5} }
	d.drop(60_000, 1)
	d.kinds(take(1), "enqueue")
	d.kinds(take(2), "enqueue")
	d.nothing(take(2))
	d.refused(take(3), ErrPrequeueIdentityLimit)
	d.kinds(GiveBack{Generation: 1, Holder: who(2)}, "leave")
	d.kinds(take(3), "enqueue")
	d.kinds(PurgeLine{}, "purge")
	d.kinds(take(4), "enqueue")
	d.kinds(take(5), "enqueue")
	d.now += 60_000
	d.draw(1) // two places of one identity, above the line's cap: drawn all the same
	equal(t, "in line", d.s.line.Len(), 2)
	d.refused(take(6), ErrQueueIdentityLimit)
	d.compare()
}

func TestBypassGivesNoPlaces(t *testing.T) {
	d := newRoom(t, nil)
	d.join(1, 1)
	d.kinds(SetMode{Mode: Bypass}, "state")
	d.nothing(d.arrival(2))
	if n := len(d.wait(60_000, nil)); n != 0 {
		t.Fatalf("the clock passed %d in bypass", n)
	}
	d.kinds(SetMode{Mode: Active}, "state")
	d.kinds(d.arrival(2), "join")
	d.status(Waiting, 1, 2)
}

// Raising holdScore releases, lowering it holds; the number stays.
func TestHeldTickets(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.HoldScore = 6000, 70 })
	for i, score := range []uint8{0, 70, 69, 100, 50} {
		c := d.arrival(i + 1)
		c.Score = score
		d.kinds(c, "join")
	}
	ahead := func(want ...int) {
		t.Helper()
		for i, w := range want {
			if p := d.s.Ticket(Ticket(i + 1)); p.Ahead != w {
				t.Errorf("ticket %d has %d ahead, not %d", i+1, p.Ahead, w)
			}
		}
	}
	ahead(0, 1, 1, 2, 2)
	equal(t, "held", d.s.held.Len(), 2)
	equal(t, "passed", d.wait(10_000, nil), []Ticket{1, 3, 5})
	hold := func(score int64) {
		t.Helper()
		d.kinds(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute, s.HoldScore = 6000, score })}, "configure")
	}
	d.join(6, 7)
	protect := func(mode string) {
		t.Helper()
		d.kinds(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute, s.HoldScore, s.Protection.Mode = 6000, 70, mode })}, "configure")
	}
	protect("monitor") // counts scores, and holds nobody
	equal(t, "held by a monitor", d.s.held.Len(), 0)
	d.compare()
	protect("enforce")
	equal(t, "held again", d.s.held.Len(), 2)
	hold(71)
	d.compare()
	equal(t, "the released passes first", passedIn(d.must(Flush{Count: 1})), []Ticket{2})
	hold(0) // everybody
	if n := len(d.wait(10_000, nil)); n != 0 {
		t.Fatalf("%d held tickets passed", n)
	}
	d.nothing(Flush{Count: 10})
	hold(100)
	equal(t, "all but the one at 100", d.wait(10_000, nil), []Ticket{6, 7})
	hold(101)
	equal(t, "that one", d.wait(10_000, nil), []Ticket{4})
	d.compare()
}

func TestEject(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.MaxConcurrent = num(5) })
	d.join(1, 4)
	d.kinds(Flush{Count: 2}, "pass")
	d.kinds(EnterDoor{Generation: 1, Ticket: 2, Holder: who(2), Door: Holder{2}}, "enter")
	equal(t, "slots", d.s.slots, 2)
	for i, n := range []Ticket{1, 2, 3} { // a pass, a door session, a waiting ticket
		e := d.kinds(EjectTicket{n}, "eject")[0].Body.(*Eject)
		equal(t, "eject", e, &Eject{Ticket: n, To: Ticket(5 + i)})
		d.status(Reset, n)
		d.nothing(d.arrival(i + 1)) // the owner's re-join returns the new ticket
		if p, _ := d.s.PlaceOf(who(i + 1)); p.Ticket != e.To || p.Status != Waiting {
			t.Fatalf("the ejected holder's place is %+v", p)
		}
	}
	equal(t, "slots", d.s.slots, 0)
	d.refused(EjectTicket{1}, ErrTicketNotFound)
	equal(t, "order", passedIn(d.must(Flush{Count: 9})), []Ticket{4, 5, 6, 7})
	d.compare()
	d.s.last, d.thrift = MaxTicket, true
	d.refused(EjectTicket{4}, ErrRoomFull)
}

func TestEjectKeepsTheScore(t *testing.T) {
	d := newRoom(t, nil)
	c := d.arrival(1)
	c.Score = 90
	d.kinds(c, "join")
	d.kinds(EjectTicket{1}, "eject")
	if p := d.s.Ticket(2); !p.Held {
		t.Fatalf("the new ticket of a held one is %+v", p)
	}
	d.compare()
}

func TestPurgeSparesPassesAndDoors(t *testing.T) {
	d := newRoom(t, nil)
	d.join(1, 5)
	c := d.arrival(6)
	c.Score = 99
	d.kinds(c, "join")
	d.kinds(Flush{Count: 2}, "pass")
	d.kinds(EnterDoor{Generation: 1, Ticket: 1, Holder: who(1), Door: Holder{1}}, "enter")
	d.drop(60_000, 1)
	d.kinds(d.arrival(7), "enqueue")
	d.kinds(d.arrival(8), "enqueue")
	e := d.kinds(PurgeLine{}, "purge")[0].Body.(*Purge)
	equal(t, "purge", e, &Purge{Waiting: 4, PreQueue: 2})
	d.status(Inside, 1)
	d.status(Passed, 2)
	d.status(Reset, 3, 4, 5, 6)
	if p := d.s.Handle(1); p.Status != Reset {
		t.Fatalf("a purged entry is %+v", p)
	}
	equal(t, "still scheduled", d.s.opensAt, d.now+60_000)
	d.nothing(PurgeLine{})
	d.kinds(d.arrival(7), "enqueue") // with a new handle
	if p, _ := d.s.PlaceOf(who(7)); p.Handle != 3 {
		t.Fatalf("the new entry is %+v", p)
	}
	d.compare()
}

func TestLeave(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.MaxConcurrent = num(2) })
	d.nothing(GiveBack{Generation: 1, Holder: who(1)})
	d.join(1, 4)
	d.kinds(Flush{Count: 2}, "pass")
	d.kinds(EnterDoor{Generation: 1, Ticket: 2, Holder: who(2), Door: Holder{2}}, "enter")
	for i := 1; i <= 3; i++ {
		d.kinds(GiveBack{Generation: 1, Holder: who(i)}, "leave")
		d.nothing(GiveBack{Generation: 1, Holder: who(i)})
		d.status(Left, Ticket(i))
	}
	equal(t, "slots", d.s.slots, 0)
	d.kinds(d.arrival(3), "join") // whoever left starts at the back
	equal(t, "last", d.s.last, 5)
	d.compare()
}

func TestGenerations(t *testing.T) {
	d := newRoom(t, nil)
	d.join(1, 3)
	d.kinds(Flush{Count: 2}, "pass")
	d.kinds(EnterDoor{Generation: 1, Ticket: 1, Holder: who(1), Door: Holder{1}}, "enter")
	d.drop(60_000, 1)
	d.kinds(d.arrival(4), "enqueue")
	e := d.kinds(CloseRoom{}, "close")[0].Body.(*Close)
	equal(t, "generation", e.Generation, 2)
	gone := func() {
		t.Helper()
		sum := d.s.Summary()
		if sum.Waiting+sum.Passes+sum.Doors+sum.PreQueue+sum.Slots+int(sum.LastTicket)+int(sum.LastHandle)+sum.Draws != 0 ||
			sum.OpensAt != 0 || sum.Credit != 0 {
			t.Fatalf("something lives on: %+v", sum)
		}
		for i := 1; i <= 4; i++ {
			if p, ok := d.s.PlaceOf(who(i)); ok {
				t.Fatalf("visitor %d has %+v", i, p)
			}
		}
		d.compare()
	}
	gone()
	equal(t, "mode", d.s.mode, Idle)
	equal(t, "settings are kept", d.s.settings.Name, "Test")
	d.kinds(SetMode{Mode: Active}, "state")
	d.join(3, 3)
	d.status(Waiting, 1) // tickets start at 1
	d.kinds(DeleteRoom{}, "delete")
	gone()
	if d.s.Exists() {
		t.Fatal("a deleted room exists")
	}
	c := d.kinds(NewRoom{Settings: settingsOf(nil), Mode: Paused}, "create")[0].Body.(*Create)
	equal(t, "generation", c.Generation, 3)
	gone()
	d.refused(TakePlace{Generation: 1, Holder: who(1)}, ErrGeneration)
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 600 })
	d.join(1, 100)
	d.now -= 3_600_000
	e := d.kinds(d.arrival(101), "join")[0]
	equal(t, "the event's time", e.At, dawn)
	if n := len(d.wait(60_000, nil)); n != 0 {
		t.Fatalf("%d passed while the clock was behind", n)
	}
	d.drop(3_600_000+60_000, 1) // a minute from what the room calls now
	d.now = dawn
	if n := len(passedIn(d.must(Tick{}))); n != 0 {
		t.Fatalf("%d passed before the doors open", n)
	}
	d.refused(DrawNow{Secret: Digest{1}}, ErrDrawNotDue)
	d.compare()
}

// A score beyond 100 would be a join that no reader of the journal takes.
func TestAScoreBeyondTheScaleIsItsEnd(t *testing.T) {
	d := newRoom(t, nil)
	c := d.arrival(1)
	c.Score = 255
	equal(t, "score", d.kinds(c, "join")[0].Body.(*Join).Score, 100)
	d.drop(1000, 1)
	c = d.arrival(2)
	c.Score = 101
	equal(t, "score", d.kinds(c, "enqueue")[0].Body.(*Enqueue).Score, 100)
}

func TestRefusalsReadAsTheirCodes(t *testing.T) {
	if got := ErrQueueIdentityLimit.Error(); got != "queue_identity_limit" {
		t.Fatal(got)
	}
}

func TestDecidingIsRepeatable(t *testing.T) {
	d := newRoom(t, nil)
	d.drop(1000, 1)
	for i := range 50 {
		d.kinds(TakePlace{Generation: 1, Holder: who(i + 1), Identity: Identity(i%7 + 1)}, "enqueue")
	}
	d.now += 1000
	encode := func() []byte {
		events, err := Decide(d.s, DrawNow{Secret: Digest{1}, Head: Digest{2}}, d.now)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := EncodeBody(nil, events[0].Body)
		return body
	}
	if !bytes.Equal(encode(), encode()) {
		t.Fatal("the same secret, head and entries gave two orders")
	}
}

// An edit is one decision: all of what it names happens, in order, or nothing does.
func TestAnEditHappensWholeOrNotAtAll(t *testing.T) {
	d := newRoom(t, nil)
	later := d.now + 60_000
	settings := settingsOf(func(s *Settings) { s.RatePerMinute = 7 })
	commitment := Digest(Commitment(Digest{1}))
	d.kinds(Edit{Settings: &settings, OpensAt: &later, Commitment: commitment, Mode: Paused}, "configure schedule state")
	sum := d.s.Summary()
	if sum.Settings.RatePerMinute != 7 || sum.OpensAt != later || sum.Commitment != commitment || sum.Mode != Paused {
		t.Fatalf("the room is %+v", sum)
	}
	past := d.now - 1
	d.refused(Edit{Settings: &settings, OpensAt: &past, Mode: Active}, ErrInvalidOpensAt)
	d.nothing(Edit{OpensAt: &later, Mode: Paused})
	d.compare()
}

// A room made for a drop has its doors shut from its first event on.
func TestARoomIsMadeWithItsDrop(t *testing.T) {
	d := openDesk(t)
	d.refused(NewRoom{Settings: settingsOf(nil), Mode: Active, OpensAt: d.now}, ErrInvalidOpensAt)
	opens := d.now + 1000
	d.kinds(NewRoom{Settings: settingsOf(nil), Mode: Active, OpensAt: opens, Commitment: Digest(Commitment(Digest{1}))}, "create schedule")
	d.kinds(TakePlace{Generation: 1, Holder: who(1)}, "enqueue")
	d.now = opens
	d.kinds(DrawNow{Secret: Digest{1}}, "draw")
	d.compare()
}

// Protection in enforce mode refuses from its threshold on, the pre-queue too; whoever has a place keeps it, whatever they score later.
func TestProtectionRefusesAtTheDoor(t *testing.T) {
	for _, c := range []struct {
		protection Protection
		score      uint8
		refused    bool
	}{
		{Protection{}, 100, false}, {Protection{Mode: "monitor", Threshold: 60}, 100, false}, {Protection{Mode: "enforce"}, 79, false},
		{Protection{Mode: "enforce"}, 80, true}, {Protection{Mode: "enforce", Threshold: 95}, 94, false}, {Protection{Mode: "enforce", Threshold: 95}, 255, true},
	} {
		for _, before := range []bool{false, true} {
			d := newRoom(t, func(s *Settings) { s.Protection = c.protection })
			if before {
				d.drop(60_000, 1)
			}
			who := d.arrival(7)
			who.Score = c.score
			if c.refused {
				d.refused(who, ErrBlocked)
				who.Score = 0
			}
			d.must(who)
			who.Score = 100
			d.kinds(who, "") // no event: the place is there
		}
	}
}
