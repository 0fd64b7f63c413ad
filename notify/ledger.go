package notify

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Ledger is the Registrations of a process without a database.
type Ledger struct {
	now func() time.Time

	mu    sync.Mutex
	rows  map[Place]*ledgerRow
	given map[Digest][]time.Time // when an address was set at a place, within the last hour
}

type ledgerRow struct {
	Registration
	changes int
}

var _ Registrations = (*Ledger)(nil)

// NewLedger makes an empty one.
func NewLedger(now func() time.Time) *Ledger {
	return &Ledger{now: now, rows: make(map[Place]*ledgerRow), given: make(map[Digest][]time.Time)}
}

// Set implements [Registrations].
func (l *Ledger) Set(_ context.Context, r Registration, address Digest) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.rows[r.Place]
	if row != nil {
		switch {
		case row.Turn:
			return ErrServed
		case row.Address == r.Address:
			row.Locale = r.Locale
			return nil
		case row.changes >= ChangesPerPlace:
			return ErrChanges
		}
	}
	since := l.now().Add(-time.Hour)
	given := slices.DeleteFunc(l.given[address], func(at time.Time) bool { return !at.After(since) })
	if len(given) >= PlacesPerAddress {
		l.given[address] = given
		return ErrAddress
	}
	l.given[address] = append(given, l.now())
	if row == nil {
		row = new(ledgerRow)
		l.rows[r.Place] = row
	}
	r.Near, r.Turn = r.Near || row.Near, false
	row.Registration = r
	row.changes++
	return nil
}

// Find implements [Registrations].
func (l *Ledger) Find(_ context.Context, p Place) (Registration, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if row := l.rows[p]; row != nil {
		return row.Registration, true, nil
	}
	return Registration{}, false, nil
}

// Erase implements [Registrations].
func (l *Ledger) Erase(_ context.Context, p Place) (erased bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.rows[p]
	if row == nil || !row.Live() {
		return false, nil
	}
	row.Address, row.Locale, row.Owner = "", "", Digest{}
	return true, nil
}

// Move implements [Registrations].
func (l *Ledger) Move(_ context.Context, from, to Place, fresh bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.rows[from]
	delete(l.rows, from)
	if row == nil || !row.Live() || l.rows[to] != nil {
		return nil
	}
	row.Place = to
	if fresh {
		row.Near, row.Turn = false, false
	}
	l.rows[to] = row
	return nil
}

// Claim implements [Registrations].
func (l *Ledger) Claim(_ context.Context, p Place, m Mail) (Registration, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.rows[p]
	if row == nil || !row.Live() || row.Turn || m == Near && row.Near {
		return Registration{}, false, nil
	}
	row.claim(m, true)
	return row.Registration, true, nil
}

// Unclaim implements [Registrations].
func (l *Ledger) Unclaim(_ context.Context, p Place, m Mail) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if row := l.rows[p]; row != nil {
		row.claim(m, false)
	}
	return nil
}

func (r *ledgerRow) claim(m Mail, taken bool) {
	if m == Turn {
		r.Turn = taken
	} else {
		r.Near = taken
	}
}

// Rooms implements [Registrations].
func (l *Ledger) Rooms(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rooms []string
	for p, row := range l.rows {
		if row.Live() && !slices.Contains(rooms, p.Room) {
			rooms = append(rooms, p.Room)
		}
	}
	slices.Sort(rooms)
	return rooms, nil
}

// Live implements [Registrations].
func (l *Ledger) Live(_ context.Context, room string, after Place, limit int) ([]Registration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var live []Registration
	for p, row := range l.rows {
		if p.Room == room && row.Live() && comparePlaces(p, after) > 0 {
			live = append(live, row.Registration)
		}
	}
	slices.SortFunc(live, func(a, b Registration) int { return comparePlaces(a.Place, b.Place) })
	return live[:min(limit, len(live))], nil
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Handle, b.Handle), cmp.Compare(a.Ticket, b.Ticket))
}

// Sweep implements [Registrations].
func (l *Ledger) Sweep(_ context.Context, before time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, row := range l.rows {
		if row.At.Before(before) {
			delete(l.rows, p)
		}
	}
	since := l.now().Add(-time.Hour)
	for d, given := range l.given {
		if given = slices.DeleteFunc(given, func(at time.Time) bool { return !at.After(since) }); len(given) == 0 {
			delete(l.given, d)
		} else {
			l.given[d] = given
		}
	}
	return nil
}
