package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"qm/journal"
)

func lease(t *testing.T, j journal.Journal) {
	first, err := j.Acquire(t.Context(), room, "a", ttl)
	must(t, err)
	same(t, journal.Lease{Stream: room, Owner: "a", Epoch: 1, Head: journal.Head{Stream: room, Epoch: 1}}, first)

	// Its owner may have it again, and it stays the same.
	again, err := j.Acquire(t.Context(), room, "a", ttl)
	must(t, err)
	same(t, first, again)

	_, err = j.Acquire(t.Context(), room, "b", ttl)
	var held *journal.HeldError
	if !errors.As(err, &held) || held.Stream != room || held.Owner != "a" || held.For <= ttl/2 || held.For > ttl {
		t.Fatalf("got %v (%+v)", err, held)
	}

	w := take(t, j, room, "a")
	w.write(records(room, 3))
	third, err := j.Acquire(t.Context(), room, "a", ttl)
	must(t, err)
	same(t, w.head, third.Head)

	// Leases of other streams are other leases.
	if other := take(t, j, "production/other", "b"); other.lease.Epoch != 1 {
		t.Fatalf("epoch %d", other.lease.Epoch)
	}
}

func renew(t *testing.T, j journal.Journal) {
	var leases []journal.Lease
	for i := range 5 {
		leases = append(leases, take(t, j, fmt.Sprintf("production/%d", i), "a").lease)
	}
	lost, err := j.Renew(t.Context(), leases, 2*ttl)
	must(t, err)
	same(t, nil, lost)
	_, err = j.Acquire(t.Context(), "production/3", "b", ttl)
	var held *journal.HeldError
	if !errors.As(err, &held) || held.For <= ttl {
		t.Fatalf("renewed, but got %v", err)
	}

	must(t, j.Release(t.Context(), leases[1]))
	must(t, j.Release(t.Context(), leases[4]))
	take(t, j, "production/4", "b")
	leases = append(leases, journal.Lease{Stream: "production/none", Owner: "a", Epoch: 1})
	leases[2].Epoch++
	lost, err = j.Renew(t.Context(), leases, ttl)
	must(t, err)
	slices.Sort(lost)
	same(t, []string{"production/1", "production/2", "production/4", "production/none"}, lost)

	lost, err = j.Renew(t.Context(), nil, ttl)
	must(t, err)
	same(t, nil, lost)
}

func release(t *testing.T, j journal.Journal) {
	a := take(t, j, room, "a")
	written := a.write(records(room, 2))
	must(t, j.Release(t.Context(), a.lease))
	must(t, j.Release(t.Context(), a.lease))
	wants(t, a.try(records(room, 1)), journal.ErrFenced)
	b := take(t, j, room, "b")
	if b.lease.Epoch <= a.lease.Epoch {
		t.Fatalf("epoch %d after %d", b.lease.Epoch, a.lease.Epoch)
	}
	must(t, j.Release(t.Context(), a.lease)) // lost by now: does nothing
	lost, err := j.Renew(t.Context(), []journal.Lease{b.lease}, ttl)
	must(t, err)
	same(t, nil, lost)
	written = append(written, b.write(records(room, 1))...)
	unchanged(t, j, b.head, written)
}

