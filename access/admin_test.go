package access

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"qm/access/org"
	"qm/access/token"
	"qm/journal"
)

const (
	adminKey  = "the key of the owner"
	publicKey = "the key of a connector"
)

func gate(t testing.TB, c Credentials) *Gate {
	t.Helper()
	if c.Tokens == nil {
		keyring, err := token.New("a secret of the tests", "", token.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.Tokens = keyring
	}
	if c.Book == nil {
		m := journal.NewMemory()
		c.Book = org.NewBook(org.Options{Journal: m, Notes: m, Vault: m, Now: func() time.Time { return start }})
	}
	if err := c.Book.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return NewGate(c)
}

func usual(t testing.TB) *Gate {
	return gate(t, Credentials{AdminKey: adminKey, PublicAPIKey: publicKey, AuthFailPerMinute: 10})
}

func request(method string, edit ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest(method, "/api/admin/rooms", nil)
	for _, e := range edit {
		e(r)
	}
	return r
}

func auth(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add("Authorization", value) }
}

func csrf(r *http.Request) { r.Header.Set("X-QM-CSRF", "1") }

func with(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
}

func query(q string) func(*http.Request) {
	return func(r *http.Request) { r.URL.RawQuery = q }
}

func code(err error) string {
	if err == nil {
		return ""
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Code
	}
	return "no refusal: " + err.Error()
}

func TestBearer(t *testing.T) {
	g := gate(t, Credentials{AdminKey: adminKey, PublicAPIKey: publicKey})
	for _, c := range []struct {
		name, want string
		edit       []func(*http.Request)
	}{
		{"the admin key", "", []func(*http.Request){auth("Bearer " + adminKey)}},
		{"another case of the scheme", "", []func(*http.Request){auth("bearer  " + adminKey + " ")}},
		{"nothing", CodeUnauthorized, nil},
		{"another key", CodeUnauthorized, []func(*http.Request){auth("Bearer " + adminKey + "x")}},
		{"the connector's key", CodeUnauthorized, []func(*http.Request){auth("Bearer " + publicKey)}},
		{"another scheme", CodeUnauthorized, []func(*http.Request){auth("Basic " + adminKey)}},
		{"no scheme", CodeUnauthorized, []func(*http.Request){auth(adminKey)}},
		{"an empty key", CodeUnauthorized, []func(*http.Request){auth("Bearer ")}},
		{"two headers", CodeUnauthorized, []func(*http.Request){auth("Bearer " + adminKey), auth("Bearer " + adminKey)}},
		{"the key in the URL", CodeCredentialInQuery, []func(*http.Request){query("key=" + "the+key+of+the+owner")}},
		{"an empty key in the URL", CodeCredentialInQuery, []func(*http.Request){query("key=")}},
	} {
		actor, err := g.Authenticate(request("DELETE", c.edit...), client(1), start)
		if code(err) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want == "" && (actor.Role != Owner || actor.ID != "admin" || !g.Alive(actor, start)) {
			t.Errorf("%s: %+v", c.name, actor)
		}
		if err != nil && actor != (Actor{}) {
			t.Errorf("%s: refused, and still %+v", c.name, actor)
		}
	}
}

func TestEmptyKeysMatchNothing(t *testing.T) {
	g := gate(t, Credentials{})
	if g.adminKey.is("") || g.publicKey.is("") {
		t.Error("an empty key matches")
	}
	if _, _, err := g.SignIn(request("POST", csrf), "", "", client(1), "", false, start); code(err) != CodeUnauthorized {
		t.Errorf("sign-in with nothing: %v", err)
	}
}

