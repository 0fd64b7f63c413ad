package httpapi

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"qm/access"
	"qm/access/token"
)

var update = flag.Bool("update", false, "write the table of grants in docs/OPERATIONS.md anew")

const (
	grantsFile  = "../docs/OPERATIONS.md"
	grantsBegin = "<!-- grants: make generate writes this table, and a test holds the server to it -->\n"
	grantsEnd   = "<!-- end of grants -->\n"
)

// grantColumns are the columns of the table, from who may least.
var grantColumns = []access.Role{access.NoRole, access.Monitor, access.Viewer, access.Operator, access.Owner}

// methodsOf are a route's methods, with the role that each needs.
func methodsOf(r *route) (list []struct {
	method string
	need   access.Role
}) {
	add := func(h handler, method string, need access.Role) {
		if h != nil {
			list = append(list, struct {
				method string
				need   access.Role
			}{method, need})
		}
	}
	add(r.get, "GET", r.role)
	add(r.post, "POST", r.write)
	add(r.delete, "DELETE", r.write)
	return list
}

// shownPath is a route's path as the docs spell it.
func shownPath(r *route) string {
	path := strings.Replace(r.paths[0], "{id}", ":id", 1)
	if rest, ok := strings.CutPrefix(path, "api:"); ok {
		return "/api/v1/" + rest
	}
	return path
}

