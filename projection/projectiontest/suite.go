// Package projectiontest is the suite that every projection.Store passes: what it answers is what the room's state answers, in every
// field, each time as of one seq.
package projectiontest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"qm/engine/room"
	"qm/projection"
)

// patience is how long something that must happen may take on a loaded machine.
const patience = 20 * time.Second

// Run runs the suite. open gives an empty store that is cleaned up after the test.
func Run(t *testing.T, open func(t *testing.T) projection.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, projection.Store)
	}{
		{"NoRoom", testNoRoom},
		{"Positions", testPositions},
		{"Seen", testSeen},
		{"Gap", testGap},
		{"Stale", testStale},
		{"Foreign", testForeign},
		{"Incarnations", testIncarnations},
		{"Life", testLife},
		{"RandomLives", testRandomLives},
		{"ManyPages", testManyPages},
		{"BigDraw", testBigDraw},
		{"Generations", testGenerations},
		{"Rooms", testRooms},
		{"Watch", testWatch},
		{"OneSeq", testOneSeq},
		{"Ping", func(t *testing.T, s projection.Store) {
			if err := s.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

const stream = "production/sale"

func start(t *testing.T, s projection.Store) *House {
	t.Helper()
	h := NewHouse(t, stream, 1)
	h.Reset(t, s)
	return h
}

func positionOf(t testing.TB, s projection.Store, stream string) projection.Position {
	t.Helper()
	at, err := s.Position(context.Background(), stream)
	if err != nil {
		t.Fatalf("position: %v", err)
	}
	return at
}

// Same fails the test unless the store answers what the room's state does: the summary, and the tickets and handles that are given (all
// if none are).
func Same(t testing.TB, s projection.Store, h *House, tickets []room.Ticket, handles []room.Handle) {
	t.Helper()
	ctx := context.Background()
	want := h.State.Summary()
	if tickets == nil && handles == nil {
		for n := room.Ticket(0); n <= want.LastTicket+2; n++ {
			tickets = append(tickets, n)
		}
		for q := room.Handle(0); q <= want.LastHandle+2; q++ {
			handles = append(handles, q)
		}
	}
	view := s.View(h.Stream)
	same := func(what string, want, got any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if reflect.DeepEqual(want, got) {
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s at seq %d (-state +store):\n%s", what, h.Seq, d)
		}
	}
	sum, at, err := view.Summary(ctx)
	same("summary", want, sum, err)
	if at.Seq != h.Seq || at.Epoch != h.Epoch || at != positionOf(t, s, h.Stream) {
		t.Fatalf("position %+v, want seq %d of epoch %d", at, h.Seq, h.Epoch)
	}
	for _, n := range tickets {
		sum, p, err := view.Ticket(ctx, n)
		same(fmt.Sprintf("ticket %d", n), h.State.Ticket(n), p, err)
		same(fmt.Sprintf("summary with ticket %d", n), want, sum, nil)
	}
	for _, q := range handles {
		sum, p, err := view.Handle(ctx, q)
		same(fmt.Sprintf("handle %d", q), h.State.Handle(q), p, err)
		same(fmt.Sprintf("summary with handle %d", q), want, sum, nil)
	}
	if d, ok := s.(projection.Dumper); ok {
		image, err := d.Dump(ctx, h.Stream)
		if err != nil {
			t.Fatalf("dump: %v", err)
		}
		if found := projection.Diff(projection.ImageOf(h.State), image, 10); len(found) > 0 {
			t.Fatalf("the dump at seq %d differs from the state: %v", h.Seq, found)
		}
		if image.Position != at {
			t.Fatalf("the dump is as of %+v, not %+v", image.Position, at)
		}
	}
}

// sample picks tickets and handles of a big room, those at the edges of pages among them.
func sample(h *House, n int) (tickets []room.Ticket, handles []room.Handle) {
	sum := h.State.Summary()
	rnd := rand.New(rand.NewPCG(uint64(h.Seq), 2))
	pick := func(last uint32) (list []uint32) {
		list = append(list, 0, 1, 2, last, last+1)
		for page := uint32(0); page <= last/room.LinePageTickets; page += 1 + last/room.LinePageTickets/8 {
			list = append(list, page*room.LinePageTickets, page*room.LinePageTickets+room.LinePageTickets-1)
		}
		for range n {
			list = append(list, uint32(rnd.Int64N(int64(last)+1)))
		}
		return list
	}
	for _, n := range pick(uint32(sum.LastTicket)) {
		tickets = append(tickets, room.Ticket(n))
	}
	for _, q := range pick(uint32(sum.LastHandle)) {
		handles = append(handles, room.Handle(q))
	}
	return tickets, handles
}

func testNoRoom(t *testing.T, s projection.Store) {
	v := s.View(stream)
	if _, _, err := v.Summary(t.Context()); !errors.Is(err, projection.ErrNoRoom) {
		t.Errorf("summary: %v", err)
	}
	if _, _, err := v.Ticket(t.Context(), 1); !errors.Is(err, projection.ErrNoRoom) {
		t.Errorf("ticket: %v", err)
	}
	if _, _, err := v.Handle(t.Context(), 1); !errors.Is(err, projection.ErrNoRoom) {
		t.Errorf("handle: %v", err)
	}
	if at := positionOf(t, s, stream); at != (projection.Position{}) {
		t.Errorf("position %+v", at)
	}
	if d, ok := s.(projection.Dumper); ok {
		if _, err := d.Dump(t.Context(), stream); !errors.Is(err, projection.ErrNoRoom) {
			t.Errorf("dump: %v", err)
		}
	}
	// A view that was taken before there was a room finds it when there is one.
	start(t, s)
	if _, at, err := v.Summary(t.Context()); err != nil || at.Seq != 1 {
		t.Errorf("after a reset: %+v, %v", at, err)
	}
}

func testPositions(t *testing.T, s projection.Store) {
	h := start(t, s)
	h.Join(t, 3, false)
	h.Publish(t, s)
	at := positionOf(t, s, stream)
	if at.Incarnation == "" || at.Epoch != 1 || at.Seq != 4 {
		t.Fatalf("position %+v", at)
	}
	h.Epoch = 9
	h.Join(t, 1, false)
	h.Publish(t, s)
	if after := positionOf(t, s, stream); after.Epoch != 9 || after.Seq != 5 {
		t.Fatalf("position %+v", after)
	}
	Same(t, s, h, nil, nil)
}

func testSeen(t *testing.T, s projection.Store) {
	h := start(t, s)
	h.Join(t, 5, false)
	first := h.Batch()
	h.Join(t, 5, false)
	h.Must(t, room.Flush{Count: 3})
	second := h.Batch()
	both := projection.Batch{Room: stream, Epoch: 1, After: first.After, Events: append(first.Events[:5:5], second.Events...), State: h.State}

	// The first batch is applied with the state that belongs to it.
	early := NewHouse(t, stream, 1)
	early.Join(t, 5, false)
	first.State = early.State
	for _, b := range []projection.Batch{first, first, both, both, second} {
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatalf("apply %d..%d: %v", b.After+1, b.Last(), err)
		}
	}
	Same(t, s, h, nil, nil)
	if err := s.Apply(t.Context(), first); err != nil {
		t.Fatalf("a batch of the past: %v", err)
	}
	none := projection.Batch{Room: stream, Epoch: 1, After: h.Seq, State: h.State}
	if err := s.Apply(t.Context(), none); err != nil {
		t.Fatalf("a batch of nothing: %v", err)
	}
	Same(t, s, h, nil, nil)
}

func testGap(t *testing.T, s projection.Store) {
	h := NewHouse(t, stream, 1)
	if err := s.Apply(t.Context(), h.Batch()); !errors.Is(err, projection.ErrGap) {
		t.Fatalf("without a projection: %v", err)
	}
	h.Reset(t, s)
	before := *h
	before.State = h.State.Lean()
	h.Join(t, 2, false)
	h.Batch() // lost
	h.Join(t, 2, false)
	if err := s.Apply(t.Context(), h.Batch()); !errors.Is(err, projection.ErrGap) {
		t.Fatalf("a hole: %v", err)
	}
	// A batch that would be written as a new incarnation finds the hole just so.
	h.Must(t, room.CloseRoom{})
	if err := s.Apply(t.Context(), h.Batch()); !errors.Is(err, projection.ErrGap) {
		t.Fatalf("a hole before a new generation: %v", err)
	}
	if err := s.Apply(t.Context(), projection.Batch{Room: stream, Epoch: 1, After: h.Seq, State: h.State}); !errors.Is(err, projection.ErrGap) {
		t.Fatalf("a hole before nothing: %v", err)
	}
	Same(t, s, &before, nil, nil)
	h.Reset(t, s)
	Same(t, s, h, nil, nil)
}

func testStale(t *testing.T, s projection.Store) {
	h := NewHouse(t, stream, 1)
	h.Epoch = 5
	h.Reset(t, s)
	h.Join(t, 4, false)
	h.Publish(t, s)
	before := *h
	before.State = h.State.Lean()
	at := positionOf(t, s, stream)

	h.Epoch = 4
	h.Join(t, 1, false)
	if err := s.Apply(t.Context(), h.Batch()); !errors.Is(err, projection.ErrStale) {
		t.Errorf("apply: %v", err)
	}
	h.Must(t, room.CloseRoom{})
	if err := s.Apply(t.Context(), h.Batch()); !errors.Is(err, projection.ErrStale) {
		t.Errorf("apply of a new generation: %v", err)
	}
	if err := s.Apply(t.Context(), projection.Batch{Room: stream, Epoch: 4, After: at.Seq, State: h.State}); !errors.Is(err, projection.ErrStale) {
		t.Errorf("apply of nothing: %v", err)
	}
	if err := s.Reset(t.Context(), stream, 4, h.Seq, h.State); !errors.Is(err, projection.ErrStale) {
		t.Errorf("reset: %v", err)
	}
	if after := positionOf(t, s, stream); after != at {
		t.Errorf("position %+v, was %+v", after, at)
	}
	Same(t, s, &before, nil, nil)
}

// A projection under an epoch that the journal never gave is of another history: it is disowned, and written anew. One of a newer
// owner is left alone.
func testForeign(t *testing.T, s projection.Store) {
	newest := func(epoch int64) func(context.Context) (int64, error) {
		return func(context.Context) (int64, error) { return epoch, nil }
	}
	if foreign, err := projection.Reclaim(t.Context(), s, stream, newest(1)); foreign || err != nil {
		t.Fatalf("where there is nothing: %v %v", foreign, err)
	}
	if err := s.Disown(t.Context(), stream); err != nil || positionOf(t, s, stream) != (projection.Position{}) {
		t.Fatalf("disowning nothing: %v, %+v", err, positionOf(t, s, stream))
	}
	h := NewHouse(t, stream, 1)
	h.Epoch = 5
	h.Join(t, 3, false)
	h.Reset(t, s)
	if foreign, err := projection.Reclaim(t.Context(), s, stream, newest(5)); foreign || err != nil {
		t.Fatalf("a newer owner's: %v %v", foreign, err)
	}
	Same(t, s, h, nil, nil)
	restored := NewHouse(t, stream, 1)
	restored.Epoch = 2
	if err := s.Reset(t.Context(), stream, 2, restored.Seq, restored.State); !errors.Is(err, projection.ErrStale) {
		t.Fatalf("reset under an older epoch: %v", err)
	}
	if foreign, err := projection.Reclaim(t.Context(), s, stream, newest(2)); !foreign || err != nil {
		t.Fatalf("another history's: %v %v", foreign, err)
	}
	restored.Reset(t, s)
	Same(t, s, restored, nil, nil)
}

func testIncarnations(t *testing.T, s projection.Store) {
	h := start(t, s)
	h.Join(t, 3, false)
	seen := map[string]bool{positionOf(t, s, stream).Incarnation: true}
	for range 3 {
		h.Reset(t, s)
		Same(t, s, h, nil, nil)
		if at := positionOf(t, s, stream); seen[at.Incarnation] {
			t.Fatalf("incarnation %q again", at.Incarnation)
		} else {
			seen[at.Incarnation] = true
		}
	}
	// Going back is possible, too: a reset replaces whatever there is.
	old := NewHouse(t, stream, 1)
	old.Reset(t, s)
	Same(t, s, old, nil, nil)
}

// testLife leads a few visitors through everything that can happen to one.
func testLife(t *testing.T, s projection.Store) {
	h := start(t, s)
	step := func(c room.Command) {
		t.Helper()
		h.Pass(130)
		h.Must(t, c)
		h.Publish(t, s)
		Same(t, s, h, nil, nil)
	}
	settings := room.DefaultSettings()
	settings.HoldScore = 60
	step(room.Reconfigure{Settings: settings, Credit: 5})
	h.Join(t, 12, true)
	h.Publish(t, s)
	Same(t, s, h, nil, nil)
	g := h.State.Generation()
	step(room.Flush{Count: 4, Credit: 11})
	step(room.EnterDoor{Generation: g, Ticket: 1, Holder: h.State.Ticket(1).Holder, Door: room.Holder{1}})
	step(room.EnterDoor{Generation: g, Ticket: 1, CodeAt: firstInstant + 1, Door: room.Holder{2}})
	h.Pass(60_000)
	step(room.Tick{Presence: presence{firstInstant + 70_000}})
	h.Pass(450_000)
	step(room.Tick{Doors: []room.Ticket{1}})
	step(room.EjectTicket{Ticket: 1})
	step(room.GiveBack{Generation: g, Holder: h.State.Ticket(6).Holder})
	settings.HoldScore = 1
	step(room.Reconfigure{Settings: settings})
	settings.HoldScore = 100
	step(room.Reconfigure{Settings: settings})
	h.Pass(700_000)
	step(room.Tick{Credit: room.PassCost})
	h.Drop(t, 9, func() {
		h.Publish(t, s)
		Same(t, s, h, nil, nil)
		step(room.GiveBack{Generation: g, Holder: h.State.Handle(2).Holder})
	})
	h.Publish(t, s)
	Same(t, s, h, nil, nil)
	show := func() {
		t.Helper()
		h.Publish(t, s)
		Same(t, s, h, nil, nil)
	}
	h.Drop(t, 6, func() {
		show()
		step(room.PurgeLine{})
		h.Join(t, 4, true)
		show()
		h.Must(t, room.PurgeLine{})
		h.Join(t, 5, true)
		show() // of a batch that empties the pre-queue and fills it anew
	})
	h.Drop(t, 3, show) // after a draw in the same batch
	show()
	step(room.SetMode{Mode: room.Paused})
	step(room.PurgeLine{})
	step(room.CloseRoom{})
	step(room.DeleteRoom{})
}

func testRandomLives(t *testing.T, s projection.Store) {
	lives := 0
	rapid.Check(t, func(r *rapid.T) {
		lives++
		seed := rapid.Uint64().Draw(r, "seed")
		steps := rapid.IntRange(1, 60).Draw(r, "steps")
		h := NewHouse(t, fmt.Sprintf("production/life-%d-%d", lives, seed), seed)
		h.Reset(t, s)
		for range steps {
			h.Stir(t)
			switch h.rnd.IntN(6) {
			case 0:
				h.Publish(t, s)
			case 1:
				h.Publish(t, s)
				tickets, handles := sample(h, 5)
				Same(t, s, h, tickets, handles)
			case 2:
				if h.rnd.IntN(5) == 0 {
					h.Epoch++
					h.Reset(t, s)
				}
			}
		}
		h.Publish(t, s)
		tickets, handles := sample(h, 40)
		Same(t, s, h, tickets, handles)
	})
}

// testManyPages moves a line over the edges of pages until the first pages hold nobody any more.
func testManyPages(t *testing.T, s projection.Store) {
	h := start(t, s)
	settings := room.DefaultSettings()
	settings.QueueMaxPerIP, settings.PreQueueMaxPerIP, settings.HoldScore = nil, nil, 90
	h.Must(t, room.Reconfigure{Settings: settings})
	check := func() {
		t.Helper()
		h.Publish(t, s)
		tickets, handles := sample(h, 30)
		Same(t, s, h, tickets, handles)
	}
	h.Join(t, 4095, true)
	check()
	h.Join(t, 2, true)
	check()
	h.Join(t, 9000, true)
	check()
	h.Must(t, room.Flush{Count: 8300})
	check()
	for n := room.Ticket(1); n <= 8000; n += 3 {
		if h.State.Ticket(n).Status == room.Passed {
			h.Must(t, room.EnterDoor{Generation: 1, Ticket: n, Holder: h.State.Ticket(n).Holder, Door: h.holder()})
		}
	}
	check()
	h.Pass(601_000)
	h.Must(t, room.Tick{})
	check()
	for n := room.Ticket(1); n <= 8000; n++ {
		if p := h.State.Ticket(n); p.Live() {
			h.Must(t, room.GiveBack{Generation: 1, Holder: p.Holder})
		}
	}
	if h.State.PageLive(0) != 0 || h.State.PageLive(3) == 0 {
		t.Fatalf("the first page has %d live tickets, the last %d", h.State.PageLive(0), h.State.PageLive(3))
	}
	check()
	settings.HoldScore = 10
	h.Must(t, room.Reconfigure{Settings: settings})
	check()
	h.Must(t, room.PurgeLine{})
	check()
	h.Join(t, 4000, true)
	check()
	h.Reset(t, s)
	check()
}

// testBigDraw draws, then purges, more than a store may want to write at once.
func testBigDraw(t *testing.T, s projection.Store) {
	const entries = 200_000
	h := start(t, s)
	h.Join(t, 10, false)
	h.Publish(t, s)
	v := s.View(stream)
	check := func() {
		t.Helper()
		tickets, handles := sample(h, 50)
		Same(t, s, h, tickets, handles)
	}

	// Readers see the room before the draw or after it, nothing between.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	read := make(chan struct{})
	var readers sync.WaitGroup
	h.Drop(t, entries, func() {
		h.Publish(t, s)
		check()
		readers.Go(func() {
			first := sync.OnceFunc(func() { close(read) })
			defer first()
			for ; ctx.Err() == nil; first() {
				sum, p, err := v.Handle(ctx, entries/2)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					t.Errorf("handle: %v", err)
					return
				case p.Status == room.Enqueued && sum.PreQueue == entries && sum.Proof == nil:
				case p.Status == room.Waiting && sum.PreQueue == 0 && sum.Proof != nil:
				default:
					t.Errorf("half a draw: %+v of %d entries, proof %v", p, sum.PreQueue, sum.Proof)
					return
				}
			}
		})
	})
	h.Publish(t, s)
	check()
	await(t, read, "a read")
	stop()
	readers.Wait()
	h.Must(t, room.Flush{Count: 1000})
	h.Publish(t, s)
	check()
	h.Must(t, room.PurgeLine{})
	h.Publish(t, s)
	check()
}

func testGenerations(t *testing.T, s projection.Store) {
	h := start(t, s)
	next := func(c room.Command) {
		t.Helper()
		h.Must(t, c)
		h.Publish(t, s)
		Same(t, s, h, nil, nil)
		h.Join(t, 0, false)
	}
	h.Join(t, 20, true)
	h.Drop(t, 20, func() {})
	next(room.CloseRoom{})
	next(room.SetMode{Mode: room.Active})
	h.Join(t, 5, true)
	h.Publish(t, s)
	Same(t, s, h, nil, nil)
	next(room.DeleteRoom{})
	next(room.NewRoom{Settings: h.settings(), Mode: room.Active})
	// A generation that begins and ends within a batch leaves nothing.
	h.Join(t, 50, true)
	h.Must(t, room.DeleteRoom{})
	h.Must(t, room.NewRoom{Settings: h.settings(), Mode: room.Active})
	h.Join(t, 3, true)
	next(room.Flush{Count: 1})
}

func testRooms(t *testing.T, s projection.Store) {
	var houses []*House
	for i, name := range []string{"production/a", "production/ab", "staging/a"} {
		h := NewHouse(t, name, uint64(i))
		h.Reset(t, s)
		h.Join(t, i+1, true)
		h.Publish(t, s)
		houses = append(houses, h)
	}
	houses[1].Must(t, room.DeleteRoom{})
	houses[1].Publish(t, s)
	for _, h := range houses {
		Same(t, s, h, nil, nil)
	}
}