// Proves: vouch
func TestVouch(t *testing.T) {
	g := gate(t, Credentials{AdminKey: adminKey, PublicAPIKey: publicKey, AuthFailPerMinute: 1})
	for name, c := range map[string]struct {
		want string
		edit func(*http.Request)
	}{
		"connector":    {"", auth("Bearer " + publicKey)},
		"admin":        {"", auth("Bearer " + adminKey)},
		"none":         {CodeUnauthorized, query("ip=192.0.2.1")},
		"in the URL":   {CodeCredentialInQuery, query("key=" + publicKey)},
		"another sort": {CodeUnauthorized, auth("Basic x")},
	} {
		if err := g.Vouch(request("GET", c.edit), client(1), start); code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A wrong key here is a guess at ADMIN_KEY like any other.
	if err := g.Vouch(request("GET", auth("Bearer guess")), client(1), start); code(err) != CodeUnauthorized {
		t.Errorf("a guess: %v", err)
	}
	for _, err := range []error{
		g.Vouch(request("GET", auth("Bearer "+publicKey)), client(1), start),
		func() error {
			_, err := g.Authenticate(request("GET", auth("Bearer "+adminKey)), client(1), start)
			return err
		}(),
	} {
		if code(err) != CodeTooManyAuthFailures {
			t.Errorf("after a guess: %v", err)
		}
	}
}

// The right key is refused like a wrong one while its address is locked out,
// on every way in.
//
// Proves: admin.key
func TestLockedOutBeforeAnyCredentialIsRead(t *testing.T) {
	g := usual(t)
	_, cookie, err := g.SignIn(request("POST", csrf), adminKey, "", client(1), "", false, start)
	if err != nil {
		t.Fatal(err)
	}
	ticket := g.MintTicket(Actor{Role: Owner}, start)
	for i := range 10 {
		if _, err := g.Authenticate(request("GET", auth("Bearer guess")), client(1), start); code(err) != CodeUnauthorized {
			t.Fatalf("guess %d: %v", i+1, err)
		}
	}
	refusals := map[string]error{}
	_, refusals["key"] = g.Authenticate(request("GET", auth("Bearer "+adminKey)), client(1), start)
	_, refusals["cookie"] = g.Authenticate(request("GET", with(cookie)), client(1), start)
	_, _, refusals["sign-in"] = g.SignIn(request("POST", csrf), adminKey, "", client(1), "", false, start)
	_, refusals["ticket"] = g.RedeemTicket(ticket, client(1), start)
	refusals["vouch"] = g.Vouch(request("GET", auth("Bearer "+publicKey)), client(1), start)
	for way, err := range refusals {
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || refusal.Code != CodeTooManyAuthFailures || refusal.RetryAfter <= 0 {
			t.Errorf("%s: %v", way, err)
		}
	}
	if _, err := g.Authenticate(request("GET", auth("Bearer "+adminKey)), client(2), start); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
	if _, err := g.RedeemTicket(ticket, client(2), start); err != nil {
		t.Errorf("the lock-out spent the ticket: %v", err)
	}
}

func TestWhatIsNoGuessLocksNobodyOut(t *testing.T) {
	g := usual(t)
	viewer, link := mint(t, g, start)
	_, _ = g.RevokeMonitor(t.Context(), org.By{Actor: "admin"}, link.ID, start)
	for range 100 {
		_, _ = g.Authenticate(request("GET"), client(1), start)
		_, _ = g.Authenticate(request("GET", auth("Basic x")), client(1), start)
		_, _ = g.Authenticate(request("GET", auth("Bearer "+viewer)), client(1), start)
		_, _ = g.Authenticate(request("GET", with(&http.Cookie{Name: ConsoleCookie, Value: "old"})), client(1), start)
		_, _ = g.RedeemTicket("spent", client(1), start)
	}
	if _, err := g.Authenticate(request("GET", auth("Bearer "+adminKey)), client(1), start); err != nil {
		t.Errorf("locked out: %v", err)
	}
	for range 10 {
		_, _, _ = g.SignIn(request("POST", csrf), "guess", "", client(1), "", false, start)
	}
	if _, err := g.Authenticate(request("GET", auth("Bearer "+adminKey)), client(1), start); code(err) != CodeTooManyAuthFailures {
		t.Errorf("after ten wrong sign-ins: %v", err)
	}
}

// Proves: session
func TestConsoleSession(t *testing.T) {
	g := usual(t)
	if _, _, err := g.SignIn(request("POST"), adminKey, "", client(1), "", false, start); code(err) != CodeCSRFRequired {
		t.Errorf("sign-in without X-QM-CSRF: %v", err)
	}
	actor, cookie, err := g.SignIn(request("POST", csrf), adminKey, "", client(1), "", true, start)
	if err != nil || actor.Role != Owner || actor.ID != "admin" {
		t.Fatalf("sign-in: %+v, %v", actor, err)
	}
	if got := cookie.String(); !strings.HasPrefix(got, "qm_console=") ||
		!strings.HasSuffix(got, "; Path=/api/admin; Max-Age=43200; HttpOnly; Secure; SameSite=Strict") || strings.Contains(got, adminKey) {
		t.Errorf("cookie %s", got)
	}
	other := &http.Cookie{Name: ConsoleCookie, Value: "broken"}
	for _, c := range []struct {
		name, method, want string
		edit               []func(*http.Request)
		after              time.Duration
	}{
		{"a read", "GET", "", []func(*http.Request){with(cookie)}, 0},
		{"a HEAD", "HEAD", "", []func(*http.Request){with(cookie)}, 0},
		{"a change", "POST", CodeCSRFRequired, []func(*http.Request){with(cookie)}, 0},
		{"a change with the header", "POST", "", []func(*http.Request){with(cookie), csrf}, 0},
		{"a change with the key", "POST", "", []func(*http.Request){with(cookie), auth("Bearer " + adminKey)}, 0},
		{"a wrong key beside a good cookie", "GET", CodeUnauthorized, []func(*http.Request){with(cookie), auth("Bearer x")}, 0},
		{"a broken cookie first", "GET", "", []func(*http.Request){with(other), with(cookie)}, 0},
		{"a broken cookie", "GET", CodeUnauthorized, []func(*http.Request){with(other)}, 0},
		{"in its last second", "GET", "", []func(*http.Request){with(cookie)}, SessionLife - time.Second},
		{"at its end", "GET", CodeUnauthorized, []func(*http.Request){with(cookie)}, SessionLife},
	} {
		got, err := g.Authenticate(request(c.method, c.edit...), client(1), start.Add(c.after))
		if code(err) != c.want || err == nil && got.Role != Owner {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	if _, err := g.SignOut(request("DELETE", with(cookie)), "", true, start); code(err) != CodeCSRFRequired {
		t.Errorf("sign-out without X-QM-CSRF: %v", err)
	}
	cleared, err := g.SignOut(request("DELETE", with(cookie), csrf), "", true, start)
	if err != nil || cleared.String() != "qm_console=; Path=/api/admin; Max-Age=0; HttpOnly; Secure; SameSite=Strict" {
		t.Errorf("sign-out: %v, %v", cleared, err)
	}
	if _, err := g.Authenticate(request("GET", with(cookie)), client(1), start); code(err) != CodeUnauthorized {
		t.Errorf("a copy of the cookie after sign-out: %v", err)
	}
	if g.Alive(actor, start) {
		t.Error("the session lives on")
	}
	if _, err := g.SignOut(request("DELETE", csrf), "", true, start); err != nil {
		t.Errorf("sign-out without a session: %v", err)
	}
}

// A session is the same in every process and after a restart, for as long as the admin key is the one that it was begun with.
func TestSessionsAreTheOrganisations(t *testing.T) {
	m := journal.NewMemory()
	process := func(key, secret, previous string) *Gate {
		t.Helper()
		keys, err := token.New(secret, previous, token.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return gate(t, Credentials{AdminKey: key, Tokens: keys,
			Book: org.NewBook(org.Options{Journal: m, Notes: m, Vault: m, Now: func() time.Time { return start }})})
	}
	_, cookie, err := process(adminKey, "one", "").SignIn(request("POST", csrf), adminKey, "", client(1), "", false, start)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		gate *Gate
		want string
	}{
		"another process":         {process(adminKey, "one", ""), ""},
		"during a rotation":       {process(adminKey, "two", "one"), ""},
		"after it":                {process(adminKey, "two", ""), CodeUnauthorized},
		"with another admin key":  {process("another", "one", ""), CodeUnauthorized},
		"with a longer admin key": {process(adminKey+"x", "two", "one"), CodeUnauthorized},
	} {
		if _, err := c.gate.Authenticate(request("GET", with(cookie)), client(1), start); code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	elsewhere := process(adminKey, "one", "")
	if _, err := process(adminKey, "one", "").SignOut(request("DELETE", with(cookie), csrf), "", false, start); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.book.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Authenticate(request("GET", with(cookie)), client(1), start); code(err) != CodeUnauthorized {
		t.Errorf("signed out elsewhere: %v", err)
	}
}

func mint(t *testing.T, g *Gate, at time.Time) (string, org.Link) {
	t.Helper()
	key, link, err := g.MintMonitor(t.Context(), org.By{Actor: "admin"}, time.Hour, at)
	if err != nil {
		t.Fatal(err)
	}
	return key, link
}

func TestMonitorLinks(t *testing.T) {
	g := usual(t)
	key, link := mint(t, g, start)
	second, _ := mint(t, g, start.Add(time.Second))
	links := g.MonitorLinks(start)
	if len(links) != 2 || links[0].ID != link.ID && links[1].ID != link.ID || link.By != "admin" {
		t.Fatalf("links %+v", links)
	}
	actor, err := g.Authenticate(request("GET", auth("Bearer "+key)), client(1), start)
	if err != nil || actor.Role != Monitor || actor.ID != "monitor:"+link.ID {
		t.Fatalf("%+v, %v", actor, err)
	}
	if code(actor.Require(Viewer)) != CodeInsufficientRole || actor.Require(Monitor) != nil {
		t.Error("a monitor's reach is wrong")
	}
	if _, _, err := g.SignIn(request("POST", csrf), key, "", client(1), "", false, start); code(err) != CodeUnauthorized {
		t.Errorf("a monitor link signed in: %v", err)
	}
	if _, err := g.Authenticate(request("GET", auth("Bearer "+key)), client(1), start.Add(time.Hour)); code(err) != CodeUnauthorized {
		t.Errorf("at its end: %v", err)
	}
	if n, err := g.RevokeMonitor(t.Context(), org.By{Actor: "admin"}, link.ID, start); n != 1 || err != nil {
		t.Errorf("revoked %d, %v", n, err)
	}
	if _, err := g.RevokeMonitor(t.Context(), org.By{Actor: "admin"}, link.ID, start); !errors.Is(err, org.ErrNoLink) {
		t.Errorf("revoking tells no difference: %v", err)
	}
	if _, err := g.Authenticate(request("GET", auth("Bearer "+key)), client(1), start); code(err) != CodeUnauthorized || g.Alive(actor, start) {
		t.Errorf("revoked: %v", err)
	}
	if _, err := g.Authenticate(request("GET", auth("Bearer "+second)), client(1), start.Add(time.Second)); err != nil {
		t.Errorf("the other link: %v", err)
	}
	// A console session's token is signed alike and still is no monitor's.
	_, cookie, _ := g.SignIn(request("POST", csrf), adminKey, "", client(1), "", false, start)
	if _, err := g.Authenticate(request("GET", auth("Bearer "+cookie.Value)), client(1), start); code(err) != CodeUnauthorized {
		t.Errorf("a session as a Bearer: %v", err)
	}
}

// Proves: sse.ticket
func TestStreamTickets(t *testing.T) {
	g := usual(t)
	key, link := mint(t, g, start)
	monitor, err := g.Authenticate(request("POST", auth("Bearer "+key)), client(1), start)
	if err != nil {
		t.Fatal(err)
	}
	ticket := g.MintTicket(monitor, start)
	if got, err := g.RedeemTicket(ticket, client(1), start); err != nil || got != monitor {
		t.Errorf("%+v, %v", got, err)
	}
	late := g.MintTicket(monitor, start)
	revoked := g.MintTicket(monitor, start)
	for name, err := range map[string]error{
		"spent":   second(g.RedeemTicket(ticket, client(1), start)),
		"late":    second(g.RedeemTicket(late, client(1), start.Add(TicketLife))),
		"unknown": second(g.RedeemTicket("x", client(1), start)),
		"empty":   second(g.RedeemTicket("", client(1), start)),
	} {
		if code(err) != CodeInvalidSSETicket {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := g.RevokeMonitor(t.Context(), org.By{Actor: "admin"}, link.ID, start); err != nil {
		t.Fatal(err)
	}
	if _, err := g.RedeemTicket(revoked, client(1), start); code(err) != CodeInvalidSSETicket {
		t.Errorf("of a revoked link: %v", err)
	}
}

func second[A any](_ A, err error) error { return err }

func TestAliveIsBounded(t *testing.T) {
	a := alive[int]{limit: 3}
	for i, id := range []string{"a", "b", "c", "d"} {
		a.add(id, i, start.Add(time.Duration(i+1)*time.Minute), start)
	}
	if _, ok := a.get("a", start); ok || len(a.items) != 3 {
		t.Error("the one that ends soonest did not give way")
	}
	later := start.Add(150 * time.Second) // b ended
	a.add("e", 4, later.Add(time.Second), later)
	if _, ok := a.get("c", later); !ok || len(a.items) != 3 {
		t.Error("a live one gave way to an ended one")
	}
	if len(a.all(later)) != 3 {
		t.Error("the live ones are not listed")
	}
}

func TestRoles(t *testing.T) {
	order := []Role{NoRole, Monitor, Viewer, Operator, Owner}
	for i, have := range order {
		for j, need := range order {
			if got := (Actor{Role: have}).Require(need) == nil; got != (i >= j && have != NoRole) {
				t.Errorf("%v for %v: %v", have, need, got)
			}
		}
	}
	if Owner.String() != "owner" || Role(99).String() != "none" {
		t.Error("names are wrong")
	}
}
