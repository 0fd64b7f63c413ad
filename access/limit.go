package access

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	limitShards = 16
	// shardClients bounds the memory of a limiter: 131,072 clients, some 5 MB.
	shardClients = 8192
	// limitWindow is what a limit "per minute" may be used up in, and what it
	// takes to earn all of it again.
	limitWindow = time.Minute
)

// Limiter bounds what each client may do in a minute. A client may use its
// minute's allowance at once and then earns it back evenly, one every
// 60 s / perMinute (GCRA). Its memory is fixed and it needs no clean-up: a
// client that earned everything back is as good as forgotten, and when more
// clients than fit are about, those who owe least are forgotten first. It is
// safe for concurrent use.
type Limiter struct {
	interval int64 // ns that one costs; 0 for no limit
	seed     maphash.Seed
	shards   [limitShards]limitShard
}

type limitShard struct {
	mu sync.Mutex
	// paidUp says when each client will have earned back all that it used (ns
	// since 1970, GCRA's theoretical arrival time).
	paidUp map[Network]int64
}

// NewLimiter allows perMinute to each client; 0 or less is no limit
// (contract.md, JOIN_LIMIT_PER_MIN and its like).
func NewLimiter(perMinute int) *Limiter {
	l := &Limiter{seed: maphash.MakeSeed()}
	if perMinute > 0 {
		l.interval = max(1, int64(limitWindow)/int64(perMinute))
		for i := range l.shards {
			l.shards[i].paidUp = make(map[Network]int64)
		}
	}
	return l
}

// Allow takes one from the client's allowance. Where nothing is left it takes
// nothing, and says after how long one will have been earned.
func (l *Limiter) Allow(client Network, now time.Time) (ok bool, retryAfter time.Duration) {
	return l.take(client, now, true)
}

// Peek is Allow without taking.
func (l *Limiter) Peek(client Network, now time.Time) (ok bool, retryAfter time.Duration) {
	return l.take(client, now, false)
}

func (l *Limiter) take(client Network, now time.Time, keep bool) (bool, time.Duration) {
	if l.interval == 0 {
		return true, 0
	}
	at := now.UnixNano()
	s := &l.shards[maphash.Comparable(l.seed, client)%limitShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.paidUp[client]
	if ahead := at + int64(limitWindow); was > ahead {
		// The clock was set back: nobody owes more than a window for it.
		was = ahead
		s.paidUp[client] = ahead
	}
	paidUp := max(was, at)
	if wait := paidUp + l.interval - at - int64(limitWindow); wait > 0 {
		return false, time.Duration(wait)
	}
	if keep {
		if !known {
			s.makeRoom(at)
		}
		s.paidUp[client] = paidUp + l.interval
	}
	return true, 0
}

// makeRoom forgets the clients among a few that owe nothing, which keeps the
// table near the number of active ones, and, where the table is full, the one
// among them that owes least. Map iteration starts at a random place.
func (s *limitShard) makeRoom(now int64) {
	var least Network
	var leastPaidUp int64
	seen := 0
	for client, paidUp := range s.paidUp {
		if paidUp <= now {
			delete(s.paidUp, client)
		} else if leastPaidUp == 0 || paidUp < leastPaidUp {
			least, leastPaidUp = client, paidUp
		}
		if seen++; seen == 4 {
			break
		}
	}
	if len(s.paidUp) >= shardClients {
		delete(s.paidUp, least)
	}
}

// clients is how many clients are remembered.
func (l *Limiter) clients() (n int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.paidUp)
		s.mu.Unlock()
	}
	return n
}
