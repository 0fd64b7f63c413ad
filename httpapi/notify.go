package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"qm/access/token"
	"qm/engine/room"
	"qm/notify"
	"qm/web"
)

// notifyLimitPerMin is how often a client may set or withdraw an address.
const notifyLimitPerMin = 20

// notify registers the address to which a visitor's turn is mailed, or withdraws it when none is given (seed 004, POST /api/notify). The
// place comes from the body's token or the queue cookie, never the URL, and only the browser that holds it may say.
func (s *Server) notify(x *exchange) error {
	if err := s.allow(x, s.notifies); err != nil {
		return err
	}
	if s.o.Turns == nil {
		return refuse("notifications_disabled")
	}
	body, err := x.object(visitorBody, true)
	if err != nil {
		return err
	}
	v, err := s.shownPlace(x, body)
	if err != nil {
		return err
	}
	email, _, err := body.text("email", "invalid_email")
	if err != nil {
		return err
	}
	address := ""
	if email != "" {
		var ok bool
		if address, ok = notify.ParseAddress(email); !ok {
			return refuseField("invalid_email", "email", "")
		}
	}
	ctx, f := x.r.Context(), &x.frame
	if err := s.look(ctx, f, v, x.now); err != nil {
		return err
	}
	held := sessions(x.r.Header, v.Room)
	switch {
	case f.gone == "room_reset":
		return refuse("stale_ticket")
	case f.gone != "":
		if address != "" {
			return refuse("stale_ticket")
		}
		for _, session := range held { // nothing proves a place that is none any more but who filed the address
			if err := s.o.Turns.Discard(ctx, filedAt(v), session); err != nil {
				return s.unwritten(err)
			}
		}
		return s.answerNotify(x, nil)
	case f.unseen:
		return refuse("storage_unavailable")
	case v.Bypass() || f.passed && address != "":
		return refuse("turn_has_come")
	}
	session, err := s.owned(ctx, f, held)
	if err != nil {
		return err
	}
	if session == "" {
		return refuse("not_your_place")
	}
	place := filedAt(f.holds())
	if was := filedAt(v); was != place {
		if err := s.o.Turns.Carry(ctx, was, place, session); err != nil {
			return s.unwritten(err)
		}
	}
	if address == "" {
		if _, err := s.o.Turns.Withdraw(ctx, place); err != nil {
			return s.unwritten(err)
		}
		return s.answerNotify(x, nil)
	}
	told, err := s.o.Turns.Register(ctx, place, session, address, s.locale(x))
	switch {
	case errors.Is(err, notify.ErrServed):
		return refuse("turn_has_come")
	case errors.Is(err, notify.ErrChanges):
		return refuse("notify_change_limit")
	case errors.Is(err, notify.ErrAddress):
		return refuse("notify_address_limit")
	case err != nil:
		return s.unwritten(err)
	}
	return s.answerNotify(x, &told)
}

// shownPlace is the place that the body's token names, or else the queue cookie of roomId, or of the first room that has a genuine one.
func (s *Server) shownPlace(x *exchange, body object) (token.Visitor, error) {
	text, _, err := body.text("token", "invalid_token_field")
	if err != nil {
		return token.Visitor{}, err
	}
	id, _, err := body.text("roomId", "invalid_room_id")
	if err != nil {
		return token.Visitor{}, err
	}
	if id != "" && !validRoomID(id) {
		return token.Visitor{}, refuseField("invalid_room_id", "roomId", "")
	}
	if v, err := s.o.Keys.VerifyVisitorAnyRoom(text, x.now); err == nil && (id == "" || v.Room == id) {
		return v, nil
	}
	for name, value := range cookies(x.r.Header) {
		room, found := cutPrefix(name, placeCookie)
		if !found || !validRoomID(room) || id != "" && room != id {
			continue
		}
		if v, err := s.o.Keys.VerifyVisitor(value, room, x.now); err == nil {
			return v, nil
		}
	}
	return token.Visitor{}, refuse("invalid_token")
}

func filedAt(v token.Visitor) notify.Place {
	return notify.Place{Room: v.Room, Generation: v.Generation, Ticket: v.Ticket, Handle: v.Handle}
}

// unwritten is a side table that is out of reach: nothing was lost, and asking again may do.
func (s *Server) unwritten(err error) error {
	if _, known := problemOf(err); known {
		return err
	}
	s.o.Log.Warn("a turn notification could not be written", "err", err)
	return refuse("storage_unavailable")
}

