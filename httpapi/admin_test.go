package httpapi

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"qm/engine/room"
)

// Proves: rooms.fields
func TestRoomsRefuseWhatTheyCannotKeep(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, "")
		op := w.operator()
		before := w.stats("rm1").num(t, "seq")
		for _, test := range []struct{ body, code, field string }{
			{`{"id":"x"}`, "invalid_room_id", "id"},
			{`{"name":"x"}`, "invalid_room_id", "id"},
			{`{"id":"rm2"}`, "invalid_target_url", "targetUrl"},
			{`{"id":"rm2","targetUrl":"javascript:alert(1)"}`, "invalid_target_url", "targetUrl"},
			{`{"id":"rm2","targetUrl":"https://user@shop.example/"}`, "invalid_target_url", "targetUrl"},
			{`{"id":"rm2","targetUrl":"//shop.example/"}`, "invalid_target_url", "targetUrl"},
			{`{"id":"rm1"}`, "nothing_to_change", ""},
			{`{"id":"rm1","name":""}`, "invalid_name", "name"},
			{`{"id":"rm1","name":5}`, "invalid_name", "name"},
			{`{"id":"rm1","ratePerMinute":-1}`, "invalid_rate_per_minute", "ratePerMinute"},
			{`{"id":"rm1","ratePerMinute":1.5}`, "invalid_rate_per_minute", "ratePerMinute"},
			{`{"id":"rm1","ratePerMinute":"60"}`, "invalid_rate_per_minute", "ratePerMinute"},
			{`{"id":"rm1","ratePerMinute":100001}`, "invalid_rate_per_minute", "ratePerMinute"},
			{`{"id":"rm1","ratePerMinute":null}`, "invalid_rate_per_minute", "ratePerMinute"},
			{`{"id":"rm1","rate":30,"ratePerMinute":31}`, "conflicting_field", "rate"},
			{`{"id":"rm1","maxConcurrent":0}`, "invalid_max_concurrent", "maxConcurrent"},
			{`{"id":"rm1","passedTtlSec":0}`, "invalid_passed_ttl_sec", "passedTtlSec"},
			{`{"id":"rm1","sessionTtlSec":100000}`, "invalid_session_ttl_sec", "sessionTtlSec"},
			{`{"id":"rm1","sessionMaxSec":0}`, "invalid_session_max_sec", "sessionMaxSec"},
			{`{"id":"rm1","preQueueMaxPerIp":0}`, "invalid_pre_queue_max_per_ip", "preQueueMaxPerIp"},
			{`{"id":"rm1","queueMaxPerIp":100001}`, "invalid_queue_max_per_ip", "queueMaxPerIp"},
			{`{"id":"rm1","presenceSec":true}`, "invalid_presence_sec", "presenceSec"},
			{`{"id":"rm1","holdScore":50}`, "unknown_field", "holdScore"},
			{`{"id":"rm1","onBackendDown":"ajar"}`, "invalid_on_backend_down", "onBackendDown"},
			{`{"id":"rm1","returnOrigins":["https://shop.example/path"]}`, "invalid_return_origins", "returnOrigins"},
			{`{"id":"rm1","returnOrigins":"https://shop.example"}`, "invalid_return_origins", "returnOrigins"},
			{`{"id":"rm1","tagOrigins":["shop.example"]}`, "invalid_tag_origins", "tagOrigins"},
			{`{"id":"rm1","branding":{"logoUrl":"javascript:x"}}`, "invalid_branding", "branding.logoUrl"},
			{`{"id":"rm1","branding":{"color":"red"}}`, "invalid_branding", "branding.color"},
			{`{"id":"rm1","branding":{"logoUrl":"data:image/svg+xml,<svg onload=alert(1)>"}}`, "invalid_branding", "branding.logoUrl"},
			{`{"id":"rm1","branding":{"logoUrl":"//evil.example/x.svg"}}`, "invalid_branding", "branding.logoUrl"},
			{`{"id":"rm1","branding":{"background":"url(x)"}}`, "invalid_branding", "branding.background"},
			{`{"id":"rm1","branding":{"background":"#fff}*{}"}}`, "invalid_branding", "branding.background"},
			{`{"id":"rm1","branding":{"color":"#ffcc00"}}`, "invalid_branding", "branding.color"},
			{`{"id":"rm1","branding":{"color":"#ffffff","background":"#7f7f7f"}}`, "invalid_branding", "branding.background"},
			{`{"id":"rm1","branding":{"color":"#101010","background":"#000000","message":"never stored"}}`, "invalid_branding", "branding.color"},
			{`{"id":"rm1","branding":{"colour":"#123456"}}`, "unknown_field", "branding.colour"},
			{`{"id":"rm1","branding":"blue"}`, "invalid_branding", "branding"},
			{`{"id":"rm1","state":"idle"}`, "invalid_state", "state"},
			{`{"id":"rm1","state":"paused","ratePerMinute":"x"}`, "invalid_rate_per_minute", "ratePerMinute"},
			{`{"id":"rm1","opensAt":1}`, "invalid_opens_at", "opensAt"},
			{`{"id":"rm1","opensAt":"tomorrow"}`, "invalid_opens_at", "opensAt"},
			{`{"id":"rm1","opensAt":true}`, "invalid_opens_at", "opensAt"},
			{`{"id":"rm1","proxyOrigin":"https://10.0.0.1/x"}`, "invalid_proxy_origin", "proxyOrigin"},
			{`{"id":"rm1","proxyOrigin":["https://10.0.0.1"]}`, "invalid_proxy_origin", "proxyOrigin"},
			{`{"id":"rm1","proxyOrigin":"file:///etc"}`, "invalid_proxy_origin", "proxyOrigin"},
			{`{"id":"rm1","protection":{"mode":"enforce","threshold":50}}`, "invalid_protection", "protection"},
			{`{"id":"rm1","protection":{"mode":"monitor","holdScore":101}}`, "invalid_protection", "protection"},
			{`{"id":"rm1","protection":{"mode":"enforce","work":"yes"}}`, "invalid_protection", "protection"},
			{`{"id":"rm1","protection":{"mode":"enforce","bots":"no"}}`, "unknown_field", "protection"},
			{`{"id":"rm1","protection":{}}`, "invalid_protection", "protection"},
			{`{"id":"rm1","protection":null}`, "invalid_protection", "protection"},
			{`{"id":"rm1","protection":{"mode":"on"}}`, "invalid_protection", "protection"},
			{`{"id":"rm1","autotune":{}}`, "invalid_autotune", "autotune.floor"},
			{`{"id":"rm1","autotune":{"floor":60}}`, "invalid_autotune", "autotune.ceiling"},
			{`{"id":"rm1","autotune":{"floor":60,"ceiling":59}}`, "invalid_autotune", "autotune.ceiling"},
			{`{"id":"rm1","autotune":{"floor":0,"ceiling":59}}`, "invalid_autotune", "autotune.floor"},
			{`{"id":"rm1","autotune":{"floor":1,"ceiling":59,"latencyMs":9000}}`, "invalid_autotune", "autotune.latencyMs"},
			{`{"id":"rm1","autotune":{"floor":1,"ceiling":59,"errorPct":100}}`, "invalid_autotune", "autotune.errorPct"},
			{`{"id":"rm1","autotune":{"floor":1,"ceiling":59,"speed":1}}`, "unknown_field", "autotune.speed"},
			{`{"id":"rm1","autotune":true}`, "invalid_autotune", "autotune"},
			{`{"id":"rm1","autoActivate":{}}`, "invalid_auto_activate", "autoActivate.arrivalsPerMinute"},
			{`{"id":"rm1","autoActivate":{"arrivalsPerMinute":1.5}}`, "invalid_auto_activate", "autoActivate.arrivalsPerMinute"},
			{`{"id":"rm1","autoActivate":{"arrivalsPerMinute":10,"calmMinutes":0}}`, "invalid_auto_activate", "autoActivate.calmMinutes"},
			{`{"id":"rm1","openings":{}}`, "invalid_openings", "openings"},
			{`{"id":"rm1","openings":[{}]}`, "invalid_openings", "openings"},
			{`{"id":"rm1","openings":[5]}`, "invalid_openings", "openings"},
			{`{"id":"rm1","openings":[{"opensAt":1}]}`, "invalid_openings", "openings"},
			{`{"id":"rm1","openings":[{"opensAt":"2000-01-02T00:00:00Z","closesAt":"2000-01-01T23:00:00Z"}]}`, "invalid_openings", "openings"},
			{`{"id":"rm1","openings":[{"opensAt":"2000-01-02T00:00:00Z"},{"opensAt":"2000-01-03T00:00:00Z"}]}`, "invalid_openings", "openings"},
			{`{"id":"rm1","openings":[{"opensAt":"2000-01-02T00:00:00Z","closesAt":"2000-01-03T00:00:00Z"},{"opensAt":"2000-01-03T00:00:00Z"}]}`, "invalid_openings", "openings"},
			{`{"id":"rm1","openings":[{"opensAt":"2000-01-02T00:00:00Z","until":1}]}`, "invalid_openings", "openings"},
			{`{"id":"rm1","openings":[{"opensAt":"2009-01-02T00:00:00Z"}]}`, "invalid_openings", "openings"},
			{`{"id":"rm1","urlPatterns":["/x*",7]}`, "invalid_url_patterns", "urlPatterns"},
			{`{"id":"rm1","urlPatterns":{}}`, "invalid_url_patterns", "urlPatterns"},
			{`{"id":"rm1","urlPatterns":"/x*"}`, "invalid_url_patterns", "urlPatterns"},
			{`{"id":"rm1","urlPatterns":["/x*",null]}`, "invalid_url_patterns", "urlPatterns"},
			{`{"id":"rm1","urlPatterns":["sale"]}`, "invalid_url_patterns", "urlPatterns"},
			{`{"id":"rm1","rateperminute":60}`, "unknown_field", "rateperminute"},
			{`{"id":"rm1","redacted":true,"targetUrl":""}`, "redacted_shape", "redacted"},
			{`{"id":"rm1","id":"rm2"}`, "duplicate_field", "id"},
			{`{"id":"rm1"} {}`, "invalid_json", ""},
			{`[]`, "invalid_json", ""},
			{`"rm1"`, "invalid_json", ""},
			{``, "invalid_json", ""},
			{`{"id":"rm1","branding":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}`, "invalid_json", ""},
		} {
			got := op.post("/api/v1/admin/rooms", test.body).want(t, 400, test.code)
			if field, _ := got.json["field"].(string); field != test.field {
				t.Errorf("%.80s blames %q, not %q", test.body, field, test.field)
			}
		}
		if seq := w.stats("rm1").num(t, "seq"); seq != before {
			t.Errorf("refused bodies changed the room from event %d to %d", before, seq)
		}
	})
}

