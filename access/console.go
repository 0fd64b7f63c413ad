package access

import (
	"crypto/rand"
	"net/http"
	"time"

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

// SignIn begins a console session for whoever holds key and answers the cookie
// to set. It needs X-QM-CSRF, and counts a wrong key. Set secure where the
// client speaks HTTPS (Proxies.HTTPS). Any error is a *Refusal.
func (g *Gate) SignIn(r *http.Request, key string, client Network, secure bool, now time.Time) (Actor, *http.Cookie, error) {
	if err := g.lockout.Check(client, now); err != nil {
		return Actor{}, nil, err
	}
	if !hasCSRF(r) {
		return Actor{}, nil, refuse(CodeCSRFRequired)
	}
	actor, ok := g.owner(key)
	if !ok {
		if key != "" {
			g.lockout.Failed(client, now)
		}
		return Actor{}, nil, refuse(CodeUnauthorized)
	}
	actor.session = rand.Text()
	ends := now.Add(SessionLife)
	g.sessions.add(actor.session, actor, ends, now)
	cookie := consoleCookie(secure)
	cookie.Value = g.tokens.SignReference(token.PurposeSession,
		token.Reference{ID: actor.session, IssuedAt: now.UnixMilli(), ExpiresAt: ends.UnixMilli()})
	cookie.MaxAge = int(SessionLife / time.Second)
	return actor, cookie, nil
}

// SignOut ends the session that the request carries, so that a copy of the
// cookie is worthless too, and answers the cookie that clears it. It needs
// X-QM-CSRF; without a session there is nothing to end, which is no error.
func (g *Gate) SignOut(r *http.Request, secure bool, now time.Time) (*http.Cookie, error) {
	if !hasCSRF(r) {
		return nil, refuse(CodeCSRFRequired)
	}
	for _, c := range r.CookiesNamed(ConsoleCookie) {
		if ref, err := g.tokens.VerifyReference(token.PurposeSession, c.Value, now); err == nil {
			g.sessions.take(ref.ID, now)
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
		if actor, ok := g.sessions.get(ref.ID, now); ok {
			return actor, true
		}
	}
	return Actor{}, false
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
