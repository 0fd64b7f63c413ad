package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// runner is all that this process has of one room: it takes the room's lease whenever it can, runs an actor while it holds it,
// and starts over when that ends. What callers and readers need outlives the actors here.
type runner struct {
	e      *Engine
	id     string
	stream string
	log    *slog.Logger

	mailbox   *mailbox
	presence  presence
	away      away
	promises  promises
	noted     noted
	arrivals  arrivals
	calmSince room.Instant // what the autopilot remembers
	tuner     tuner
	publisher *publisher
	view      projection.View // of this process
	shared    projection.View // of all processes; nil when there is only this one
	fenced    chan struct{}   // one pending at most: the lease was found to be another's

	mu      sync.RWMutex
	phase   phase
	changed chan struct{} // closed and replaced when phase changes
	damaged string
	lease   journal.Lease

	trustedUntil atomic.Int64 // monotonic, see lease.go
	unwritten    unwritten
	keys         atomic.Pointer[keys]
	keeping      chan struct{} // holds a token while a caller asks the vault for keys
	lateness     atomic.Pointer[lateness]
	saving       sync.WaitGroup
}

// phase is what a runner can do for callers now.
type phase int

const (
	starting  phase = iota // the lease is being taken, or the journal read, for the first time
	owned                  // an actor works
	elsewhere              // another process owns the room
	stranded               // the journal cannot be reached or read; the live view goes on answering
	damaged                // the journal does not verify
	stopped                // the process ends
)

// refusal is what a command gets in a phase; nil where it may wait or work.
func (p phase) refusal() error {
	switch p {
	case elsewhere, stopped:
		return ErrElsewhere
	case stranded:
		return ErrStorage
	case damaged:
		return ErrDamaged
	}
	return nil
}

// damagedError is a journal that does not verify: our own data is wrong, so the room stays shut.
type damagedError struct {
	Seq int64
	Why string
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("journal damaged at seq %d: %s", e.Seq, e.Why)
}

const (
	retryMin     = 100 * time.Millisecond
	retryMax     = time.Second
	damagedRetry = 10 * time.Second
	readWait     = 15 * time.Second // for a snapshot, and for the next thousand records, before a recovery begins anew
)