// Proves: rooms.fields
func TestAnUpdateChangesOnlyWhatIsNamed(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"maxConcurrent":5,"branding":{"name":"Shop","color":"#112233"},"returnOrigins":["https://Shop.example:443","http://a.example"]`)
		op := w.operator()
		got := op.post("/api/admin/rooms", `{"id":"rm1","rate":30,"ratePerMinute":30,"presenceSec":null,"protection":{"mode":"off"},"urlPatterns":[],"autotune":null}`).want(t, 200, "")
		if got.num(t, "ratePerMinute") != 30 || got.num(t, "rate") != 30 || got.num(t, "maxConcurrent") != 5 || got.json["presenceSec"] != nil || got.json["name"] != "Room" {
			t.Errorf("after a change of the rate: %s", got.body)
		}
		if origins := got.json["returnOrigins"].([]any); len(origins) != 2 || origins[0] != "https://shop.example" || got.json["tagOrigins"] != nil {
			t.Errorf("origins are %v, %v", got.json["returnOrigins"], got.json["tagOrigins"])
		}
		brand := got.json["branding"].(map[string]any)
		if brand["name"] != "Shop" || brand["color"] != "#112233" || brand["messageAt"] != nil {
			t.Errorf("branding is %v", brand)
		}
		got = op.post("/api/admin/rooms", `{"id":"rm1","branding":{"message":"Back at \"noon\".\nSorry."}}`).want(t, 200, "")
		brand = got.json["branding"].(map[string]any)
		if brand["name"] != "Shop" || brand["message"] != "Back at \"noon\".\nSorry." || brand["messageAt"] == nil {
			t.Errorf("branding is %v", brand)
		}
		stamped := brand["messageAt"]
		time.Sleep(time.Second)
		got = op.post("/api/admin/rooms", `{"id":"rm1","maxConcurrent":null,"branding":{"message":"Back at \"noon\".\nSorry."}}`).want(t, 200, "")
		if got.json["branding"].(map[string]any)["messageAt"] != stamped || got.json["maxConcurrent"] != nil {
			t.Errorf("the same message is stamped anew: %s", got.body)
		}
		// The visitor sees the message with the server's time beside it.
		a := w.browser("198.51.100.1")
		a.join("rm1")
		if frame := a.status("rm1"); frame.json["message"] == nil || frame.json["messageAt"] != stamped || frame.json["now"] == nil {
			t.Errorf("the visitor is told %s", frame.body)
		}
		op.post("/api/admin/rooms", `{"id":"rm1","branding":{"message":""}}`).want(t, 200, "")
		if frame := a.status("rm1"); frame.json["message"] != nil || frame.json["messageAt"] == nil {
			t.Errorf("a message that was taken back: %s", frame.body)
		}
	})
}

// Proves: room.modes, rooms.acts
func TestCommandsOfARoom(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		crowd := w.crowd("rm1", 10)
		op := w.operator()
		path := "/api/v1/admin/rooms/rm1"
		for _, test := range []struct {
			path, body, code string
			status           int
		}{
			{path + "/flush", `{}`, "invalid_count", 400}, {path + "/flush", `{"count":0}`, "invalid_count", 400},
			{path + "/flush", `{"count":1000001}`, "invalid_count", 400}, {path + "/flush", `{"n":1}`, "unknown_field", 400},
			{path + "/flush", ``, "invalid_json", 400},
			{path + "/state", `{"state":"open"}`, "invalid_state", 400}, {path + "/state", `{}`, "invalid_state", 400},
			{path + "/rate", `{}`, "invalid_rate_per_minute", 400}, {path + "/rate", `{"rate":1,"ratePerMinute":2}`, "conflicting_field", 400},
			{path + "/schedule", `{}`, "nothing_to_change", 400}, {path + "/schedule", `{"opensAt":null}`, "nothing_to_change", 400},
			{path + "/schedule", `{"opensAt":5}`, "invalid_opens_at", 400},
			{path + "/eject", `{"ticket":99}`, "ticket_not_found", 404}, {path + "/eject", `{"ticket":"1"}`, "invalid_ticket", 400},
			{path + "/purge", `{"all":true}`, "unknown_field", 400},
			{"/api/admin/rooms/nowhere/flush", `{"count":1}`, "room_not_found", 404}, {"/api/admin/rooms/nowhere/purge", ``, "room_not_found", 404},
			{"/api/admin/rooms/nowhere/rate", `{"rate":1}`, "room_not_found", 404}, {"/api/admin/rooms/NO/state", `{"state":"paused"}`, "invalid_room_id", 400},
		} {
			op.post(test.path, test.body).want(t, test.status, test.code)
		}
		if got := op.post(path+"/flush", `{"count":3}`).want(t, 200, ""); got.num(t, "flushed") != 3 {
			t.Errorf("flush answers %s", got.body)
		}
		if got := op.post(path+"/eject", `{"ticket":1}`).want(t, 200, ""); got.num(t, "ticket") != 11 {
			t.Errorf("eject answers %s", got.body)
		}
		if got := crowd[0].status("rm1"); got.json["expired"] != true || got.json["reason"] != "reset" {
			t.Errorf("an ejected visitor is told %s", got.body)
		}
		if crowd[0].join("rm1"); crowd[0].ticket("rm1") != 11 {
			t.Errorf("the ejected rejoin with ticket %d", crowd[0].ticket("rm1"))
		}
		got := op.post(path+"/purge", "").want(t, 200, "")
		if got.num(t, "purged") != 8 || got.num(t, "preQueue") != 0 || got.json["stats"].(map[string]any)["waiting"] != 0.0 {
			t.Errorf("purge answers %s", got.body)
		}
		if got := crowd[5].status("rm1"); got.json["expired"] != true || got.json["reason"] != "reset" {
			t.Errorf("a purged visitor is told %s", got.body)
		}
		if got := crowd[1].status("rm1"); got.json["passed"] != true {
			t.Errorf("the purge took a pass: %s", got.body)
		}
		op.post(path+"/schedule", `{"opensAt":`+ms(time.Now().Add(time.Hour))+`,"preQueueMaxPerIp":1}`).want(t, 200, "")
		if got := op.post(path+"/schedule", `{"preQueueMaxPerIp":2}`).want(t, 200, ""); got.json["opensAt"] == nil || got.json["effectiveState"] != "scheduled" || got.num(t, "preQueueMaxPerIp") != 2 {
			t.Errorf("a change of the cap answers %s", got.body)
		}
		w.browser("198.51.100.77").join("rm1")
		if got := op.post(path+"/purge", "{}").want(t, 200, ""); got.num(t, "purged") != 1 || got.num(t, "preQueue") != 1 {
			t.Errorf("the purge of a pre-queue answers %s", got.body)
		}
		if got := op.post(path+"/schedule", `{"opensAt":null}`).want(t, 200, ""); got.json["opensAt"] != nil {
			t.Errorf("a cancelled drop: %s", got.body)
		}
	})
}

// Proves: room.modes
func TestBypassLetsEverybodyThrough(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","passedTtlSec":60`)
		a, b := w.browser("198.51.100.1"), w.browser("198.51.100.2")
		a.join("rm1")
		op := w.operator()
		op.post("/api/admin/rooms/rm1/state", `{"state":"bypass"}`).want(t, 200, "")
		if got := a.status("rm1"); got.json["passed"] != true || got.json["state"] != "bypass" || got.json["redirectUrl"] != testTarget {
			t.Errorf("who waited is told %s", got.body)
		}
		got := b.join("rm1")
		if got.json["passed"] != true || got.json["redirectUrl"] != testTarget || b.ticket("rm1") != 0 {
			t.Errorf("a join in bypass answers %s", got.body)
		}
		if got := w.browser("198.51.100.3").check("rm1"); got.json["action"] != "pass" || got.json["reason"] != "bypass" {
			t.Errorf("check in bypass: %s", got.body)
		}
		op.post("/api/admin/rooms/rm1/state", `{"state":"active"}`).want(t, 200, "")
		if got := b.check("rm1"); got.json["action"] != "pass" {
			t.Errorf("a bypass token within passedTtlSec: %s", got.body)
		}
		time.Sleep(61 * time.Second)
		b.status("rm1").want(t, 401, "invalid_token")
		if got := b.check("rm1"); got.json["action"] != "queue" {
			t.Errorf("a bypass token after passedTtlSec: %s", got.body)
		}
	})
}

