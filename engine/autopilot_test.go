package engine

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
	"qm/journal"
)

// mode reads the room's state through p.
func (h *house) mode(p *process) room.Mode { s, _ := h.ticket(p, 0); return s.Mode }

// reasons lists why the room changed by itself, in order.
func (h *house) reasons() (list []room.Reason) {
	h.t.Helper()
	err := h.memory.Read(h.ctx, stream, 0, func(r *journal.Record) error {
		e, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
		var why *room.Reason
		switch b := e.Body.(type) {
		case *room.Configure:
			why = b.Reason
		case *room.StateChange:
			why = b.Reason
		}
		if why != nil {
			if r.Actor != "clock" {
				h.t.Fatalf("seq %d has a reason, and the actor %q", r.Seq, r.Actor)
			}
			list = append(list, *why)
		}
		return err
	})
	if err != nil {
		h.t.Fatalf("read: %v", err)
	}
	return list
}

// A room follows its openings: a drop for each, closed at its end, over a restart; entries of the past do nothing.
//
// Proves: openings
func TestOpenings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHouse(t, t.Context())
		defer h.closeAll()
		p := h.open()
		at := func(d time.Duration) room.Instant { return room.Instant(h.now().Add(d).UnixMilli()) }
		h.build(p, func(s *room.Settings) {
			s.Openings = []room.Opening{
				{OpensAt: at(-2 * time.Hour), ClosesAt: at(-time.Hour)}, {OpensAt: at(time.Hour), ClosesAt: at(2 * time.Hour)}, {OpensAt: at(3 * time.Hour)},
			}
		})
		h.within(5*time.Second, "the first opening is scheduled", func() bool { s, _ := h.ticket(p, 0); return s.OpensAt == s.Settings.Openings[1].OpensAt })
		if ans, err := h.join(p, 1); err != nil || ans.Place.Handle == 0 {
			t.Fatalf("before it: %+v %v", ans.Place, err)
		}
		nap(time.Hour)
		h.within(5*time.Second, "it opens", func() bool { s, _ := h.ticket(p, 0); return s.Proof != nil && s.Generation == 1 })
		nap(30 * time.Minute)
		h.kill(p)
		p = h.open()
		nap(30 * time.Minute)
		h.within(15*time.Second, "it closes, and the next one is scheduled", func() bool {
			s, _ := h.ticket(p, 0)
			return s.Generation == 2 && s.OpensAt == s.Settings.Openings[2].OpensAt && s.Mode == room.Active
		})
		nap(time.Hour)
		h.within(5*time.Second, "the last one opens", func() bool { s, _ := h.ticket(p, 0); return s.Proof != nil && s.OpensAt == 0 })
		nap(24 * time.Hour)
		if s, _ := h.ticket(p, 0); s.Generation != 2 || s.Mode != room.Active {
			t.Fatalf("a day later: generation %d, %s", s.Generation, s.Mode)
		}
		h.verify()
	})
}

// A room in bypass begins to queue in a surge and stops after a calm, and leaves alone what an operator set.
//
// Proves: autoActivate
func TestAutoActivate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHouse(t, t.Context())
		defer h.closeAll()
		p := h.open()
		h.build(p, func(s *room.Settings) {
			s.RatePerMinute = 6000
			s.AutoActivate = &room.AutoActivate{ArrivalsPerMinute: 100, CalmMinutes: 5}
		})
		set := func(m room.Mode) {
			t.Helper()
			if _, err := p.Do(h.ctx, "shop", "admin", room.SetMode{Mode: m}); err != nil {
				t.Fatal(err)
			}
		}
		visitor := 0
		arrive := func(n int) { // n clients in a minute, each of whom asks twice
			t.Helper()
			s, _ := h.ticket(p, 0)
			for range n {
				visitor++
				for range 2 {
					p.Arrived("shop", &s, network(visitor))
				}
			}
		}
		nap(time.Second)
		set(room.Bypass)
		arrive(500)
		nap(4 * time.Minute) // the surge is over by the time that the operator's hand is off
		if m := h.mode(p); m != room.Bypass {
			t.Fatalf("the operator's bypass became %s", m)
		}
		nap(2 * time.Minute)
		arrive(100)
		nap(2 * time.Second)
		if m := h.mode(p); m != room.Bypass {
			t.Fatalf("100 arrivals are no surge, and yet: %s", m)
		}
		arrive(1)
		h.within(5*time.Second, "it begins to queue", func() bool { return h.mode(p) == room.Active })
		for i := range 10 { // people keep coming: it goes on
			for range 60 {
				visitor++
				if _, err := h.join(p, visitor); err != nil {
					t.Fatal(err)
				}
			}
			nap(time.Minute)
			if m := h.mode(p); m != room.Active {
				t.Fatalf("minute %d of the surge: %s", i, m)
			}
		}
		took := h.within(20*time.Minute, "it stops after a calm", func() bool { return h.mode(p) == room.Bypass })
		if took < 4*time.Minute {
			t.Fatalf("it stopped after %s", took)
		}
		set(room.Active)
		nap(time.Hour)
		if m := h.mode(p); m != room.Active {
			t.Fatalf("the operator's queue became %s", m)
		}
		why := h.reasons()
		if len(why) != 2 || why[0] != (room.Reason{Rule: "autoActivate", Sign: "surge", Value: 101, Limit: 100}) || why[1].Sign != "calm" {
			t.Fatalf("reasons: %+v", why)
		}
		h.verify()
	})
}

