package httpapi

import (
	"context"
	"errors"
	"time"

	"qm/access/token"
	"qm/engine/room"
	"qm/notify"
	"qm/projection"
)

// frame is what a visitor is told about a place: the answer of status and join, a stream's frame, the page's first paint.
type frame struct {
	sum     room.Summary
	place   room.Place
	visitor token.Visitor // what the token names
	wanted  string        // where the visitor asked to be brought back to, as the request says it; "" for nowhere

	gone    string // why the place is none any more: "expired", "reset", "room_reset", "left"; "" while it is one
	passed  bool
	bypass  bool   // passed because the queue is off: no ticket, no slot, no hand-over code
	unseen  bool   // the token lies beyond this process's view: the figures are an estimate
	door    string // where to go, when passed
	token   string // a token that the browser should hold instead of the one it showed; "" for none
	ref     string // the short code that names the place to the help desk; told with each token that the owner is given, and to nobody else
	stated  bool   // what is held against the place for a turn notification is known, and told is it
	told    *notify.Statement
	leftSec int64 // what is left of the entry window, when passed; 0: not said
}

// A token beyond the view of this process is waited for, but not for long (architecture.md, The actor).
const (
	unseenWait  = 500 * time.Millisecond
	unseenAgain = 20 * time.Millisecond
)