func TestJournalPagesAndExports(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		w.crowd("rm1", 30)
		op := w.operator()
		op.post("/api/admin/rooms/rm1/flush", `{"count":2}`).want(t, 200, "")
		path := "/api/v1/admin/rooms/rm1/journal"
		seq, after := 0, 0
		for {
			got := op.get(path+"?limit=10&after="+itoa(after)).want(t, 200, "")
			for _, e := range got.json["events"].([]any) {
				seq++
				if e.(map[string]any)["seq"] != float64(seq) {
					t.Fatalf("event %v after %d", e, seq-1)
				}
			}
			after = got.num(t, "after")
			if got.json["more"] != true {
				break
			}
		}
		if seq != 32 {
			t.Errorf("%d events", seq)
		}
		if got := op.get(path + "?kind=join&limit=1000"); len(got.json["events"].([]any)) != 30 {
			t.Errorf("joins: %s", got.body)
		}
		if got := op.get(path + "?ticket=2"); len(got.json["events"].([]any)) != 2 {
			t.Errorf("what happened to ticket 2: %s", got.body)
		}
		for query, code := range map[string]string{
			"?kind=nonsense": "invalid_kind", "?limit=0": "invalid_limit", "?limit=1001": "invalid_limit", "?after=-1": "invalid_after",
			"?after=x": "invalid_after", "?ticket=0": "invalid_ticket", "?format=xml": "invalid_format", "?after=1&after=2": "duplicate_parameter",
		} {
			op.get(path+query).want(t, 400, code)
		}
		got := op.get(path + "?format=ndjson")
		if got.status != 200 || got.header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("export answers %d %q", got.status, got.header.Get("Content-Type"))
		}
		lines := bufio.NewScanner(strings.NewReader(got.body))
		n := 0
		for lines.Scan() {
			if !json.Valid(lines.Bytes()) {
				t.Fatalf("a line is no JSON: %s", lines.Text())
			}
			n++
		}
		if n < 32 {
			t.Errorf("%d lines", n)
		}
		op.do("DELETE", "/api/v1/admin/rooms/rm1", "").want(t, 200, "")
		if got := op.get(path + "?format=ndjson"); got.status != 200 || strings.Count(got.body, "\n") != n+1 {
			t.Errorf("after the room was deleted its journal is exported as %d, %d lines", got.status, strings.Count(got.body, "\n"))
		}
		op.get("/api/v1/admin/rooms/nowhere/journal?format=ndjson").want(t, 404, "room_not_found")
		op.get("/api/v1/admin/rooms/nowhere/journal").want(t, 404, "room_not_found")
	})
}

