package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"qm/access/token"
	"qm/engine"
)

func TestEveryRouteHasATwinAndKnowsItsVerbs(t *testing.T) {
	inMemory(t, Options{Demo: true}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		b := w.browser("198.51.100.1")
		for _, r := range w.server.routes() {
			for _, path := range r.paths {
				forms := []string{path}
				if rest, ok := strings.CutPrefix(path, "api:"); ok {
					forms = []string{"/api/v1/" + rest, "/api/" + rest}
				}
				for _, form := range forms {
					form = strings.ReplaceAll(form, "{id}", "rm1")
					got := b.do("PATCH", form, "")
					if allow := got.header.Get("Allow"); got.status != 405 || !strings.Contains(allow, "OPTIONS") {
						t.Errorf("PATCH %s answers %d, Allow %q", form, got.status, allow)
					}
					if !r.page {
						got.want(t, 405, "method_not_allowed")
					}
					if got := b.do("OPTIONS", form, ""); got.status != 204 || got.header.Get("Allow") == "" || got.header.Get("Access-Control-Allow-Origin") != "" && !r.public {
						t.Errorf("OPTIONS %s answers %d %v", form, got.status, got.header)
					}
					if r.get == nil {
						if got := b.do("HEAD", form, ""); got.status != 405 {
							t.Errorf("HEAD %s answers %d", form, got.status)
						}
					}
				}
			}
		}
		for _, path := range []string{"/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/join", "/api/v1/join/", "/api/v1//join", "/api/v1/admin/rooms/rm1/", "/api/v1/admin/rooms//state", "/api/v1/rooms/rm1/x"} {
			b.get(path).want(t, 404, "not_found")
		}
		for _, path := range []string{"/nothing", "/w/", "/w/rm1/x", "/w/unknown", "/w/UPPER", "/assets/", "/assets/x.js"} {
			if got := b.get(path); got.status != 404 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") || got.header["Set-Cookie"] != nil {
				t.Errorf("%s answers %d %q", path, got.status, got.header.Get("Content-Type"))
			}
		}
	})
}

// Proves: owner.cookie, cookie.cap
func TestCookies(t *testing.T) {
	inMemory(t, Options{RoomCookieCap: 3, CookieMaxAgeSec: 1000}, func(w *world) {
		for i := range 6 {
			w.room("rm"+itoa(i), 60, `,"state":"paused"`)
		}
		b := w.browser("198.51.100.1")
		got := b.join("rm0")
		set := got.header["Set-Cookie"]
		if len(set) != 2 || !strings.HasPrefix(set[0], "qm_rm0=") || !strings.HasPrefix(set[1], "qms_rm0=") {
			t.Fatalf("join sets %q", set)
		}
		for _, c := range set {
			for _, part := range []string{"; Path=/;", "Max-Age=1000", "SameSite=Lax"} {
				if !strings.Contains(c+";", part) {
					t.Errorf("%q is without %s", c, part)
				}
			}
			if strings.Contains(c, "Secure") || strings.Contains(c, "HttpOnly") != strings.HasPrefix(c, "qms_") {
				t.Errorf("cookie %q", c)
			}
		}
		if v := b.jar["qms_rm0"]; len(v) < 16 || len(v) > 128 {
			t.Errorf("the session is %q", v)
		}
		secure := w.browser("198.51.100.2")
		secure.headers["X-Forwarded-Proto"] = "https"
		for _, c := range secure.join("rm0").header["Set-Cookie"] {
			if !strings.Contains(c, "; Secure") {
				t.Errorf("over TLS %q", c)
			}
		}
		// At most three rooms a browser: the oldest go (seed 004, QM-504).
		for i := 1; i < 6; i++ {
			time.Sleep(time.Second)
			b.join("rm" + itoa(i))
		}
		for i := range 6 {
			_, place := b.jar["qm_rm"+itoa(i)]
			_, owner := b.jar["qms_rm"+itoa(i)]
			if keep := i >= 3; place != keep || owner != keep {
				t.Errorf("after six rooms room %d has cookies: %v, %v", i, place, owner)
			}
		}
	})
}

