package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// hire makes an operator and answers a client with their key, and their id.
func (w *world) hire(role string) (*browser, string) {
	w.Helper()
	a := w.operator().post("/api/v1/admin/operators", `{"name":"Ada of `+role+`","role":"`+role+`"}`).want(w.T, 200, "")
	b := w.browser("198.51.100.249")
	key, _ := a.json["key"].(string)
	if !strings.HasPrefix(key, "qmo_") {
		w.Fatalf("the key is %q", key)
	}
	b.headers["Authorization"] = "Bearer " + key
	id, _ := a.json["id"].(string)
	return b, id
}

func (b *browser) key() string { return strings.TrimPrefix(b.headers["Authorization"], "Bearer ") }

// monitor is a client with a share link.
func (w *world) monitor() *browser {
	w.Helper()
	a := w.operator().post("/api/v1/admin/monitor-token", ``).want(w.T, 200, "")
	b := w.browser("198.51.100.248")
	b.headers["Authorization"] = "Bearer " + a.json["token"].(string)
	return b
}

// console signs in with a key, and perhaps a code.
func (w *world) console(key, code string) *browser {
	w.Helper()
	b := w.browser("198.51.100.247")
	b.headers["X-QM-CSRF"] = "1"
	body, _ := json.Marshal(map[string]string{"key": key, "otp": code})
	b.post("/api/v1/admin/session", string(body)).want(w.T, 200, "")
	return b
}

// Proves: operators
func TestOperators(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, "")
		owner, ownerID := w.hire("owner")
		if h := owner.get("/api/admin/health").want(t, 200, ""); h.json["organisationError"] != "" {
			t.Errorf("the organisation cannot be read: %s", h.body)
		}
		operator, operatorID := w.hire("operator")
		viewer, _ := w.hire("viewer")

		for _, c := range []struct {
			who          *browser
			method, path string
			body         string
			status       int
			code         string
		}{
			{viewer, "GET", "/api/admin/rooms", "", 200, ""},
			{viewer, "POST", "/api/admin/rooms/rm1/rate", `{"rate":5}`, 403, "insufficient_role"},
			{operator, "POST", "/api/admin/rooms/rm1/rate", `{"rate":5}`, 200, ""},
			{operator, "DELETE", "/api/admin/rooms/rm1", "", 403, "insufficient_role"},
			{operator, "GET", "/api/admin/operators", "", 403, "insufficient_role"},
			{owner, "GET", "/api/admin/operators", "", 200, ""},
			{owner, "POST", "/api/admin/operators", `{"name":"x"}`, 400, "invalid_role"},
			{owner, "POST", "/api/admin/operators", `{"name":"x","role":"admin"}`, 400, "invalid_role"},
			{owner, "POST", "/api/admin/operators", `{"name":" ","role":"viewer"}`, 400, "invalid_name"},
			{owner, "POST", "/api/admin/operators", `{"name":"a\u0007","role":"viewer"}`, 400, "invalid_name"},
			{owner, "POST", "/api/admin/operators", `{"name":"` + strings.Repeat("n", 201) + `","role":"viewer"}`, 400, "invalid_name"},
			{owner, "POST", "/api/admin/operators", `{"name":7,"role":"viewer"}`, 400, "invalid_name"},
			{owner, "POST", "/api/admin/operators", `{"name":"x","role":"viewer","key":"mine"}`, 400, "unknown_field"},
			{owner, "POST", "/api/admin/operators", ``, 400, "invalid_json"},
			{owner, "DELETE", "/api/admin/operators/nobody", "", 404, "operator_not_found"},
			{owner, "DELETE", "/api/admin/operators/" + ownerID, "", 409, "cannot_revoke_self"},
			{owner, "POST", "/api/admin/operators/" + operatorID, `{"role":"owner"}`, 405, "method_not_allowed"}, // no route changes a role
			{owner, "DELETE", "/api/admin/operators/" + operatorID, "", 200, ""},
			{owner, "DELETE", "/api/admin/operators/" + operatorID, "", 404, "operator_not_found"},
			{operator, "GET", "/api/admin/rooms", "", 401, "unauthorized"},
		} {
			c.who.do(c.method, c.path, c.body).want(t, c.status, c.code)
		}
		list := owner.get("/api/v1/admin/operators").want(t, 200, "")
		if n := len(list.json["operators"].([]any)); n != 2 || strings.Contains(list.body, "qmo_") || !strings.Contains(list.body, `"name":"Ada of viewer"`) {
			t.Errorf("operators: %s", list.body)
		}
		// A revoked key, though genuine, locks nobody out, however often a script repeats it.
		for range 20 {
			operator.get("/api/admin/rooms").want(t, 401, "unauthorized")
		}
		// A wrong one does.
		stranger := w.browser("198.51.100.77")
		stranger.headers["Authorization"] = "Bearer " + viewer.key()[:len(viewer.key())-1] + "_"
		for range 10 {
			stranger.get("/api/admin/rooms").want(t, 401, "unauthorized")
		}
		stranger.headers["Authorization"] = viewer.headers["Authorization"]
		stranger.get("/api/admin/rooms").want(t, 429, "too_many_auth_failures")
	})
}