// grantsTable is the table of all routes that ask for a credential.
func grantsTable(routes []*route) string {
	var b strings.Builder
	b.WriteString("| | nobody | share link | viewer | operator | owner |\n| --- | :-: | :-: | :-: | :-: | :-: |\n")
	for _, r := range routes {
		if !r.admin {
			continue
		}
		for _, m := range methodsOf(r) {
			fmt.Fprintf(&b, "| `%s %s` |", m.method, shownPath(r))
			for _, role := range grantColumns {
				b.WriteString(map[bool]string{true: " yes |", false: " |"}[role >= m.need])
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// readGrants is what the docs promise: by method and path the least role that may.
func readGrants(t *testing.T) (table string, grants map[string]access.Role) {
	t.Helper()
	text, err := os.ReadFile(grantsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), grantsBegin)
	table, _, ok2 := strings.Cut(rest, grantsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of grants", grantsFile)
	}
	grants = map[string]access.Role{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		name := strings.Trim(strings.TrimSpace(cells[0]), "`")
		if name == "" || strings.HasPrefix(name, "-") {
			continue
		}
		for i, role := range grantColumns {
			if strings.TrimSpace(cells[i+1]) == "yes" {
				grants[name] = role
				break
			}
		}
	}
	return table, grants
}

// The table in the docs is made from the list of routes.
func TestGrantsAreDocumented(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		want := grantsTable(w.server.routes0())
		have, _ := readGrants(t)
		holdTable(t, "../docs/th/OPERATIONS.md", grantsBegin, grantsEnd, inThai(t, want))
		if have == want {
			return
		}
		if !*update {
			t.Errorf("%s does not show what the routes say; make generate writes it", grantsFile)
			return
		}
		text, err := os.ReadFile(grantsFile)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(grantsFile, []byte(strings.Replace(string(text), grantsBegin+have, grantsBegin+want, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// routes0 is the list of routes as the server has prepared it.
func (s *Server) routes0() []*route {
	routes := s.routes()
	(&Server{fixed: map[string]*route{}}).index(routes)
	return routes
}

// holder is one sort of credential, and how far it ought to reach.
type holder struct {
	name  string
	arm   func(*browser)
	reach access.Role
	// refused is what a credential that is no good at all is answered with.
	status int
	code   string
	write  string // what anything but a GET is refused with, whatever the role
}

// TestCredentialMatrix walks every route and method with every kind of credential and compares with the table in the docs.
//
// Proves: grants
func TestCredentialMatrix(t *testing.T) {
	onEachStore(t, func(w *world) {
		_, grants := readGrants(t)
		bearer := func(key string) func(*browser) {
			return func(b *browser) { b.headers["Authorization"] = "Bearer " + key }
		}
		viewer, _ := w.hire("viewer")
		operator, _ := w.hire("operator")
		owner, _ := w.hire("owner")
		monitor := w.monitor()
		revoked, revokedID := w.hire("owner")
		ended := w.console(owner.key(), "")
		endedCookie := ended.jar[access.ConsoleCookie]
		ended.do("DELETE", "/api/admin/session", "").want(t, 200, "")
		orphan := w.console(revoked.key(), "").jar[access.ConsoleCookie]
		w.operator().do("DELETE", "/api/admin/operators/"+revokedID, "").want(t, 200, "")
		goneLink := w.operator().post("/api/admin/monitor-token", "").want(t, 200, "")
		w.operator().do("DELETE", "/api/admin/monitor-token?id="+goneLink.json["id"].(string), "").want(t, 200, "")
		factored, _ := w.hire("owner")
		uri := factored.post("/api/admin/otp", "").want(t, 200, "").json["uri"].(string)
		factored.post("/api/admin/otp", `{"otp":"`+codeAt(t, uri, time.Now())+`"}`).want(t, 200, "")
		past := time.Now().Add(-time.Hour).UnixMilli()
		old := token.Reference{ID: "x", IssuedAt: past - 1000, ExpiresAt: past}
		cookie := func(value string, csrf bool) func(*browser) {
			return func(b *browser) {
				b.jar[access.ConsoleCookie] = value
				if csrf {
					b.headers["X-QM-CSRF"] = "1"
				}
			}
		}
		session := func(key string) string { return w.console(key, "").jar[access.ConsoleCookie] }
		operatorCookie, ownerCookie, adminCookie := session(operator.key()), session(owner.key()), session(testAdminKey)
		no := func(name string, arm func(*browser)) holder {
			return holder{name: name, arm: arm, status: 401, code: "unauthorized"}
		}
		holders := []holder{
			no("nothing", func(*browser) {}),
			no("a wrong key", bearer("guess")),
			no("a wrong operator's key", bearer(owner.key()+"x")),
			no("PUBLIC_API_KEY", bearer(testPublicKey)),
			no("a revoked operator's key", bearer(revoked.key())),
			no("a revoked share link", bearer(goneLink.json["token"].(string))),
			no("an expired share link", bearer(w.keys.SignReference(token.PurposeMonitor, old))),
			no("an ended session", cookie(endedCookie, true)),
			no("a revoked operator's session", cookie(orphan, true)),
			no("an expired session", cookie(w.keys.SignReference(token.PurposeSession, old), true)),
			no("a session as a Bearer", bearer(ownerCookie)),
			no("a share link as a cookie", cookie(monitor.key(), true)),
			no("a wrong key beside a good cookie", func(b *browser) { cookie(ownerCookie, true)(b); bearer("guess")(b) }),
			{name: "a key that needs a code", arm: bearer(factored.key()), status: 401, code: "otp_required"},
			{name: "a share link", arm: monitor.lend, reach: access.Monitor},
			{name: "a viewer", arm: viewer.lend, reach: access.Viewer},
			{name: "an operator", arm: operator.lend, reach: access.Operator},
			{name: "an owner", arm: owner.lend, reach: access.Owner},
			{name: "ADMIN_KEY", arm: bearer(testAdminKey), reach: access.Owner},
			{name: "an operator's session", arm: cookie(operatorCookie, true), reach: access.Operator},
			{name: "an owner's session", arm: cookie(ownerCookie, true), reach: access.Owner},
			{name: "ADMIN_KEY's session", arm: cookie(adminCookie, true), reach: access.Owner},
			{name: "an owner's session without X-QM-CSRF", arm: cookie(ownerCookie, false), reach: access.Owner, write: "csrf_required"},
		}
		routes := w.server.routes0()
		refusals := []string{"unauthorized", "credential_in_query", "csrf_required", "insufficient_role", "otp_required", "too_many_auth_failures", "invalid_sse_ticket"}
		walked := map[string]bool{}
		n := 0
		for _, r := range routes {
			for _, m := range methodsOf(r) {
				name := m.method + " " + shownPath(r)
				need, listed := grants[name]
				if listed != r.admin {
					t.Errorf("%s is in the docs' table: %v", name, listed)
				}
				walked[name] = true
				if r.free && m.method != "GET" {
					continue // signs in and out: TestSessionJudgesItself
				}
				for _, h := range holders {
					n++
					b := w.browser(addrOf(n)) // nobody is locked out for another
					h.arm(b)
					path := strings.Replace(shownPath(r), ":id", "nobody", 1)
					method, body := m.method, ""
					switch {
					case method == "POST":
						body = `{"nonsense":true}` // whoever may, is refused for this, and nothing is done
					case r.name == "events" || r.name == "admin.events":
						method = "HEAD" // a stream would not end
					}
					a := b.send(method, path, body)
					got, _ := a.json["code"].(string)
					refused := false
					for _, code := range refusals {
						refused = refused || got == code
					}
					if method == "HEAD" {
						refused = a.status == 401 && r.admin || a.status == 403
					}
					switch {
					case !listed:
						if refused {
							t.Errorf("%s, open to everybody, with %s: %d %s", name, h.name, a.status, a.body)
						}
					case h.reach == access.NoRole:
						if a.status != h.status || method != "HEAD" && got != h.code {
							t.Errorf("%s with %s: %d %s", name, h.name, a.status, a.body)
						}
					case h.write != "" && m.method != "GET":
						if a.status != 403 || got != h.write {
							t.Errorf("%s with %s: %d %s", name, h.name, a.status, a.body)
						}
					case h.reach < need:
						if a.status != 403 || method != "HEAD" && got != "insufficient_role" {
							t.Errorf("%s with %s: %d %s", name, h.name, a.status, a.body)
						}
					case refused || a.status >= 500:
						t.Errorf("%s with %s: %d %s", name, h.name, a.status, a.body)
					}
				}
				if listed {
					n++
					b := w.browser(addrOf(n))
					method := m.method
					if r.name == "admin.events" {
						method = "HEAD"
					}
					a := b.send(method, strings.Replace(shownPath(r), ":id", "nobody", 1)+"?key="+testAdminKey, "")
					if got, _ := a.json["code"].(string); a.status != 401 || method != "HEAD" && got != "credential_in_query" {
						t.Errorf("%s with a key in the URL: %d %s", name, a.status, a.body)
					}
				}
			}
		}
		for name := range grants {
			if !walked[name] {
				t.Errorf("the docs' table has %s, which is no route", name)
			}
		}

		// Locked out: no credential is even read.
		shut := w.browser("203.0.113.200")
		shut.headers["Authorization"] = "Bearer guess"
		for range 10 {
			shut.get("/api/admin/rooms").want(t, 401, "unauthorized")
		}
		shut.headers["Authorization"] = "Bearer " + testAdminKey
		for _, r := range routes {
			for _, m := range methodsOf(r) {
				if !r.admin || r.free && m.method == "DELETE" {
					continue // signing out reads no key
				}
				method := m.method
				if r.name == "admin.events" {
					method = "HEAD"
				}
				body := ""
				if method == "POST" {
					body = `{"key":"` + testAdminKey + `"}`
				}
				a := shut.send(method, strings.Replace(shownPath(r), ":id", "nobody", 1), body)
				if a.status != 429 || a.header.Get("Retry-After") == "" {
					t.Errorf("locked out, %s %s answers %d %s", m.method, shownPath(r), a.status, a.body)
				}
			}
		}
	})
}

// lend gives another client what b has.
func (b *browser) lend(to *browser) { to.headers["Authorization"] = b.headers["Authorization"] }

// Signing in and out judge what they are given themselves.
//
// Proves: session
func TestSessionJudgesItself(t *testing.T) {
	onEachStore(t, func(w *world) {
		viewer, _ := w.hire("viewer")
		path := "/api/v1/admin/session"
		for _, c := range []struct {
			body, csrf string
			status     int
			code       string
		}{
			{`{"key":"` + testAdminKey + `"}`, "", 403, "csrf_required"}, {`{"key":"guess"}`, "1", 401, "unauthorized"}, {`{}`, "1", 401, "unauthorized"},
			{`{"key":"` + testPublicKey + `"}`, "1", 401, "unauthorized"}, {`{"key":"` + w.monitor().key() + `"}`, "1", 401, "unauthorized"},
			{`{"key":7}`, "1", 400, "invalid_key"}, {`{"name":"x"}`, "1", 400, "unknown_field"}, {``, "1", 400, "invalid_json"},
			{`{"key":"` + testAdminKey + `"}`, "1", 200, ""}, {`{"key":"` + viewer.key() + `"}`, "1", 200, ""},
		} {
			b := w.browser("198.51.100.90")
			if c.csrf != "" {
				b.headers["X-QM-CSRF"] = c.csrf
			}
			a := b.post(path, c.body).want(t, c.status, c.code)
			if c.status != 200 {
				continue
			}
			if a.json["role"] == nil || a.num(t, "expiresInSec") != 43_200 || strings.Contains(b.jar[access.ConsoleCookie], "qmo_") {
				t.Errorf("signed in: %s", a.body)
			}
			copied := w.browser("198.51.100.91")
			copied.jar[access.ConsoleCookie] = b.jar[access.ConsoleCookie]
			copied.get("/api/admin/rooms").want(t, 200, "")
			copied.do("DELETE", path, "").want(t, 403, "csrf_required")
			b.do("DELETE", path, "").want(t, 200, "")
			copied.get("/api/admin/rooms").want(t, 401, "unauthorized")
		}
	})
}
