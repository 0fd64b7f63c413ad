package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
	"qm/journal"
)

// entered puts visitors 1 to n into the pre-queue of a drop in an hour, and waits until it is about to open.
func (h *house) entered(p *process, n int) (opens time.Time) {
	h.t.Helper()
	opens = h.now().Add(time.Hour).Truncate(time.Millisecond)
	if _, err := p.Schedule(h.ctx, "shop", "admin", opens); err != nil {
		h.t.Fatalf("schedule: %v", err)
	}
	for i := 1; i <= n; i++ {
		ans, err := h.join(p, i)
		if err != nil || ans.Place.Handle != room.Handle(i) || ans.Place.Ticket != 0 {
			h.t.Fatalf("visitor %d: %+v %v", i, ans.Place, err)
		}
	}
	return opens
}

// drawn expects exactly one draw of n entries in the journal, before every ticket after it, with nothing else in its batch.
func (h *house) drawn(n int) *room.Draw {
	h.t.Helper()
	var found *room.Draw
	err := h.memory.Read(h.ctx, stream, 0, func(r *journal.Record) error {
		e, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
		if b, ok := e.Body.(*room.Draw); ok {
			if found != nil {
				h.t.Fatalf("drawn twice")
			}
			found = b
		}
		if _, ok := e.Body.(*room.Join); ok && found == nil {
			h.t.Fatalf("seq %d is a join before the draw", r.Seq)
		}
		return err
	})
	if err != nil || found == nil || found.Count != n {
		h.t.Fatalf("drawn: %+v %v", found, err)
	}
	h.verify()
	return found
}

// The draw is decided at the open instant, before any command timed at or after it.
func TestTheDrawComesFirst(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		opens := h.entered(p, 20)
		nap(time.Until(opens) - time.Millisecond)
		if ans, err := h.join(p, 21); err != nil || ans.Place.Handle != 21 {
			t.Fatalf("a join in the last millisecond: %+v %v", ans.Place, err)
		}
		nap(time.Millisecond)
		ans, err := h.join(p, 22)
		if err != nil || ans.Place.Ticket != 22 {
			t.Fatalf("a join at the instant: %+v %v", ans.Place, err)
		}
		ans, err = h.join(p, 5)
		if err != nil || ans.Fresh || ans.Place.Ticket == 0 || ans.Place.Ticket > 21 {
			t.Fatalf("an entrant asks again: %+v %v", ans.Place, err)
		}
		if b := h.drawn(21); b.First != 1 {
			t.Fatalf("the first drawn ticket is %d", b.First)
		}
	})
}

// Nobody has to come: the clock opens the doors.
func TestTheDrawNeedsNoVisitor(t *testing.T) {
	inHouse(t, nil, func(h *house, p *process) {
		opens := h.entered(p, 10)
		nap(time.Until(opens) + tickMoving)
		synctest.Wait()
		h.drawn(10)
		nap(5 * time.Second)
		if sum, _ := h.ticket(p, 1); sum.Passes < 4 {
			t.Fatalf("%d passed 5 s after the doors opened, at one a second", sum.Passes)
		}
	})
}

// Commands are on their way when the instant comes: what was decided before it is durable before it, and the rest waits for the draw.
func TestTheDrawWaitsForWhatIsOnItsWay(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		opens := h.entered(p, 5)
		nap(time.Until(opens) - time.Millisecond)
		shot := p.faults.Arm(journal.OpAppend, journal.Delay, 1)
		type outcome struct {
			ans Answer
			err error
		}
		before, after := make(chan outcome, 1), make(chan outcome, 1)
		ask := func(i int, c chan outcome) {
			ans, err := h.join(p, i)
			c <- outcome{ans, err}
		}
		go ask(6, before)
		h.struck(shot)
		nap(2 * time.Millisecond)
		go ask(7, after)
		synctest.Wait()
		nap(300 * time.Millisecond)
		shot.Release()
		if o := <-before; o.err != nil || o.ans.Place.Handle != 6 || o.ans.Place.Ticket != 0 {
			t.Fatalf("the join decided before: %+v", o)
		}
		if o := <-after; o.err != nil || o.ans.Place.Ticket != 7 {
			t.Fatalf("the join that came after: %+v", o)
		}
		h.drawn(6)
	})
}

