package httpapi

import (
	"net/http"

	"qm/access"
)

// signIn begins a console session (seed 004, POST /api/admin/session {key, otp?}).
func (s *Server) signIn(x *exchange) error {
	body, err := x.object(adminBody, false)
	if err != nil {
		return err
	}
	if err := body.only("key", "otp"); err != nil {
		return err
	}
	key, _, err := body.text("key", "invalid_key")
	if err != nil {
		return err
	}
	code, _, err := body.text("otp", "invalid_otp_field")
	if err != nil {
		return err
	}
	actor, cookie, err := s.o.Gate.SignIn(x.r, key, code, x.network, s.by(x).From, s.secure(x.r), x.now)
	if err != nil {
		return err
	}
	http.SetCookie(x.w, cookie)
	b := append(x.buf[:0], `{"ok":true`...)
	b = appendActor(b, actor)
	b = appendInt(b, "expiresInSec", int64(cookie.MaxAge))
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

func appendActor(b []byte, a access.Actor) []byte {
	b = appendText(b, "name", a.Name)
	b = appendText(b, "role", a.Role.String())
	return appendText(b, "id", a.ID)
}

// whoAmI says whose credential the request carries: a console that was opened anew asks whether it is still signed in.
func (s *Server) whoAmI(x *exchange) error {
	b := appendActor(append(x.buf[:0], `{"ok":true`...), x.actor)
	b = appendBool(b, "session", x.actor.Session() != "")
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// signOut ends it, on the server too.
func (s *Server) signOut(x *exchange) error {
	cookie, err := s.o.Gate.SignOut(x.r, s.by(x).From, s.secure(x.r), x.now)
	if err != nil {
		return err
	}
	http.SetCookie(x.w, cookie)
	return s.ok(x)
}

// mintTicket makes a single-use ticket for the console's stream: EventSource cannot send a header.
func (s *Server) mintTicket(x *exchange) error {
	if err := x.noFields(); err != nil {
		return err
	}
	b := append(x.buf[:0], `{"ticket":`...)
	b = appendString(b, s.o.Gate.MintTicket(x.actor, x.now))
	b = append(b, `,"expiresInSec":30}`...)
	x.buf = b
	x.json(http.StatusOK)
	return nil
}

// noFields reads a body that has nothing to say.
func (x *exchange) noFields() error {
	body, err := x.object(adminBody, true)
	if err != nil {
		return err
	}
	return body.only()
}
