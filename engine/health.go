package engine

import (
	"sync/atomic"
	"time"
)

// RoomHealth is how one room does in this process.
type RoomHealth struct {
	Room    string
	Owned   bool
	Damaged string // what is wrong with the journal; "" when nothing
	Lag     int64  // events that the shared projection is behind
}

// Health is what readiness rests on.
type Health struct {
	Ready      bool   // joins can be made durable, and the shared projection (if any) can be reached
	JournalErr string // why the journal cannot be reached; "" when it can
	SharedErr  string // the same of the shared projection
	Rooms      []RoomHealth
}

// Health tells how the engine does, without waiting for I/O.
func (e *Engine) Health() Health {
	var h Health
	e.mu.Lock()
	switch {
	case e.listErr != nil:
		h.JournalErr = e.listErr.Error()
	case e.listedAt.IsZero():
		h.JournalErr = "not looked at yet"
	case e.o.Now().Sub(e.listedAt) > 2*callerWait:
		h.JournalErr = "does not answer"
	}
	if e.pingErr != nil {
		h.SharedErr = e.pingErr.Error()
	}
	e.mu.Unlock()
	for _, r := range e.runners() {
		r.mu.Lock()
		one := RoomHealth{Room: r.id, Owned: r.phase == owned, Damaged: r.damaged}
		if r.phase == stranded && h.JournalErr == "" {
			h.JournalErr = "room " + r.id + " has lost its journal"
		}
		if h.JournalErr == "" && r.unwritten.recently(e.monotonic()) {
			h.JournalErr = "room " + r.id + " could not be written to"
		}
		r.mu.Unlock()
		one.Lag = r.publisher.lag.Load()
		h.Rooms = append(h.Rooms, one)
	}
	h.Ready = h.JournalErr == "" && h.SharedErr == ""
	return h
}

// Serves reports whether this process owns a room now and works on it.
func (e *Engine) Serves(roomID string) bool {
	r := e.known(roomID)
	return r != nil && r.current() == owned
}

// unwritten is when an append failed and none has succeeded since, as 1 + the engine's monotonic clock; 0 when none did. A journal that
// can be read and not written, such as one whose disk is full, shows nowhere else.
type unwritten struct{ since atomic.Int64 }

// unwrittenFor is how long a failed append counts. After that it takes another try to know, and whoever is told to stay away cannot try.
const unwrittenFor = 5 * time.Second

func (u *unwritten) failed(now time.Duration) { u.since.Store(1 + int64(now)) }

func (u *unwritten) mended() {
	if u.since.Load() != 0 {
		u.since.Store(0)
	}
}

func (u *unwritten) recently(now time.Duration) bool {
	since := u.since.Load()
	return since != 0 && int64(now)-since < int64(unwrittenFor)
}
