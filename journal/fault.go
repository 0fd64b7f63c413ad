package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrFault is what a call fails with that a [Fault] was armed for. It stands for a failure of the storage: the outcome is unknown.
var ErrFault = errors.New("journal: injected fault")

// Op names a method of [Journal] that a [Fault] can hit.
type Op string

// The operations that can be armed.
const (
	OpAcquire  Op = "acquire"
	OpRenew    Op = "renew"
	OpRelease  Op = "release"
	OpAppend   Op = "append"
	OpRead     Op = "read"
	OpHead     Op = "head"
	OpSnapshot Op = "snapshot" // SaveSnapshot and LoadSnapshot
	OpPing     Op = "ping"
)

// Mode is how an armed operation goes wrong.
type Mode int

const (
	// FailBefore fails the call and does nothing.
	FailBefore Mode = iota
	// FailAfter does the work, durably, and reports a failure all the same: the answer got lost.
	FailAfter
	// Delay does the work when the shot is released, or fails with nothing done when ctx ends first.
	Delay
)

// Fault hands every call on to a Journal, except those that a shot was armed for. Tests and the simulation put it between an actor and
// its journal. An Append that is delayed holds no lock, so a second owner can come in between, as it can on a network.
type Fault struct {
	Journal

	mu    sync.Mutex
	armed map[Op][]*Shot
	shots []*Shot // all that were armed since the last Disarm
	fired map[Op]int
}

// NewFault wraps j with nothing armed.
func NewFault(j Journal) *Fault {
	return &Fault{Journal: j, armed: map[Op][]*Shot{}, fired: map[Op]int{}}
}

// Shot is a fault armed for a number of calls.
type Shot struct {
	// Fired receives once for each call that was hit, at the moment it was hit: a test awaits it, and so knows that its fault took place.
	Fired <-chan struct{}

	mode    Mode
	left    int
	fired   chan struct{}
	release chan struct{}
	once    sync.Once
}

// Arm makes the next times calls of op go wrong, after those that were armed before.
func (f *Fault) Arm(op Op, mode Mode, times int) *Shot {
	fired := make(chan struct{}, times)
	s := &Shot{Fired: fired, mode: mode, left: times, fired: fired, release: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed[op] = append(f.armed[op], s)
	f.shots = append(f.shots, s)
	return s
}

// Release lets the delayed calls of the shot go on, those to come included. It may be called more than once.
func (s *Shot) Release() { s.once.Do(func() { close(s.release) }) }

// Disarm takes back what was armed and has not fired. Calls that are being delayed go on.
func (f *Fault) Disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.shots {
		s.Release()
	}
	f.shots = nil
	clear(f.armed)
}

// Fired returns how many calls of op were hit so far.
func (f *Fault) Fired(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired[op]
}

func (f *Fault) next(op Op) *Shot {
	f.mu.Lock()
	defer f.mu.Unlock()
	shots := f.armed[op]
	for len(shots) > 0 && shots[0].left == 0 { // spent
		shots = shots[1:]
	}
	f.armed[op] = shots
	if len(shots) == 0 {
		return nil
	}
	s := shots[0]
	s.left--
	f.fired[op]++
	s.fired <- struct{}{} // has room for all of them
	return s
}

func (f *Fault) run(ctx context.Context, op Op, call func() error) error {
	s := f.next(op)
	if s == nil {
		return call()
	}
	switch s.mode {
	case Delay:
		select {
		case <-s.release:
			return call()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", op, ErrFault, ctx.Err())
		}
	case FailAfter:
		if err := call(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", op, ErrFault)
}

// Acquire implements [Journal].
func (f *Fault) Acquire(ctx context.Context, stream, owner string, ttl time.Duration) (l Lease, err error) {
	err = f.run(ctx, OpAcquire, func() (err error) {
		l, err = f.Journal.Acquire(ctx, stream, owner, ttl)
		return err
	})
	if err != nil {
		return Lease{}, err
	}
	return l, nil
}

// Renew implements [Journal].
func (f *Fault) Renew(ctx context.Context, leases []Lease, ttl time.Duration) (lost []string, err error) {
	err = f.run(ctx, OpRenew, func() (err error) {
		lost, err = f.Journal.Renew(ctx, leases, ttl)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// Release implements [Journal].
func (f *Fault) Release(ctx context.Context, lease Lease) error {
	return f.run(ctx, OpRelease, func() error { return f.Journal.Release(ctx, lease) })
}

// Append implements [Journal].
func (f *Fault) Append(ctx context.Context, epoch int64, batch []Record) error {
	return f.run(ctx, OpAppend, func() error { return f.Journal.Append(ctx, epoch, batch) })
}

// Read implements [Journal].
func (f *Fault) Read(ctx context.Context, stream string, after int64, fn func(*Record) error) error {
	return f.run(ctx, OpRead, func() error { return f.Journal.Read(ctx, stream, after, fn) })
}

// Head implements [Journal].
func (f *Fault) Head(ctx context.Context, stream string) (h Head, err error) {
	err = f.run(ctx, OpHead, func() (err error) {
		h, err = f.Journal.Head(ctx, stream)
		return err
	})
	if err != nil {
		return Head{}, err
	}
	return h, nil
}

// SaveSnapshot implements [Journal].
func (f *Fault) SaveSnapshot(ctx context.Context, s Snapshot) error {
	return f.run(ctx, OpSnapshot, func() error { return f.Journal.SaveSnapshot(ctx, s) })
}

// LoadSnapshot implements [Journal].
func (f *Fault) LoadSnapshot(ctx context.Context, stream string) (s Snapshot, ok bool, err error) {
	err = f.run(ctx, OpSnapshot, func() (err error) {
		s, ok, err = f.Journal.LoadSnapshot(ctx, stream)
		return err
	})
	if err != nil {
		return Snapshot{}, false, err
	}
	return s, ok, nil
}

// Ping implements [Journal].
func (f *Fault) Ping(ctx context.Context) error {
	return f.run(ctx, OpPing, func() error { return f.Journal.Ping(ctx) })
}
