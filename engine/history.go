package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"qm/engine/room"
	"qm/projection"
)

// A room remembers its last minutes in which something happened ([room.State.Minutes]). Whoever owns it writes them down, often enough
// that none is forgotten; what is not written when a process dies is in the state that the next owner reads.
const (
	historyEvery = 10 * time.Second
	historyWait  = 5 * time.Second
	pruneEvery   = time.Hour
)

// noted is the newest row that a runner has written down.
type noted struct {
	mu  sync.Mutex
	row room.Minute
}

// keepHistory writes rooms' history down until ctx ends.
func (e *Engine) keepHistory(ctx context.Context) {
	if e.o.Series == nil {
		return
	}
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	var pruned time.Time
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := e.writeHistory(ctx)
		if now := e.o.Now(); err == nil && now.Sub(pruned) >= pruneEvery {
			pruned = now
			err = e.pruneHistory(ctx, now)
		}
		if err != nil && !failing && ctx.Err() == nil {
			e.o.Log.Warn("the rooms' history is not written down for now", "error", err)
		}
		failing = err != nil
	}
}

// writeHistory writes down what is new of all rooms that this process owns.
func (e *Engine) writeHistory(ctx context.Context) error {
	var failed error
	for _, r := range e.runners() {
		if r.current() != owned {
			continue
		}
		if err := r.writeHistory(ctx); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (e *Engine) pruneHistory(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	minute := now.Unix() / 60
	return errors.Join(
		e.o.Series.Prune(ctx, projection.PerMinute, minute-projection.MinutesFor),
		e.o.Series.Prune(ctx, projection.PerHour, projection.Hour(minute-projection.HoursFor)))
}

// writeHistory writes down the room's rows from the one that was the newest last time on, and the hours that they belong to.
func (r *runner) writeHistory(ctx context.Context) error {
	r.noted.mu.Lock()
	defer r.noted.mu.Unlock()
	last := r.noted.row
	var rows []room.Minute
	var seq int64
	err := r.e.live.With(r.stream, func(_, at int64, s *room.State) error {
		if newest, ok := s.LastMinute(); ok && newest != last {
			rows, seq = s.Minutes(), at
		}
		return nil
	})
	if err != nil || len(rows) == 0 {
		return nil // nothing is known of the room here, or nothing is new
	}
	for len(rows) > 1 && rows[0].Minute < last.Minute {
		rows = rows[1:]
	}
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	series := r.e.o.Series
	if err := series.Save(ctx, r.stream, projection.PerMinute, seq, rows); err != nil {
		return err
	}
	// An hour is made of its minutes as they are stored: its first ones may have been written by an earlier owner.
	from, to := projection.Hour(rows[0].Minute), projection.Hour(rows[len(rows)-1].Minute)+int64(projection.PerHour)
	minutes, err := series.Load(ctx, r.stream, projection.PerMinute, from, to)
	if err != nil {
		return err
	}
	if err := series.Save(ctx, r.stream, projection.PerHour, seq, projection.Group(minutes, projection.Hour)); err != nil {
		return err
	}
	r.noted.row = rows[len(rows)-1]
	return nil
}

// HistoryBefore is a room's newest row of before the minute, which tells how the room stood at it; ok is false when none is known. Minutes
// go after a week; the hours that they were part of tell it then. Errors as for History.
func (e *Engine) HistoryBefore(ctx context.Context, roomID string, minute int64) (m room.Minute, ok bool, err error) {
	r, err := e.runner(ctx, roomID)
	if err != nil || e.o.Series == nil {
		return room.Minute{}, false, err
	}
	for _, span := range []projection.Span{projection.PerMinute, projection.PerHour} {
		before := minute
		if span == projection.PerHour {
			before = projection.Hour(minute) // of an hour that is not over it is not known yet how it stood
		}
		if m, ok, err = e.o.Series.Last(ctx, r.stream, span, before); err != nil {
			return m, false, errors.Join(ErrStorage, err)
		} else if ok {
			return m, true, nil
		}
	}
	return room.Minute{}, false, nil
}

// History is a room's rows with from <= Minute < to (Unix time in minutes), ascending: as they are written down, and, where this process owns the
// room, as they are now. A minute in which nothing happened has no row. projection.ErrNoRoom when the journal knows no such room.
func (e *Engine) History(ctx context.Context, roomID string, span projection.Span, from, to int64) ([]room.Minute, error) {
	r, err := e.runner(ctx, roomID)
	if err != nil {
		return nil, err
	}
	if e.o.Series == nil {
		return nil, nil
	}
	if r.current() == owned {
		if err := r.writeHistory(ctx); err != nil {
			return nil, errors.Join(ErrStorage, err)
		}
	}
	rows, err := e.o.Series.Load(ctx, r.stream, span, from, to)
	if err != nil {
		return nil, errors.Join(ErrStorage, err)
	}
	return rows, nil
}