// What an operator has begun ends with their key: sessions, links, tickets and streams.
func TestRevocationEndsWhatTheKeyBegan(t *testing.T) {
	onEachStore(t, func(w *world) {
		operator, id := w.hire("operator")
		console := w.console(operator.key(), "")
		who := console.get("/api/v1/admin/session").want(t, 200, "")
		if who.json["id"] != id || who.json["role"] != "operator" || who.json["name"] != "Ada of operator" || who.json["session"] != true {
			t.Errorf("the console is %s", who.body)
		}
		link := operator.post("/api/v1/admin/monitor-token", `{"expiresInSec":3600}`).want(t, 200, "")
		watcher := w.browser("198.51.100.3")
		watcher.headers["Authorization"] = "Bearer " + link.json["token"].(string)
		watcher.get("/api/admin/rooms").want(t, 200, "")
		ticket := console.post("/api/v1/admin/sse-ticket", "").want(t, 200, "").json["ticket"].(string)

		w.operator().do("DELETE", "/api/admin/operators/"+id, "").want(t, 200, "")
		console.get("/api/admin/rooms").want(t, 401, "unauthorized")
		watcher.get("/api/admin/rooms").want(t, 401, "unauthorized")
		w.browser("198.51.100.4").get("/api/admin/events?ticket="+ticket).want(t, 401, "invalid_sse_ticket")
		fresh := w.browser("198.51.100.5")
		fresh.headers["X-QM-CSRF"] = "1"
		fresh.post("/api/admin/session", `{"key":"`+operator.key()+`"}`).want(t, 401, "unauthorized")
	})
}

