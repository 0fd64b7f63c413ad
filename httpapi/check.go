package httpapi

import (
	"errors"
	"net/http"
	"sync/atomic"

	"qm/access"
	"qm/access/scope"
	"qm/access/token"
	"qm/engine/room"
)

// counter counts.
type counter struct{ n atomic.Int64 }

// verdict is the answer of a check.
type verdict struct {
	pass   bool
	reason string
	sess   string // the door-session key, when a door session stands
	token  string // the visitor token that goes with it, for a site that was handed a code
	clear  bool   // the site should drop what it stored
	page   *page  // nil in a room without rules
}

// check says whether a visitor may see the site now (seed 004, GET /api/check). It fails open on an unknown room and nowhere else.
func (s *Server) check(x *exchange) error {
	s.client(x)
	network := x.network
	ip, vouched, conflict := param(x.r.URL.RawQuery, "ip")
	_, agent, _ := param(x.r.URL.RawQuery, "agent")
	if vouched || agent {
		if err := s.o.Gate.Vouch(x.r, x.network, x.now); err != nil {
			return err
		}
		if vouched {
			addr, ok := access.ParseAddr(ip)
			if conflict || !ok {
				return refuseField("invalid_ip", "ip", "")
			}
			// A vouched check counts for the vouched address, not for the one that asks (seed 004, Edge check).
			x.addr, network = addr, access.NetworkOf(addr)
		}
	}
	if err := s.allowNetwork(x, s.checks, network); err != nil {
		return err
	}
	id, ok, err := x.query("roomId")
	if err != nil {
		return err
	}
	if !ok || !validRoomID(id) {
		return refuseField("invalid_room_id", "roomId", "")
	}
	sum, _, err := s.summary(x.r.Context(), id)
	if isNoRoom(err) {
		s.noRoom.n.Add(1)
		return s.answerCheck(x, id, &verdict{pass: true, reason: "no_room"})
	}
	if err != nil {
		return err
	}
	if origin := x.r.Header.Get("Origin"); origin != "" && !vouched && !x.head && tagOrigin(sum.Settings, origin) {
		s.checkins.seen(id, sum.Generation, origin, room.Instant(x.ms()))
	}
	seen := s.pageOf(x, id, &sum)
	if seen != nil && seen.verdict.Scope == scope.Out {
		return s.answerCheck(x, id, &verdict{pass: true, reason: "out_of_scope", page: seen})
	}
	v, err := s.doorman(x, id, &sum, single(x.r.URL.RawQuery, "code"))
	if isNoRoom(err) { // deleted while we looked
		s.noRoom.n.Add(1)
		v, err = &verdict{pass: true, reason: "no_room"}, nil
	}
	if err != nil {
		return err
	}
	if v.reason != "no_room" {
		v.page = seen
	}
	return s.answerCheck(x, id, v)
}

// doorman decides by what the visitor shows: a door-session key, a hand-over code, or a token with the browser's own session.
// A bare token is not enough (contract.md 19).
func (s *Server) doorman(x *exchange, id string, sum *room.Summary, handover string) (*verdict, error) {
	switch sum.Mode {
	case room.Bypass:
		if !x.head {
			s.o.Engine.Arrived(id, sum, prefixOf(x.addr))
		}
		return &verdict{pass: true, reason: "bypass"}, nil
	case room.Idle:
		return &verdict{pass: true, reason: "inactive"}, nil
	}
	keys := s.doorKeys(x, id)
	for _, key := range keys {
		if v, err := s.standing(x, id, key); v != nil || err != nil {
			return v, err
		}
	}
	shown := len(keys) > 0 // something that is none (any more) was shown
	if handover != "" {
		code, err := s.o.Keys.VerifyCode(handover, id, x.now)
		if err == nil && code.Generation == sum.Generation && !x.head {
			v, err := s.enter(x, id, room.Ticket(code.Ticket), sum.Generation, "", room.Instant(code.IssuedAt))
			if v != nil || err != nil {
				return v, err
			}
		}
	}
	reason := "no_token"
	for _, t := range s.tokens(x, id) {
		shown = true
		v, err := s.o.Keys.VerifyVisitor(t, id, x.now)
		if err != nil {
			if reason == "no_token" {
				reason = "invalid_token"
			}
			continue
		}
		f := &x.frame
		if err := s.look(x.r.Context(), f, v, x.now); err != nil {
			if errors.Is(err, errNoToken) {
				reason = "expired"
				continue
			}
			return nil, err
		}
		switch {
		case f.gone != "":
			reason = f.gone
			continue
		case f.passed && f.bypass:
			return &verdict{pass: true, reason: "bypass"}, nil
		case !f.passed:
			return &verdict{reason: "waiting"}, nil
		}
		session, err := s.owned(x.r.Context(), f, sessions(x.r.Header, id))
		if err != nil {
			return nil, err
		}
		if session == "" {
			reason = "not_owner"
			continue
		}
		if x.head {
			return &verdict{pass: true, reason: "passed"}, nil
		}
		entered, err := s.enter(x, id, f.place.Ticket, sum.Generation, session, 0)
		if entered != nil || err != nil {
			return entered, err
		}
		reason = "expired"
	}
	return &verdict{reason: reason, clear: shown}, nil
}