func TestOperatorsNeedACredential(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, "")
		nobody := w.browser("198.51.100.66")
		for _, prefix := range []string{"/api/v1/admin", "/api/admin"} {
			nobody.get(prefix+"/rooms").want(t, 401, "unauthorized")
			nobody.get(prefix+"/rooms?key="+testAdminKey).want(t, 401, "credential_in_query")
			nobody.post(prefix+"/rooms/rm1/purge", "").want(t, 401, "unauthorized")
			nobody.do("DELETE", prefix+"/rooms/rm1", "").want(t, 401, "unauthorized")
			nobody.get(prefix+"/rooms/rm1/journal").want(t, 401, "unauthorized")
			nobody.get(prefix+"/health").want(t, 401, "unauthorized")
		}
		nobody.get("/metrics").want(t, 401, "unauthorized")
		if got := w.operator().get("/metrics"); !strings.Contains(got.body, "qm_http_requests_total") || !strings.Contains(got.body, "qm_joins_total") {
			t.Errorf("metrics are %.300s", got.body)
		}

		// A console signs in, changes with the header alone, and signs out for good.
		console := w.browser("198.51.100.67")
		console.post("/api/admin/session", `{"key":"`+testAdminKey+`"}`).want(t, 403, "csrf_required")
		console.headers["X-QM-CSRF"] = "1"
		console.post("/api/admin/session", `{"key":5}`).want(t, 400, "invalid_key")
		console.post("/api/admin/session", `{"key":"wrong"}`).want(t, 401, "unauthorized")
		got := console.post("/api/admin/session", `{"key":"`+testAdminKey+`"}`).want(t, 200, "")
		cookie := got.header.Get("Set-Cookie")
		for _, part := range []string{"qm_console=", "HttpOnly", "SameSite=Strict", "Path=/api/admin", "Max-Age=43200"} {
			if !strings.Contains(cookie, part) {
				t.Errorf("the session's cookie is %q, without %s", cookie, part)
			}
		}
		if strings.Contains(cookie, testAdminKey) || got.json["role"] != "owner" {
			t.Errorf("sign-in answers %s, %s", got.body, cookie)
		}
		console.get("/api/admin/rooms").want(t, 200, "")
		console.post("/api/admin/rooms/rm1/rate", `{"rate":5}`).want(t, 200, "")
		delete(console.headers, "X-QM-CSRF")
		console.post("/api/admin/rooms/rm1/rate", `{"rate":6}`).want(t, 403, "csrf_required")
		console.headers["X-QM-CSRF"] = "1"
		copied := console.jar["qm_console"]
		console.do("DELETE", "/api/admin/session", "").want(t, 200, "")
		console.jar["qm_console"] = copied
		console.get("/api/admin/rooms").want(t, 401, "unauthorized")

		// Guessing locks the address out before anything is read.
		guesser := w.browser("198.51.100.68")
		for i := range 10 {
			guesser.headers["Authorization"] = "Bearer guess" + itoa(i)
			guesser.get("/api/admin/rooms").want(t, 401, "unauthorized")
		}
		guesser.headers["Authorization"] = "Bearer " + testAdminKey
		guesser.get("/api/admin/rooms").want(t, 429, "too_many_auth_failures")
		if n := w.stats("rm1").num(t, "rate"); n != 5 {
			t.Errorf("the rate is %d", n)
		}
	})
}

