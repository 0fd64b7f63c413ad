package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"qm/engine/room"
	"qm/projection"
)

// publisher carries a room's durable events into the shared projection, in order, after they were answered. It may fall behind or
// lose the projection: then it writes it anew from the live view, which is the journal's fold.
type publisher struct {
	r      *runner
	arrive chan struct{} // one pending at most

	mu      sync.Mutex
	epoch   int64
	waiting []projection.Batch // consecutive
	fresh   bool               // the projection must be written anew

	lag atomic.Int64 // events durable and not published
}

func newPublisher(r *runner) *publisher {
	return &publisher{r: r, arrive: make(chan struct{}, 1)}
}

// begin starts a tenure: whatever waits belongs to an earlier one.
func (p *publisher) begin(epoch int64) {
	p.mu.Lock()
	p.epoch, p.waiting, p.fresh = epoch, nil, true
	p.mu.Unlock()
	p.lag.Store(0)
	p.hint()
}

func (p *publisher) hint() {
	select {
	case p.arrive <- struct{}{}:
	default:
	}
}

const (
	publishBacklog = 200_000 // events; beyond that it is cheaper to write the projection anew
	publishWait    = 10 * time.Second
	// publishEvery is the least time from one write to the next: in a surge the journal commits a thousand times a second, and who reads
	// the projection cannot tell.
	publishEvery = 20 * time.Millisecond
)

func (p *publisher) add(b projection.Batch) {
	if p.r.e.o.Shared == nil {
		return
	}
	p.mu.Lock()
	p.waiting = append(p.waiting, b)
	if p.lag.Add(int64(len(b.Events))) > publishBacklog {
		p.waiting, p.fresh = nil, true
	}
	p.mu.Unlock()
	p.hint()
}

// run publishes until ctx ends.
func (p *publisher) run(ctx context.Context) {
	if p.r.e.o.Shared == nil {
		return
	}
	retry := retryMin
	check := time.NewTicker(time.Second)
	defer check.Stop()
	for {
		idle := false
		select {
		case <-ctx.Done():
			return
		case <-p.arrive:
		case <-check.C:
			idle = true
		}
		if p.r.current() != owned {
			continue
		}
		if idle {
			p.verify(ctx)
		}
		for ctx.Err() == nil {
			began := time.Now()
			done, err := p.step(ctx)
			if err == nil {
				retry = retryMin
				if done {
					break
				}
				pause(ctx, publishEvery-time.Since(began))
				continue
			}
			if errors.Is(err, projection.ErrStale) && !p.foreign(ctx) {
				break // a newer owner writes; the renewal will tell the actor
			}
			p.r.e.metrics.publishFailures.Inc()
			p.anew()
			pause(ctx, retry)
			if retry = min(2*retry, retryMax); p.r.current() != owned {
				break
			}
		}
	}
}

// last publishes what the room's last batch left, after run has ended; what it does not manage the next owner will.
func (p *publisher) last() {
	if p.r.e.o.Shared == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callerWait)
	defer cancel()
	for {
		if done, err := p.step(ctx); done || err != nil {
			return
		}
	}
}

// foreign tells whether what refuses this owner as stale is of another history, as after the journal was restored from a backup,
// and lets go of it then.
func (p *publisher) foreign(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callerWait)
	defer cancel()
	foreign, err := projection.Reclaim(ctx, p.r.e.o.Shared, p.r.stream, func(ctx context.Context) (int64, error) {
		head, err := p.r.e.o.Journal.Head(ctx, p.r.stream)
		return head.Epoch, err
	})
	if err != nil {
		p.r.log.Warn("the shared projection refuses this owner, and it cannot be told why", "error", err)
		return false
	}
	if foreign {
		p.r.log.Warn("the shared projection is of another history than the journal; it is written anew")
	}
	return foreign
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// verify looks whether the projection still stands where this publisher left it: a store that was emptied or restored from a
// backup says nothing by itself.
func (p *publisher) verify(ctx context.Context) {
	p.mu.Lock()
	idle, epoch := len(p.waiting) == 0 && !p.fresh, p.epoch
	p.mu.Unlock()
	if !idle {
		return
	}
	var seq int64
	if err := p.r.e.live.With(p.r.stream, func(_, at int64, _ *room.State) error { seq = at; return nil }); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callerWait)
	defer cancel()
	at, err := p.r.e.o.Shared.Position(ctx, p.r.stream)
	if err == nil && at.Epoch <= epoch && (at.Incarnation == "" || at.Seq < seq && p.lag.Load() == 0) {
		p.r.log.Warn("the shared projection has lost the room; it is written anew", "seq", seq, "found", at.Seq)
		p.anew()
	}
}

func (p *publisher) anew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting, p.fresh = nil, true
}

// step publishes what waits, in one write. The durable state is read under the view's lock; what is sent goes after it.
func (p *publisher) step(ctx context.Context) (done bool, err error) {
	var write projection.Write
	err = p.r.e.live.With(p.r.stream, func(_, seq int64, s *room.State) error {
		fresh, events, after, epoch := p.take(seq)
		switch {
		case fresh:
			write = p.r.e.shared.PrepareReset(p.r.stream, epoch, seq, s)
		case len(events) > 0:
			write = p.r.e.shared.Prepare(projection.Batch{Room: p.r.stream, Epoch: epoch, After: after, Events: events, State: s})
		}
		return nil
	})
	if err != nil || write == nil {
		return true, nil // nothing waits, or the room has gone from this process
	}
	ctx, cancel := context.WithTimeout(ctx, publishWait)
	defer cancel()
	if err := write.Send(ctx); err != nil {
		return false, err
	}
	p.settle()
	return false, nil
}

// take takes the waiting events up to seq, where the live view stands; add comes before the view's Apply, so none is missing.
func (p *publisher) take(seq int64) (fresh bool, events []room.Event, after, epoch int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh, p.fresh = p.fresh, false
	for len(p.waiting) > 0 && p.waiting[0].Last() <= seq {
		if events == nil {
			after = p.waiting[0].After
		}
		events = append(events, p.waiting[0].Events...)
		p.waiting = p.waiting[1:]
	}
	return fresh, events, after, p.epoch
}

// settle counts what is not published.
func (p *publisher) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := int64(0)
	for _, b := range p.waiting {
		left += int64(len(b.Events))
	}
	p.lag.Store(left)
}

// eager makes a Preparer of a store that does no I/O: it writes while the state is held still.
type eager struct{ store projection.Store }

type written struct{ err error }

func (w written) Send(context.Context) error { return w.err }

func (s eager) Prepare(b projection.Batch) projection.Write {
	return written{s.store.Apply(context.Background(), b)}
}

func (s eager) PrepareReset(stream string, epoch, seq int64, st *room.State) projection.Write {
	return written{s.store.Reset(context.Background(), stream, epoch, seq, st)}
}
