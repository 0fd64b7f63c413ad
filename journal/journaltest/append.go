package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"qm/journal"
)

func appendAndRead(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	var written []journal.Record
	for _, n := range []int{1, 3, 1, 100} {
		written = append(written, w.write(records(room, n))...)
	}
	unchanged(t, j, w.head, written)
	if w.head.Seq != 105 {
		t.Fatalf("the head is at %d", w.head.Seq)
	}
}

func bodies(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	var batch []journal.Record
	for _, body := range []string{
		`{}`, `{ }`, ` {"lead":1}`, `{"trail":1}  `, "{\t\"tab\" :\t1}", "{\n\"line\": 1\r\n}",
		`{"b":1,"a":2,"b":3}`, `{"n":1.0,"e":1E+2,"m":-0,"big":123456789012345678901234567890}`,
		`{"u":"\u0041\u00fc\u20ac\ud83d\ude00","s":"\/\b\f\n\r\t\"\\"}`, `{"raw":"ü€😀` + "\u2028" + `"}`, `{"nul":"\u0000"}`, `{"html":"<a&b>"}`,
		`{"deep":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		`{"long":"` + strings.Repeat("x", 3000) + `"}`, `{"big":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`,
	} {
		r := records(room, 1)[0]
		r.Body = []byte(body)
		batch = append(batch, r)
	}
	w.write(batch)
	unchanged(t, j, w.head, batch)
}

func times(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	batch := records(room, 6)
	batch[0].At = time.Unix(0, 0).UTC()
	batch[1].At = time.Date(1999, 12, 31, 23, 59, 59, 999999000, time.UTC)
	batch[2].At = time.Date(2000, 1, 1, 0, 0, 0, 1000, time.UTC)
	batch[3].At = origin.In(time.FixedZone("elsewhere", 5*3600))
	batch[4].At = time.Date(2026, 3, 29, 1, 30, 0, 123456000, time.UTC)
	batch[5].At = time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
	w.write(batch)
	batch[3].At = origin
	got := read(t, j, room, 0)
	sameRecords(t, batch, got)
	if got[3].At.Location() != time.UTC {
		t.Fatalf("a time came back in %v", got[3].At.Location())
	}
}

// mixed has what a batch seldom has: more than one kind, version, actor and cause, empty ones, and texts beyond ASCII.
func mixed(t *testing.T, j journal.Journal) {
	const stream = `production/läden 'quoted' \ "and" more`
	w := take(t, j, stream, "a")
	for _, edit := range []func(int, *journal.Record){
		func(i int, r *journal.Record) { r.Kind = []string{"join", "pass", "ünlike"}[i%3] },
		func(i int, r *journal.Record) { r.Version = []int{1, 2, 32767}[i%3] },
		func(i int, r *journal.Record) { r.Actor = []string{"", "clock", "op 'x'"}[i%3] },
		func(i int, r *journal.Record) { r.Cause = []string{"", `\N`, "c"}[i%3] },
		func(i int, r *journal.Record) {
			r.Kind, r.Version, r.Actor, r.Cause = fmt.Sprint("k", i), i+1, fmt.Sprint("a", i), ""
		},
	} {
		after := w.head.Seq
		batch := records(stream, 7)
		for i := range batch {
			edit(i, &batch[i])
		}
		w.write(batch)
		sameRecords(t, batch, read(t, j, stream, after))
	}
	read(t, j, stream, 0)
}

func bigBatch(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	first := w.write(records(room, 10_000))
	second := w.write(records(room, 10_000))
	unchanged(t, j, w.head, append(first, second...))
}

// atomic breaks a batch in its last row, where only the storage itself can find it.
func atomic(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	written := w.write(records(room, 3))
	for _, bad := range []string{`{"n":}`, `{"n":1}}`, `{"a":1,}`, `{'a':1}`, "{\"a\":\"\xff\"}", "{\"a\":\"\x00\"}", "{\"a\":\"\n\"}", `{"a":"\u12"}`} {
		batch := records(room, 50)
		batch[49].Body = []byte(bad)
		wants(t, w.try(batch), journal.ErrInvalid)
		unchanged(t, j, w.head, written)
	}
	written = append(written, w.write(records(room, 1))...)
	unchanged(t, j, w.head, written)
}

func malformed(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	written := w.write(records(room, 2))
	wants(t, j.Append(t.Context(), w.lease.Epoch, nil), journal.ErrInvalid)
	for name, edit := range map[string]func([]journal.Record){
		"gap":            func(b []journal.Record) { b[2].Seq++ },
		"repeated":       func(b []journal.Record) { b[2].Seq-- },
		"seq zero":       func(b []journal.Record) { b[0].Seq, b[1].Seq, b[2].Seq = 0, 1, 2 },
		"other stream":   func(b []journal.Record) { b[1].Stream = "production/other" },
		"no stream":      func(b []journal.Record) { b[0].Stream, b[1].Stream, b[2].Stream = "", "", "" },
		"unsealed":       func(b []journal.Record) { b[1].Hash = journal.Hash{} },
		"no body":        func(b []journal.Record) { b[1].Body = nil },
		"body no object": func(b []journal.Record) { b[1].Body = []byte(`[1]`) },
		"body a text":    func(b []journal.Record) { b[1].Body = []byte(`"{}"`) },
		"body too large": func(b []journal.Record) {
			b[1].Body = append(append([]byte{'{'}, make([]byte, journal.MaxBody)...), '}')
		},
		"no kind":          func(b []journal.Record) { b[1].Kind = "" },
		"kind with NUL":    func(b []journal.Record) { b[1].Kind = "a\x00" },
		"actor not UTF-8":  func(b []journal.Record) { b[1].Actor = "\xff" },
		"cause with NUL":   func(b []journal.Record) { b[1].Cause = "\x00" },
		"version zero":     func(b []journal.Record) { b[1].Version = 0 },
		"version too high": func(b []journal.Record) { b[1].Version = 1 << 15 },
		"nanoseconds":      func(b []journal.Record) { b[1].At = b[1].At.Add(1) },
		"no time":          func(b []journal.Record) { b[1].At = time.Time{} },
	} {
		batch := records(room, 3)
		journal.Seal(w.head, batch)
		edit(batch)
		if err := j.Append(t.Context(), w.lease.Epoch, batch); !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	unchanged(t, j, w.head, written)
}

func conflict(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	written := w.write(records(room, 3))
	for _, seq := range []int64{0, 2, 4, 100} { // heads that are not the stream's
		batch := records(room, 2)
		journal.Seal(journal.Head{Stream: room, Seq: seq, Hash: w.head.Hash}, batch)
		wants(t, j.Append(t.Context(), w.lease.Epoch, batch), journal.ErrConflict)
	}
	// The same batch again, as after a lost answer.
	wants(t, j.Append(t.Context(), w.lease.Epoch, written), journal.ErrConflict)
	unchanged(t, j, w.head, written)
	batch := records("$none", 1)
	journal.Seal(journal.Head{Stream: "$none", Seq: 4}, batch)
	wants(t, j.Append(t.Context(), 0, batch), journal.ErrConflict)
}

// copies makes sure that the journal keeps nothing of the batch that its writer uses again.
func copies(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	batch := w.write(records(room, 2))
	want := records(room, 2)
	journal.Seal(journal.Head{Stream: room}, want)
	for i := range batch {
		for k := range batch[i].Body {
			batch[i].Body[k] = 'x'
		}
		batch[i] = journal.Record{}
	}
	sameRecords(t, want, read(t, j, room, 0))
}

// optimistic lets several writers without a lease append to one stream, each retrying when another was faster.
func optimistic(t *testing.T, j journal.Journal) {
	const writers, each = 4, 15
	var wg sync.WaitGroup
	failed := make(chan error, writers)
	for id := range writers {
		wg.Go(func() {
			for n := 0; n < each; {
				head, err := j.Head(t.Context(), "$org")
				if err != nil {
					failed <- err
					return
				}
				batch := records("$org", 2)
				for i := range batch {
					batch[i].Actor = fmt.Sprintf("op-%d", id)
				}
				journal.Seal(head, batch)
				switch err := j.Append(t.Context(), 0, batch); {
				case err == nil:
					n++
				case !errors.Is(err, journal.ErrConflict):
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	got := read(t, j, "$org", 0)
	count := map[string]int{}
	for i, r := range got {
		count[r.Actor]++
		if i%2 == 1 && got[i-1].Actor != r.Actor {
			t.Fatalf("a batch was cut at seq %d", r.Seq)
		}
	}
	if len(got) != writers*each*2 || len(count) != writers {
		t.Fatalf("%d records, by writer %v", len(got), count)
	}
}

func optimisticFenced(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	batch := records(room, 1)
	journal.Seal(w.head, batch)
	wants(t, j.Append(t.Context(), 0, batch), journal.ErrFenced)
	unchanged(t, j, w.head, nil)
}

func middle(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	other := take(t, j, "production/shop2", "a")
	var written []journal.Record
	for range 3 {
		written = append(written, w.write(records(room, 1000))...)
		other.write(records(other.lease.Stream, 10))
	}
	for _, after := range []int64{-1, 0, 1, 999, 1000, 1001, 2047, 2048, 2999} {
		sameRecords(t, written[max(after, 0):], read(t, j, room, after))
	}
	for _, after := range []int64{3000, 3001, 1 << 40} {
		sameRecords(t, nil, read(t, j, room, after))
	}
	sameRecords(t, nil, read(t, j, "production/none", 0))
}

func readStops(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	w.write(records(room, 3000))
	stop := errors.New("enough")
	for range 20 { // more often than a pool has connections
		n := 0
		err := j.Read(t.Context(), room, 10, func(r *journal.Record) error {
			if n++; n == 5 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || n != 5 {
			t.Fatalf("%d records, then %v", n, err)
		}
	}
	w.write(records(room, 1))
}

// readDuring reads while a writer appends: what is read is always whole, without a gap, and up to the head as of the call.
func readDuring(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	w.write(records(room, 500))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for range 60 {
			batch := records(room, 20)
			if err := w.try(batch); err != nil {
				t.Errorf("append: %v", err)
				return
			}
		}
	})
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		before, err := j.Head(t.Context(), room)
		must(t, err)
		got := read(t, j, room, 0)
		if n := len(got); n < int(before.Seq) || n%20 != 0 {
			t.Fatalf("%d records after the head was at %d", n, before.Seq)
		}
	}
	wg.Wait()
	if n := len(read(t, j, room, 0)); n != 1700 {
		t.Fatalf("%d records", n)
	}
}

// transient changes what fn was handed, as a reader that reuses buffers might: the journal's own must not change.
func transient(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	written := w.write(records(room, 50))
	must(t, j.Read(t.Context(), room, 0, func(r *journal.Record) error {
		copy(r.Body, bytes.Repeat([]byte("x"), len(r.Body)))
		*r = journal.Record{}
		return nil
	}))
	unchanged(t, j, w.head, written)
}

// manyReads runs more reads than a pool has connections, while each waits for all to have begun or to be done; appends go on beside them.
func manyReads(t *testing.T, j journal.Journal) {
	w := take(t, j, room, "a")
	w.write(records(room, 2000))
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			n := 0
			if err := j.Read(t.Context(), room, 0, func(*journal.Record) error { n++; return nil }); err != nil || n < 2000 {
				t.Errorf("%d records, %v", n, err)
			}
		})
	}
	for range 20 {
		w.write(records(room, 1))
	}
	wg.Wait()
}