// TestAStrayCookieLosesNoPlace: a session of the same name that owns nothing, beside the one that does (contract.md 6).
func TestAStrayCookieLosesNoPlace(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 0, "")
		b := w.browser("198.51.100.1")
		b.join("rm1")
		place, session := b.jar["qm_rm1"], b.jar["qms_rm1"]
		other := w.browser("198.51.100.2")
		other.headers["Cookie"] = "qms_rm1=" + strings.Repeat("A", 26) + "; qms_rm1=" + session
		got := other.post("/api/v1/join", `{"roomId":"rm1","token":"`+place+`"}`).want(t, 200, "")
		if got.num(t, "position") != 1 || w.waiting("rm1") != 1 {
			t.Errorf("a join with the token in its body answers %s", got.body)
		}
		// A page says that a place has lapsed only where none is left.
		w.operator().post("/api/v1/admin/rooms/rm1/eject", `{"ticket":1}`).want(t, 200, "")
		b.join("rm1")
		b.headers["Cookie"] = "qm_rm1=" + place + "; qm_rm1=" + b.jar["qm_rm1"] + "; qms_rm1=" + session
		if got := b.get("/w/rm1"); strings.Contains(got.body, `"lapsed":"`) {
			t.Errorf("the page of a place in line says that it has lapsed: %s", got.body)
		}
	})
}

// Proves: cors
func TestCheckOverCORS(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, "")
		w.room("rm2", 60, `,"returnOrigins":["https://a.example"]`)
		w.room("rm3", 60, `,"returnOrigins":["https://a.example"],"tagOrigins":["https://b.example"]`)
		w.room("rm4", 60, `,"returnOrigins":["https://a.example"],"tagOrigins":[]`)
		for _, test := range []struct {
			room, origin, allowed string
		}{
			{"rm1", "https://shop.example", "https://shop.example"}, {"rm1", "https://a.example", ""}, {"rm1", "null", ""}, {"rm1", "", ""},
			{"rm1", "https://shop.example.evil.example", ""}, {"rm1", "http://shop.example", ""},
			{"rm2", "https://a.example", "https://a.example"}, {"rm2", "https://shop.example", "https://shop.example"}, {"rm2", "https://b.example", ""},
			{"rm3", "https://b.example", "https://b.example"}, {"rm3", "https://a.example", ""}, {"rm3", "https://shop.example", "https://shop.example"},
			{"rm4", "https://a.example", ""}, {"rm4", "https://shop.example", "https://shop.example"},
			{"nowhere", "https://anything.example", "*"}, {"NO", "https://shop.example", ""},
		} {
			b := w.browser("198.51.100.1")
			if test.origin != "" {
				b.headers["Origin"] = test.origin
			}
			for _, method := range []string{"GET", "OPTIONS", "HEAD"} {
				got := b.do(method, "/api/v1/check?roomId="+test.room, "")
				if allowed := got.header.Get("Access-Control-Allow-Origin"); allowed != test.allowed || got.header.Get("Vary") != "Origin" {
					t.Errorf("%s for %s from %q allows %q, not %q", method, test.room, test.origin, allowed, test.allowed)
				}
			}
		}
		b := w.browser("198.51.100.1")
		b.headers["Origin"] = "https://shop.example"
		if got := b.post("/api/v1/join", `{"roomId":"rm1"}`); got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Error("join may be read from another origin")
		}
	})
}

