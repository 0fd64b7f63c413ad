package engine

import (
	"time"

	"qm/engine/room"
)

// Seen notes that the ticket's holder was here (a join, a status, a stream's heartbeat).
func (e *Engine) Seen(roomID string, n room.Ticket) {
	r := e.known(roomID)
	switch {
	case r == nil || n == 0:
	case r.current() == elsewhere:
		r.away.add(&r.away.tickets, n)
	default:
		r.presence.mark(n, room.Instant(e.o.Now().UnixMilli()))
	}
}

// SeenDoor notes that a door session was used.
func (e *Engine) SeenDoor(roomID string, n room.Ticket) {
	r := e.known(roomID)
	switch {
	case r == nil:
	case r.current() == elsewhere:
		r.away.add(&r.away.doors, n)
	default:
		r.presence.markDoor(n, room.Instant(e.o.Now().UnixMilli()))
	}
}

// DoorOpen tells whether a door session still stands at now: used within sessionTtlSec, as far as this process knows, and younger
// than sessionMaxSec. After a start no session lapses for one sessionTtlSec (architecture.md, The core).
func (e *Engine) DoorOpen(roomID string, s *room.Summary, p room.Place, now time.Time) bool {
	if p.Status != room.Inside {
		return false
	}
	at := room.Instant(now.UnixMilli())
	if at > p.EnteredAt+room.Instant(s.Settings.SessionMaxSec)*1000 {
		return false
	}
	seen := p.SeenAt
	if r := e.known(roomID); r != nil {
		seen = max(seen, r.presence.Since(), r.presence.doorSeen(p.Ticket))
	}
	return at <= seen+room.Instant(s.Settings.SessionTTLSec)*1000
}

func (e *Engine) known(roomID string) *runner {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.rooms[roomID]
}
