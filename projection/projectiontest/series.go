package projectiontest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"qm/engine/room"
	"qm/projection"
)

// RunSeries is the suite that every projection.Series passes. open gives an empty one.
func RunSeries(t *testing.T, open func(t *testing.T) projection.Series) {
	// row is a minute with a figure in every field, so that a mixed-up column shows.
	row := func(minute int64, n uint32) room.Minute {
		return room.Minute{
			Minute: minute, Joined: n, Passed: n + 1, Entered: n + 2, Lapsed: n + 3, Left: n + 4, Removed: n + 5, WaitSum: 1<<40 + uint64(n), WaitMost: 1<<33 + uint64(n),
			Depth: n + 6, DepthMost: n + 7, PreQueue: n + 8, Doors: n + 9, Generation: n + 10,
		}
	}
	save := func(t *testing.T, s projection.Series, name string, span projection.Span, seq int64, rows ...room.Minute) {
		t.Helper()
		if err := s.Save(t.Context(), name, span, seq, rows); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(t *testing.T, s projection.Series, name string, span projection.Span, from, to int64, want ...room.Minute) {
		t.Helper()
		got, err := s.Load(t.Context(), name, span, from, to)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s %d to %d (-want +got):\n%s", name, from, to, diff)
		}
	}
	const other = "production/other"
	t.Run("RowsComeBack", func(t *testing.T) {
		s := open(t)
		expect(t, s, stream, projection.PerMinute, 0, 1<<40)
		save(t, s, stream, projection.PerMinute, 9, row(29_000_002, 2), row(29_000_000, 1<<31), row(29_000_005, 3))
		save(t, s, stream, projection.PerHour, 9, row(29_000_000, 7))
		save(t, s, other, projection.PerMinute, 9, row(29_000_001, 4))
		save(t, s, other, projection.PerMinute, 9)
		expect(t, s, stream, projection.PerMinute, 29_000_000, 29_000_005, row(29_000_000, 1<<31), row(29_000_002, 2))
		expect(t, s, stream, projection.PerMinute, 29_000_001, 29_000_006, row(29_000_002, 2), row(29_000_005, 3))
		expect(t, s, stream, projection.PerHour, 0, 1<<40, row(29_000_000, 7))
		expect(t, s, other, projection.PerMinute, 0, 1<<40, row(29_000_001, 4))
		for before, want := range map[int64]int64{29_000_000: 0, 29_000_001: 29_000_000, 29_000_005: 29_000_002, 1 << 40: 29_000_005} {
			m, ok, err := s.Last(t.Context(), stream, projection.PerMinute, before)
			if err != nil || ok != (want != 0) || m.Minute != want {
				t.Errorf("the last row before %d is %+v, %v, %v; not of %d", before, m, ok, err, want)
			}
		}
	})
	t.Run("ALaterReadingWins", func(t *testing.T) {
		s := open(t)
		save(t, s, stream, projection.PerMinute, 10, row(7, 1), row(8, 1))
		save(t, s, stream, projection.PerMinute, 12, row(8, 3), row(9, 3))
		save(t, s, stream, projection.PerMinute, 11, row(7, 2), row(8, 2), row(9, 2)) // of an owner that is late
		save(t, s, stream, projection.PerMinute, 12, row(9, 4))                       // of the same seq: mended
		expect(t, s, stream, projection.PerMinute, 0, 100, row(7, 2), row(8, 3), row(9, 4))
	})
	t.Run("OldRowsGo", func(t *testing.T) {
		s := open(t)
		for _, name := range []string{stream, other} {
			save(t, s, name, projection.PerMinute, 1, row(1, 1), row(2, 2), row(3, 3))
			save(t, s, name, projection.PerHour, 1, row(0, 1))
		}
		if err := s.Prune(t.Context(), projection.PerMinute, 3); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{stream, other} {
			expect(t, s, name, projection.PerMinute, 0, 100, row(3, 3))
			expect(t, s, name, projection.PerHour, 0, 100, row(0, 1))
		}
	})
}
