package engine

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"qm/engine/room"
)

// arrivals counts who comes to a room that queues nobody: in bypass a join leaves no event, so this is the process's own observation. A client
// counts once until it has not come for arrivalForgets.
type arrivals struct {
	mu      sync.Mutex
	seed    maphash.Seed
	recent  map[uint64]struct{} // since turned
	earlier map[uint64]struct{} // in the time before that
	turned  time.Time
	buckets [arrivalBuckets]int64
	newest  int64
}

const (
	arrivalForgets = 10 * time.Minute
	arrivalBucket  = 10 * time.Second
	arrivalBuckets = 6 // a minute
	arrivalsKept   = 1_000_000
)

// came counts a client, at most once.
func (a *arrivals) came(network netip.Prefix, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recent == nil {
		a.seed, a.recent, a.turned = maphash.MakeSeed(), make(map[uint64]struct{}), now
	}
	if age := now.Sub(a.turned); age >= arrivalForgets {
		a.earlier, a.recent, a.turned = a.recent, make(map[uint64]struct{}), now
		if age >= 2*arrivalForgets {
			a.earlier = nil
		}
	}
	key := maphash.Comparable(a.seed, network)
	_, again := a.recent[key]
	if !again {
		_, again = a.earlier[key]
	}
	if len(a.recent) < arrivalsKept {
		a.recent[key] = struct{}{}
	}
	if !again {
		a.buckets[a.advance(now)]++
	}
}

// lastMinute is how many came in the last minute, give or take a bucket of ten seconds.
func (a *arrivals) lastMinute(now time.Time) (n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance(now)
	for _, b := range a.buckets {
		n += b
	}
	return n
}

func (a *arrivals) advance(now time.Time) int {
	b := now.UnixNano() / int64(arrivalBucket)
	for i := max(a.newest+1, b-arrivalBuckets+1); i <= b; i++ {
		a.buckets[i%arrivalBuckets] = 0
	}
	a.newest = max(a.newest, b)
	return int(a.newest % arrivalBuckets)
}

// Arrived notes that a client came to a room in bypass, where nobody takes a place (seed 004, autoActivate). It does nothing for
// a room without that rule.
func (e *Engine) Arrived(roomID string, s *room.Summary, network netip.Prefix) {
	if s.Settings.AutoActivate == nil {
		return
	}
	if r := e.known(roomID); r != nil {
		r.arrivals.came(network, e.o.Now())
	}
}