// Proves: check, door.key
func TestCheck(t *testing.T) {
	inMemory(t, Options{PublicURL: "https://queue.example"}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		b := w.browser("198.51.100.1")
		got := b.check("rm1").want(t, 200, "")
		if got.json["action"] != "queue" || got.json["waitingRoomUrl"] != "https://queue.example/w/rm1" || got.json["sess"] != nil || got.json["clearToken"] != nil {
			t.Errorf("a stranger is told %s", got.body)
		}
		if got := b.check("nowhere"); got.json["action"] != "pass" || got.json["reason"] != "no_room" {
			t.Errorf("an unknown room: %s", got.body)
		}
		for query, code := range map[string]string{
			"": "invalid_room_id", "?roomId=": "invalid_room_id", "?roomId=X": "invalid_room_id", "?roomId=rm1&roomId=rm2": "duplicate_parameter",
		} {
			b.get("/api/v1/check"+query).want(t, 400, code)
		}
		b.get("/api/v1/check?roomId=rm1&roomId=rm1").want(t, 200, "")

		// Vouching for an address takes the key, in the header.
		b.get("/api/v1/check?roomId=rm1&ip=192.0.2.7").want(t, 401, "unauthorized")
		b.get("/api/v1/check?roomId=rm1&ip=192.0.2.7&key="+testPublicKey).want(t, 401, "credential_in_query")
		b.headers["Authorization"] = "Bearer " + testPublicKey
		b.get("/api/v1/check?roomId=rm1&ip=192.0.2.7").want(t, 200, "")
		b.get("/api/v1/check?roomId=rm1&ip=2001:db8::1&agent=x").want(t, 200, "")
		for _, ip := range []string{"192.0.2.7,192.0.2.8", "x", "", "192.0.2.7:80", "192.0.2.0/24"} {
			b.get("/api/v1/check?roomId=rm1&ip="+ip).want(t, 400, "invalid_ip")
		}
		b.get("/api/v1/check?roomId=rm1&ip=192.0.2.7&ip=192.0.2.8").want(t, 400, "invalid_ip")
		delete(b.headers, "Authorization")

		b.join("rm1")
		if got := b.check("rm1"); got.json["action"] != "queue" || got.json["reason"] != "waiting" || got.json["clearToken"] != nil {
			t.Errorf("who waits is told %s", got.body)
		}
		w.operator().post("/api/admin/rooms/rm1/flush", `{"count":1}`).want(t, 200, "")
		got = b.check("rm1")
		key, _ := got.json["sess"].(string)
		if got.json["action"] != "pass" || key == "" {
			t.Fatalf("who has passed is told %s", got.body)
		}
		stats := w.stats("rm1")
		if stats.num(t, "doors") != 1 || stats.num(t, "passes") != 0 {
			t.Errorf("after the first check: %s", stats.body)
		}
		edge := w.browser("198.51.100.200")
		for _, send := range []func() answer{
			func() answer { return edge.get("/api/check?roomId=rm1&sess=" + key) },
			func() answer { edge.headers["X-QM-Session"] = key; return edge.get("/api/check?roomId=rm1") },
			func() answer {
				delete(edge.headers, "X-QM-Session")
				edge.jar["qm_dk_rm1"] = key
				return edge.get("/api/check?roomId=rm1")
			},
		} {
			if got := send(); got.json["action"] != "pass" || got.json["reason"] != "session" {
				t.Errorf("the door-session key is good for %s", got.body)
			}
		}
		if got := edge.get("/api/check?roomId=rm1&sess=" + key[:len(key)-2] + "QQ"); got.json["action"] != "pass" { // the cookie is still good
			t.Errorf("a wrong key beside a good cookie: %s", got.body)
		}
		// When the site is done, it gives the door session back by its key, or the browser does by its session.
		other := w.browser("198.51.100.3")
		other.join("rm1")
		w.operator().post("/api/admin/rooms/rm1/flush", `{"count":1}`).want(t, 200, "")
		site := w.browser("198.51.100.201")
		site.headers["X-QM-Session"] = other.check("rm1").json["sess"].(string)
		site.headers["Origin"] = "https://shop.example"
		for _, left := range []bool{true, false} {
			got := site.post("/api/v1/leave?roomId=rm1", `{"roomId":"rm1"}`).want(t, 200, "")
			if got.json["left"] != left || got.header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
				t.Errorf("leave by the key answers %s %v", got.body, got.header)
			}
		}
		if got := b.post("/api/v1/leave", `{"roomId":"rm1"}`).want(t, 200, ""); got.json["left"] != true {
			t.Errorf("leave answers %s", got.body)
		}
		if got := b.post("/api/v1/leave", `{"roomId":"rm1"}`).want(t, 200, ""); got.json["left"] != false {
			t.Errorf("leave with nothing to give answers %s", got.body)
		}
		if got := edge.get("/api/check?roomId=rm1"); got.json["action"] != "queue" || got.json["clearToken"] != true {
			t.Errorf("after the leave the key is good for %s", got.body)
		}
		b.post("/api/v1/leave", `{"roomId":"nowhere"}`).want(t, 404, "room_not_found")
		b.post("/api/v1/leave", `{"roomId":5}`).want(t, 400, "invalid_room_id")
	})
}

