package room

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"
)

// lived is a room with something in every field.
func lived(t fataler) *desk {
	d := newRoom(t, func(s *Settings) { s.RatePerMinute, s.MaxConcurrent = 600, num(20) })
	d.thrift = true
	w := d.watching()
	d.join(1, 9000) // more than two pages
	for i := 9001; i <= 9010; i++ {
		c := d.arrival(i)
		c.Score = uint8(60 + 2*(i-9000))
		d.must(c)
	}
	d.now += 31_000
	for n := Ticket(3); n < 9000; n += 3 {
		d.sees(w, n)
	}
	d.must(Flush{Count: 12, Presence: w})
	d.wait(2000, w)
	for i := 3; i <= 9; i += 3 {
		d.must(EnterDoor{Generation: 1, Ticket: Ticket(i), Holder: who(i), Door: Holder{byte(i)}})
	}
	for i := 20; i < 4300; i++ { // all of the first page goes
		d.must(GiveBack{Generation: 1, Holder: who(i)})
	}
	d.must(EjectTicket{4400})
	d.drop(60_000, 1)
	for i := 9100; i < 9130; i++ {
		d.must(TakePlace{Generation: 1, Holder: who(i), Identity: Identity(i % 7), Score: uint8(i % 100)})
	}
	d.must(GiveBack{Generation: 1, Holder: who(9105)})
	d.now += 60_000
	d.draw(1)
	d.drop(60_000, 2)
	for i := 9200; i < 9210; i++ {
		d.must(d.arrival(i))
	}
	return d
}

func TestSnapshotsHoldEverything(t *testing.T) {
	d := lived(t)
	if err := Check(d.s); err != nil {
		t.Fatal(err)
	}
	d.compare()
	restored, err := Restore(d.s.AppendBinary([]byte("before"))[len("before"):])
	if err != nil {
		t.Fatal(err)
	}
	// What is not in the snapshot but follows from it decides the same: the index, the caps, the counts of pages.
	d.now += 60_000
	for _, c := range []Command{DrawNow{Secret: Digest{2}}, Tick{Credit: 5 * PassCost}, Flush{Count: 7}, EjectTicket{5000}, d.arrival(4500), d.arrival(9999),
		GiveBack{Generation: 1, Holder: who(9102)}, PurgeLine{}} {
		want, err1 := Decide(d.s, c, d.now)
		got, err2 := Decide(restored, c, d.now)
		equal(t, "decision", got, want)
		if !errors.Is(err1, err2) {
			t.Fatalf("%#v: %v and %v", c, err1, err2)
		}
		for _, e := range want {
			d.s.Apply(e)
			restored.Apply(e)
		}
		if !bytes.Equal(d.s.AppendBinary(nil), restored.AppendBinary(nil)) {
			t.Fatalf("after %#v the restored room is another", c)
		}
	}
	if err := Check(restored); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotsOfTheFewestThings(t *testing.T) {
	d := openDesk(t)
	d.compare()
	d.must(NewRoom{Settings: settingsOf(nil), Mode: Idle})
	d.compare()
	d.must(DeleteRoom{})
	d.compare()
}

// A damaged snapshot is an error, never a panic and never a room.
func TestDamagedSnapshots(t *testing.T) {
	d := newRoom(t, nil)
	d.join(1, 30)
	d.kinds(Flush{Count: 5}, "pass")
	good := d.s.AppendBinary(nil)
	for cut := range len(good) {
		if _, err := Restore(good[:cut]); err == nil {
			t.Fatalf("a snapshot cut to %d of %d bytes was taken", cut, len(good))
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if _, err := Restore(bad); err == nil {
			t.Fatalf("a snapshot with byte %d changed was taken", i)
		}
	}
	// The same with the sum made right again, as a careless editor might: no panic.
	for i := range len(good) - sha256.Size {
		bad := bytes.Clone(good[:len(good)-sha256.Size])
		bad[i] ^= 0x01
		sum := sha256.Sum256(bad)
		_, _ = Restore(append(bad, sum[:]...))
	}
	if _, err := Restore(append(bytes.Clone(good), 0)); err == nil {
		t.Fatal("a snapshot with a tail was taken")
	}
	if _, err := Restore(nil); err == nil {
		t.Fatal("nothing was taken for a snapshot")
	}
}

// Lean copies answer reads as the full state does, and go on to.
func TestLeanStates(t *testing.T) {
	d := lived(t)
	lean := d.s.Lean()
	d.now += 60_000
	for _, c := range []Command{DrawNow{Secret: Digest{2}}, Flush{Count: 3}, EjectTicket{8000}, PurgeLine{}, CloseRoom{}} {
		for _, e := range d.must(c) {
			lean.Apply(e)
		}
	}
	equal(t, "summary", lean.Summary(), d.s.Summary())
	if err := Check(lean); err != nil {
		t.Fatal(err)
	}
	d.compare()
}
