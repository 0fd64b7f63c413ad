package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
)

// roomOf reads the roomId of a visitor's body.
func roomOf(o object) (string, error) {
	id, ok, err := o.text("roomId", "invalid_room_id")
	if err != nil {
		return "", err
	}
	if !ok || !validRoomID(id) {
		return "", refuseField("invalid_room_id", "roomId", "")
	}
	return id, nil
}

// join takes a place, or returns the one that the browser's ownership session holds (seed 004, POST /api/join). The token in the
// body carries no place without the session; of several sessions it tells which one is meant.
func (s *Server) join(x *exchange) error {
	if err := s.allow(x, s.joins); err != nil {
		return err
	}
	body, err := x.object(visitorBody, false)
	if err != nil {
		return err
	}
	id, err := roomOf(body)
	if err != nil {
		return err
	}
	shown, _, err := body.text("token", "invalid_token_field")
	if err != nil {
		return err
	}
	// What the room's policy refuses is stripped, not an error; so is what is no text (seed 004, GET /w/:roomId).
	wanted, _, _ := body.text(returnParam, "invalid_field")
	k, err := knockOf(body)
	if err != nil {
		return err
	}
	return s.take(x, id, shown, wanted, k, func() error {
		x.json(http.StatusOK)
		return nil
	})
}

// take takes a place for the browser of x, which shows a token ("" for none) beside its cookies, wants to be brought back to an
// address ("" for none), and knocks at the door of a room with protection. It sets the cookies, leaves the frame in x.frame and its JSON in x.buf, and answers by calling answer.
func (s *Server) take(x *exchange, id, shown, wanted string, k knock, answer func() error) error {
	ctx := x.r.Context()
	session, err := s.session(x, id, shown)
	if err != nil {
		return err
	}
	sum, _, err := s.summary(ctx, id)
	if err != nil {
		return err
	}
	judged := s.knocks(x, id, &sum, shown, k)
	a, err := s.o.Engine.Join(ctx, id, session, prefixOf(x.addr), judged.Score)
	if errors.Is(err, room.ErrBlocked) {
		s.judged(id, &sum, &judged, true, room.Place{}, x.now)
		return s.door.blocked(x, id, sum.Settings)
	}
	if err != nil {
		if errors.Is(err, engine.ErrStorage) || errors.Is(err, context.DeadlineExceeded) {
			// It may have been committed after all: a retry with this session finds it (architecture.md, The actor).
			s.setPlace(x, id, "", session)
		}
		return err
	}
	if a.Summary.Mode == room.Bypass {
		s.o.Engine.Arrived(id, a.Summary, prefixOf(x.addr))
	}
	if judged.scored && a.Fresh {
		s.judged(id, a.Summary, &judged, false, a.Place, x.now)
	}
	f := &x.frame
	*f = frame{sum: *a.Summary, place: a.Place, wanted: wanted}
	f.visitor = token.Visitor{Room: id, Generation: a.Summary.Generation, IssuedAt: x.ms()}
	switch {
	case a.Place.Ticket != 0:
		f.visitor.Ticket, f.visitor.Generation = uint32(a.Place.Ticket), a.Place.Generation
	case a.Place.Handle != 0:
		f.visitor.Handle, f.visitor.Generation = uint32(a.Place.Handle), a.Place.Generation
	}
	if err := s.judge(f, x.now); err != nil {
		return err
	}
	if n := f.ticket(); n != 0 {
		s.o.Engine.Seen(id, n)
	}
	if f.passed {
		f.door = s.doorURL(f, true, x.now)
	}
	f.token, f.ref = s.o.Keys.SignVisitor(f.visitor), s.o.Keys.ShortCode(f.visitor)
	s.setPlace(x, id, f.token, session)
	s.recall(x, f, shown, session, a.Fresh)
	x.buf = f.append(x.buf[:0], x.now)
	return answer()
}

// session is the ownership session with which the browser joins: its own, or a new one. Of several, the one that owns the place
// of the token that it shows, or of one in its cookies, counts (contract.md 6).
func (s *Server) session(x *exchange, id, shown string) (string, error) {
	found := sessions(x.r.Header, id)
	switch len(found) {
	case 0:
		return token.NewSession(), nil
	case 1:
		return found[0], nil
	}
	tokens := []string{shown}
	for t := range cookiesOf(x.r.Header, placeCookie, id) {
		if len(tokens) <= 4 {
			tokens = append(tokens, t)
		}
	}
	for _, t := range tokens {
		v, err := s.o.Keys.VerifyVisitor(t, id, x.now)
		if err != nil {
			continue
		}
		f := &x.frame
		if err := s.glance(x.r.Context(), f, v, x.now); err != nil {
			if errors.Is(err, errNoToken) {
				continue
			}
			return "", err
		}
		owner, err := s.owned(x.r.Context(), f, found)
		if err != nil {
			return "", err
		}
		if owner != "" {
			return owner, nil
		}
	}
	return found[0], nil
}

// prefixOf is where a visitor comes from, as the engine takes it: an IPv4 address or an IPv6 /64 (contract.md 3).
func prefixOf(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	if !a.IsValid() {
		return netip.Prefix{}
	}
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.WithZone("").Prefix(bits)
	return p
}