// runOut waits for the journal's own clock, by asking it.
func runOut(t *testing.T, j journal.Journal) {
	l, err := j.Acquire(t.Context(), room, "a", 30*time.Millisecond)
	must(t, err)
	a := &writer{t: t, j: j, lease: l, head: l.Head}
	b := outlive(t, j, room, "b", 30*time.Millisecond)
	if b.Epoch != l.Epoch+1 {
		t.Fatalf("epoch %d after %d", b.Epoch, l.Epoch)
	}
	wants(t, a.try(records(room, 1)), journal.ErrFenced)

	// One that ran out and that nobody took is still its owner's: to write under, to renew, and to acquire anew with a new epoch.
	const other = "production/other"
	l, err = j.Acquire(t.Context(), other, "a", time.Microsecond)
	must(t, err)
	a = &writer{t: t, j: j, lease: l, head: l.Head}
	a.write(records(other, 1))
	lost, err := j.Renew(t.Context(), []journal.Lease{l}, ttl)
	must(t, err)
	same(t, nil, lost)
	var held *journal.HeldError
	if _, err = j.Acquire(t.Context(), other, "b", ttl); !errors.As(err, &held) {
		t.Fatalf("renewed after it ran out, but got %v", err)
	}
	lost, err = j.Renew(t.Context(), []journal.Lease{l}, 0)
	must(t, err)
	same(t, nil, lost)
	again, err := j.Acquire(t.Context(), other, "a", ttl)
	must(t, err)
	if again.Epoch != l.Epoch+1 || again.Head.Seq != 1 {
		t.Fatalf("%+v after %+v", again, l)
	}
}

