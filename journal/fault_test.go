package journal_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"qm/journal"
	"qm/journal/journaltest"
)

// With nothing armed, a Fault is the journal that it wraps.
func TestFaultUnarmed(t *testing.T) {
	journaltest.Run(t, func(*testing.T) (journal.Journal, journal.Vault) {
		m := journal.NewMemory()
		return journal.NewFault(m), m
	})
}

func one(t *testing.T, head journal.Head) []journal.Record {
	t.Helper()
	batch := []journal.Record{{Stream: "s", At: time.Unix(1, 0), Kind: "join", Version: 1, Body: []byte(`{}`)}}
	journal.Seal(head, batch)
	return batch
}

func headSeq(t *testing.T, j journal.Journal) int64 {
	t.Helper()
	h, err := j.Head(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	return h.Seq
}

func TestFaultBeforeAndAfter(t *testing.T) {
	f := journal.NewFault(journal.NewMemory())
	before := f.Arm(journal.OpAppend, journal.FailBefore, 2)
	after := f.Arm(journal.OpAppend, journal.FailAfter, 1)
	batch := one(t, journal.Head{Stream: "s"})
	for range 2 {
		if err := f.Append(t.Context(), 0, batch); !errors.Is(err, journal.ErrFault) {
			t.Fatalf("got %v", err)
		}
		<-before.Fired
	}
	if n := headSeq(t, f); n != 0 {
		t.Fatalf("the head is at %d after faults before the append", n)
	}
	if err := f.Append(t.Context(), 0, batch); !errors.Is(err, journal.ErrFault) {
		t.Fatalf("got %v", err)
	}
	<-after.Fired
	if n := headSeq(t, f); n != 1 {
		t.Fatalf("the head is at %d after a fault after the append", n)
	}
	if err := f.Append(t.Context(), 0, batch); !errors.Is(err, journal.ErrConflict) {
		t.Fatalf("got %v", err)
	}
	if n := f.Fired(journal.OpAppend); n != 3 {
		t.Fatalf("%d faults fired", n)
	}
}

// A delayed append that a new owner overtakes is fenced out.
func TestFaultDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := journal.NewMemory()
		f := journal.NewFault(m)
		l, err := f.Acquire(t.Context(), "s", "a", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		shot := f.Arm(journal.OpAppend, journal.Delay, 1)
		done := make(chan error)
		go func() { done <- f.Append(t.Context(), l.Epoch, one(t, l.Head)) }()
		<-shot.Fired
		time.Sleep(time.Second)
		if _, err := m.Acquire(t.Context(), "s", "b", time.Second); err != nil {
			t.Fatal(err)
		}
		shot.Release()
		if err := <-done; !errors.Is(err, journal.ErrFenced) {
			t.Fatalf("got %v", err)
		}

		f.Arm(journal.OpAppend, journal.Delay, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Append(ctx, l.Epoch, one(t, l.Head)); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, journal.ErrFault) {
			t.Fatalf("got %v", err)
		}

		held := f.Arm(journal.OpPing, journal.Delay, 1)
		go func() { done <- f.Ping(t.Context()) }()
		<-held.Fired
		f.Disarm()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestFaultOfEachOperation(t *testing.T) {
	f := journal.NewFault(journal.NewMemory())
	for op, call := range map[journal.Op]func(context.Context) error{
		journal.OpAcquire:  func(ctx context.Context) error { _, err := f.Acquire(ctx, "s", "a", time.Hour); return err },
		journal.OpRenew:    func(ctx context.Context) error { _, err := f.Renew(ctx, nil, time.Hour); return err },
		journal.OpRelease:  func(ctx context.Context) error { return f.Release(ctx, journal.Lease{Stream: "s"}) },
		journal.OpRead:     func(ctx context.Context) error { return f.Read(ctx, "s", 0, nil) },
		journal.OpHead:     func(ctx context.Context) error { _, err := f.Head(ctx, "s"); return err },
		journal.OpSnapshot: func(ctx context.Context) error { return f.SaveSnapshot(ctx, journal.Snapshot{Stream: "s", Seq: 1}) },
		journal.OpPing:     f.Ping,
	} {
		f.Arm(op, journal.FailAfter, 1)
		if err := call(t.Context()); !errors.Is(err, journal.ErrFault) {
			t.Errorf("%s: got %v", op, err)
		}
		if err := call(t.Context()); err != nil {
			t.Errorf("%s, disarmed: %v", op, err)
		}
		if n := f.Fired(op); n != 1 {
			t.Errorf("%s fired %d times", op, n)
		}
		f.Arm(op, journal.FailBefore, 1)
		f.Disarm()
		if err := call(t.Context()); err != nil {
			t.Errorf("%s, taken back: %v", op, err)
		}
	}
	f.Arm(journal.OpSnapshot, journal.FailBefore, 1)
	if _, _, err := f.LoadSnapshot(t.Context(), "s"); !errors.Is(err, journal.ErrFault) {
		t.Errorf("load: %v", err)
	}
}