func newRunner(e *Engine, id string) *runner {
	r := &runner{
		e: e, id: id, stream: e.o.Environment + "/" + id, log: e.o.Log.With("room", id),
		mailbox: newMailbox(), fenced: make(chan struct{}, 1), keeping: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	r.publisher = newPublisher(r)
	r.view = roomView{e.live.View(r.stream)}
	if e.o.Shared != nil {
		r.shared = roomView{e.o.Shared.View(r.stream)}
	}
	return r
}

// run serves the room until ctx ends.
func (r *runner) run(ctx context.Context) {
	defer r.saving.Wait()
	publishing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var publisher sync.WaitGroup
	publisher.Go(func() { r.publisher.run(publishing) })
	defer func() {
		stop()
		publisher.Wait()
		r.publisher.last()
	}()
	defer func() {
		r.enter(stopped)
		r.mailbox.refuse(ErrElsewhere)
	}()
	retry := retryMin
	for ctx.Err() == nil {
		began := time.Now()
		err := r.tenure(ctx)
		var held *journal.HeldError
		var bad *damagedError
		wait := retry
		switch {
		case ctx.Err() != nil:
			if err != nil {
				r.log.Warn("the room was not given up in order", "error", err)
			}
			return
		case errors.As(err, &held):
			r.enter(elsewhere)
			r.warm(ctx)
			wait = min(max(held.For, retryMin), retryMax)
		case errors.Is(err, errFenced):
			r.log.Warn("another process has taken the room")
			r.enter(elsewhere)
			r.e.live.Drop(r.stream)
		case errors.As(err, &bad):
			r.log.Error("the room stays shut", "seq", bad.Seq, "error", bad.Why)
			r.shut(bad)
			wait = damagedRetry
		default:
			if r.current() != stranded {
				r.log.Error("the room has lost its journal and will be read again", "error", err)
			}
			r.enter(stranded)
			if time.Since(began) > retryMax {
				retry = retryMin
			}
			wait = retry
			retry = min(2*retry, retryMax)
		}
		r.mailbox.refuse(r.current().refusal())
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// tenure takes the lease, reads the room and runs an actor on it.
func (r *runner) tenure(ctx context.Context) error {
	attempt := r.e.monotonic()
	lease, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	r.trust(attempt)
	select {
	case <-r.fenced: // of an earlier lease
	default:
	}
	r.hold(lease)
	defer r.hold(journal.Lease{})

	a := &actor{r: r, lease: lease, landed: make(chan error, 1), swept: r.e.o.Now()}
	err = a.recover(ctx, true)
	if errors.Is(err, errSnapshotUnfit) {
		err = a.recover(ctx, false)
	}
	if err != nil {
		return err
	}
	r.presence.restart(a.now())
	a.meter = room.NewMeter(a.state, a.now())
	if err := r.e.live.Reset(ctx, r.stream, lease.Epoch, a.head.Seq, a.state); err != nil {
		return fmt.Errorf("make the live view: %w", err)
	}
	r.publisher.begin(lease.Epoch)
	r.enter(owned)
	r.background(func() { r.warm(ctx) })
	return a.run(ctx)
}

// warm fetches the digest key before anybody asks for it, so that who owns a place can be told while the journal stands still.
func (r *runner) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callerWait)
	defer cancel()
	view, err := r.e.View(ctx, r.id)
	if err != nil {
		return
	}
	if s, _, err := view.Summary(ctx); err == nil && s.Exists {
		_, _ = r.keysOf(ctx, s.Generation) // whoever needs it asks again
	}
}

// acquire takes the lease. A call that hangs is given up: after a cut the next one may get through.
func (r *runner) acquire(ctx context.Context) (journal.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, appendWait)
	defer cancel()
	return r.e.o.Journal.Acquire(ctx, r.stream, r.e.o.Owner, leaseTTL)
}

// recover reads the room: the only way to start. A snapshot shortens it, if it is wanted and fits the journal; errSnapshotUnfit when
// it does not fit.
func (a *actor) recover(ctx context.Context, shortened bool) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hung := time.AfterFunc(readWait, cancel)
	defer hung.Stop()
	j := a.r.e.o.Journal
	a.state = room.New()
	head := journal.Head{Stream: a.r.stream}
	after := int64(0)
	var snap journal.Snapshot
	if !shortened {
		a.r.log.Warn("the snapshot does not fit the journal and is thrown away")
	} else if s, ok, err := j.LoadSnapshot(ctx, a.r.stream); err != nil {
		return fmt.Errorf("load the snapshot: %w", err)
	} else if ok && s.Format == room.SnapshotFormat && s.Seq > 0 && s.Seq <= a.lease.Head.Seq {
		if restored, err := room.Restore(s.State); err != nil {
			a.r.log.Warn("the snapshot is thrown away", "seq", s.Seq, "error", err)
		} else {
			snap, a.state, after = s, restored, s.Seq-1
			head.Seq = s.Seq
		}
	}
	chain := journal.NewChain(head)
	hung.Reset(readWait)
	err := j.Read(ctx, a.r.stream, after, func(rec *journal.Record) error {
		if rec.Seq%1024 == 0 {
			hung.Reset(readWait)
		}
		if rec.Seq == snap.Seq { // the record that the snapshot rests on
			if rec.Hash != snap.Hash {
				return errSnapshotUnfit
			}
			chain = journal.NewChain(journal.Head{Stream: a.r.stream, Seq: rec.Seq, Hash: rec.Hash})
			return nil
		}
		if err := chain.Check(rec); err != nil {
			return &damagedError{rec.Seq, err.Error()}
		}
		event, err := room.DecodeBody(rec.Kind, rec.Version, room.Instant(rec.At.UnixMilli()), rec.Body)
		if err != nil {
			return &damagedError{rec.Seq, err.Error()}
		}
		if err := fold(a.state, event); err != nil {
			return &damagedError{rec.Seq, err.Error()}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the room: %w", err)
	}
	a.head = chain.Head()
	a.head.Epoch = a.lease.Epoch
	a.snapped = snap.Seq
	if a.head.Seq < a.lease.Head.Seq {
		return &damagedError{a.head.Seq, fmt.Sprintf("the journal ends here, but its head is seq %d", a.lease.Head.Seq)}
	}
	a.r.log.Info("room taken", "seq", a.head.Seq, "epoch", a.lease.Epoch, "snapshot", snap.Seq, "took", time.Since(began).String())
	return nil
}

// fold applies an event that was read. One that cannot have happened is damage to this room, not a reason to end the process.
func fold(s *room.State, e room.Event) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s cannot have happened here: %v", e.Body.Kind(), v)
		}
	}()
	s.Apply(e)
	return nil
}

