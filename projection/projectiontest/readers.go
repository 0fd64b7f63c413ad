package projectiontest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"qm/engine/room"
	"qm/projection"
)

func testWatch(t *testing.T, s projection.Store) {
	h := start(t, s)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hints, err := s.Watch(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Watch(ctx, "production/other")
	if err != nil {
		t.Fatal(err)
	}
	hint := func(after string) {
		t.Helper()
		// Hints may be lost while a subscription is made, so the room changes until one arrives.
		deadline := time.After(patience)
		for {
			select {
			case <-hints:
				return
			case <-deadline:
				t.Fatalf("no hint after %s", after)
			case <-time.After(10 * time.Millisecond):
				h.Join(t, 1, false)
				h.Publish(t, s)
			}
		}
	}
	hint("a subscription")
	settle(hints)
	h.Join(t, 1, false)
	h.Publish(t, s)
	await(t, hints, "a hint after an apply")
	h.Reset(t, s)
	await(t, hints, "a hint after a reset")
	h.Must(t, room.CloseRoom{})
	h.Publish(t, s)
	await(t, hints, "a hint after a new generation")

	// Nobody who does not listen holds anybody up, and at most one hint is pending.
	h.Must(t, room.SetMode{Mode: room.Active})
	for range 100 {
		h.Join(t, 1, false)
		h.Publish(t, s)
	}
	if len(hints) > 1 || cap(hints) > 1 {
		t.Errorf("%d hints pending, room for %d", len(hints), cap(hints))
	}
	settle(other) // of its subscription
	settle(other)
	stop()
	_, err = s.Watch(ctx, stream) // A watch that is over before it begins is no harm.
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("watch: %v", err)
	}
}

// settle takes what is pending until nothing comes for a moment.
func settle(hints <-chan struct{}) {
	for {
		select {
		case <-hints:
		case <-time.After(100 * time.Millisecond):
			return
		}
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

// testOneSeq reads while batches arrive. Each lets as many in as it lets through, so a ticket's place follows from the summary that comes
// with it, at every seq at which a batch ends and at none between.
func testOneSeq(t *testing.T, s projection.Store) {
	const each, line, batches = 7, 100, 300
	h := start(t, s)
	h.Must(t, room.Reconfigure{Settings: room.DefaultSettings()}) // with as many slots as it takes
	h.Join(t, line, false)
	h.Publish(t, s)
	begin := h.Seq
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	reads := [3]chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	for reader, read := range reads {
		readers.Go(func() {
			first := sync.OnceFunc(func() { close(read) })
			defer first()
			v, rnd := s.View(stream), rand.New(rand.NewPCG(uint64(reader), 3))
			for ; ctx.Err() == nil && !t.Failed(); first() {
				n := room.Ticket(1 + rnd.IntN(line+each*batches))
				sum, p, err := v.Ticket(ctx, n)
				if err == nil {
					err = oneSeq(sum, p)
				}
				if err == nil && reader == 0 {
					var at projection.Position
					sum, at, err = v.Summary(ctx)
					if err == nil && at.Seq-begin != int64(sum.LastTicket-line)/each*(each+1) {
						err = fmt.Errorf("seq %d with last ticket %d", at.Seq, sum.LastTicket)
					}
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for range batches {
		h.Join(t, each, false)
		h.Must(t, room.Flush{Count: each})
		h.Publish(t, s)
	}
	for _, read := range reads {
		await(t, read, "a read")
	}
	stop()
	readers.Wait()
	tickets, _ := sample(h, 20)
	Same(t, s, h, tickets, []room.Handle{1})
}

func oneSeq(sum room.Summary, p room.Place) error {
	var wrong []string
	must := func(ok bool, what string) {
		if !ok {
			wrong = append(wrong, what)
		}
	}
	passed := sum.LastTicket - room.Ticket(sum.Waiting)
	must(sum.Waiting == 100, "the line's length")
	switch {
	case p.Ticket > sum.LastTicket:
		must(p.Status == room.None, "a ticket that was not given")
	case p.Ticket <= passed:
		must(p.Status == room.Passed && p.Slot, "a ticket let through")
	default:
		must(p.Status == room.Waiting && p.Ahead == int(p.Ticket-passed)-1, "a ticket in line")
	}
	if len(wrong) > 0 {
		return fmt.Errorf("half a batch: %s: %+v, last ticket %d, %d waiting", strings.Join(wrong, ", "), p, sum.LastTicket, sum.Waiting)
	}
	return nil
}
