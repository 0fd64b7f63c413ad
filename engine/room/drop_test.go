package room

import (
	"errors"
	"slices"
	"testing"
)

// The sentences of domain.md rule 7 and of seed 004's "Scheduled drop" that the core decides.

func TestADropHoldsJoinersInThePreQueue(t *testing.T) {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute = 6000 })
	d.join(1, 2) // from before the drop was scheduled
	d.drop(60_000, 1)
	for i := 3; i <= 22; i++ {
		d.kinds(d.arrival(i), "enqueue")
	}
	d.nothing(d.arrival(5))
	d.nothing(d.arrival(1)) // who has a ticket keeps it
	if n := len(d.wait(59_800, nil)); n != 0 {
		t.Fatalf("%d passed before the doors opened", n)
	}
	if p, _ := d.s.PlaceOf(who(5)); p.Status != Enqueued || p.Handle != 3 || p.Ticket != 0 || !p.Live() {
		t.Fatalf("an entry is %+v", p)
	}
	d.now += 200
	b := d.draw(1)
	equal(t, "first", b.First, 3)
	equal(t, "count", b.Count, 20)
	equal(t, "seed", [32]byte(b.Seed), DrawSeed(Digest{1}, Digest{0xaa}))
	order, err := UnpackOrder(b.Order)
	if err != nil {
		t.Fatal(err)
	}
	for i, entry := range order {
		p := d.s.Handle(Handle(entry + 1))
		if p.Ticket != Ticket(3+i) || p.Handle != Handle(entry+1) || p.Status != Waiting || p.Holder != who(int(entry)+3) {
			t.Fatalf("entry %d got %+v, not ticket %d", entry, p, 3+i)
		}
		if q, ok := d.s.PlaceOf(who(int(entry) + 3)); !ok || q.Ticket != p.Ticket {
			t.Fatalf("its holder has %+v", q)
		}
	}
	d.join(23, 23)
	equal(t, "whoever comes later follows", d.s.last, 23)
	proof := d.s.Summary().Proof
	equal(t, "proof", *proof, Proof{Version: DrawVersion, Secret: Digest{1}, Head: Digest{0xaa}, Seed: b.Seed, First: 3, Count: 20, Digest: b.Digest, DrawnAt: d.now})
	passed := d.wait(10_000, nil)
	if !slices.IsSorted(passed) || len(passed) != 23 {
		t.Fatalf("passed in the order %v", passed)
	}
	d.compare()
}

// A second entry from one identity never outranks any other identity's first.
func TestTheDrawDealsInRounds(t *testing.T) {
	d := newRoom(t, nil)
	d.drop(1000, 1)
	n := 0
	for i, entries := range []int{3, 1, 2, 3, 1} {
		for range entries {
			n++
			d.kinds(TakePlace{Generation: 1, Holder: who(n), Identity: Identity(i + 1)}, "enqueue")
		}
	}
	d.now += 1000
	d.draw(1)
	seen := map[Identity]int{}
	before := 0
	for k := Ticket(1); k <= d.s.last; k++ {
		id := d.s.identity.at(uint32(k))
		if seen[id] < before {
			t.Fatalf("ticket %d is entry %d of its identity, behind an entry %d", k, seen[id], before)
		}
		before = seen[id]
		seen[id]++
	}
	d.compare()
}

func TestReschedulingAndCancelling(t *testing.T) {
	d := newRoom(t, nil)
	d.nothing(Reschedule{})
	d.drop(60_000, 1)
	d.nothing(Reschedule{OpensAt: d.now + 60_000, Commitment: Commitment(Digest{1})})
	d.drop(120_000, 1)
	e := d.kinds(Reschedule{}, "schedule")[0].Body.(*Schedule) // nobody has entered: it is off
	equal(t, "schedule", e, &Schedule{})
	d.refused(DrawNow{Secret: Digest{1}}, ErrDrawNotDue)
	d.join(1, 1)
	d.drop(60_000, 1)
	d.kinds(d.arrival(2), "enqueue")
	d.drop(90_000, 1) // entries are kept
	d.kinds(d.arrival(3), "enqueue")
	d.now += 10
	e = d.kinds(Reschedule{}, "schedule")[0].Body.(*Schedule) // somebody has: drawn at once
	equal(t, "schedule", e, &Schedule{OpensAt: d.now, Commitment: Commitment(Digest{1})})
	d.refused(Tick{}, ErrDrawDue)
	d.draw(1)
	equal(t, "in line", d.s.line.Len(), 3)
	equal(t, "draws", d.s.Draws(), 1)
	if d.s.DrawDue(d.now + 1e9) {
		t.Fatal("a drawn drop is due again")
	}
	d.compare()
}