var errSnapshotUnfit = errors.New("engine: the snapshot's hash is not the journal's")

func (r *runner) current() phase {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.phase
}

func (r *runner) enter(p phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p != damaged {
		r.damaged = ""
	}
	if r.phase != p {
		r.phase = p
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

func (r *runner) shut(bad *damagedError) {
	r.enter(damaged)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.damaged = bad.Error()
}

// settled waits, at most as long as a caller does, until the room is no longer starting.
func (r *runner) settled(ctx context.Context) phase {
	if p := r.current(); p != starting {
		return p
	}
	timer := time.NewTimer(callerWait)
	defer timer.Stop()
	for {
		r.mu.Lock()
		p, changed := r.phase, r.changed
		r.mu.Unlock()
		if p != starting {
			return p
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return stranded
		case <-timer.C:
			return stranded
		}
	}
}

// do sends a request through the actor and waits for what became of it.
func (r *runner) do(ctx context.Context, c request, reserved bool) (Answer, error) {
	if err := r.current().refusal(); err != nil {
		return Answer{}, err
	}
	req := r.e.requests.Get().(*request)
	req.cmd, req.build, req.actor, req.sent = c.cmd, c.build, c.actor, r.e.o.Now()
	if reserved { // visitors bring no cause: theirs is not looked for
		req.cause = causeOf(ctx)
	}
	if !r.mailbox.put(req, reserved) {
		r.e.metrics.busy.Inc()
		return Answer{}, ErrBusy
	}
	if err := r.current().refusal(); err != nil { // it changed meanwhile, so nobody may come to take the request
		r.mailbox.refuse(err)
	}
	select {
	case res := <-req.reply:
		answer := req.answer
		*req = request{reply: req.reply}
		r.e.requests.Put(req)
		return answer, res.err
	case <-r.late():
	case <-ctx.Done():
	}
	return Answer{}, ErrStorage
}

// late is closed when a caller who comes now has waited long enough. Those who come within the same lateStep share it: a timer each
// would cost as much as the decision.
func (r *runner) late() <-chan struct{} {
	now := r.e.monotonic()
	l := r.lateness.Load()
	for l == nil || now >= l.until {
		fresh := &lateness{until: now + lateStep, over: make(chan struct{})}
		if r.lateness.CompareAndSwap(l, fresh) {
			time.AfterFunc(callerWait, func() { close(fresh.over) })
			return fresh.over
		}
		l = r.lateness.Load()
	}
	return l.over
}

// lateStep is by how much a caller may wait less than callerWait.
const lateStep = 50 * time.Millisecond

type lateness struct {
	until time.Duration // whoever comes before shares over, on the engine's monotonic clock
	over  chan struct{}
}

// background runs save beside the actor; the runner waits for it before it ends.
func (r *runner) background(save func()) {
	r.saving.Add(1)
	go func() { // ends by itself: save is bounded
		defer r.saving.Done()
		save()
	}()
}
