package httpapi

import (
	"bytes"
	"image/gif"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// found is what a report says of one check; "" when it does not make it.
func (a answer) found(id string) (status string, whole map[string]any) {
	list, _ := a.json["checks"].([]any)
	for _, each := range list {
		if c, _ := each.(map[string]any); c["id"] == id {
			status, _ = c["status"].(string)
			return status, c
		}
	}
	return "", nil
}

// finds checks what a report says of some checks, as "id=status" each.
func (a answer) finds(t *testing.T, ok bool, want ...string) answer {
	t.Helper()
	if a.status != 200 || a.json["ok"] != ok {
		t.Errorf("answered %d, not a report with ok=%v: %s", a.status, ok, a.body)
	}
	for _, w := range want {
		id, status, _ := strings.Cut(w, "=")
		if got, _ := a.found(id); got != status {
			t.Errorf("check %s is %q, not %q: %s", id, got, status, a.body)
		}
	}
	return a
}

func (b *browser) verify(query string) answer {
	b.Helper()
	return b.get("/api/v1/verify?" + query)
}

// withKey is the browser with a credential.
func (b *browser) withKey(key string) *browser {
	b.headers["Authorization"] = "Bearer " + key
	return b
}

// Proves: verify
func TestVerifyOnEachStore(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"tagOrigins":["https://tag.example"],"returnOrigins":["https://back.example"],"urlPatterns":["/sale*","!/sale/terms"]`)
		b := w.browser("198.51.100.1")
		b.headers["X-Forwarded-Proto"] = "https"
		b.verify("roomId=rm1&connector=snippet&version=1.0.0&url="+url.QueryEscape("https://tag.example/sale?x=1")).
			finds(w.T, true, "room=pass", "state=pass", "target=pass", "origin=pass", "return=warn", "scope=pass", "https=pass", "cookies=info", "server=pass", "key=info")
		b.verify("roomId=rm1&connector=snippet&origin=https://other.example").finds(w.T, false, "room=pass", "origin=fail")
		b.verify("roomId=nowhere").finds(w.T, false, "room=fail", "state=")
		b.verify("").want(w.T, 400, "invalid_room_id")

		list := w.operator().get("/api/v1/admin/rooms/rm1/connectors").want(w.T, 200, "").json["connectors"].([]any)
		if len(list) != 2 {
			w.Fatalf("two sites checked in, and the console has %v", list)
		}
		for _, each := range list {
			c := each.(map[string]any)
			if c["connector"] != "snippet" || c["keyed"] != false || c["ok"] != (c["origin"] == "https://tag.example") || c["lastSeenAt"] == nil {
				w.Errorf("the console has %v", c)
			}
		}
		// A room made anew begins with none.
		w.operator().do("DELETE", "/api/v1/admin/rooms/rm1", "").want(w.T, 200, "")
		w.operator().get("/api/v1/admin/rooms/rm1/connectors").want(w.T, 404, "room_not_found")
		w.room("rm1", 60, "")
		if list := w.operator().get("/api/v1/admin/rooms/rm1/connectors").want(w.T, 200, "").json["connectors"].([]any); len(list) != 0 {
			w.Errorf("a room made anew has %v", list)
		}
	})
}

// Proves: verify
func TestVerifyFindsWhatIsWrong(t *testing.T) {
	inMemory(t, Options{PublicURL: "https://queue.shop.example"}, func(w *world) {
		w.room("rm1", 60, `,"tagOrigins":["https://tag.example"],"returnOrigins":["https://back.example"],"urlPatterns":["/sale*","!/sale/terms"]`)
		w.room("rm2", 60, "")
		w.room("rm3", 60, `,"opensAt":`+ms(time.Now().Add(time.Hour)))
		w.room("plain", 60, "")
		w.operator().post("/api/v1/admin/rooms", `{"id":"plain","targetUrl":"http://shop.example/"}`).want(t, 200, "")
		b := w.browser("198.51.100.1")
		for _, test := range []struct {
			query string
			ok    bool
			want  []string
		}{
			{"roomId=rm1", true, []string{"origin=info", "scope=info", "return=", "cookies="}},
			{"roomId=rm2", true, []string{"origin=info", "scope=pass"}},
			{"roomId=rm1&origin=https://shop.example", true, []string{"origin=pass", "return=pass", "cookies=pass"}},
			{"roomId=rm1&origin=https://SHOP.example:443", true, []string{"origin=pass"}},
			{"roomId=rm1&origin=https://back.example", false, []string{"origin=fail", "return=pass"}},
			{"roomId=rm1&origin=https://back.example&connector=node", true, []string{"origin=info", "return=pass"}},
			{"roomId=rm1&origin=https://shop.example.evil.example", false, []string{"origin=fail", "return=warn"}},
			{"roomId=rm1&origin=null", false, []string{"origin=fail"}},
			{"roomId=rm1&origin=shop.example", false, []string{"origin=fail"}},
			{"roomId=rm1&origin=https://tag.example&url=https://other.example/sale", true, []string{"origin=pass", "scope=pass"}},
			{"roomId=rm1&url=https://tag.example/sale/terms", true, []string{"origin=pass", "scope=warn"}},
			{"roomId=rm1&url=https://tag.example/about", true, []string{"scope=warn"}},
			{"roomId=rm1&url=https://tag.example/%25zz", false, []string{"scope=fail"}},
			{"roomId=rm1&url=/sale", false, []string{"scope=pass", "origin=fail"}},
			{"roomId=rm2&url=https://shop.example/x", true, []string{"scope=pass"}},
			{"roomId=rm3", true, []string{"state=info"}},
			{"roomId=plain&origin=http://shop.example", true, []string{"target=warn", "https=warn", "cookies=info"}},
			{"roomId=rm1&key=" + testPublicKey, false, []string{"key_in_url=fail", "key=info", "public_url="}},
		} {
			got := b.verify(test.query).finds(t, test.ok, test.want...)
			if got.json["privileged"] != false || got.json["api"] != "v1" || got.json["roomId"] == nil || got.json["now"] == nil {
				t.Errorf("%s answers %s", test.query, got.body)
			}
			for _, secret := range []string{"back.example", "tag.example", "shop.example/start", testPublicKey, "queue.shop.example"} {
				if strings.Contains(got.body, secret) {
					t.Errorf("the public report of %s tells %s: %s", test.query, secret, got.body)
				}
			}
		}
		for state, want := range map[string]string{"paused": "state=warn", "bypass": "state=warn", "active": "state=pass"} {
			w.operator().post("/api/v1/admin/rooms/rm2/state", `{"state":"`+state+`"}`).want(t, 200, "")
			b.verify("roomId=rm2").finds(t, true, want)
		}
		// The Origin header speaks when nothing else does.
		b.headers["Origin"] = "https://tag.example"
		b.verify("roomId=rm1").finds(t, true, "origin=pass")
		b.verify("roomId=rm1&url=https://other.example/").finds(t, false, "origin=fail")

		for _, name := range []string{"roomId", "url", "origin", "connector", "version"} {
			b.verify("roomId=rm1&"+name+"=rm1&"+name+"=rm2").want(t, 400, "duplicate_parameter")
		}
	})
}

func TestVerifyOverPlainHTTP(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, "")
		b := w.browser("198.51.100.1") // asks example.com without TLS
		b.verify("roomId=rm1&origin=https://shop.example").finds(t, false, "https=fail")
		b.verify("roomId=rm1&origin=https://shop.example&connector=nginx").finds(t, true, "https=warn")
		b.verify("roomId=rm1&origin=http://shop.example").finds(t, false, "https=warn", "origin=fail")
		b.headers["X-Forwarded-Proto"] = "https"
		b.verify("roomId=rm1&origin=https://shop.example").finds(t, true, "https=pass")
		if got := w.operator().verify("roomId=rm1"); got.json["privileged"] != true {
			t.Errorf("the admin key's report is %s", got.body)
		} else {
			got.finds(t, true, "key=warn", "public_url=warn")
		}
	})
}

func TestAKeyedReportSaysMore(t *testing.T) {
	inMemory(t, Options{PublicURL: "https://queue.shop.example"}, func(w *world) {
		w.room("rm1", 60, `,"tagOrigins":["https://tag.example"],"returnOrigins":["https://back.example"]`)
		b := w.browser("198.51.100.1").withKey(testPublicKey)
		got := b.verify("roomId=rm1&origin=https://tag.example").finds(t, true, "key=pass", "origin=pass", "public_url=pass")
		for _, told := range []string{"https://tag.example", "https://back.example", "https://shop.example/start"} {
			if got.json["privileged"] != true || !strings.Contains(got.body, told) {
				t.Errorf("the keyed report keeps %s to itself: %s", told, got.body)
			}
		}
		// A key in the address is a fault even beside a good one.
		b.verify("roomId=rm1&key=x").finds(t, false, "key=pass", "key_in_url=fail")

		guess := w.browser("198.51.100.2").withKey("guess")
		for range 10 {
			if got := guess.verify("roomId=rm1").finds(t, false, "key=fail", "public_url="); got.json["privileged"] != false || strings.Contains(got.body, "guess") {
				t.Errorf("a wrong key gets %s", got.body)
			}
		}
		guess.verify("roomId=rm1").want(t, 429, "too_many_auth_failures")
		guess.withKey(testPublicKey).verify("roomId=rm1").want(t, 429, "too_many_auth_failures")
		guess.get("/api/v1/verify.gif?roomId=rm1").want(t, 429, "too_many_auth_failures")
	})
}

// Proves: verify
func TestVerifyAsAnImage(t *testing.T) {
	inMemory(t, Options{PublicURL: "https://queue.shop.example"}, func(w *world) {
		w.room("rm1", 60, "")
		b := w.browser("198.51.100.1")
		got := b.get("/api/v1/verify.gif?roomId=rm1&origin=https://shop.example&connector=gtm")
		if _, err := gif.Decode(bytes.NewReader([]byte(got.body))); got.status != 200 || err != nil || got.header.Get("Content-Type") != "image/gif" ||
			got.header.Get("Cross-Origin-Resource-Policy") != "cross-origin" || got.header.Get("Cache-Control") != "no-store" || got.header["X-Qm-Verify"] != nil {
			t.Errorf("answered %d %v %v", got.status, got.header, err)
		}
		got = b.get("/api/v1/verify.gif?roomId=rm1&origin=https://other.example&connector=gtm").want(t, http.StatusFailedDependency, "verify_failed")
		if got.json["ok"] != false || got.json["error"] != "verify_failed" || got.header.Get("X-QM-Verify") != "origin" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("answered %s %v", got.body, got.header)
		}
		if status, _ := got.found("origin"); status != "fail" {
			t.Errorf("the answer does not say what failed: %s", got.body)
		}
		if got := b.get("/api/v1/verify.gif?roomId=nowhere&key=1"); got.status != 424 || got.header.Get("X-QM-Verify") != "key_in_url,room" {
			t.Errorf("answered %d %q", got.status, got.header.Get("X-QM-Verify"))
		}
		b.get("/api/v1/verify.gif").want(t, 400, "invalid_room_id")
		if list := w.operator().get("/api/v1/admin/rooms/rm1/connectors").json["connectors"].([]any); len(list) != 2 {
			t.Errorf("the console has %v", list)
		}
	})
}

func TestVerifySharesTheAllowanceOfChecks(t *testing.T) {
	inMemory(t, Options{CheckLimitPerMin: 4}, func(w *world) {
		w.room("rm1", 60, "")
		b := w.browser("198.51.100.1")
		for _, path := range []string{"/api/v1/verify?roomId=rm1", "/api/v1/verify.gif?roomId=rm1", "/api/v1/check?roomId=rm1", "/api/v1/targeting?roomId=rm1"} {
			if got := b.get(path); got.status != 200 {
				t.Errorf("%s answers %d %s", path, got.status, got.body)
			}
		}
		for _, path := range []string{"/api/v1/verify?roomId=rm1", "/api/verify.gif?roomId=rm1", "/api/v1/check?roomId=rm1"} {
			b.get(path).want(t, 429, "rate_limited")
		}
		w.browser("198.51.100.2").verify("roomId=rm1").finds(t, true)
	})
}

// TestCheckinsAreBounded: whoever may ask for a report may ask for many. Those without a key push out no one with it.
func TestCheckinsAreBounded(t *testing.T) {
	inMemory(t, Options{PublicURL: "https://queue.shop.example"}, func(w *world) {
		w.room("rm1", 60, "")
		w.browser("198.51.100.1").withKey(testPublicKey).verify("roomId=rm1&connector=node&version=1.2.3").finds(t, true)
		flood := w.browser("198.51.100.2")
		for i := range 3 * maxCheckins {
			flood.verify("roomId=rm1&connector=" + strings.Repeat("x", 8<<10) + itoa(i) + "&origin=https://o" + itoa(i) + ".example")
		}
		flood.verify("roomId=rm1&origin=https://o.example").finds(t, false) // somebody's look, no connector
		flood.do("HEAD", "/api/v1/verify?roomId=rm1&connector=head", "")
		got := w.operator().get("/api/v1/admin/rooms/rm1/connectors").want(t, 200, "")
		list := got.json["connectors"].([]any)
		if len(list) != maxCheckins+1 || len(got.body) > 32<<10 {
			t.Errorf("%d are kept, %d bytes", len(list), len(got.body))
		}
		kept := false
		for _, each := range list {
			c := each.(map[string]any)
			kept = kept || c["connector"] == "node" && c["keyed"] == true && c["version"] == "1.2.3"
			if c["connector"] == "head" {
				t.Error("HEAD is remembered")
			}
		}
		if !kept {
			t.Errorf("the one with a key is gone: %s", got.body)
		}
	})
}

// A page of the site that asks at the door shows that the script tag is in place; a page of somebody else, or a connector, does not.
func TestTheTagIsSeen(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"returnOrigins":["https://www.shop.example"]`)
		op := w.operator()
		list := func() []any {
			seen, _ := op.get("/api/admin/rooms/rm1/connectors").want(w.T, 200, "").json["connectors"].([]any)
			return seen
		}
		b := w.browser("198.51.100.1")
		for _, origin := range []string{"", "https://elsewhere.example"} {
			b.headers["Origin"] = origin
			b.get("/api/v1/check?roomId=rm1").want(w.T, 200, "")
		}
		if got := list(); len(got) != 0 {
			w.Fatalf("nobody of the site has asked, and the console has %v", got)
		}
		b.headers["Origin"] = "https://shop.example"
		for range 2 {
			b.get("/api/v1/check?roomId=rm1").want(w.T, 200, "")
		}
		b.raw("HEAD", "/api/v1/check?roomId=rm1")
		got := list()
		if len(got) != 1 {
			w.Fatalf("the console has %v", got)
		}
		if c := got[0].(map[string]any); c["connector"] != "snippet" || c["origin"] != "https://shop.example" || c["count"] != 2.0 || c["ok"] != true || c["version"] != nil {
			w.Errorf("the console has %v", c)
		}
	})
}