func TestBoardSendsWhatChanged(t *testing.T) {
	list := func(pairs ...string) (l []roomStats) {
		for _, p := range pairs {
			id, v, _ := strings.Cut(p, "=")
			l = append(l, roomStats{id: id, sum: room.Summary{Exists: true}, json: []byte(`{"id":"` + id + `","v":"` + v + `"}`)})
		}
		return l
	}
	var k board
	frame := func(l []roomStats) (got struct {
		Delta   bool
		Rooms   []struct{ ID, V string }
		Removed []string
		Totals  map[string]int
	}) {
		t.Helper()
		if err := json.Unmarshal(k.append(nil, l, 1), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, step := range []struct {
		list           []roomStats
		delta          bool
		rooms, removed int
	}{
		{list("a=1", "b=1"), false, 2, 0},
		{list("a=1", "b=2"), false, 2, 0},
		{list("a=1", "b=2"), true, 0, 0},
		{list("a=1", "b=3"), true, 1, 0},
		{list("a=1", "b=3", "c=1"), true, 1, 0},
		{list("a=1", "c=1"), true, 0, 1},
		{list("c=1", "a=1"), false, 2, 0}, // order changed (QM-480)
		{list("c=1", "a=2"), true, 1, 0},
		{list("d=1", "c=1", "a=2"), false, 3, 0},
		{list(), true, 0, 3},
	} {
		got := frame(step.list)
		if got.Delta != step.delta || len(got.Rooms) != step.rooms || len(got.Removed) != step.removed || got.Totals["rooms"] != len(step.list) {
			t.Errorf("%d rooms: %+v, wanted %+v", len(step.list), got, step)
		}
	}
}

// TestADropIsMadeShut: until the drop is set, whoever joined would have a ticket ahead of the draw.
//
// Proves: room.modes
func TestADropIsMadeShut(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"opensAt":`+ms(time.Now().Add(time.Hour)))
		got := w.operator().get("/api/v1/admin/rooms/rm1/journal").want(t, 200, "")
		var story []string
		for _, e := range got.json["events"].([]any) {
			e := e.(map[string]any)
			state, _ := e["body"].(map[string]any)["state"].(string)
			story = append(story, strings.TrimSpace(e["kind"].(string)+" "+state))
		}
		if want := []string{"create active", "schedule"}; !slices.Equal(story, want) {
			t.Errorf("the room came to be by %q", story)
		}
	})
}