// A client counts once; who has not come for long counts again.
func TestArrivals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var a arrivals
		net := netip.MustParsePrefix("192.0.2.7/32")
		for range 30 {
			a.came(net, time.Now())
			nap(10 * time.Second)
		}
		if n := a.lastMinute(time.Now()); n != 0 {
			t.Fatalf("%d arrivals of one client that is there all the time", n)
		}
		nap(2*arrivalForgets + time.Minute)
		a.came(net, time.Now())
		a.came(netip.MustParsePrefix("2001:db8::/64"), time.Now())
		if n := a.lastMinute(time.Now()); n != 2 {
			t.Fatalf("%d arrivals, not 2", n)
		}
		nap(70 * time.Second)
		if n := a.lastMinute(time.Now()); n != 0 {
			t.Fatalf("%d arrivals a minute later", n)
		}
	})
}

// target is a prober's view of a shop that can fall ill.
type target struct {
	mu     sync.Mutex
	state  Probed
	probes int
}

func (g *target) probe(context.Context, string) Probed {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probes++
	return g.state
}

func (g *target) becomes(p Probed) { g.mu.Lock(); g.state = p; g.mu.Unlock() }

func (g *target) count() int { g.mu.Lock(); defer g.mu.Unlock(); return g.probes }

// The rate follows the target between floor and ceiling, gives way to an operator, and every step says why.
//
// Proves: autotune
func TestAutotune(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHouse(t, t.Context())
		defer h.closeAll()
		g := &target{state: Probed{Took: 100 * time.Millisecond}}
		h.probe = g.probe
		p := h.open()
		h.build(p, func(s *room.Settings) {
			s.RatePerMinute, s.QueueMaxPerIP, s.PresenceSec = 60, nil, nil
			s.Autotune = &room.Autotune{Floor: 30, Ceiling: 120, Step: 20, LatencyMs: 500, ErrorPct: 10}
		})
		for i := range 3000 {
			if _, err := h.join(p, i+1); err != nil {
				t.Fatal(err)
			}
		}
		rate := func() int64 { s, _ := h.ticket(p, 0); return s.Settings.RatePerMinute }
		nap(handsOff - 2*time.Second)
		if n := rate(); n != 60 {
			t.Fatalf("the rate that was just set became %d", n)
		}
		h.within(3*time.Minute, "it rises to the ceiling", func() bool { return rate() == 120 })
		g.becomes(Probed{Took: 900 * time.Millisecond})
		h.within(time.Minute, "a slow target halves it", func() bool { return rate() == 60 })
		g.becomes(Probed{Took: 10 * time.Millisecond, Failed: true})
		h.within(time.Minute, "a failing target brings it to the floor", func() bool { return rate() == 30 })
		nap(2 * time.Minute)
		if n := rate(); n != 30 {
			t.Fatalf("below the floor: %d", n)
		}
		// An operator's rate stands, even above the ceiling; a well target does not lower it.
		g.becomes(Probed{Took: 50 * time.Millisecond})
		if _, err := p.Configure(h.ctx, "shop", "admin", func(s *room.Settings) error { s.RatePerMinute = 500; return nil }); err != nil {
			t.Fatal(err)
		}
		nap(5 * time.Minute)
		if n := rate(); n != 500 {
			t.Fatalf("the operator's 500 became %d", n)
		}
		// Rate 0 is a stop.
		if _, err := p.Configure(h.ctx, "shop", "admin", func(s *room.Settings) error { s.RatePerMinute = 0; return nil }); err != nil {
			t.Fatal(err)
		}
		nap(5 * time.Minute)
		if n := rate(); n != 0 {
			t.Fatalf("the stop became %d", n)
		}
		signs := map[string]int{}
		for _, why := range h.reasons() {
			signs[why.Sign]++
			if why.Rule != "autotune" || why.Limit == 0 {
				t.Errorf("reason %+v", why)
			}
		}
		if signs["well"] != 3 || signs["slow"] != 1 || signs["failing"] != 1 {
			t.Fatalf("steps: %v", signs)
		}
		// Paused, nobody looks at the target.
		if _, err := p.Do(h.ctx, "shop", "admin", room.SetMode{Mode: room.Paused}); err != nil {
			t.Fatal(err)
		}
		nap(5 * time.Second)
		synctest.Wait()
		before := g.count()
		nap(time.Minute)
		if n := g.count(); n != before {
			t.Fatalf("%d probes of a paused room's target", n-before)
		}
		h.verify()
	})
}
