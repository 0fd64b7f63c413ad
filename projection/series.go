package projection

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"qm/engine/room"
)

// Span is how many minutes a row of history is about.
type Span int

// The spans that are kept, and for how long, in minutes (issue: a week at a minute, two years at an hour).
const (
	PerMinute Span = 1
	PerHour   Span = 60

	MinutesFor = 7 * 24 * 60
	HoursFor   = 2 * 366 * 24 * 60
)

// Series keeps the history of rooms for longer than they keep it themselves ([room.MinutesKept]). It follows from the journal: lost, it is
// made again, with equal rows (qm-replay rebuild). All methods are safe for concurrent use.
type Series interface {
	// Save puts rows in place of those of the same room, span and minute. seq is where the room stood when they were read: a row that was
	// saved from a later seq stays.
	Save(ctx context.Context, stream string, span Span, seq int64, rows []room.Minute) error
	// Load returns the rows with from <= Minute < to, ascending.
	Load(ctx context.Context, stream string, span Span, from, to int64) ([]room.Minute, error)
	// Last returns the newest row with Minute < before; ok is false when there is none.
	Last(ctx context.Context, stream string, span Span, before int64) (m room.Minute, ok bool, err error)
	// Prune removes the rows of all rooms that are older than the minute before.
	Prune(ctx context.Context, span Span, before int64) error
}

// Merge makes one row of those of a longer span that begins at start, ascending; ok is false when there are none.
func Merge(start int64, rows []room.Minute) (m room.Minute, ok bool) {
	if len(rows) == 0 {
		return room.Minute{}, false
	}
	last := rows[len(rows)-1]
	m = room.Minute{Minute: start, Depth: last.Depth, PreQueue: last.PreQueue, Doors: last.Doors, Generation: last.Generation}
	for _, r := range rows {
		m.Joined += r.Joined
		m.Passed += r.Passed
		m.Entered += r.Entered
		m.Lapsed += r.Lapsed
		m.Left += r.Left
		m.Removed += r.Removed
		m.WaitSum += r.WaitSum
		m.WaitMost = max(m.WaitMost, r.WaitMost)
		m.DepthMost = max(m.DepthMost, r.DepthMost)
	}
	return m, true
}

// Group merges ascending rows into those of a longer span; start says with which minute the span of a minute begins.
func Group(rows []room.Minute, start func(minute int64) int64) (out []room.Minute) {
	for len(rows) > 0 {
		from := start(rows[0].Minute)
		n := 1
		for n < len(rows) && start(rows[n].Minute) == from {
			n++
		}
		m, _ := Merge(from, rows[:n])
		out, rows = append(out, m), rows[n:]
	}
	return out
}

// Hour is the start of the hour of a minute.
func Hour(minute int64) int64 { return minute - minute%int64(PerHour) }

// MemorySeries is a Series in process.
type MemorySeries struct {
	mu   sync.Mutex
	rows map[seriesKey][]savedRow // ascending
}

type seriesKey struct {
	stream string
	span   Span
}

type savedRow struct {
	seq int64
	row room.Minute
}

func (r savedRow) compare(minute int64) int { return cmp.Compare(r.row.Minute, minute) }

// NewMemorySeries makes an empty one.
func NewMemorySeries() *MemorySeries { return &MemorySeries{rows: make(map[seriesKey][]savedRow)} }

// Save implements [Series].
func (s *MemorySeries) Save(_ context.Context, stream string, span Span, seq int64, rows []room.Minute) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := seriesKey{stream, span}
	list := s.rows[key]
	for _, row := range rows {
		i, found := slices.BinarySearchFunc(list, row.Minute, savedRow.compare)
		switch {
		case !found:
			list = slices.Insert(list, i, savedRow{seq, row})
		case list[i].seq <= seq:
			list[i] = savedRow{seq, row}
		}
	}
	s.rows[key] = list
	return nil
}

// Load implements [Series].
func (s *MemorySeries) Load(_ context.Context, stream string, span Span, from, to int64) (rows []room.Minute, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.rows[seriesKey{stream, span}]
	i, _ := slices.BinarySearchFunc(list, from, savedRow.compare)
	for ; i < len(list) && list[i].row.Minute < to; i++ {
		rows = append(rows, list[i].row)
	}
	return rows, nil
}

// Last implements [Series].
func (s *MemorySeries) Last(_ context.Context, stream string, span Span, before int64) (room.Minute, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.rows[seriesKey{stream, span}]
	i, _ := slices.BinarySearchFunc(list, before, savedRow.compare)
	if i == 0 {
		return room.Minute{}, false, nil
	}
	return list[i-1].row, true, nil
}

// Prune implements [Series].
func (s *MemorySeries) Prune(_ context.Context, span Span, before int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, list := range s.rows {
		if key.span != span {
			continue
		}
		i, _ := slices.BinarySearchFunc(list, before, savedRow.compare)
		s.rows[key] = slices.Delete(list, 0, i)
	}
	return nil
}