// outlive acquires a lease as soon as the present one has run out.
func outlive(t *testing.T, j journal.Journal, stream, owner string, ttl time.Duration) journal.Lease {
	t.Helper()
	for {
		l, err := j.Acquire(t.Context(), stream, owner, ttl)
		if err == nil {
			return l
		}
		var held *journal.HeldError
		if !errors.As(err, &held) || held.For <= 0 || held.For > ttl {
			t.Fatalf("got %v", err)
		}
		select {
		case <-time.After(held.For):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

func leaseOfNothing(t *testing.T, j journal.Journal) {
	for _, c := range [][2]string{{"", "a"}, {room, ""}, {"a\x00b", "a"}, {room, "\xff"}} {
		_, err := j.Acquire(t.Context(), c[0], c[1], ttl)
		wants(t, err, journal.ErrInvalid)
	}
	batch := records(room, 1)
	journal.Seal(journal.Head{Stream: room}, batch)
	wants(t, j.Append(t.Context(), 1, batch), journal.ErrFenced)
	must(t, j.Release(t.Context(), journal.Lease{Stream: room, Owner: "a", Epoch: 1}))
	all, err := j.Streams(t.Context(), "")
	must(t, err)
	if len(all) != 0 {
		t.Fatalf("streams %v", all)
	}
}

// stale is domain.md rule 13: a stale owner can write nothing, even while the new owner is idle.
func stale(t *testing.T, j journal.Journal) {
	a := take(t, j, room, "a")
	written := a.write(records(room, 3))
	lost, err := j.Renew(t.Context(), []journal.Lease{a.lease}, 0) // it has run out, and "a" does not know
	must(t, err)
	same(t, nil, lost)
	b := take(t, j, room, "b")
	if b.lease.Epoch != a.lease.Epoch+1 {
		t.Fatalf("epoch %d after %d", b.lease.Epoch, a.lease.Epoch)
	}
	same(t, journal.Head{Stream: room, Seq: 3, Hash: a.head.Hash, Epoch: b.lease.Epoch}, b.lease.Head)
	wants(t, a.try(records(room, 1)), journal.ErrFenced)
	unchanged(t, j, b.head, written)

	// Nor can an epoch that was never given out.
	b.lease.Epoch++
	wants(t, b.try(records(room, 1)), journal.ErrFenced)
	b.lease.Epoch--
	// To be fenced out is said even when the seq is wrong as well.
	a.head.Seq = 77
	wants(t, a.try(records(room, 1)), journal.ErrFenced)
	written = append(written, b.write(records(room, 2))...)
	unchanged(t, j, b.head, written)
}

func acquirers(t *testing.T, j journal.Journal) {
	for round := range 5 {
		stream := fmt.Sprintf("production/%d", round)
		var wg sync.WaitGroup
		won := make(chan journal.Lease, 8)
		for id := range 8 {
			wg.Go(func() {
				l, err := j.Acquire(t.Context(), stream, fmt.Sprintf("owner-%d", id), ttl)
				var held *journal.HeldError
				if err == nil {
					won <- l
				} else if !errors.As(err, &held) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		close(won)
		l, ok := <-won
		if _, more := <-won; !ok || more || l.Epoch != 1 {
			t.Fatalf("round %d: no winner or two; one is %+v", round, l)
		}
	}
}

// race has two owners take a stream from each other again and again while both write as fast as they can. Each writes on from the head that
// its lease came with; the chain must hold and nobody's acknowledged record may be missing.
func race(t *testing.T, j journal.Journal) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		acked = map[int64]journal.Hash{}
	)
	for _, owner := range []string{"a", "b"} {
		wg.Go(func() {
			for n := 0; n < 60; {
				l, err := j.Acquire(t.Context(), room, owner, 0) // runs out at once
				var held *journal.HeldError
				if errors.As(err, &held) {
					continue
				}
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				for head := l.Head; n < 60; n++ {
					batch := records(room, 3)
					next := journal.Seal(head, batch)
					if err = j.Append(t.Context(), l.Epoch, batch); err != nil {
						break
					}
					mu.Lock()
					for i := range batch {
						acked[batch[i].Seq] = batch[i].Hash
					}
					mu.Unlock()
					head = next
				}
				if err != nil && !errors.Is(err, journal.ErrFenced) {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	got := read(t, j, room, 0)
	if len(got) != len(acked) || len(got) != 360 {
		t.Fatalf("%d records, %d acknowledged", len(got), len(acked))
	}
	for _, r := range got {
		if acked[r.Seq] != r.Hash {
			t.Fatalf("seq %d is not what was acknowledged", r.Seq)
		}
	}
}

func heads(t *testing.T, j journal.Journal) {
	none, err := j.Head(t.Context(), room)
	must(t, err)
	same(t, journal.Head{Stream: room}, none)
	var want []journal.Head
	for _, stream := range []string{"$org", "production/A", "production/_", "production/a", "production/a/b", "production/ä", "staging/a"} {
		w := take(t, j, stream, "a")
		w.write(records(stream, 2))
		want = append(want, w.head)
	}
	for prefix, n := range map[string][2]int{"": {0, 7}, "production/": {1, 6}, "production/a": {3, 5}, "staging/a": {6, 7}, "x": {0, 0}, "production/%": {0, 0}, "$": {0, 1}} {
		got, err := j.Streams(t.Context(), prefix)
		must(t, err)
		if len(got) != 0 || n[0] != n[1] {
			same(t, want[n[0]:n[1]], got)
		}
	}
}

func snapshots(t *testing.T, j journal.Journal) {
	_, ok, err := j.LoadSnapshot(t.Context(), room)
	must(t, err)
	if ok {
		t.Fatal("a snapshot of nothing")
	}
	state := make([]byte, 1<<20)
	for i := range state {
		state[i] = byte(i * i >> 3)
	}
	first := journal.Snapshot{Stream: room, Seq: 10, Hash: journal.Hash{1, 2, 3}, Format: 1, State: state}
	newer := journal.Snapshot{Stream: room, Seq: 12, Hash: journal.Hash{4}, Format: 2, State: []byte{0}}
	for _, c := range []struct{ save, want journal.Snapshot }{
		{first, first},
		{journal.Snapshot{Stream: room, Seq: 10, State: []byte("same seq")}, first},
		{newer, newer},
		{first, newer},
		{journal.Snapshot{Stream: "production/other", Seq: 100, State: []byte("other")}, newer},
		{journal.Snapshot{Stream: room, Seq: 13}, journal.Snapshot{Stream: room, Seq: 13}},
	} {
		must(t, j.SaveSnapshot(t.Context(), c.save))
		got, ok, err := j.LoadSnapshot(t.Context(), room)
		must(t, err)
		if !ok {
			t.Fatal("no snapshot")
		}
		if len(got.State) == 0 {
			got.State = nil
		}
		same(t, c.want, got)
	}
	all, err := j.Streams(t.Context(), "")
	must(t, err)
	if len(all) != 0 {
		t.Fatalf("snapshots made streams: %v", all)
	}
}
