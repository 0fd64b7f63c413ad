package replay

import (
	"context"
	"fmt"
	"math"
	"time"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// HistoryRow is the finding that a stored row of a room's history is not what its journal says. Its invariant is P1, as for all that is
// kept of a room beside its journal.
const HistoryRow Code = "history_row"

// History folds a stream into the rows of all its minutes. The error is a *[DamageError] when the records do not make a room.
func History(source Source, stream string) (rows []room.Minute, head journal.Head, err error) {
	f := newFolder(stream)
	err = source(func(r *journal.Record) error {
		if r.Stream != stream {
			return nil
		}
		before, any := f.state.LastMinute()
		if err := f.record(r); err != nil {
			return err
		}
		if after, _ := f.state.LastMinute(); any && after.Minute != before.Minute {
			rows = append(rows, before)
		}
		return nil
	})
	if err != nil {
		return nil, head, fmt.Errorf("fold the history of %s: %w", stream, err)
	}
	if last, ok := f.state.LastMinute(); ok {
		rows = append(rows, last)
	}
	return rows, f.folded().Head, nil
}

// kept is what a series keeps of one span at now: the rows, of those of all minutes, from the minute since on.
func kept(rows []room.Minute, span projection.Span, now time.Time) (since int64, keep []room.Minute) {
	since = now.Unix()/60 - projection.MinutesFor
	if span == projection.PerHour {
		since, rows = projection.Hour(now.Unix()/60-projection.HoursFor), projection.Group(rows, projection.Hour)
	}
	for len(rows) > 0 && rows[0].Minute < since {
		rows = rows[1:]
	}
	return since, rows
}

// historySpans are the spans in the order in which they are told.
var historySpans = []projection.Span{projection.PerMinute, projection.PerHour}

// DiffHistory compares the stored history of a room with its journal. Rows that are not over, or were over less than a minute ago, are left out:
// an owner at work writes them down a little later.
func DiffHistory(ctx context.Context, j Reader, series projection.Series, stream string, now time.Time) (compared int, findings []Finding, err error) {
	rows, head, err := History(Stream(ctx, j, stream), stream)
	if err != nil {
		return 0, nil, err
	}
	settled := now.Unix()/60 - 1
	for _, span := range historySpans {
		stored, err := series.Load(ctx, stream, span, 0, math.MaxInt64)
		if err != nil {
			return compared, findings, fmt.Errorf("diff the history of %s: %w", stream, err)
		}
		held := make(map[int64]room.Minute, len(stored))
		for _, m := range stored {
			held[m.Minute] = m
		}
		since, keep := kept(rows, span, now)
		for _, want := range keep {
			got, ok := held[want.Minute]
			delete(held, want.Minute)
			if want.Minute+int64(span) > settled {
				continue
			}
			compared++
			if !ok || got != want {
				findings = append(findings, historyFinding(stream, head.Seq, span, want.Minute, got, want, ok, true))
			}
		}
		for _, m := range stored {
			if _, left := held[m.Minute]; left && m.Minute >= since {
				findings = append(findings, historyFinding(stream, head.Seq, span, m.Minute, m, room.Minute{}, true, false))
			}
		}
	}
	return compared, findings, nil
}

func historyFinding(stream string, seq int64, span projection.Span, minute int64, got, want room.Minute, stored, known bool) Finding {
	unit := "minute"
	if span == projection.PerHour {
		unit = "hour"
	}
	at := time.Unix(minute*60, 0).UTC().Format("2006-01-02 15:04")
	switch {
	case !stored:
		return projectionFinding(stream, seq, HistoryRow, "the %s of %s is not stored", unit, at)
	case !known:
		return projectionFinding(stream, seq, HistoryRow, "the %s of %s is stored, but nothing happened in it", unit, at)
	}
	return projectionFinding(stream, seq, HistoryRow, "the %s of %s is stored as %+v, the journal says %+v", unit, at, got, want)
}

// RebuildHistory writes the history of a room anew from its journal, as far back as it is kept. It may be done beside a running owner.
func RebuildHistory(ctx context.Context, j Reader, series projection.Series, stream string, now time.Time) (rows int, err error) {
	all, head, err := History(Stream(ctx, j, stream), stream)
	if err != nil {
		return 0, err
	}
	for _, span := range historySpans {
		_, keep := kept(all, span, now)
		const some = 5000 // rows in one statement
		for len(keep) > 0 {
			n := min(len(keep), some)
			if err := series.Save(ctx, stream, span, head.Seq, keep[:n]); err != nil {
				return rows, fmt.Errorf("rebuild the history of %s: %w", stream, err)
			}
			rows, keep = rows+n, keep[n:]
		}
	}
	return rows, nil
}
