package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"qm/access/org"
	"qm/access/token"
)

// Credentials configure a Gate.
type Credentials struct {
	// AdminKey is ADMIN_KEY, the owner's. An empty one matches nothing.
	AdminKey string
	// PublicAPIKey is PUBLIC_API_KEY, with which a connector vouches for its
	// visitors' addresses. An empty one matches nothing.
	PublicAPIKey string
	// AuthFailPerMinute is ADMIN_AUTH_FAIL_PER_MIN; 0 never locks out.
	AuthFailPerMinute int
	// Tokens signs console sessions and monitor links, and makes what is kept of operators' keys.
	Tokens *token.Keyring
	// Book knows operators, sessions and links.
	Book *org.Book
}

// Gate judges the credentials of operators and connectors. Operators, console sessions and monitor links are the organisation's, the same
// in every process; stream tickets live in this process and end with it. It is safe for concurrent use.
type Gate struct {
	adminKey, publicKey secret
	adminText           string // to mark what was handed out on the strength of it
	tokens              *token.Keyring
	book                *org.Book
	lockout             *Lockout
	tickets             alive[Actor]
	resealed            alive[struct{}] // operators whose verifier was made anew lately
	codes               codeLimits
}

// NewGate makes the gate of these credentials.
func NewGate(c Credentials) *Gate {
	return &Gate{
		adminKey:  secretOf(c.AdminKey),
		publicKey: secretOf(c.PublicAPIKey),
		adminText: c.AdminKey,
		tokens:    c.Tokens,
		book:      c.Book,
		lockout:   NewLockout(c.AuthFailPerMinute),
		tickets:   alive[Actor]{limit: 4096},
		resealed:  alive[struct{}]{limit: org.MaxOperators},
	}
}

// secret is the digest of a key, so that a comparison tells nothing, not even a length.
type secret struct {
	digest [sha256.Size]byte
	set    bool
}

func secretOf(key string) secret { return secret{sha256.Sum256([]byte(key)), key != ""} }

func (s secret) is(key string) bool {
	digest := sha256.Sum256([]byte(key))
	return subtle.ConstantTimeCompare(digest[:], s.digest[:]) == 1 && s.set
}

// Authenticate is whose admin request this is. An Authorization header is
// judged alone; without one, the console cookie counts, with X-QM-CSRF on all
// but GET and HEAD (seed 004, Admin). No credential is ever taken from the
// URL. Any error is a *Refusal.
func (g *Gate) Authenticate(r *http.Request, client Network, now time.Time) (Actor, error) {
	if err := g.lockout.Check(client, now); err != nil {
		return Actor{}, err
	}
	if len(r.Header["Authorization"]) > 0 {
		return g.bearer(r, client, now)
	}
	actor, ok := g.console(r, now)
	if !ok {
		if g.book.Stale() != nil && len(r.CookiesNamed(ConsoleCookie)) > 0 && g.signedHere(r, now) {
			return Actor{}, refuse(CodeStorage) // the session may well be good: nobody should be signed out by an outage
		}
		return Actor{}, absent(r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !hasCSRF(r) {
		return Actor{}, refuse(CodeCSRFRequired)
	}
	return actor, nil
}

// bearer judges the Authorization header. What is no key at all counts as
// none; so does a token of ours that has ended: a wall display whose link was
// revoked guesses nothing, and must not lock its network out.
func (g *Gate) bearer(r *http.Request, client Network, now time.Time) (Actor, error) {
	key, ok := bearerOf(r)
	if !ok {
		return Actor{}, refuse(CodeUnauthorized)
	}
	if actor, ok := g.owner(key); ok {
		return actor, nil
	}
	actor, genuine, err := g.keyHolder(r.Context(), key, now)
	if err != nil {
		return Actor{}, err
	}
	if !genuine {
		actor, genuine = g.monitor(key, now)
	}
	switch {
	case actor.Role != NoRole:
		return actor, nil
	case !genuine:
		if g.book.Stale() != nil && strings.HasPrefix(key, KeyPrefix) {
			return Actor{}, refuse(CodeStorage) // it may be one that was made elsewhere meanwhile
		}
		g.lockout.Failed(client, now)
	}
	return Actor{}, refuse(CodeUnauthorized)
}

// owner is the actor of ADMIN_KEY, which no revocation can reach: with it nobody is ever locked out for good.
func (g *Gate) owner(key string) (Actor, bool) {
	if !g.adminKey.is(key) {
		return Actor{}, false
	}
	return Actor{ID: org.Admin, Name: "admin key", Role: Owner}, true
}

// Vouch reports by nil that the request carries the key of a connector, which
// may say for which client it asks (seed 004, Edge check, ?ip=). Any error is a
// *Refusal. Since ADMIN_KEY vouches too, wrong keys count here as anywhere.
func (g *Gate) Vouch(r *http.Request, client Network, now time.Time) error {
	if err := g.lockout.Check(client, now); err != nil {
		return err
	}
	if len(r.Header["Authorization"]) == 0 {
		return absent(r)
	}
	key, ok := bearerOf(r)
	if !ok {
		return refuse(CodeUnauthorized)
	}
	// Both are compared, so that the time does not say which one it was.
	public, admin := g.publicKey.is(key), g.adminKey.is(key)
	if public || admin {
		return nil
	}
	g.lockout.Failed(client, now)
	return refuse(CodeUnauthorized)
}

// VouchedByAdmin reports that it is the admin key by which a request vouches. Ask only after Vouch has said yes: a connector should not
// have that key, and this is how it learns that it does.
func (g *Gate) VouchedByAdmin(r *http.Request) bool {
	key, ok := bearerOf(r)
	return ok && g.adminKey.is(key) && !g.publicKey.is(key)
}

// Alive reports whether an actor that was let in may stay: a stream that was
// opened by a session, a link or an operator's key ends with it.
func (g *Gate) Alive(a Actor, now time.Time) bool {
	if a.Role == NoRole {
		return false
	}
	ok := true
	g.book.Look(func(s *org.State) {
		switch {
		case a.session != "":
			v, live := s.Session(a.session, now)
			ok = live && g.marked(v.By, v.Mark)
		case a.link != "":
			l, live := s.Link(a.link, now)
			ok = live && g.marked(l.By, l.Mark)
		case a.operator != "":
			o, live := s.Operator(a.operator)
			ok = live && !o.Revoked && o.Factor.Secret == ""
		}
	})
	return ok
}

// mark is what is kept of the admin key beside what was handed out on the strength of it: when ADMIN_KEY changes, all that ends.
func (g *Gate) mark(by string) string {
	if by != org.Admin {
		return ""
	}
	return g.tokens.Verifier(g.adminText)
}

func (g *Gate) marked(by, mark string) bool {
	if by != org.Admin {
		return true
	}
	ok, _ := g.tokens.Verifies(mark, g.adminText)
	return ok
}

// absent is the refusal of a request without a credential where one may be.
func absent(r *http.Request) error {
	if r.URL.Query().Has("key") {
		return refuse(CodeCredentialInQuery)
	}
	return refuse(CodeUnauthorized)
}

// bearerOf is the key of the one Authorization header, if it is a Bearer's.
func bearerOf(r *http.Request) (string, bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, key, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	key = strings.TrimSpace(key)
	return key, strings.EqualFold(scheme, "Bearer") && key != ""
}

// hasCSRF reports the header that no foreign page can send without our consent.
func hasCSRF(r *http.Request) bool { return r.Header.Get("X-QM-CSRF") != "" }
