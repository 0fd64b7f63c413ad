package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// A second process on the same journal answers reads from the shared projection and refuses writes; it takes over within 10 s when the
// owner dies without a word.
func TestTakeover(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		q := h.open()
		h.joins(p, 1, 20, 1)
		h.within(2*time.Second, "the second process sees the room", func() bool {
			v, err := q.View(h.ctx, "shop")
			if err != nil {
				return false
			}
			sum, _, err := v.Summary(h.ctx)
			return err == nil && sum.LastTicket == 20
		})
		if sum, place := h.ticket(q, 7); place.Status != room.Waiting || place.Ahead != 6 || sum.Waiting != 20 {
			t.Fatalf("the second process reads %+v", place)
		}
		if ids, err := q.Rooms(h.ctx); err != nil || fmt.Sprint(ids) != "[shop]" {
			t.Fatalf("its rooms: %v %v", ids, err)
		}
		_, err := h.join(q, 21)
		h.expect("a join there", err, ErrElsewhere)
		_, err = q.Do(h.ctx, "shop", "admin", room.Flush{Count: 1})
		h.expect("a flush there", err, ErrElsewhere)
		_, err = q.Schedule(h.ctx, "shop", "admin", h.now().Add(time.Hour))
		h.expect("a schedule there", err, ErrElsewhere)
		nap(30 * time.Second)
		if h.owns(q) || !h.owns(p) {
			t.Fatal("the room changed hands while its owner was well")
		}

		h.kill(p)
		took := h.within(10*time.Second, "taken over", func() bool { return h.owns(q) })
		if took < 5*time.Second {
			t.Fatalf("taken over after %s, while the lease ran", took)
		}
		h.joins(q, 3, 3, 3) // a place is a place
		h.joins(q, 21, 22, 21)
		h.verify()
	})
}

// Reads go on from the shared projection in the moments of a take-over.
func TestReadsGoOnDuringATakeover(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		q := h.open()
		h.joins(p, 1, 3, 1)
		nap(2 * time.Second)
		h.kill(p)
		for range 1200 {
			nap(10 * time.Millisecond)
			if _, place := h.ticket(q, 3); place.Status != room.Waiting {
				t.Fatalf("ticket 3 is %+v", place)
			}
		}
		if !h.owns(q) {
			t.Fatal("the room was not taken over")
		}
	})
}

// A process that stops in order gives the room up at once.
func TestGracefulStopReleasesAtOnce(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		q := h.open()
		h.joins(p, 1, 3, 1)
		nap(2 * time.Second)
		began := time.Now()
		h.close(p)
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s to stop", took)
		}
		h.within(retryMax+100*time.Millisecond, "taken over", func() bool { return h.owns(q) })
		h.joins(q, 4, 4, 4)
		_, err := h.join(p, 5)
		h.expect("a join at the stopped one", err, ErrElsewhere)
		h.verify()
	})
}

// What was decided when the end came is made durable and answered.
func TestStopFinishesWhatWasDecided(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		shot := p.faults.Arm(journal.OpAppend, journal.Delay, 1)
		answers := make(chan error, 10)
		for i := range 10 {
			go func() {
				_, err := h.join(p, i+1)
				answers <- err
			}()
		}
		h.struck(shot)
		synctest.Wait()
		p.stop()
		synctest.Wait()
		shot.Release()
		for range 10 {
			if err := <-answers; err != nil {
				t.Errorf("a join decided before the end: %v", err)
			}
		}
		h.close(p)
		q := h.open()
		h.within(2*time.Second, "taken over", func() bool { return h.owns(q) })
		if sum, _ := h.ticket(q, 1); sum.Waiting != 10 {
			t.Fatalf("%d wait", sum.Waiting)
		}
	})
}

// The epoch is the fence: an owner that was only slow can write nothing once another has the room, even one that is idle, and its
// callers are not told that nothing happened when something may have.
//
// Proves: journal.append
func TestTheStaleOwnerIsFenced(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		h.joins(p, 1, 3, 1)
		q := h.open()
		nap(time.Second)
		shot := p.faults.Arm(journal.OpAppend, journal.Delay, 1)
		renewals := p.faults.Arm(journal.OpRenew, journal.FailBefore, 100)
		asked := make(chan error, 1)
		nap(7500 * time.Millisecond) // of the lease's 8 s
		go func() {
			_, err := h.join(p, 4)
			asked <- err
		}()
		h.struck(shot)
		h.within(3*time.Second, "taken over", func() bool { return h.owns(q) })
		shot.Release() // now the old owner's batch arrives
		if err := <-asked; err == nil {
			t.Fatal("a stale owner answered a join")
		}
		if len(renewals.Fired) == 0 {
			t.Fatal("the fault did not fire")
		}
		p.faults.Disarm()
		h.within(2*time.Second, "the old owner knows", func() bool { return p.known("shop").current() == elsewhere })
		if sum, _ := h.ticket(q, 1); sum.LastTicket != 3 {
			t.Fatalf("the last ticket is %d", sum.LastTicket)
		}
		_, err := h.join(p, 5)
		h.expect("a join at the old owner", err, ErrElsewhere)
		h.joins(q, 5, 5, 4)
		h.verify()
	})
}

