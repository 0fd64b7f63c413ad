package projection_test

import (
	"context"
	"errors"
	"testing"

	"qm/engine/room"
	"qm/projection"
	"qm/projection/projectiontest"
)

const stream = "production/sale"

func TestFaultStrikesBeforeAndAfterWrites(t *testing.T) {
	f := projection.NewFault(projection.NewMemory())
	h := projectiontest.NewHouse(t, stream, 1)
	h.Reset(t, f)
	f.Arm(projection.Before, projection.After)

	h.Join(t, 3, false)
	batch := h.Batch()
	seq := func() int64 {
		at, err := f.Position(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		return at.Seq
	}
	if err := f.Apply(t.Context(), batch); !errors.Is(err, projection.ErrFault) || seq() != 1 {
		t.Fatalf("before: %v at seq %d", err, seq())
	}
	if err := f.Apply(t.Context(), batch); !errors.Is(err, projection.ErrFault) || seq() != 4 {
		t.Fatalf("after: %v at seq %d", err, seq())
	}
	if err := f.Apply(t.Context(), batch); err != nil || f.Fired() != 2 || f.Pending() != 0 {
		t.Fatalf("then: %v, %d fired, %d pending", err, f.Fired(), f.Pending())
	}
	f.Arm(projection.Before)
	if err := f.Reset(t.Context(), stream, 1, h.Seq, h.State); !errors.Is(err, projection.ErrFault) || f.Fired() != 3 {
		t.Fatalf("reset: %v, %d fired", err, f.Fired())
	}
}

func TestFaultDown(t *testing.T) {
	f := projection.NewFault(projection.NewMemory())
	h := projectiontest.NewHouse(t, stream, 1)
	h.Reset(t, f)
	f.SetDown(true)
	v := f.View(stream)
	calls := map[string]func() error{
		"ping":     func() error { return f.Ping(t.Context()) },
		"reset":    func() error { return f.Reset(t.Context(), stream, 1, h.Seq, h.State) },
		"position": func() error { _, err := f.Position(t.Context(), stream); return err },
		"watch":    func() error { _, err := f.Watch(t.Context(), stream); return err },
		"summary":  func() error { _, _, err := v.Summary(t.Context()); return err },
		"ticket":   func() error { _, _, err := v.Ticket(t.Context(), 1); return err },
		"handle":   func() error { _, _, err := v.Handle(t.Context(), 1); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, projection.ErrFault) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.Fired() != len(calls) {
		t.Errorf("%d fired, want %d", f.Fired(), len(calls))
	}
	f.SetDown(false)
	projectiontest.Same(t, f, h, nil, nil)
}

func TestMemoryWithAndDrop(t *testing.T) {
	m := projection.NewMemory()
	nothing := func(int64, int64, *room.State) error { t.Error("called without a room"); return nil }
	if err := m.With(stream, nothing); !errors.Is(err, projection.ErrNoRoom) {
		t.Errorf("with no room: %v", err)
	}
	h := projectiontest.NewHouse(t, stream, 1)
	h.Epoch = 3
	h.Reset(t, m)
	h.Join(t, 2, false)
	h.Publish(t, m)
	refused := errors.New("refused")
	err := m.With(stream, func(epoch, seq int64, s *room.State) error {
		if found := projection.Diff(projection.ImageOf(h.State), projection.ImageOf(s), 0); epoch != 3 || seq != 3 || len(found) > 0 {
			t.Errorf("epoch %d, seq %d, %v", epoch, seq, found)
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("with: %v", err)
	}
	// What was made of the state belongs to the store: the writer's own may go on.
	h.Join(t, 5, false)
	if sum, _, _ := m.View(stream).Summary(t.Context()); sum.LastTicket != 2 {
		t.Errorf("the writer's state shows through: %d tickets", sum.LastTicket)
	}
	v := m.View(stream)
	m.Drop(stream)
	if _, _, err := v.Ticket(t.Context(), 1); !errors.Is(err, projection.ErrNoRoom) {
		t.Errorf("after a drop: %v", err)
	}
	if err := m.With(stream, nothing); !errors.Is(err, projection.ErrNoRoom) {
		t.Errorf("with a dropped room: %v", err)
	}
	m.Drop(stream)
	h.Reset(t, m)
	projectiontest.Same(t, m, h, nil, nil)
}

func TestMemoryPollAllocatesNothing(t *testing.T) {
	m := projection.NewMemory()
	h := projectiontest.NewHouse(t, stream, 1)
	h.Join(t, 1000, false)
	h.Reset(t, m)
	v, ctx := m.View(stream), context.Background()
	if n := testing.AllocsPerRun(1000, func() { _, _, _ = v.Ticket(ctx, 700) }); n != 0 {
		t.Errorf("a poll allocates %.0f times", n)
	}
}

func BenchmarkMemoryPoll(b *testing.B) {
	m := projection.NewMemory()
	h := projectiontest.NewHouse(b, stream, 1)
	h.Join(b, 100_000, false)
	h.Reset(b, m)
	v, n := m.View(stream), room.Ticket(0)
	for b.Loop() {
		n = n%100_000 + 1
		if _, _, err := v.Ticket(b.Context(), n); err != nil {
			b.Fatal(err)
		}
	}
}