// Proves: monitor
func TestMonitorLinksOfTheOrganisation(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"returnOrigins":["https://a.example"],"tagOrigins":["https://b.example"],"urlPatterns":["/sale*"]`)
		op := w.operator()
		for body, code := range map[string]string{`{"expiresInSec":59}`: "invalid_expires_in_sec", `{"expiresInSec":"x"}`: "invalid_expires_in_sec",
			`{"expiresInSec":31622401}`: "invalid_expires_in_sec", `{"days":1}`: "unknown_field", `[]`: "invalid_json"} {
			op.post("/api/admin/monitor-token", body).want(t, 400, code)
		}
		a := op.post("/api/v1/admin/monitor-token", ``).want(t, 200, "")
		if at := strings.Index(a.json["url"].(string), "/#monitor="); at < 0 || strings.Contains(a.json["url"].(string)[:at], "?") {
			t.Errorf("the link is %s: its token belongs in the fragment", a.json["url"])
		}
		watcher, other := w.monitor(), w.monitor()
		links := op.get("/api/v1/admin/monitor-token").want(t, 200, "").json["links"].([]any)
		if len(links) != 3 || links[0].(map[string]any)["createdByName"] != "admin key" {
			t.Errorf("links %v", links)
		}
		for path, status := range map[string]int{
			"/api/admin/rooms": 200, "/api/admin/rooms/rm1": 200, "/api/admin/health": 200, "/metrics": 200, "/api/admin/session": 200,
			"/api/admin/audit": 403, "/api/admin/monitor-token": 403, "/api/admin/operators": 403, "/api/admin/rooms/rm1/targeting": 403,
			"/api/admin/rooms/rm1/journal": 403,
		} {
			watcher.get(path).want(t, status, map[int]string{403: "insufficient_role"}[status])
		}
		// Through a link a room comes back with its inside blanked, and cannot be posted back.
		got := watcher.get("/api/admin/rooms/rm1").want(t, 200, "")
		if got.json["redacted"] != true || got.json["tagOrigins"] != nil || len(got.json["returnOrigins"].([]any)) != 0 || len(got.json["urlPatterns"].([]any)) != 0 {
			t.Errorf("a shared room is %s", got.body)
		}
		if all := watcher.get("/api/admin/rooms"); strings.Contains(all.body, "a.example") || strings.Contains(all.body, "/sale") || !strings.Contains(all.body, `"redacted":true`) {
			t.Errorf("shared rooms are %s", all.body)
		}
		if plain := op.get("/api/admin/rooms/rm1"); plain.json["redacted"] != nil || !strings.Contains(plain.body, "a.example") {
			t.Errorf("the operator's room is %s", plain.body)
		}
		op.post("/api/admin/rooms", got.body).want(t, 400, "redacted_shape")

		for _, bad := range []string{"", "?id=", "?all=2", "?id=x&all=1"} {
			op.do("DELETE", "/api/admin/monitor-token"+bad, "").want(t, 400, "invalid_parameter")
		}
		op.do("DELETE", "/api/admin/monitor-token?id=ml_none", "").want(t, 404, "link_not_found")
		id := links[1].(map[string]any)["id"].(string)
		op.do("DELETE", "/api/admin/monitor-token?id="+id, "").want(t, 200, "")
		op.do("DELETE", "/api/admin/monitor-token?id="+id, "").want(t, 404, "link_not_found")
		if n := op.do("DELETE", "/api/admin/monitor-token?all=1", "").want(t, 200, "").num(t, "revoked"); n != 2 {
			t.Errorf("%d were revoked", n)
		}
		if n := op.do("DELETE", "/api/admin/monitor-token?all=1", "").want(t, 200, "").num(t, "revoked"); n != 0 {
			t.Errorf("%d were revoked of none", n)
		}
		watcher.get("/api/admin/rooms").want(t, 401, "unauthorized")
		other.get("/api/admin/rooms").want(t, 401, "unauthorized")
	})
}

// A console's stream ends with the key that opened it.
func TestStreamsEndWithTheirKey(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		viewer, id := s.hire("viewer")
		st := s.stream("/api/admin/events", viewer)
		if _, _, ok := st.next(); !ok {
			t.Fatal("no frame")
		}
		s.operator().do("DELETE", "/api/admin/operators/"+id, "").want(t, 200, "")
		began := time.Now()
		for ok := true; ok; {
			_, _, ok = st.next()
		}
		if d := time.Since(began); d > 5*time.Second { // of the bubble
			t.Errorf("the stream ended %s after the revocation", d)
		}
	})
}

// Proves: shutdown
func TestShutdown(t *testing.T) {
	stopped := make(chan bool, 1)
	inMemory(t, Options{Stop: func() { stopped <- true }}, func(w *world) {
		operator, _ := w.hire("operator")
		operator.post("/api/admin/shutdown", "").want(t, 403, "insufficient_role")
		w.operator().post("/api/admin/shutdown", `{"now":true}`).want(t, 400, "unknown_field")
		select {
		case <-stopped:
			t.Fatal("stopped by a refused request")
		default:
		}
		a := w.operator().post("/api/v1/admin/shutdown", "").want(t, 200, "")
		if a.json["ok"] != true || a.json["stopping"] != true || a.json["uptimeSec"] == nil || !<-stopped {
			t.Errorf("answered %s", a.body)
		}
	})
	inMemory(t, Options{}, func(w *world) {
		w.operator().post("/api/admin/shutdown", "").want(t, 400, "not_available")
	})
}