// The server is killed around the open instant, at each step of the draw: it is drawn once, and everybody who entered has a ticket.
//
// Proves: drop
func TestTheDrawSurvivesACrashAtEachStep(t *testing.T) {
	steps := map[string]func(h *house, p *process, opens time.Time){
		"before the instant": func(h *house, p *process, opens time.Time) {
			nap(time.Until(opens) - time.Second)
			h.kill(p)
		},
		"before the draw is written": func(h *house, p *process, opens time.Time) {
			shot := p.faults.Arm(journal.OpAppend, journal.FailBefore, 1)
			h.struck(shot)
			h.kill(p)
		},
		"while it is written": func(h *house, p *process, opens time.Time) {
			shot := p.faults.Arm(journal.OpAppend, journal.Delay, 1)
			h.struck(shot)
			h.kill(p)
		},
		"when it was written, unheard": func(h *house, p *process, opens time.Time) {
			shot := p.faults.Arm(journal.OpAppend, journal.FailAfter, 1)
			h.struck(shot)
			h.kill(p)
		},
		"when the vault is out of reach": func(h *house, p *process, opens time.Time) {
			nap(time.Until(opens) - time.Millisecond)
			p.cable.set(silent)
			nap(5 * time.Second)
			h.kill(p)
		},
		"after it": func(h *house, p *process, opens time.Time) {
			nap(time.Until(opens) + time.Second)
			h.kill(p)
		},
	}
	for name, crash := range steps {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
				opens := h.entered(p, 12)
				crash(h, p, opens)
				q := h.open()
				h.within(15*time.Second, "taken over", func() bool { return h.owns(q) })
				nap(max(time.Until(opens), 0) + time.Second)
				first := h.drawn(12)
				seen := map[room.Ticket]bool{}
				for i := 1; i <= 12; i++ {
					ans, err := h.join(q, i)
					if err != nil || ans.Fresh || ans.Place.Ticket < 1 || ans.Place.Ticket > 12 || seen[ans.Place.Ticket] {
						t.Fatalf("visitor %d: %+v %v", i, ans.Place, err)
					}
					seen[ans.Place.Ticket] = true
				}
				h.kill(q)
				r := h.open()
				h.within(15*time.Second, "taken over again", func() bool { return h.owns(r) })
				if again := h.drawn(12); again.Seed != first.Seed {
					t.Fatal("drawn again")
				}
			})
		})
	}
}

// Rescheduling keeps the secret; a second drop has another; cancelling with entries draws at once.
//
// Proves: draw.proof
func TestCommitments(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		commitment := func(in time.Duration) room.Digest {
			t.Helper()
			at := time.Time{}
			if in > 0 {
				at = h.now().Add(in)
			}
			ans, err := p.Schedule(h.ctx, "shop", "admin", at)
			if err != nil {
				t.Fatal(err)
			}
			return ans.Summary.Commitment
		}
		first := commitment(time.Hour)
		if first == (room.Digest{}) || commitment(2*time.Hour) != first {
			t.Fatal("rescheduling changed the secret")
		}
		if commitment(0) != (room.Digest{}) || commitment(time.Hour) != first {
			t.Fatal("a drop called off and on again has another secret")
		}
		if _, err := h.join(p, 1); err != nil {
			t.Fatal(err)
		}
		commitment(0)
		synctest.Wait()
		if b := h.drawn(1); room.Digest(room.Commitment(b.Secret)) != first {
			t.Fatal("the revealed secret is not the one that was committed to")
		}
		if commitment(time.Hour) == first {
			t.Fatal("a second drop has the secret of the first, which everybody knows")
		}
		_, err := p.Schedule(h.ctx, "shop", "admin", h.now().Add(-time.Second))
		h.expect("a drop in the past", err, room.ErrInvalidOpensAt)
		h.verify()
	})
}

// A drop whose secret is gone cannot be drawn: the room stays shut, and says why.
func TestADropWithoutItsSecret(t *testing.T) {
	inHouse(t, nil, func(h *house, p *process) {
		opens := h.entered(p, 3)
		if err := h.memory.Erase(h.ctx, stream, "drop/"); err != nil {
			t.Fatal(err)
		}
		nap(time.Until(opens) + time.Second)
		_, err := h.join(p, 4)
		h.expect("a join", err, ErrDamaged)
		if got := fmt.Sprint(p.Health().Rooms); p.Health().Rooms[0].Damaged == "" {
			t.Fatalf("health: %s", got)
		}
	})
}
