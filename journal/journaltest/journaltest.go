// Package journaltest is the suite that every journal.Journal and journal.Vault passes, in memory or in a database
// (architecture.md, "Tests"): the contract of package journal, case by case.
package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qm/journal"
)

// ttl is long enough that no lease of a test runs out unless the test wants it to.
const ttl = time.Hour

// Run runs the suite. open returns a journal and a vault that nobody else uses and that are empty at first; it is called once per case,
// with that case's t, and cleans up after itself.
func Run(t *testing.T, open func(t *testing.T) (journal.Journal, journal.Vault)) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, journal.Journal)
	}{
		{"append and read", appendAndRead},
		{"bodies survive byte for byte", bodies},
		{"times survive to the microsecond", times},
		{"mixed batch", mixed},
		{"big batch", bigBatch},
		{"batch is atomic", atomic},
		{"malformed batches", malformed},
		{"conflict", conflict},
		{"append copies the batch", copies},
		{"lease", lease},
		{"lease is renewed", renew},
		{"lease is released", release},
		{"lease runs out", runOut},
		{"lease of nothing", leaseOfNothing},
		{"stale epoch is fenced while the new owner is idle", stale},
		{"concurrent acquirers", acquirers},
		{"two owners race", race},
		{"optimistic appends", optimistic},
		{"optimistic append to a leased stream", optimisticFenced},
		{"read from the middle", middle},
		{"read stops with fn", readStops},
		{"read during appends", readDuring},
		{"record is valid only during the call", transient},
		{"many reads at once", manyReads},
		{"heads and streams", heads},
		{"snapshots", snapshots},
		{"context", contexts},
		{"ping", func(t *testing.T, j journal.Journal) { must(t, j.Ping(t.Context())) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, _ := open(t)
			c.run(t, j)
		})
	}
	t.Run("vault", func(t *testing.T) {
		_, v := open(t)
		vault(t, v)
	})
	t.Run("vault: first writer wins", func(t *testing.T) {
		_, v := open(t)
		firstWriter(t, v)
	})
}

const room = "production/shop"

// origin is an instant in whole microseconds that is not one in whole milliseconds.
var origin = time.Date(2026, 3, 4, 5, 6, 7, 89012000, time.UTC)

// records returns n records of a stream that are not sealed yet.
func records(stream string, n int) []journal.Record {
	batch := make([]journal.Record, n)
	for i := range batch {
		batch[i] = journal.Record{Stream: stream, At: origin.Add(time.Duration(i) * time.Millisecond), Kind: "join", Version: 1, Actor: "visitor",
			Cause: fmt.Sprintf("01JGFJJZ%018d", i), Body: fmt.Appendf(nil, `{"n":%d}`, i+1)}
	}
	return batch
}

// writer appends to a stream like an actor: under a lease, from the head that it knows.
type writer struct {
	t     *testing.T
	j     journal.Journal
	lease journal.Lease
	head  journal.Head
}

func take(t *testing.T, j journal.Journal, stream, owner string) *writer {
	t.Helper()
	l, err := j.Acquire(t.Context(), stream, owner, ttl)
	must(t, err)
	return &writer{t: t, j: j, lease: l, head: l.Head}
}

// write seals and appends a batch, and returns it.
func (w *writer) write(batch []journal.Record) []journal.Record {
	w.t.Helper()
	must(w.t, w.try(batch))
	return batch
}

func (w *writer) try(batch []journal.Record) error {
	head := journal.Seal(w.head, batch)
	err := w.j.Append(w.t.Context(), w.lease.Epoch, batch)
	if err == nil {
		w.head = head
	}
	return err
}

// read returns what a stream holds after a seq, and checks the chain when that is the start.
func read(t *testing.T, j journal.Journal, stream string, after int64) []journal.Record {
	t.Helper()
	var got []journal.Record
	chain := journal.NewChain(journal.Head{Stream: stream})
	must(t, j.Read(t.Context(), stream, after, func(r *journal.Record) error {
		kept := *r
		kept.Body = bytes.Clone(r.Body)
		got = append(got, kept)
		if after > 0 {
			return nil
		}
		return chain.Check(r)
	}))
	return got
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T any](t *testing.T, want, got T) {
	t.Helper()
	if reflect.DeepEqual(want, got) { // cmp takes seconds over a megabyte
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
}

// sameRecords is same without reflection, which takes seconds over ten thousand records; it names the first that differ.
func sameRecords(t *testing.T, want, got []journal.Record) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		a, b := &want[i], &got[i]
		if a.Stream != b.Stream || a.Seq != b.Seq || !a.At.Equal(b.At) || a.Kind != b.Kind || a.Version != b.Version || a.Actor != b.Actor ||
			a.Cause != b.Cause || !bytes.Equal(a.Body, b.Body) || a.Hash != b.Hash {
			t.Fatalf("record %d of %d, -want +got\n%s", i, len(want), cmp.Diff(*a, *b))
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%d records instead of %d", len(got), len(want))
	}
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// unchanged fails when the stream is not exactly what it was.
func unchanged(t *testing.T, j journal.Journal, head journal.Head, written []journal.Record) {
	t.Helper()
	got, err := j.Head(t.Context(), head.Stream)
	must(t, err)
	same(t, head, got)
	sameRecords(t, written, read(t, j, head.Stream, 0))
}

func contexts(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	written := w.write(records(room, 2000))
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := j.Read(ctx, room, 0, func(*journal.Record) error {
		if n++; n == 1 {
			cancel()
		}
		return nil
	})
	// A read that was all but through when ctx ended may also succeed, with every record.
	if !errors.Is(err, context.Canceled) && (err != nil || n != len(written)) {
		t.Fatalf("a read whose context ended gave %d records and %v", n, err)
	}

	batch := records(room, 1)
	journal.Seal(w.head, batch)
	for name, call := range map[string]func() error{
		"acquire":       func() error { _, err := j.Acquire(ctx, room, "a", ttl); return err },
		"renew":         func() error { _, err := j.Renew(ctx, []journal.Lease{w.lease}, ttl); return err },
		"release":       func() error { return j.Release(ctx, w.lease) },
		"append":        func() error { return j.Append(ctx, w.lease.Epoch, batch) },
		"read":          func() error { return j.Read(ctx, room, 0, func(*journal.Record) error { return nil }) },
		"head":          func() error { _, err := j.Head(ctx, room); return err },
		"streams":       func() error { _, err := j.Streams(ctx, ""); return err },
		"save snapshot": func() error { return j.SaveSnapshot(ctx, journal.Snapshot{Stream: room, Seq: 1}) },
		"load snapshot": func() error { _, _, err := j.LoadSnapshot(ctx, room); return err },
		"ping":          func() error { return j.Ping(ctx) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: %v", name, err)
		}
	}
	unchanged(t, j, w.head, written)
	w.write(records(room, 1)) // and the journal goes on
}
