package engine

import (
	"context"
	"time"

	"qm/journal"
)

// A lease lasts leaseTTL on the journal's clock and is renewed every leaseRenew. This process trusts it until leaseTrust after
// the start of the attempt that renewed it, on its own monotonic clock: before the journal's clock can have let it run out
// (architecture.md, The actor). The fence does not rest on this: the epoch is checked in every append.
const (
	leaseTTL   = 8 * time.Second
	leaseRenew = 2 * time.Second
	leaseTrust = 7 * time.Second
	renewWait  = 2 * time.Second // for one renewal, so that one that hangs leaves time for others
)

func (e *Engine) monotonic() time.Duration { return time.Since(e.began) }

func (r *runner) trust(attempt time.Duration) { r.trustedUntil.Store(int64(attempt + leaseTrust)) }

func (r *runner) trusted() bool { return int64(r.e.monotonic()) < r.trustedUntil.Load() }

func (r *runner) hold(l journal.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease = l
}

// renewLeases renews every lease that this process holds, in one call, and fences the rooms whose lease is another's.
func (e *Engine) renewLeases(ctx context.Context) error {
	held := make(map[string]*runner)
	var leases []journal.Lease
	for _, r := range e.runners() {
		r.mu.Lock()
		if r.lease.Stream != "" {
			held[r.stream] = r
			leases = append(leases, r.lease)
		}
		r.mu.Unlock()
	}
	if len(leases) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, renewWait)
	defer cancel()
	attempt := e.monotonic()
	lost, err := e.o.Journal.Renew(ctx, leases, leaseTTL)
	if err != nil {
		return err
	}
	for _, stream := range lost {
		r := held[stream]
		delete(held, stream)
		select {
		case r.fenced <- struct{}{}:
		default:
		}
	}
	for _, r := range held {
		r.trust(attempt)
	}
	return nil
}
