package journaltest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qm/journal"
)

// Audited is a journal with what an audit needs beside it.
type Audited interface {
	journal.Journal
	journal.Notes
	journal.Acts
}

// RunNotes runs the suite of [journal.Notes] and [journal.Acts]. open is as in [Run].
func RunNotes(t *testing.T, open func(t *testing.T) Audited) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Audited)
	}{{"notes", notes}, {"acts", acts}, {"former", former}} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func notes(t *testing.T, n Audited) {
	note := func(cause string, after time.Duration) journal.Note {
		return journal.Note{Cause: cause, Stream: room, At: origin.Add(after), Name: "Ada – “Å”", From: "192.0.2.1", Reason: "why\nnot"}
	}
	a, b, c := note("a", 0), note("b", time.Hour), note("c", 2*time.Hour)
	b.Name = ""
	for _, each := range []journal.Note{{Cause: "a", At: origin}, a, b, c} {
		must(t, n.WriteNote(t.Context(), each))
	}
	find := func(want ...journal.Note) {
		t.Helper()
		got, err := n.FindNotes(t.Context(), []string{"a", "b", "c", "d"})
		must(t, err)
		all := map[string]journal.Note{}
		for _, w := range want {
			all[w.Cause] = w
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("notes differ (-want +got):\n%s", diff)
		}
	}
	find(a, b, c)
	forgotten, err := n.ForgetNotes(t.Context(), origin.Add(2*time.Hour))
	must(t, err)
	a.From, a.Reason, b.From, b.Reason = "", "", "", ""
	same(t, 2, forgotten)
	find(a, b, c)
	forgotten, err = n.ForgetNotes(t.Context(), origin.Add(2*time.Hour))
	must(t, err)
	same(t, 0, forgotten)
	must(t, n.EraseNotes(t.Context(), "a", "d"))
	must(t, n.EraseNotes(t.Context()))
	find(b, c)
	for _, bad := range []journal.Note{{At: origin}, {Cause: "x", At: origin, Reason: "a\x00b"}, {Cause: "x", At: origin, Name: "\xff"}, {Cause: "x", At: origin.Add(1)}} {
		if err := n.WriteNote(t.Context(), bad); !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	none, err := n.FindNotes(t.Context(), nil)
	must(t, err)
	same(t, 0, len(none))
}

func acts(t *testing.T, j Audited) {
	// Two rooms and the organisation; in each, every third record is somebody's, and two streams act in the same instant.
	var all []journal.Record
	for _, stream := range []string{room, "production/zoo", "$org"} {
		batch := records(stream, 9)
		for i := range batch {
			switch {
			case i%3 == 1:
				batch[i].Actor, batch[i].Kind = "admin", "pass"
			case i%3 == 2 && stream == "$org":
				batch[i].Actor, batch[i].Kind = "op_1", "operator"
			case i%2 == 0:
				batch[i].Actor = "clock"
			}
		}
		journal.Seal(journal.Head{Stream: stream}, batch)
		must(t, j.Append(t.Context(), 0, batch))
		for _, r := range batch {
			if journal.Caused(r.Actor) {
				all = append(all, r)
			}
		}
	}
	read := func(q journal.ActQuery, limit int) (got []string, last *journal.ActPlace) {
		t.Helper()
		enough := errors.New("enough")
		err := j.Acts(t.Context(), q, func(r *journal.Record) error {
			if len(got) == limit {
				return enough
			}
			for _, want := range all {
				if want.Stream == r.Stream && want.Seq == r.Seq {
					if diff := cmp.Diff(&want, r); diff != "" {
						t.Errorf("the act differs (-want +got):\n%s", diff)
					}
				}
			}
			got = append(got, fmt.Sprintf("%s/%d", r.Stream, r.Seq))
			last = &journal.ActPlace{At: r.At, Stream: r.Stream, Seq: r.Seq}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			t.Fatal(err)
		}
		return got, last
	}
	whole, _ := read(journal.ActQuery{}, 100)
	same(t, fmt.Sprint([]string{"$org/9", "production/zoo/8", "production/shop/8", "$org/8", "$org/6", "production/zoo/5", "production/shop/5", "$org/5", "$org/3",
		"production/zoo/2", "production/shop/2", "$org/2"}), fmt.Sprint(whole))
	// In pages of any size it is the same.
	for size := 1; size < 6; size++ {
		var paged []string
		for q := (journal.ActQuery{}); ; {
			page, last := read(q, size)
			if paged = append(paged, page...); len(page) < size {
				break
			}
			q.After = last
		}
		same(t, fmt.Sprint(whole), fmt.Sprint(paged))
	}
	for _, c := range []struct {
		q    journal.ActQuery
		want string
	}{
		{journal.ActQuery{Stream: room}, "[production/shop/8 production/shop/5 production/shop/2]"},
		{journal.ActQuery{Stream: "production"}, "[]"},
		{journal.ActQuery{Actor: "op_1"}, "[$org/9 $org/6 $org/3]"},
		{journal.ActQuery{Kind: "operator", Stream: "$org"}, "[$org/9 $org/6 $org/3]"},
		{journal.ActQuery{Stream: "$org", Since: origin.Add(4 * time.Millisecond), Until: origin.Add(7 * time.Millisecond)}, "[$org/6 $org/5]"},
		{journal.ActQuery{Actor: "visitor"}, "[]"},
	} {
		got, _ := read(c.q, 100)
		if fmt.Sprint(got) != c.want && !(len(got) == 0 && c.want == "[]") {
			t.Errorf("%+v: %v, not %s", c.q, got, c.want)
		}
	}
}

func former(t *testing.T, j Audited) {
	batch := records(room, 3000)
	batch[0].Kind, batch[2].Kind, batch[3].Kind, batch[2500].Kind = "create", "configure", "state", "configure"
	journal.Seal(journal.Head{Stream: room}, batch)
	must(t, j.Append(t.Context(), 0, batch))
	for _, c := range []struct {
		before int64
		kinds  []string
		want   int64
	}{
		{3001, []string{"create", "configure"}, 2501}, {2501, []string{"create", "configure"}, 3}, {3, []string{"create", "configure"}, 1}, {1, []string{"create"}, 0},
		{2501, []string{"create", "state"}, 4}, {3001, []string{"join"}, 0}, {9999, []string{"delete"}, 0}, {3001, nil, 0},
	} {
		r, ok, err := j.Former(t.Context(), room, c.before, c.kinds...)
		must(t, err)
		if r.Seq != c.want || ok != (c.want > 0) {
			t.Errorf("before %d of %v: %d, %v", c.before, c.kinds, r.Seq, ok)
		}
		if ok {
			if diff := cmp.Diff(batch[c.want-1], r); diff != "" {
				t.Errorf("the record differs (-want +got):\n%s", diff)
			}
		}
	}
	_, ok, err := j.Former(t.Context(), "production/none", 5, "create")
	must(t, err)
	same(t, false, ok)
}