func TestEntriesThatLeftAreNotDrawn(t *testing.T) {
	d := newRoom(t, nil)
	d.drop(60_000, 1)
	for i := 1; i <= 5; i++ {
		d.kinds(d.arrival(i), "enqueue")
	}
	e := d.kinds(GiveBack{Generation: 1, Holder: who(2)}, "leave")[0].Body.(*Leave)
	equal(t, "leave", e, &Leave{Handles: []Handle{2}})
	d.now += 60_000
	equal(t, "drawn", d.draw(1).Count, 4)
	if p := d.s.Handle(2); p.Status != Left || p.Ticket != 0 || p.Live() {
		t.Fatalf("the entry that left is %+v", p)
	}
	d.compare()
}

func TestADrawOfNobody(t *testing.T) {
	d := newRoom(t, nil)
	d.drop(1000, 1)
	d.now += 5000 // the server was down at the instant
	b := d.draw(1)
	equal(t, "drawn", b.Count, 0)
	d.join(1, 1)
	equal(t, "first ticket", d.s.last, 1)
	d.compare()
}

// Handles go on after a draw, and a second drop is a drop of its own.
func TestASecondDrop(t *testing.T) {
	d := newRoom(t, nil)
	for round := range 3 {
		d.drop(1000, byte(round+1))
		for i := 1; i <= 4; i++ {
			d.kinds(d.arrival(10*round+i), "enqueue")
		}
		d.now += 1000
		b := d.draw(byte(round + 1))
		equal(t, "first", b.First, Ticket(4*round+1))
		equal(t, "draws", d.s.Draws(), round+1)
	}
	for q := Handle(1); q <= 12; q++ {
		if p := d.s.Handle(q); p.Status != Waiting || p.Ticket == 0 {
			t.Fatalf("handle %d is %+v", q, p)
		}
	}
	d.compare()
}

// Held entries are drawn like any other, and held in line.
func TestScoresSurviveTheDraw(t *testing.T) {
	d := newRoom(t, nil)
	d.drop(1000, 1)
	for i := 1; i <= 6; i++ {
		c := d.arrival(i)
		c.Score = uint8(15 * i)
		d.kinds(c, "enqueue")
	}
	d.now += 1000
	d.draw(1)
	for q := Handle(1); q <= 6; q++ {
		if p := d.s.Handle(q); p.Held != (15*q >= 70) {
			t.Errorf("the entry with score %d is held: %v", 15*q, p.Held)
		}
	}
	d.compare()
}

// The ceiling is of entries, whatever their handles.
func TestAMillionEntriesAreTheCeiling(t *testing.T) {
	d := newRoom(t, nil)
	d.thrift = true
	d.drop(60_000, 1)
	s := d.s
	for i := 1; i <= MaxEntries; i++ {
		s.Apply(Event{At: d.now, Body: &Enqueue{Handle: Handle(i), Holder: who(i), Identity: from(i)}})
	}
	enter := func(i int) error {
		_, err := Decide(s, d.arrival(i), d.now)
		return err
	}
	if err := enter(MaxEntries + 1); !errors.Is(err, ErrPrequeueFull) {
		t.Fatalf("entry %d: %v", MaxEntries+1, err)
	}
	if err := enter(MaxEntries); err != nil {
		t.Fatalf("a holder who is in it already: %v", err)
	}
	s.Apply(Event{At: d.now, Body: &Leave{Handles: []Handle{1}}})
	if err := enter(MaxEntries + 1); err != nil {
		t.Fatalf("after one has left: %v", err)
	}
	events, err := Decide(s, DrawNow{Secret: Digest{1}}, d.now+60_000)
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(events[0])
	if s.line.Len() != MaxEntries-1 || s.entries.Len() != 0 {
		t.Fatalf("%d in line, %d in the pre-queue", s.line.Len(), s.entries.Len())
	}
}