func (s *Server) answerNotify(x *exchange, told *notify.Statement) error {
	b := appendStatement(append(x.buf[:0], `{"notify":`...), told)
	b = appendInt(b, "now", x.ms())
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// appendStatement appends what is held against a place; null when nothing is.
func appendStatement(b []byte, told *notify.Statement) []byte {
	if told == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"emailMasked":`...)
	b = appendString(b, told.EmailMasked)
	b = appendInt(b, "requestedAt", told.RequestedAt.UnixMilli())
	b = appendText(b, "delivery", told.Delivery)
	return append(b, '}')
}

// recall states in the frame what is held against the place that session has been given (seed 004, POST /api/join: notify). What was
// filed under a place that this one takes the stead of comes along: the handle it was drawn from, or a ticket that time has ended.
// What an operator has discarded is erased instead. The join stands whatever happens here: then nothing is stated.
func (s *Server) recall(x *exchange, f *frame, shown, session string, fresh bool) {
	if s.o.Turns == nil || f.place.Ticket == 0 && f.place.Handle == 0 {
		return
	}
	ctx, now := x.r.Context(), f.holds()
	var err error
	known := !fresh // nothing can be filed under a place that was given just now, unless something is carried over
	for _, v := range s.formerly(x, shown, now) {
		known = true
		if err = s.bring(ctx, v, now, session); err != nil {
			break
		}
	}
	var told *notify.Statement
	if err == nil && known {
		told, err = s.o.Turns.Told(ctx, filedAt(now))
	}
	if err != nil {
		s.o.Log.Warn("nothing is known of a turn notification", "err", err)
		return
	}
	f.stated, f.told = true, told
}

// formerly are the other places of the room that the request shows tokens of.
func (s *Server) formerly(x *exchange, shown string, now token.Visitor) (list []token.Visitor) {
	add := func(text string) {
		v, err := s.o.Keys.VerifyVisitor(text, now.Room, x.now)
		if err == nil && !v.Bypass() && filedAt(v) != filedAt(now) && len(list) < 4 {
			list = append(list, v)
		}
	}
	add(shown)
	for t := range cookiesOf(x.r.Header, placeCookie, now.Room) {
		add(t)
	}
	return list
}

// bring carries over what session filed under a former place, or erases it.
func (s *Server) bring(ctx context.Context, was, now token.Visitor, session string) error {
	if was.Generation == now.Generation {
		view, err := s.o.Engine.View(ctx, was.Room)
		if err != nil {
			return err
		}
		var p room.Place
		if was.PreQueued() {
			_, p, err = view.Handle(ctx, room.Handle(was.Handle))
		} else {
			_, p, err = view.Ticket(ctx, room.Ticket(was.Ticket))
		}
		switch {
		case err != nil:
			return err
		case p.Status == room.Expired, was.PreQueued() && p.Ticket != 0 && uint32(p.Ticket) == now.Ticket:
			return s.o.Turns.Carry(ctx, filedAt(was), filedAt(now), session)
		case p.Live():
			return nil // somebody's; not the place that this browser holds
		}
	}
	return s.o.Turns.Discard(ctx, filedAt(was), session)
}

// mailBox is the box for an address, in words, for the waiting page to put in.
func (s *Server) mailBox(x *exchange) error {
	if s.o.Turns == nil {
		return refuse("not_found")
	}
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := web.MailBox(&out, s.locale(x)); err != nil {
		return err
	}
	x.html(http.StatusOK, web.Policy(web.Branding{}), out.Bytes())
	return nil
}

// withdrawPage asks whether mails about a place shall end. It ends nothing: what reads mail before people do follows links, too.
func (s *Server) withdrawPage(x *exchange) error {
	return s.withdrawal(x, web.WithdrawAsk)
}

// withdrawByLink ends the mails of the place that the link names (RFC 8058: one POST, no cookies, nothing asked).
func (s *Server) withdrawByLink(x *exchange) error {
	return s.withdrawal(x, web.WithdrawDone)
}

func (s *Server) withdrawal(x *exchange, state web.Withdrawal) error {
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	if s.o.Turns == nil {
		return refuse("not_found")
	}
	t := single(x.r.URL.RawQuery, "t")
	v, err := s.o.Keys.VerifyWithdraw(t, x.now)
	status := http.StatusOK
	switch {
	case err != nil:
		state, status = web.WithdrawBad, http.StatusBadRequest
	case state == web.WithdrawDone:
		if _, err := s.o.Turns.Withdraw(x.r.Context(), filedAt(v)); err != nil {
			return s.unwritten(err)
		}
	}
	page := web.WithdrawPage{State: state, Locale: s.locale(x), Token: t}
	var out bytes.Buffer
	if err := web.Withdraw(&out, page); err != nil {
		return err
	}
	x.html(status, web.Policy(web.Branding{}), out.Bytes())
	return nil
}
