package replay

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"qm/engine/room"
	"qm/journal"
)

var digits = regexp.MustCompile(`\d+`)

// TestAnyDamageIsSurvived: whatever was done to the rows of a journal, sealed anew or not, nothing of this package panics, and every
// finding has a name.
func TestAnyDamageIsSurvived(t *testing.T) {
	var originals [][]journal.Record
	for _, name := range []string{"small", "drop", "doors", "eject-purge", "generations", "ghosts", "held-caps"} {
		originals = append(originals, recordings[name](t).records())
	}
	rapid.Check(t, func(rt *rapid.T) {
		records := slices.Clone(rapid.SampledFrom(originals).Draw(rt, "journal"))
		for range rapid.IntRange(1, 6).Draw(rt, "edits") {
			i := rapid.IntRange(0, len(records)-1).Draw(rt, "row")
			switch rapid.IntRange(0, 6).Draw(rt, "edit") {
			case 0:
				if len(records) > 1 {
					records = slices.Delete(records, i, i+1)
				}
			case 1:
				records = slices.Insert(records, rapid.IntRange(0, len(records)).Draw(rt, "to"), records[i])
			case 2:
				k := rapid.IntRange(0, len(records)-1).Draw(rt, "with")
				records[i], records[k] = records[k], records[i]
			case 3:
				records[i].At = records[i].At.Add(time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(rt, "shift")) * time.Microsecond)
			case 4:
				records[i].Kind = rapid.SampledFrom(records).Draw(rt, "kind of").Kind
			default:
				at := digits.FindAllIndex(records[i].Body, -1)
				if len(at) == 0 {
					continue
				}
				cut := rapid.SampledFrom(at).Draw(rt, "number")
				number := rapid.SampledFrom([]string{"0", "1", "2", "3", "9", "40", "-1", "4294967295", "2147483647", "9223372036854775807", "-9223372036854775808"}).Draw(rt, "new")
				records[i].Body = slices.Concat(records[i].Body[:cut[0]], []byte(number), records[i].Body[cut[1]:])
			}
		}
		if rapid.Bool().Draw(rt, "seal") {
			journal.Seal(journal.Head{Stream: records[0].Stream}, records)
		}
		_, findings, err := Verify(Records(records), Options{})
		if err != nil {
			rt.Fatal(err)
		}
		for _, f := range findings {
			if f.Invariant == "" || f.Text == "" || f.Code == State {
				for i := range records {
					rt.Logf("%d %s %s %s", records[i].Seq, records[i].At.Format("15:04:05.000"), records[i].Kind, records[i].Body)
				}
				rt.Fatalf("%v among %v", f, findings)
			}
		}
		if len(findings) == 0 {
			if _, err := Fold(Records(records), records[0].Stream, 0); err != nil {
				rt.Fatalf("it verifies but cannot be folded: %v", err)
			}
		}
		for n := range 3 {
			if _, _, err := Tell(Records(records), StoryOptions{Ticket: room.Ticket(3 * n)}, func(Told) error { return nil }); err != nil {
				rt.Fatal(err)
			}
		}
		if _, _, _, err := ProveDraws(Records(records), nil); err != nil {
			rt.Fatal(err)
		}
	})
}