// Proves: door.key
func TestADoorSessionEndsWhenUnseenAndWhenOld(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 600, `,"sessionTtlSec":60,"sessionMaxSec":300`)
		b := w.browser("198.51.100.1")
		b.join("rm1")
		b.untilPassed("rm1")
		edge := w.browser("198.51.100.200")
		edge.headers["X-QM-Session"] = b.check("rm1").json["sess"].(string)
		for range 9 {
			time.Sleep(30 * time.Second)
			if got := edge.check("rm1"); got.json["action"] != "pass" {
				t.Fatalf("a session in use: %s", got.body)
			}
		}
		time.Sleep(40 * time.Second)
		if got := edge.check("rm1"); got.json["action"] != "queue" {
			t.Errorf("a session older than sessionMaxSec: %s", got.body)
		}
		if got := b.status("rm1"); got.json["expired"] != true || got.json["reason"] != "expired" {
			t.Errorf("its owner is told %s", got.body)
		}
	})
}

// Proves: limits
func TestRateLimits(t *testing.T) {
	inMemory(t, Options{JoinLimitPerMin: 3, StatusLimitPerMin: 4, CheckLimitPerMin: 2}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		b := w.browser("198.51.100.1")
		for range 3 {
			b.join("rm1")
		}
		got := b.post("/api/v1/join", `{"roomId":"rm1"}`).want(t, 429, "rate_limited")
		if got.header["Set-Cookie"] != nil {
			t.Errorf("a refused join sets %q", got.header["Set-Cookie"])
		}
		for range 4 {
			b.status("rm1").want(t, 200, "")
		}
		b.status("rm1").want(t, 429, "rate_limited")
		b.check("rm1").want(t, 200, "")
		b.check("rm1").want(t, 200, "")
		b.check("rm1").want(t, 429, "rate_limited")
		other := w.browser("198.51.100.2")
		other.join("rm1")
		other.headers["Authorization"] = "Bearer " + testPublicKey
		for i := range 5 { // counted for the vouched address
			other.get("/api/v1/check?roomId=rm1&ip=192.0.2."+itoa(i+1)).want(t, 200, "")
		}
		time.Sleep(time.Minute)
		b.join("rm1")
		b.status("rm1").want(t, 200, "")
	})
}

