package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
	"qm/journal"
)

// start runs an engine on a memory journal until the test ends.
func start(t *testing.T, o Options) *Engine {
	t.Helper()
	e := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return e
}

func onMemory() Options {
	m := journal.NewMemory()
	return Options{Environment: "production", Journal: m, Vault: m}
}

func testSettings(rate int64) room.Settings {
	s := room.DefaultSettings()
	s.Name, s.TargetURL, s.RatePerMinute = "Test", "https://shop.example/", rate
	return s
}

func network(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), 32)
}

// Proves: fifo
func TestJoinsAreDealtInOrderAndPassAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, onMemory())
		ctx := t.Context()
		if _, err := e.Create(ctx, "shop", "admin", testSettings(60), room.Active, time.Time{}); err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= 5; i++ {
			ans, err := e.Join(ctx, "shop", fmt.Sprint("session-", i), network(i), 0)
			if err != nil || ans.Place.Ticket != room.Ticket(i) || !ans.Fresh {
				t.Fatalf("join %d: %+v %v", i, ans, err)
			}
		}
		again, err := e.Join(ctx, "shop", "session-3", network(3), 0)
		if err != nil || again.Place.Ticket != 3 || again.Fresh {
			t.Fatalf("the second join of a holder: %+v %v", again, err)
		}
		view, err := e.View(ctx, "shop")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5100 * time.Millisecond) // the fifth is earned when 5 s are over, and passes with the tick after that
		sum, p, err := view.Ticket(ctx, 2)
		if err != nil || p.Status != room.Passed {
			t.Fatalf("ticket 2 after 5 s: %+v %v", p, err)
		}
		if sum.Waiting != 0 || sum.Passes != 5 {
			t.Fatalf("%d waiting, %d passed after 5 s at 60 a minute", sum.Waiting, sum.Passes)
		}
	})
}

func TestManyJoinsAtOnce(t *testing.T) {
	e := start(t, onMemory())
	ctx := t.Context()
	if _, err := e.Create(ctx, "shop", "admin", testSettings(60), room.Paused, time.Time{}); err != nil {
		t.Fatal(err)
	}
	const n = 10_000
	tickets := make([]room.Ticket, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for { // a crowded machine may make a caller wait too long: who asks again finds the place
				ans, err := e.Join(ctx, "shop", fmt.Sprint("session-", i), network(i), 0)
				if errors.Is(err, ErrStorage) || errors.Is(err, ErrBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				tickets[i] = ans.Place.Ticket
				return
			}
		})
	}
	all.Wait()
	seen := make(map[room.Ticket]bool, n)
	for _, ticket := range tickets {
		if ticket < 1 || ticket > n || seen[ticket] {
			t.Fatalf("ticket %d was given twice or beyond the last", ticket)
		}
		seen[ticket] = true
	}
}