// tokens are the visitor tokens that the request shows: ?token=, and the room's cookies. A parameter that contradicts itself counts
// as absent (contract.md 6).
func (s *Server) tokens(x *exchange, id string) []string {
	var found []string
	if t := single(x.r.URL.RawQuery, "token"); t != "" {
		found = append(found, t)
	}
	for t := range cookiesOf(x.r.Header, placeCookie, id) {
		if len(found) < 4 {
			found = append(found, t)
		}
	}
	return found
}

// doorKeys are the door-session keys that the request shows: in a header, ?sess=, or an inline host's cookie (seed 004, Edge check).
func (s *Server) doorKeys(x *exchange, id string) []string {
	var found []string
	if key := x.r.Header.Get("X-QM-Session"); key != "" {
		found = append(found, key)
	}
	if key := single(x.r.URL.RawQuery, "sess"); key != "" {
		found = append(found, key)
	}
	for key := range cookiesOf(x.r.Header, doorCookie, id) {
		if len(found) < 4 {
			found = append(found, key)
		}
	}
	return found
}

// standing passes the holder of a door session that still stands; nil when it does not.
func (s *Server) standing(x *exchange, id, key string) (*verdict, error) {
	place, ok, err := s.behind(x, id, key)
	if !ok || err != nil {
		return nil, err
	}
	if !x.head {
		s.o.Engine.SeenDoor(id, place.Ticket)
	}
	return &verdict{pass: true, reason: "session", sess: key}, nil
}

// behind is the place whose door session a key opens; ok is false when there is none that stands.
func (s *Server) behind(x *exchange, id, key string) (place room.Place, ok bool, err error) {
	g, n, ok := token.ParseDoorKey(key)
	if !ok {
		return place, false, nil
	}
	view, err := s.o.Engine.View(x.r.Context(), id)
	if err != nil {
		return place, false, err
	}
	sum, place, err := view.Ticket(x.r.Context(), room.Ticket(n))
	if err != nil {
		return place, false, err
	}
	ok = sum.Exists && sum.Generation == g && place.Status == room.Inside && place.Door == room.Holder(token.DigestDoorKey(key)) &&
		s.o.Engine.DoorOpen(id, &sum, place, x.now)
	return place, ok, nil
}

// enter opens a door session, or reclaims it with a fresh key; nil when the door says no. The answer waits until that is durable.
func (s *Server) enter(x *exchange, id string, n room.Ticket, g uint32, session string, codeAt room.Instant) (*verdict, error) {
	key := token.NewDoorKey(g, uint32(n))
	_, err := s.o.Engine.Enter(x.r.Context(), id, g, n, session, codeAt, room.Holder(token.DigestDoorKey(key)))
	switch {
	case errors.Is(err, room.ErrNotPassed), errors.Is(err, room.ErrNotOwner), errors.Is(err, room.ErrCodeSpent),
		errors.Is(err, room.ErrGeneration):
		return nil, nil
	case err != nil:
		return nil, err
	}
	v := &verdict{pass: true, reason: "passed", sess: key}
	if codeAt != 0 {
		v.token = s.o.Keys.SignVisitor(token.Visitor{Room: id, Ticket: uint32(n), Generation: g, IssuedAt: x.ms()})
	}
	return v, nil
}

func (s *Server) answerCheck(x *exchange, id string, v *verdict) error {
	b := append(x.buf[:0], `{"action":"queue","reason":"`...)
	if v.pass {
		b = append(x.buf[:0], `{"action":"pass","reason":"`...)
	}
	b = append(b, v.reason...)
	b = append(b, '"')
	if !v.pass {
		b = appendText(b, "waitingRoomUrl", s.base(x.r)+"/w/"+id)
	}
	if v.clear {
		b = appendBool(b, "clearToken", true)
	}
	if v.sess != "" {
		b = appendText(b, "sess", v.sess)
	}
	if v.token != "" {
		b = appendText(b, "token", v.token)
	}
	if v.page != nil {
		b = v.page.append(b)
	}
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}
