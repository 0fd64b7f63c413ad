package projection

import (
	"context"
	"errors"
	"sync"

	"qm/engine/room"
)

// ErrFault is what a [Fault] answers where it strikes.
var ErrFault = errors.New("projection: injected fault")

// When tells where a fault strikes.
type When int

// The places where a fault strikes: the write does not happen, or it happens and the answer is lost.
const (
	Before When = iota
	After
)

// Fault is a Store whose writes (Apply, Reset) and reads can be made to fail, for tests and simulations. It counts the faults that fired, so
// that a test can prove that it met them (architecture.md, "Tests").
type Fault struct {
	Store

	mu    sync.Mutex
	armed []When
	down  bool
	fired int
}

// NewFault wraps a Store. It is faultless until Arm or SetDown.
func NewFault(s Store) *Fault { return &Fault{Store: s} }

// Arm lets coming writes fail, one for each of whens, in order.
func (f *Fault) Arm(whens ...When) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, whens...)
}

// SetDown makes every call fail, reads too, without reaching the store, until it is set to false.
func (f *Fault) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

// Fired is how many calls have failed.
func (f *Fault) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// Pending is how many armed faults have not fired yet.
func (f *Fault) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.armed)
}

func (f *Fault) write(do func() error) error {
	before, after := f.next()
	if before {
		return ErrFault
	}
	err := do()
	if err == nil && after {
		return ErrFault
	}
	return err
}

func (f *Fault) next() (before, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		f.fired++
		return true, false
	}
	if len(f.armed) == 0 {
		return false, false
	}
	when := f.armed[0]
	f.armed = f.armed[1:]
	f.fired++
	return when == Before, when == After
}

func (f *Fault) read() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.down {
		return nil
	}
	f.fired++
	return ErrFault
}

// Apply implements [Store].
func (f *Fault) Apply(ctx context.Context, b Batch) error {
	return f.write(func() error { return f.Store.Apply(ctx, b) })
}

// Disown implements [Store].
func (f *Fault) Disown(ctx context.Context, stream string) error {
	return f.write(func() error { return f.Store.Disown(ctx, stream) })
}

// Reset implements [Store].
func (f *Fault) Reset(ctx context.Context, stream string, epoch, seq int64, s *room.State) error {
	return f.write(func() error { return f.Store.Reset(ctx, stream, epoch, seq, s) })
}

// Position implements [Store].
func (f *Fault) Position(ctx context.Context, stream string) (Position, error) {
	if err := f.read(); err != nil {
		return Position{}, err
	}
	return f.Store.Position(ctx, stream)
}

// Watch implements [Store]. Hints are lost while the store is down: they may be at any time.
func (f *Fault) Watch(ctx context.Context, stream string) (<-chan struct{}, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	return f.Store.Watch(ctx, stream)
}

// Ping implements [Store].
func (f *Fault) Ping(ctx context.Context) error {
	if err := f.read(); err != nil {
		return err
	}
	return f.Store.Ping(ctx)
}

// View implements [Store].
func (f *Fault) View(stream string) View { return faultView{f: f, View: f.Store.View(stream)} }

type faultView struct {
	View
	f *Fault
}

func (v faultView) Summary(ctx context.Context) (room.Summary, Position, error) {
	if err := v.f.read(); err != nil {
		return room.Summary{}, Position{}, err
	}
	return v.View.Summary(ctx)
}

func (v faultView) Ticket(ctx context.Context, n room.Ticket) (room.Summary, room.Place, error) {
	if err := v.f.read(); err != nil {
		return room.Summary{}, room.Place{}, err
	}
	return v.View.Ticket(ctx, n)
}

func (v faultView) Handle(ctx context.Context, q room.Handle) (room.Summary, room.Place, error) {
	if err := v.f.read(); err != nil {
		return room.Summary{}, room.Place{}, err
	}
	return v.View.Handle(ctx, q)
}
