package access

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"qm/access/org"
	"qm/access/token"
)

const (
	// ConsoleCookie carries a console's session (seed 004, POST /api/admin/session).
	ConsoleCookie = "qm_console"
	// SessionLife is how long a console stays signed in (seed 004).
	SessionLife = 12 * time.Hour
	// TicketLife is how long a stream ticket may be redeemed (seed 004).
	TicketLife = 30 * time.Second
)

// SignIn begins a console session for whoever holds key, and for an operator with a second factor also a one-time code that was never used,
// and answers the cookie to set. It needs X-QM-CSRF, and counts a wrong key or code. The session is known to every process, and ends
// with the credential. Set secure where the client speaks HTTPS (Proxies.HTTPS). Any error is a *Refusal.
func (g *Gate) SignIn(r *http.Request, key, code string, client Network, from string, secure bool, now time.Time) (Actor, *http.Cookie, error) {
	if err := g.lockout.Check(client, now); err != nil {
		return Actor{}, nil, err
	}
	if !hasCSRF(r) {
		return Actor{}, nil, refuse(CodeCSRFRequired)
	}
	actor, ok := g.owner(key)
	begun := &org.SignedIn{ID: rand.Text()}
	if !ok {
		o, genuine := g.operatorOf(r.Context(), key, now)
		switch {
		case !genuine && g.book.Stale() != nil && strings.HasPrefix(key, KeyPrefix):
			return Actor{}, nil, refuse(CodeStorage)
		case !genuine && key != "":
			g.lockout.Failed(client, now)
			fallthrough
		case !genuine, o.Revoked:
			return Actor{}, nil, refuse(CodeUnauthorized)
		case o.Factor.Secret != "" && code == "":
			return Actor{}, nil, refuse(CodeOTPRequired)
		case o.Factor.Secret != "":
			step, err := g.codeOf(r.Context(), o.ID, client, code, false, now)
			if err != nil {
				return Actor{}, nil, err
			}
			begun.Step = step
		}
		actor = g.actorOf(o)
	}
	ends := now.Add(SessionLife).Truncate(time.Millisecond)
	begun.Ends, begun.Mark = ends.UnixMilli(), g.mark(actor.ID)
	err := g.book.SignIn(r.Context(), org.By{Actor: actor.ID, From: from}, begun, func(s *org.State) error {
		o, ok := s.Operator(actor.ID)
		switch {
		case !ok:
		case o.Factor.Secret != "" && begun.Step == 0:
			return refuse(CodeOTPRequired) // added meanwhile
		case begun.Step != 0 && begun.Step <= o.Factor.Step:
			return refuse(CodeInvalidOTP) // used already, here or elsewhere
		}
		return nil
	})
	if err != nil {
		if errors.Is(err, org.ErrActor) {
			err = refuse(CodeUnauthorized) // revoked meanwhile
		}
		return Actor{}, nil, refusal(err)
	}
	actor.session = begun.ID
	cookie := consoleCookie(secure)
	cookie.Value = g.tokens.SignReference(token.PurposeSession,
		token.Reference{ID: begun.ID, IssuedAt: now.UnixMilli(), ExpiresAt: ends.UnixMilli()})
	cookie.MaxAge = int(SessionLife / time.Second)
	return actor, cookie, nil
}

// SignOut ends the session that the request carries, in every process, so that a copy of the cookie is worthless too, and answers
// the cookie that clears it. It needs X-QM-CSRF; without a session there is nothing to end, which is no error. Any error is a *Refusal.
func (g *Gate) SignOut(r *http.Request, from string, secure bool, now time.Time) (*http.Cookie, error) {
	if !hasCSRF(r) {
		return nil, refuse(CodeCSRFRequired)
	}
	for _, c := range r.CookiesNamed(ConsoleCookie) {
		if ref, err := g.tokens.VerifyReference(token.PurposeSession, c.Value, now); err == nil {
			if err := g.book.SignOut(r.Context(), from, ref.ID); err != nil {
				return nil, refusal(err)
			}
		}
	}
	cookie := consoleCookie(secure)
	cookie.MaxAge = -1
	return cookie, nil
}

func consoleCookie(secure bool) *http.Cookie {
	return &http.Cookie{
		Name: ConsoleCookie, Path: "/api/admin",
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

// console is the actor of the first console cookie that is good (contract.md,
// answer 6). A bad one is no guess at a key, and counts as none.
func (g *Gate) console(r *http.Request, now time.Time) (Actor, bool) {
	for _, c := range r.CookiesNamed(ConsoleCookie) {
		ref, err := g.tokens.VerifyReference(token.PurposeSession, c.Value, now)
		if err != nil {
			continue
		}
		var session org.Session
		var o org.Operator
		var ok bool
		g.book.Look(func(s *org.State) {
			if session, ok = s.Session(ref.ID, now); ok && session.By != org.Admin {
				o, ok = s.Operator(session.By)
				ok = ok && !o.Revoked
			}
		})
		if !ok || !g.marked(session.By, session.Mark) {
			continue
		}
		actor := Actor{ID: org.Admin, Name: "admin key", Role: Owner, stale: g.book.Stale() != nil}
		if session.By != org.Admin {
			actor = g.actorOf(o)
		}
		actor.session = session.ID
		return actor, true
	}
	return Actor{}, false
}

// signedHere reports whether a cookie is one that this keyring signed, whether or not its session is known.
func (g *Gate) signedHere(r *http.Request, now time.Time) bool {
	for _, c := range r.CookiesNamed(ConsoleCookie) {
		if _, err := g.tokens.VerifyReference(token.PurposeSession, c.Value, now); err == nil {
			return true
		}
	}
	return false
}

// MintTicket is a ticket for one opening of the admin event stream, good for
// TicketLife. EventSource cannot send a header; a ticket that leaks from a URL
// is spent already.
func (g *Gate) MintTicket(actor Actor, now time.Time) string {
	ticket := rand.Text()
	g.tickets.add(ticket, actor, now.Add(TicketLife), now)
	return ticket
}

// RedeemTicket spends a ticket and is whoever minted it, provided that their
// credential still holds. Any error is a *Refusal; a stale ticket counts
// towards no lock-out, since EventSource repeats the URL by itself.
func (g *Gate) RedeemTicket(ticket string, client Network, now time.Time) (Actor, error) {
	if err := g.lockout.Check(client, now); err != nil {
		return Actor{}, err
	}
	actor, ok := g.tickets.take(ticket, now)
	if !ok || !g.Alive(actor, now) {
		return Actor{}, refuse(CodeInvalidSSETicket)
	}
	return actor, nil
}