// A lease that is not trusted any more answers nothing, not even what needs no event.
func TestAnUntrustedLeaseAnswersNothing(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		h.joins(p, 1, 1, 1)
		shot := p.faults.Arm(journal.OpRenew, journal.FailBefore, 1000)
		nap(leaseTrust + 2*time.Second)
		if len(shot.Fired) == 0 {
			t.Fatal("the fault did not fire")
		}
		_, err := h.join(p, 1)
		h.expect("a re-join", err, ErrStorage)
		p.faults.Disarm()
		nap(2 * leaseRenew)
		h.joins(p, 1, 1, 1)
	})
}

// One renewal that hangs does not cost the room: others follow before the lease runs out.
func TestAHangingRenewalCostsNothing(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		q := h.open()
		shot := p.faults.Arm(journal.OpRenew, journal.Delay, 1)
		h.struck(shot)
		for range 200 {
			nap(100 * time.Millisecond)
			if h.owns(q) {
				t.Fatal("the room changed hands while its owner was well")
			}
			if !p.known("shop").trusted() {
				t.Fatal("the lease was not trusted any more")
			}
		}
	})
}

// The same for a call that hangs while a room is taken: it is given up and tried again.
func TestAHangingStartIsTriedAgain(t *testing.T) {
	for _, op := range []journal.Op{journal.OpAcquire, journal.OpSnapshot, journal.OpRead} {
		t.Run(string(op), func(t *testing.T) {
			inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
				h.joins(p, 1, 1, 1)
				h.close(p)
				q := h.prepare(h.memory)
				shot := q.faults.Arm(op, journal.Delay, 1)
				q.start()
				h.struck(shot)
				h.within(30*time.Second, "the room is owned", func() bool { return h.owns(q) })
			})
		})
	}
}

// A room that is there is never answered as not there: its projection may be missing, the room is not.
func TestALostProjectionIsNoMissingRoom(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		q := h.open()
		h.joins(p, 1, 3, 1)
		nap(2300 * time.Millisecond) // between two looks of the owner at its projection
		view, err := q.View(h.ctx, "shop")
		if err != nil {
			t.Fatal(err)
		}
		h.shared.Drop(stream)
		_, _, err = view.Summary(h.ctx)
		h.expect("a summary", err, ErrStorage)
		_, _, err = view.Ticket(h.ctx, 1)
		h.expect("a ticket", err, ErrStorage)
		_, _, err = view.Handle(h.ctx, 1)
		h.expect("a handle", err, ErrStorage)
		nap(3 * time.Second) // the owner sees that it is gone, and writes it anew
		if _, place := h.ticket(q, 3); place.Status != room.Waiting {
			t.Fatalf("ticket 3 is %+v", place)
		}
	})
}

// The shared projection fails and comes back; the room works on meanwhile, and the projection catches up with every field.
func TestSharedProjectionDown(t *testing.T) {
	inHouse(t, nil, func(h *house, p *process) {
		h.joins(p, 1, 10, 1)
		h.fault.SetDown(true)
		nap(5 * time.Second)
		h.joins(p, 11, 20, 11)
		if health := p.Health(); health.Ready || health.SharedErr == "" {
			t.Errorf("health: %+v", health)
		}
		h.fault.SetDown(false)
		nap(3 * time.Second)
		h.sameAsShared(p)
		h.fault.Arm(projection.Before, projection.After, projection.Before)
		h.joins(p, 21, 30, 21)
		nap(5 * time.Second)
		if h.fault.Pending() != 0 {
			t.Fatal("the faults did not fire")
		}
		h.sameAsShared(p)
		if lag := p.Health().Rooms[0].Lag; lag != 0 {
			t.Errorf("a lag of %d is left", lag)
		}
	})
}

// sameAsShared holds the shared projection against the live view of p, in every field.
func (h *house) sameAsShared(p *process) {
	h.t.Helper()
	h.within(2*time.Second, "the shared projection has caught up", func() bool {
		synctest.Wait() // the room goes on by itself: look between two of its events
		there, _ := h.shared.Position(h.ctx, stream)
		here, _ := p.live.Position(h.ctx, stream)
		return there.Seq == here.Seq
	})
	image := func(m *projection.Memory) (image projection.Image) {
		if err := m.With(stream, func(_, _ int64, s *room.State) error {
			image = projection.ImageOf(s)
			return nil
		}); err != nil {
			h.t.Fatalf("image: %v", err)
		}
		return image
	}
	if diff := projection.Diff(image(p.live), image(h.shared), 5); len(diff) > 0 {
		h.t.Fatalf("the shared projection differs: %v", diff)
	}
}