// Whatever fails below is worded here, and takes no place away.
//
// Proves: check.durable
func TestFailuresBelow(t *testing.T) {
	fail := &broken{}
	inMemory(t, Options{Engine: fail}, func(w *world) {
		fail.Engine = w.engine
		w.room("rm1", 60, `,"state":"paused"`)
		a := w.browser("198.51.100.1")
		a.join("rm1")
		for _, test := range []struct {
			err    error
			code   string
			cookie bool
		}{
			{engine.ErrStorage, "storage_unavailable", true}, {fmt.Errorf("join: %w", engine.ErrStorage), "storage_unavailable", true},
			{context.DeadlineExceeded, "storage_unavailable", true}, {engine.ErrBusy, "busy", false}, {engine.ErrElsewhere, "not_owner", false},
			{engine.ErrDamaged, "room_damaged", false},
		} {
			fail.join = test.err
			b := w.browser("198.51.100.2")
			got := b.post("/api/v1/join", `{"roomId":"rm1"}`).want(t, 503, test.code)
			if _, ok := b.jar["qms_rm1"]; ok != test.cookie || b.jar["qm_rm1"] != "" || got.json["token"] != nil {
				t.Errorf("%v leaves the cookies %v", test.err, b.jar)
			}
			if page := w.browser("198.51.100.3").get("/w/rm1"); page.status != 503 || page.header.Get("Retry-After") == "" || !strings.Contains(page.body, "<html") {
				t.Errorf("%v shows %d", test.err, page.status)
			}
			if test.cookie {
				// The retry with the session finds the place that may have been committed.
				session := b.jar["qms_rm1"]
				fail.join = nil
				b.join("rm1")
				if b.jar["qms_rm1"] != session {
					t.Error("the retry has another session")
				}
			}
			fail.join = nil
			fail.view = test.err
			for _, path := range []string{"/api/v1/status?roomId=rm1", "/api/v1/check?roomId=rm1", "/api/v1/events?roomId=rm1", "/api/v1/rooms/rm1"} {
				a.get(path).want(t, 503, test.code)
			}
			fail.view = nil
			a.status("rm1").want(t, 200, "")
		}
		// What nobody foresaw is a 500 that tells nothing.
		fail.view = errors.New("something with a secret in it")
		r := a.raw("GET", "/api/v1/status?roomId=rm1")
		if r.status != 500 || r.json["code"] != "internal_error" || strings.Contains(r.body, "secret") {
			t.Errorf("answered %d %s", r.status, r.body)
		}
		fail.view = nil

		// A shut room is listed with the reason, and the server says that it is not ready.
		fail.health = &engine.Health{JournalErr: "gone", Rooms: []engine.RoomHealth{{Room: "rm9", Damaged: "event 7 was edited"}}}
		if got := w.operator().get("/api/admin/rooms").want(t, 200, ""); !strings.Contains(got.body, `{"id":"rm9","state":null,"code":"room_damaged","error":"event 7 was edited"}`) || !strings.Contains(got.body, `"rm1"`) {
			t.Errorf("the listing is %s", got.body)
		}
		a.get("/healthz").want(t, 503, "")
		if got := a.get("/api/version").want(t, 200, ""); got.json["ok"] != false || strings.Contains(got.body, "rm9") {
			t.Errorf("anybody is told %s", got.body)
		}
	})
}

// A token beyond this process's view is not seen yet, never expired (architecture.md, The actor).
//
// Proves: status
func TestATokenBeyondTheViewWaits(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		w.crowd("rm1", 3)
		b := w.browser("198.51.100.1")
		for _, v := range []token.Visitor{
			{Room: "rm1", Ticket: 4, Generation: 1}, {Room: "rm1", Ticket: 1, Generation: 2}, {Room: "rm1", Handle: 7, Generation: 1},
		} {
			v.IssuedAt = time.Now().UnixMilli()
			start := time.Now()
			got := b.get("/api/v1/status?token="+w.keys.SignVisitor(v)).want(t, 200, "")
			if got.json["expired"] != nil || got.json["passed"] != false || time.Since(start) > time.Second {
				t.Errorf("%+v is told %s after %v", v, got.body, time.Since(start))
			}
			if v.Ticket != 0 && got.json["position"] != 4.0 {
				t.Errorf("%+v is told %s", v, got.body)
			}
		}
		v := token.Visitor{Room: "rm1", Ticket: 4, Generation: 1, IssuedAt: time.Now().UnixMilli()}
		go func() {
			time.Sleep(100 * time.Millisecond)
			w.browser("198.51.100.9").join("rm1")
		}()
		if got := b.get("/api/v1/status?token=" + w.keys.SignVisitor(v)); got.json["estimated"] != nil || got.json["position"] != 4.0 {
			t.Errorf("the view has caught up: %s", got.body)
		}
	})
}

