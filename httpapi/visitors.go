package httpapi

import (
	"context"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"qm/access/token"
	"qm/engine/room"
	"qm/journal"
	"qm/projection"
	"qm/replay"
)

// maxStory is how many events of a story are told. Only a door session that was renewed for days has more.
const maxStory = 500

// visitors finds a visitor for the help desk, by ticket, by pre-queue handle, or by the short code that their page shows (seed 004, GET
// /api/admin/rooms/:id/visitors). A code that names several places is answered with these, never with a guess. Of the visitor nothing
// is told but digests, which cannot be turned back.
func (s *Server) visitors(x *exchange) error {
	if err := s.named(x); err != nil {
		return err
	}
	asked, err := x.lookup()
	if err != nil {
		return err
	}
	view, err := s.o.Engine.View(x.r.Context(), x.id)
	if err != nil {
		return err
	}
	sum, _, err := view.Summary(x.r.Context())
	if err != nil {
		return err
	}
	if !sum.Exists {
		return projection.ErrNoRoom
	}
	named := []token.Visitor{{Room: x.id, Generation: sum.Generation, Ticket: asked.ticket, Handle: asked.handle}}
	if asked.ref != "" {
		named = s.o.Keys.ShortCodePlaces(asked.ref, x.id, sum.Generation)
	}
	var found []located
	for _, v := range named {
		l := located{visitor: v}
		if v.PreQueued() {
			l.sum, l.place, err = view.Handle(x.r.Context(), room.Handle(v.Handle))
		} else {
			l.sum, l.place, err = view.Ticket(x.r.Context(), room.Ticket(v.Ticket))
		}
		if err != nil {
			return err
		}
		if l.place.Status != room.None && l.place.Generation == v.Generation {
			found = append(found, l)
		}
	}
	b := append(x.buf[:0], `{"roomId":`...)
	b = appendString(b, x.id)
	switch len(found) {
	case 0:
		return refuse("visitor_not_found")
	case 1:
		b = s.appendLocated(b, x, &found[0])
		b = s.appendStory(b, x, found[0].visitor)
	default:
		b = append(b, `,"ambiguous":true,"candidates":[`...)
		for i := range found {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"roomId":`...)
			b = appendString(b, x.id)
			b = append(s.appendLocated(b, x, &found[i]), '}')
		}
		b = append(b, ']')
	}
	b = appendInt(b, "now", x.ms())
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// lookup is what a visitor is looked for by: one of the three.
type lookup struct {
	ticket, handle uint32
	ref            string
}

func (x *exchange) lookup() (l lookup, err error) {
	given := 0
	for _, name := range []string{"ticket", "handle", "ref"} {
		_, ok, err := x.query(name)
		if err != nil {
			return l, err
		}
		if ok {
			given++
		}
	}
	if given != 1 {
		return l, refuse("invalid_lookup")
	}
	ticket, err := x.number("ticket", "invalid_ticket", 0, 1, 1<<32-1)
	if err != nil {
		return l, err
	}
	handle, err := x.number("handle", "invalid_handle", 0, 1, 1<<32-1)
	if err != nil {
		return l, err
	}
	l.ticket, l.handle = uint32(ticket), uint32(handle)
	l.ref, _, _ = x.query("ref")
	if ticket == 0 && handle == 0 && strings.TrimSpace(l.ref) == "" {
		return l, refuseField("invalid_ref", "ref", "")
	}
	return l, nil
}

// located is a visitor that was found.
type located struct {
	visitor token.Visitor
	sum     room.Summary
	place   room.Place
}

// appendLocated appends the members that say where a visitor stands at the time of the exchange.
func (s *Server) appendLocated(b []byte, x *exchange, l *located) []byte {
	sum, p := &l.sum, &l.place
	at := room.Instant(x.ms())
	open := p.Status == room.Inside && s.o.Engine.DoorOpen(x.id, sum, *p, x.now)
	state := placeState(p)
	if p.Expired(sum.Settings, at) || p.Status == room.Inside && !open {
		state = "expired"
	}
	v := l.visitor
	if p.Ticket != 0 {
		v.Ticket, v.Handle = uint32(p.Ticket), 0
	}
	b = appendInt(b, "generation", int64(p.Generation))
	b = appendIntOr(b, "ticket", int64(p.Ticket), p.Ticket != 0)
	b = appendIntOr(b, "handle", int64(p.Handle), p.Handle != 0)
	b = appendText(b, "ref", s.o.Keys.ShortCode(v))
	b = appendText(b, "state", state)
	waits := p.Status == room.Waiting
	b = appendIntOr(b, "position", int64(p.Ahead)+1, waits)
	b = appendIntOr(b, "ahead", int64(p.Ahead), waits)
	eta, ok := sum.ETA(p.Ahead, at)
	b = appendIntOr(b, "etaSec", eta, waits && ok && !p.Held)
	b = appendInstant(b, "opensAt", sum.OpensAt)
	b = appendInstant(b, "joinedAt", p.JoinedAt)
	b = appendInstant(b, "passedAt", p.PassedAt)
	b = appendBool(b, "slot", p.Slot)
	set := sum.Settings
	b = appendIntOr(b, "passExpiresInSec", secondsTo(p.PassedAt+room.Instant(set.PassedTTLSec)*1000, at), p.Status == room.Passed)
	b = appendMember(b, "session")
	if p.Status != room.Inside {
		b = append(b, "null"...)
	} else {
		b = append(b, `{"open":`...)
		b = append(b, map[bool]string{true: "true", false: "false"}[open]...)
		b = appendInstant(b, "enteredAt", p.EnteredAt)
		b = appendInstant(b, "seenAt", p.SeenAt) // as the journal has it: at most so long ago
		b = appendInt(b, "idleLimitSec", set.SessionTTLSec)
		b = appendInt(b, "endsInSec", secondsTo(p.EnteredAt+room.Instant(set.SessionMaxSec)*1000, at))
		b = append(b, '}')
	}
	b = appendMember(b, "binding")
	if p.Holder == (room.Holder{}) {
		b = append(b, "null"...)
	} else {
		b = append(b, `{"browser":`...)
		b = appendString(b, hex.EncodeToString(p.Holder[:]))
		b = appendMember(b, "door")
		if p.Door == (room.Holder{}) {
			b = append(b, "null"...)
		} else {
			b = appendString(b, hex.EncodeToString(p.Door[:]))
		}
		b = append(b, '}')
	}
	return b
}

func placeState(p *room.Place) string {
	switch p.Status {
	case room.Waiting:
		if p.Held {
			return "held"
		}
		return "waiting"
	case room.Enqueued:
		return "enqueued"
	case room.Passed:
		return "passed"
	case room.Inside:
		return "inside"
	case room.Expired:
		return "expired"
	case room.Left:
		return "left"
	}
	return "reset"
}

// appendStory appends what the journal says of a place of the present generation, in words. truncated: it says more.
func (s *Server) appendStory(b []byte, x *exchange, v token.Visitor) []byte {
	b = append(b, `,"story":[`...)
	n := 0
	o := replay.StoryOptions{Ticket: room.Ticket(v.Ticket), Handle: room.Handle(v.Handle)}
	whole := s.narrate(x.r.Context(), x.id, o, func(e replay.Told) error {
		if e.Generation != v.Generation {
			return nil
		}
		if n == maxStory {
			return errEnough
		}
		if n > 0 {
			b = append(b, ',')
		}
		n++
		b = append(b, `{"at":`...)
		b = appendString(b, e.At.Format("2006-01-02T15:04:05.000000Z"))
		b = appendInt(b, "seq", e.Seq)
		b = appendText(b, "kind", e.Kind)
		b = appendText(b, "actor", e.Actor)
		b = appendText(b, "text", e.Text)
		b = append(b, '}')
		return nil
	})
	b = append(b, ']')
	return appendBool(b, "truncated", !whole)
}

// narrate puts a room's journal in words, from its first event on, since what an event meant follows from those before it. Such a fold costs as
// much as the room is old, so one is told at a time, for at most Server.storyTime, and what is not told by then is left out:
// whole is false then, as it is after an error of fn, and where the journal cannot be read.
func (s *Server) narrate(ctx context.Context, id string, o replay.StoryOptions, fn func(replay.Told) error) (whole bool) {
	ctx, stop := context.WithTimeout(ctx, s.storyTime)
	defer stop()
	select {
	case s.telling <- struct{}{}:
		defer func() { <-s.telling }()
	case <-ctx.Done():
		return false
	}
	report, _, err := replay.Tell(func(each func(*journal.Record) error) error {
		return s.o.Engine.Read(ctx, id, 0, func(r *journal.Record) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return each(r)
		})
	}, o, fn)
	gaveUp := func(r replay.RoomReport) bool { return r.Gave } // of a journal with too much wrong
	return err == nil && !slices.ContainsFunc(report.Rooms, gaveUp)
}
