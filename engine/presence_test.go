package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
)

// A visitor who joins and polls, and one who does not: the second is a ghost after presenceSec, and goes along with the first.
//
// Proves: ghosts
func TestGhosts(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 60 }, func(h *house, p *process) {
		h.set(p, room.Paused)
		h.joins(p, 1, 10, 1)
		for range 8 {
			nap(4 * time.Second)
			for n := room.Ticket(6); n <= 10; n++ {
				p.Seen("shop", n)
			}
		}
		h.set(p, room.Active)
		nap(1400 * time.Millisecond)
		sum, place := h.ticket(p, 6)
		if place.Status != room.Passed || !place.Slot || sum.Passes != 6 || sum.Slots != 1 {
			t.Fatalf("ticket 6 is %+v; %d passes, %d slots", place, sum.Passes, sum.Slots)
		}
		h.verify()
	})
}

func (h *house) set(p *process, m room.Mode) {
	h.t.Helper()
	if _, err := p.Do(h.ctx, "shop", "admin", room.SetMode{Mode: m}); err != nil {
		h.t.Fatalf("set %s: %v", m, err)
	}
}

// polling lets all of the tickets poll for so long, every second.
func (h *house) polling(p *process, d time.Duration, tickets ...room.Ticket) {
	for end := time.Now().Add(d); time.Now().Before(end); nap(time.Second) {
		for _, n := range tickets {
			p.Seen("shop", n)
		}
	}
}

// A clock that is set does not make ghosts of those who poll, nor does a process that was stopped for a while.
func TestASetClockMakesNoGhosts(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -40 * time.Second, 40 * time.Second, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			inHouse(t, func(s *room.Settings) { s.RatePerMinute = 60 }, func(h *house, p *process) {
				h.set(p, room.Paused)
				h.joins(p, 1, 10, 1)
				all := []room.Ticket{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
				h.polling(p, 40*time.Second, all...)
				h.ahead.Add(int64(step))
				nap(3 * time.Second)
				p.Seen("shop", 10)
				if _, err := p.Do(h.ctx, "shop", "admin", room.Flush{Count: 10}); err != nil {
					t.Fatal(err)
				}
				if sum, _ := h.ticket(p, 1); sum.Slots != 10 {
					t.Fatalf("%d of 10 passed with a slot: the others were taken for ghosts", sum.Slots)
				}
				h.verify()
			})
		})
	}
}

// What was earned by an instant is not spent before it, though the clock was set back in between and no event tells of that instant.
func TestASetClockMakesNoBurst(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 600 }, func(h *house, p *process) {
		h.joins(p, 1, 1, 1)
		h.within(time.Second, "passed", func() bool { sum, _ := h.ticket(p, 1); return sum.Passes == 1 })
		nap(500 * time.Millisecond)
		h.ahead.Add(int64(-3 * time.Second))
		h.joins(p, 2, 12, 2)
		nap(10 * time.Second)
		if sum, _ := h.ticket(p, 1); sum.Passes != 12 {
			t.Fatalf("%d passed", sum.Passes)
		}
		h.verify()
	})
}

// After a take-over everyone counts as present until the new owner has watched for presenceSec.
func TestATakeoverMakesNoGhosts(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		h.joins(p, 1, 5, 1)
		nap(40 * time.Second)
		h.close(p)
		h.ahead.Add(int64(-time.Minute)) // on a host whose clock is behind
		q := h.open()
		h.within(3*time.Second, "taken over", func() bool { return h.owns(q) })
		if _, err := q.Do(h.ctx, "shop", "admin", room.Flush{Count: 2}); err != nil {
			t.Fatal(err)
		}
		if sum, _ := h.ticket(q, 1); sum.Passes != 2 || sum.Slots != 2 {
			t.Fatalf("%d passes have %d slots", sum.Passes, sum.Slots)
		}
		nap(time.Minute + 31*time.Second)
		if _, err := q.Do(h.ctx, "shop", "admin", room.Flush{Count: 2}); err != nil {
			t.Fatal(err)
		}
		if _, place := h.ticket(q, 3); place.Status != room.Passed || place.Slot {
			t.Fatalf("a ghost by the new owner's own watch is %+v", place)
		}
		h.verify()
	})
}