// Proves: waiting.page
func TestThePageWorksWithoutJavaScript(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","branding":{"name":"<b>Shop</b>"}`)
		w.crowd("rm1", 20)
		b := w.browser("198.51.100.1")
		page := b.get("/w/rm1").want(t, 200, "")
		if b.ticket("rm1") != 21 || !strings.Contains(page.body, ">21<") || !strings.Contains(page.body, `http-equiv="refresh"`) || strings.Contains(page.body, "<b>Shop") {
			t.Errorf("ticket %d, page %.2000s", b.ticket("rm1"), page.body)
		}
		for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"} {
			if page.header.Get(name) == "" {
				t.Errorf("the page has no %s", name)
			}
		}
		if again := b.get("/w/rm1"); b.ticket("rm1") != 21 || again.header["Set-Cookie"] != nil {
			t.Errorf("a refresh sets %q", again.header["Set-Cookie"])
		}
		w.operator().post("/api/admin/rooms/rm1/flush", `{"count":21}`).want(t, 200, "")
		moved := b.get("/w/rm1")
		if moved.status != 302 || !strings.HasPrefix(moved.header.Get("Location"), "https://shop.example/start?from=line&qm_code=") {
			t.Errorf("the page moves on by %d to %q", moved.status, moved.header.Get("Location"))
		}
		// A place that has lapsed is said to have, and replaced.
		time.Sleep(11 * time.Minute)
		page = b.get("/w/rm1").want(t, 200, "")
		if b.ticket("rm1") != 22 || !strings.Contains(page.body, `"lapsed":"expired"`) {
			t.Errorf("after passedTtlSec: ticket %d, %.1500s", b.ticket("rm1"), page.body)
		}
	})
}

func TestTheDemoPageLetsInWhoHasPassed(t *testing.T) {
	inMemory(t, Options{Demo: true}, func(w *world) {
		if got := w.operator().post("/api/admin/rooms", `{"id":"demo","targetUrl":"http://queue.example/demo","state":"paused"}`); got.status != 200 {
			t.Fatal(got.status, got.body)
		}
		b := w.browser("198.51.100.1")
		if got := b.get("/demo"); got.status != 302 || got.header.Get("Location") != "/w/demo" {
			t.Errorf("a stranger gets %d %q", got.status, got.header.Get("Location"))
		}
		b.get("/w/demo").want(t, 200, "")
		w.operator().post("/api/admin/rooms/demo/flush", `{"count":1}`).want(t, 200, "")
		door := b.get("/w/demo").header.Get("Location")
		if got := b.get(strings.TrimPrefix(door, "http://queue.example")).want(t, 200, ""); !strings.Contains(got.body, "<html") || b.jar["qm_dk_demo"] == "" {
			t.Errorf("the door shows %.200s, cookies %v", got.body, b.jar)
		}
		b.get("/demo").want(t, 200, "")
	})
}

// Proves: health
func TestHealthTellsTheTruth(t *testing.T) {
	inMemory(t, Options{Version: "1.2.3", Stores: "memory+memory"}, func(w *world) {
		time.Sleep(time.Second)
		b := w.browser("198.51.100.1")
		for _, path := range []string{"/healthz", "/api/health", "/api/v1/health", "/api/version", "/api/v1/version"} {
			if got := b.get(path).want(t, 200, ""); got.json["ok"] != true || got.json["version"] != "1.2.3" || got.json["stores"] != "memory+memory" {
				t.Errorf("%s answers %s", path, got.body)
			}
		}
		if got := w.operator().get("/api/admin/health").want(t, 200, ""); got.json["config"] == nil || got.json["rooms"] == nil {
			t.Errorf("the operator is told %s", got.body)
		}
	})
}

// Proves: errors
func TestEveryCodeIsWorded(t *testing.T) {
	for code, v := range Codes {
		if v.Status < 400 || v.Title == "" || strings.ToLower(code) != code {
			t.Errorf("%s is %+v", code, v)
		}
		if (v.Status == http.StatusTooManyRequests || v.Status == http.StatusServiceUnavailable) && v.Retry == 0 {
			t.Errorf("%s says to come back and not when", code)
		}
	}
}