// visitor is the place that the request's token names: ?token=, or else the room's cookie (seed 004, GET /api/status). roomId says
// which room's; without it a token in the query names its own, and of the cookies the first genuine one counts.
func (s *Server) visitor(x *exchange) (token.Visitor, error) {
	id, hasRoom, err := x.query("roomId")
	if err != nil {
		return token.Visitor{}, err
	}
	if hasRoom && !validRoomID(id) {
		return token.Visitor{}, refuseField("invalid_room_id", "roomId", "")
	}
	text, ok, err := x.query("token")
	if err != nil {
		return token.Visitor{}, err
	}
	if ok {
		var v token.Visitor
		if hasRoom {
			v, err = s.o.Keys.VerifyVisitor(text, id, x.now)
		} else {
			v, err = s.o.Keys.VerifyVisitorAnyRoom(text, x.now)
		}
		if err == nil {
			return v, nil
		}
	}
	for name, value := range cookies(x.r.Header) {
		room, found := cutPrefix(name, placeCookie)
		if !found || !validRoomID(room) || hasRoom && room != id {
			continue
		}
		if v, err := s.o.Keys.VerifyVisitor(value, room, x.now); err == nil {
			return v, nil
		}
	}
	return token.Visitor{}, refuse("invalid_token")
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || s[:len(prefix)] != prefix {
		return "", false
	}
	return s[len(prefix):], true
}

// status says where a place stands (seed 004, GET /api/status). It does no I/O while the visitor waits.
func (s *Server) status(x *exchange) error {
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	v, err := s.visitor(x)
	if err != nil {
		return err
	}
	f := &x.frame
	f.wanted = x.wanted()
	if err := s.look(x.r.Context(), f, v, x.now); err != nil {
		return err
	}
	if err := s.tell(x, f); err != nil {
		return err
	}
	x.json(http.StatusOK)
	return nil
}

// tell notes that the visitor was here, adds what only their browser may know, sets the cookies that follow from it, and leaves the
// frame's JSON in x.buf.
func (s *Server) tell(x *exchange, f *frame) error {
	if n := f.ticket(); n != 0 && !x.head {
		s.o.Engine.Seen(f.visitor.Room, n)
	}
	if f.passed || f.visitor.PreQueued() && f.place.Ticket != 0 || f.visitor.RefreshDue(s.refreshAfter, x.now) {
		session, err := s.finish(x.r.Context(), f, sessions(x.r.Header, f.visitor.Room), x.now, !x.head && !x.wrote)
		if err != nil {
			return err
		}
		if f.token != "" && session != "" {
			s.setPlace(x, f.visitor.Room, f.token, session)
		}
	}
	x.buf = f.append(x.buf[:0], x.now)
	return nil
}

// leave gives back whatever the browser holds in a room, or the door session whose key a site shows (contract.md 8).
func (s *Server) leave(x *exchange) error {
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	body, err := x.object(visitorBody, false)
	if err != nil {
		return err
	}
	id, err := roomOf(body)
	if err != nil {
		return err
	}
	if _, _, err := body.text("token", "invalid_token_field"); err != nil {
		return err
	}
	if _, _, err := s.summary(x.r.Context(), id); err != nil {
		return err
	}
	left := false
	for _, session := range sessions(x.r.Header, id) {
		a, err := s.o.Engine.Leave(x.r.Context(), id, session)
		if err != nil {
			return err
		}
		left = left || len(a.Events) > 0
	}
	for _, key := range s.doorKeys(x, id) {
		place, ok, err := s.behind(x, id, key)
		if err != nil {
			return err
		}
		if ok {
			a, err := s.o.Engine.Do(x.r.Context(), id, "visitor", room.GiveBack{Generation: place.Generation, Holder: place.Holder})
			if err != nil {
				return err
			}
			left = left || len(a.Events) > 0
		}
	}
	for _, prefix := range []string{placeCookie, ownerCookie} {
		for range cookiesOf(x.r.Header, prefix, id) {
			s.setCookie(x, prefix+id, "", -1, prefix == ownerCookie, s.secure(x.r))
			break
		}
	}
	x.buf = append(x.buf[:0], `{"left":false}`...)
	if left {
		x.buf = append(x.buf[:0], `{"left":true}`...)
	}
	x.json(http.StatusOK)
	return nil
}

// publicRoom is what everybody may know of a room, and what an outsider needs to check its draw (contract.md 13).
func (s *Server) publicRoom(x *exchange) error {
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	if !validRoomID(x.id) {
		return refuseField("invalid_room_id", "roomId", "")
	}
	sum, _, err := s.summary(x.r.Context(), x.id)
	if err != nil {
		return err
	}
	b := append(x.buf[:0], `{"id":"`...)
	b = append(b, x.id...)
	b = append(b, '"')
	b = appendText(b, "name", nameOf(sum.Settings, x.id))
	b = appendText(b, "state", stateOf(&sum))
	if sum.OpensAt != 0 {
		b = appendInstant(b, "opensAt", sum.OpensAt)
	}
	if sum.Commitment != (room.Digest{}) {
		b = appendHex(b, "commitment", sum.Commitment)
	}
	if p := sum.Proof; p != nil {
		b = appendHex(b, "secret", p.Secret)
		b = appendHex(b, "head", p.Head)
		b = appendHex(b, "seed", p.Seed)
		b = appendInt(b, "version", int64(p.Version))
		b = appendInt(b, "first", int64(p.First))
		b = appendInt(b, "count", int64(p.Count))
		b = appendHex(b, "digest", p.Digest)
		b = appendInstant(b, "drawnAt", p.DrawnAt)
	}
	b = appendInt(b, "now", x.ms())
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

func nameOf(set *room.Settings, id string) string {
	if set.Name == "" {
		return id
	}
	return set.Name
}
