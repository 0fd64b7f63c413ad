package turn

import (
	"context"

	"qm/engine/room"
	"qm/notify"
	"qm/projection"
)

// verdict is what a place is to its registration.
type verdict int

const (
	waits  verdict = iota // nothing is owed yet; so is a place that this process's view does not show yet
	near                  // the turn is near
	turn                  // the turn has come
	moved                 // the handle was drawn: the registration belongs to its ticket
	lapsed                // time has ended it; its owner may come back and carry the registration over
	gone                  // the visitor is in or has left, or the operator has discarded the place or ended the room
)

// When a turn is near: fewer people ahead than this, or no longer to wait. The first is when the waiting page asks its visitor to stay at hand.
const (
	nearAhead  = 10
	nearEtaSec = 120
)

// isNear reports whether the turn of a place is near: fewer than ten people are ahead of it, or the wait is at most two minutes. While
// nobody is let in it is not; before the doors open only the wait counts.
func isNear(sum *room.Summary, p *room.Place, now room.Instant) bool {
	if p.Status != room.Waiting || p.Held || sum.Mode != room.Active {
		return false
	}
	sec, known := sum.ETA(p.Ahead, now)
	return known && (sec <= nearEtaSec || p.Ahead < nearAhead && !sum.Scheduled())
}

// judge says what a place comes to at now.
func judge(sum *room.Summary, p *room.Place, at notify.Place, now room.Instant) verdict {
	switch {
	case !sum.Exists, at.Generation < sum.Generation:
		return gone
	case at.Generation > sum.Generation, room.Ticket(at.Ticket) > sum.LastTicket, room.Handle(at.Handle) > sum.LastHandle:
		return waits
	case at.Handle != 0 && p.Ticket != 0:
		return moved
	}
	switch p.Status {
	case room.Waiting, room.Enqueued:
		switch {
		case sum.Mode == room.Bypass:
			return turn
		case isNear(sum, p, now):
			return near
		}
		return waits
	case room.Passed:
		if p.Expired(sum.Settings, now) {
			return lapsed
		}
		return turn
	case room.Expired:
		return lapsed
	}
	return gone
}

// look reads a place.
func look(ctx context.Context, v projection.View, at notify.Place) (room.Summary, room.Place, error) {
	if at.Handle != 0 {
		return v.Handle(ctx, room.Handle(at.Handle))
	}
	return v.Ticket(ctx, room.Ticket(at.Ticket))
}
