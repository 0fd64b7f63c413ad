package engine

import (
	"sync"
	"time"

	"qm/engine/room"
)

// request is a command on its way through the actor, and what it came to.
type request struct {
	cmd    room.Command
	build  func(*room.Summary) (room.Command, error) // makes cmd of the room as it stands at the decision; nil: cmd is given
	actor  string
	cause  string // "": the actor deals one
	sent   time.Time
	answer Answer      // the actor's until it replies, then the caller's
	reply  chan result // buffered: the actor never waits for a caller who has gone
}

// newRequests pools requests, each with its channel, but only those whose reply was received: nobody else has them any more. One pool an
// engine: a channel belongs to the bubble of testing/synctest that made it.
func newRequests() *sync.Pool {
	return &sync.Pool{New: func() any { return &request{reply: make(chan result, 1)} }}
}

func (r *request) command(s *room.State) (room.Command, error) {
	if r.build == nil {
		return r.cmd, nil
	}
	summary := s.Summary()
	return r.build(&summary)
}

// result says that a request's answer is there, or why it has none.
type result struct{ err error }

const (
	mailboxSize     = 16384 // visitors' commands waiting; beyond that they are refused at once
	mailboxReserved = 1024  // more room for operators, so that a surge cannot lock them out
)

// mailbox is where a room's commands wait: a slice that the actor takes whole. It outlives actors.
type mailbox struct {
	mu      sync.Mutex
	waiting []*request
	arrived chan struct{} // one pending at most
}

func newMailbox() *mailbox { return &mailbox{arrived: make(chan struct{}, 1)} }

// put adds a request, or says that the mailbox is full.
func (m *mailbox) put(r *request, reserved bool) bool {
	limit := mailboxSize
	if reserved {
		limit += mailboxReserved
	}
	m.mu.Lock()
	if len(m.waiting) >= limit {
		m.mu.Unlock()
		return false
	}
	m.waiting = append(m.waiting, r)
	m.mu.Unlock()
	select {
	case m.arrived <- struct{}{}:
	default:
	}
	return true
}

// take swaps the waiting requests for an empty slice.
func (m *mailbox) take(empty []*request) []*request {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.waiting
	m.waiting = empty[:0]
	return taken
}

func (m *mailbox) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting)
}

// refuse answers everything that waits with err.
func (m *mailbox) refuse(err error) {
	for _, r := range m.take(nil) {
		r.reply <- result{err: err}
	}
}