// A pass whose holder was never told gives its slot back, even if they were seen just before it.
//
// Proves: ghosts
func TestUntoldPassesGiveTheirSlotsBack(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 60 }, func(h *house, p *process) {
		h.joins(p, 1, 1, 1)
		nap(800 * time.Millisecond)
		p.Seen("shop", 1)
		h.within(time.Second, "passed", func() bool { _, place := h.ticket(p, 1); return place.Status == room.Passed })
		nap(31 * time.Second)
		if _, place := h.ticket(p, 1); place.Status != room.Passed || place.Slot {
			t.Fatalf("the pass is %+v", place)
		}
		h.joins(p, 2, 2, 2)
		h.within(3*time.Second, "passed", func() bool { _, place := h.ticket(p, 2); return place.Status == room.Passed })
		nap(time.Millisecond)
		p.Seen("shop", 2) // told
		nap(time.Minute)
		if _, place := h.ticket(p, 2); !place.Slot {
			t.Fatalf("a pass that was told is %+v", place)
		}
		h.verify()
	})
}

// A door session lasts while it is seen; what is kept of it here ends with it.
func TestDoorSessions(t *testing.T) {
	inHouse(t, func(s *room.Settings) {
		s.RatePerMinute, s.SessionTTLSec, s.SessionMaxSec = 6000, 60, 600
	}, func(h *house, p *process) {
		h.joins(p, 1, 20, 1)
		h.within(3*time.Second, "passed", func() bool { sum, _ := h.ticket(p, 1); return sum.Passes == 20 })
		for n := room.Ticket(1); n <= 20; n++ {
			ans, err := p.Enter(h.ctx, "shop", 1, n, fmt.Sprint("session-", n), 0, room.Holder{byte(n)})
			if err != nil || ans.Place.Status != room.Inside {
				t.Fatalf("enter %d: %+v %v", n, ans.Place, err)
			}
			p.SeenDoor("shop", n)
		}
		for range 20 {
			nap(10 * time.Second)
			p.SeenDoor("shop", 1)
		}
		sum, place := h.ticket(p, 1)
		if sum.Doors != 1 || place.Status != room.Inside || !p.DoorOpen("shop", &sum, place, h.now()) {
			t.Fatalf("%d sessions are left, the one in use is %+v", sum.Doors, place)
		}
		nap(time.Second)
		p.SeenDoor("shop", 7) // a late mark of one that is over
		nap(2 * time.Second)
		if kept := p.known("shop").presence.doorsSeen(); len(kept) > 1 {
			t.Fatalf("marks are kept of the sessions %v", kept)
		}
		h.kill(p)
		q := h.open()
		h.within(10*time.Second, "taken over", func() bool { return h.owns(q) })
		nap(50 * time.Second)
		if _, place := h.ticket(q, 1); place.Status != room.Inside {
			t.Fatalf("a session under a new owner is %+v", place)
		}
		nap(20 * time.Second)
		synctest.Wait()
		if _, place := h.ticket(q, 1); place.Status != room.Expired {
			t.Fatalf("an unseen session is %+v", place)
		}
		h.verify()
	})
}

// A mark that comes while observation begins anew is lost, or belongs to the new one: nobody is seen in the future.
func TestMarksRaceWithANewBeginning(t *testing.T) {
	var p presence
	p.restart(1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20_000 {
			p.mark(room.Ticket(i%9000), room.Instant(1_000_000+i))
		}
	}()
	for i := range 200 {
		p.restart(room.Instant(1_020_000 + i))
	}
	<-done
	for n := room.Ticket(0); n < 9000; n++ {
		if seen := p.Seen(n); seen > 1_021_000 {
			t.Fatalf("ticket %d was seen at %d, in the future", n, seen)
		}
	}
}