// look finds out what has become of the place that a genuine token names.
func (s *Server) look(ctx context.Context, f *frame, v token.Visitor, now time.Time) error {
	err := s.glance(ctx, f, v, now)
	if err != nil || !f.unseen {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, unseenWait)
	defer stop()
	again := time.NewTicker(unseenAgain)
	defer again.Stop()
	for f.unseen {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		if err := s.glance(ctx, f, v, now); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// glance is look without patience.
func (s *Server) glance(ctx context.Context, f *frame, v token.Visitor, now time.Time) error {
	view, err := s.o.Engine.View(ctx, v.Room)
	if err != nil {
		return err
	}
	f.visitor = v
	switch {
	case v.Bypass():
		f.sum, _, err = view.Summary(ctx)
	case v.PreQueued():
		f.sum, f.place, err = view.Handle(ctx, room.Handle(v.Handle))
	default:
		f.sum, f.place, err = view.Ticket(ctx, room.Ticket(v.Ticket))
	}
	if err != nil {
		return err
	}
	return s.judge(f, now)
}

// judge says what a place comes to at now. Expiry is judged by time when reading (architecture.md, The core).
func (s *Server) judge(f *frame, now time.Time) error {
	v, sum, p := f.visitor, &f.sum, &f.place
	at := room.Instant(now.UnixMilli())
	f.gone, f.passed, f.bypass, f.unseen, f.leftSec = "", false, false, false, 0
	switch {
	case !sum.Exists:
		return projection.ErrNoRoom
	case v.Generation < sum.Generation:
		f.gone = "room_reset"
		return nil
	case v.Generation > sum.Generation, room.Ticket(v.Ticket) > sum.LastTicket, room.Handle(v.Handle) > sum.LastHandle:
		f.unseen = true
		return nil
	case v.Bypass():
		until := room.Instant(v.IssuedAt + sum.Settings.PassedTTLSec*1000)
		if sum.Mode != room.Bypass && at >= until {
			return errNoToken // contract.md 18
		}
		f.passed, f.bypass, f.leftSec = true, true, secondsTo(until, at)
		return nil
	}
	switch p.Status {
	case room.Waiting, room.Enqueued:
		f.passed, f.bypass = sum.Mode == room.Bypass, sum.Mode == room.Bypass
	case room.Passed:
		if p.Expired(sum.Settings, at) {
			f.gone = "expired"
			return nil
		}
		f.passed, f.leftSec = true, secondsTo(p.PassedAt+room.Instant(sum.Settings.PassedTTLSec*1000), at)
	case room.Inside:
		if !s.o.Engine.DoorOpen(v.Room, sum, *p, now) {
			f.gone = "expired"
			return nil
		}
		f.passed = true
	case room.Expired:
		f.gone = "expired"
	case room.Left:
		f.gone = "left"
	default: // Reset; and None, which a genuine token of this generation can only name after our own doing
		f.gone = "reset"
	}
	return nil
}

func secondsTo(until, at room.Instant) int64 { return max(int64(until-at+999)/1000, 0) }

// errNoToken: a genuine token that has stopped being one.
var errNoToken = refuse("invalid_token")

// ticket is the ticket that the frame is about, 0 for none.
func (f *frame) ticket() room.Ticket {
	if f.gone != "" || f.unseen {
		return 0
	}
	return f.place.Ticket
}

// owned finds which of the browser's sessions owns the place; "" for none.
func (s *Server) owned(ctx context.Context, f *frame, sessions []string) (string, error) {
	for _, session := range sessions {
		ok, err := s.o.Engine.Owns(ctx, f.visitor.Room, session, f.place)
		if err != nil {
			return "", err
		}
		if ok {
			return session, nil
		}
	}
	return "", nil
}

// finish adds what depends on whose browser asks: the door with a fresh hand-over code, the token of the ticket that a pre-queue
// entry was drawn as, and, for a place whose token has grown old, the same place signed anew (seed 004, QM-391; refresh says
// whether that may be). It returns the session that owns the place, "" when none of them does or nobody needed to know.
func (s *Server) finish(ctx context.Context, f *frame, sessions []string, now time.Time, refresh bool) (session string, err error) {
	drawn := f.gone == "" && f.visitor.PreQueued() && f.place.Ticket != 0
	due := refresh && f.waits() && f.visitor.RefreshDue(s.refreshAfter, now)
	if !f.passed && !drawn && !due {
		return "", nil
	}
	if !f.bypass || drawn {
		if session, err = s.owned(ctx, f, sessions); err != nil && !errors.Is(err, projection.ErrNoRoom) {
			return "", err
		}
	}
	switch {
	case drawn:
		v := token.Visitor{Room: f.visitor.Room, Ticket: uint32(f.place.Ticket), Generation: f.sum.Generation, IssuedAt: f.visitor.IssuedAt}
		if session != "" {
			v.IssuedAt = now.UnixMilli()
		}
		f.token = s.o.Keys.SignVisitor(v)
		if session != "" {
			f.ref = s.o.Keys.ShortCode(v)
		}
	case due && session != "":
		f.visitor.IssuedAt = now.UnixMilli()
		f.token, f.ref = s.o.Keys.SignVisitor(f.visitor), s.o.Keys.ShortCode(f.visitor)
	}
	if f.passed {
		f.door = s.doorURL(f, session != "", now)
	}
	return session, nil
}

// holds is the place as a token would name it: the ticket, once an entry was drawn.
func (f *frame) holds() token.Visitor {
	v := f.visitor
	if v.PreQueued() && f.place.Ticket != 0 {
		v.Handle, v.Ticket = 0, uint32(f.place.Ticket)
	}
	return v
}

// waits reports a place that is still waited for, in line or in the pre-queue: the only kind whose token is signed anew.
func (f *frame) waits() bool { return f.gone == "" && !f.passed && !f.unseen }

// doorURL is where the visitor is sent: the page that they wanted, where the room's return policy lets it, or else the room's
// target, with a single-use code for the browser that owns the pass (contract.md 19). Never anything that could be used a second time.
func (s *Server) doorURL(f *frame, owner bool, now time.Time) string {
	target := returnURL(f.sum.Settings, f.wanted)
	if target == "" {
		target = f.sum.Settings.TargetURL
	}
	if !owner || f.bypass || f.place.Ticket == 0 {
		return target
	}
	return withCode(target, s.o.Keys.SignCode(token.Code{
		Room: f.visitor.Room, Ticket: uint32(f.place.Ticket), Generation: f.sum.Generation, IssuedAt: now.UnixMilli(),
	}))
}

// stateOf is the room's state on the visitor's wire.
func stateOf(sum *room.Summary) string {
	if sum.Mode != room.Bypass && sum.Scheduled() {
		return "scheduled"
	}
	return string(sum.Mode)
}

// full reports whether everyone waits for a slot.
func full(sum *room.Summary) bool {
	limit := sum.Settings.MaxConcurrent
	return limit != nil && int64(sum.Slots) >= *limit
}

// append appends the frame as JSON: the shape of seed 004's status, with nothing about anybody else (contract.md 11).
func (f *frame) append(b []byte, now time.Time) []byte {
	if f.gone != "" {
		b = append(b, `{"expired":true,"reason":"`...)
		b = append(b, f.gone...)
		return append(b, `"}`...)
	}
	sum, p := &f.sum, &f.place
	at := room.Instant(now.UnixMilli())
	b = append(b, `{"state":"`...)
	b = append(b, stateOf(sum)...)
	b = append(b, '"')
	instants := false // a server instant is named, and so now has to be beside it
	switch {
	case f.passed:
		b = append(b, `,"position":0,"ahead":0,"etaSec":0,"passed":true`...)
		b = appendText(b, "redirectUrl", f.door)
		if f.leftSec > 0 {
			b = appendInt(b, "expiresInSec", f.leftSec)
		}
	case p.Status == room.Enqueued || f.unseen && f.visitor.PreQueued():
		b = append(b, `,"position":null,"ahead":null,"etaSec":null,"passed":false,"scheduled":true,"preQueued":true`...)
		b = appendInt(b, "preCount", int64(sum.PreQueue))
		b = appendInstant(b, "opensAt", sum.OpensAt)
		instants = true
	default:
		ahead := p.Ahead
		if f.unseen {
			ahead = sum.Waiting
		}
		b = appendInt(b, "position", int64(ahead)+1)
		b = appendInt(b, "ahead", int64(ahead))
		eta, ok := sum.ETA(ahead, at)
		b = appendIntOr(b, "etaSec", eta, ok && !p.Held)
		b = append(b, `,"passed":false`...)
		if p.Held {
			b = append(b, `,"held":true`...)
		}
		if full(sum) {
			b = append(b, `,"full":true`...)
		}
		if f.unseen {
			b = append(b, `,"estimated":true`...)
		}
		if sum.Scheduled() {
			b = append(b, `,"scheduled":true,"preQueued":false`...)
			b = appendInt(b, "preCount", int64(sum.PreQueue))
			b = appendInstant(b, "opensAt", sum.OpensAt)
			instants = true
		}
	}
	if brand := &sum.Settings.Branding; brand.MessageAt != 0 {
		if brand.Message == "" {
			b = append(b, `,"message":null`...)
		} else {
			b = appendText(b, "message", brand.Message)
		}
		b = appendInstant(b, "messageAt", brand.MessageAt)
		instants = true
	}
	if f.stated {
		b = appendStatement(append(b, `,"notify":`...), f.told)
		instants = instants || f.told != nil
	}
	if instants {
		b = appendInt(b, "now", int64(at))
	}
	if f.token != "" {
		b = appendText(b, "token", f.token)
	}
	if f.ref != "" {
		b = appendText(b, "ref", f.ref)
	}
	return append(b, '}')
}
