package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qm/engine/room"
)

// checkOf asks about a page; what a browser's Referer says is in b.headers.
func (b *browser) checkOf(id, page string) answer {
	b.Helper()
	return b.get("/api/v1/check?roomId="+id+"&url="+url.QueryEscape(page)).want(b.T, 200, "")
}

// scoped checks what an answer says of its page.
func (a answer) scoped(t *testing.T, action, scope string, rule any) answer {
	t.Helper()
	told, _ := a.json["targeting"].(map[string]any)
	want := "queue"
	if scope == "out" {
		want = "pass"
	}
	if a.json["action"] != action || told["scope"] != scope || told["rule"] != rule || told["action"] != want {
		t.Errorf("answered %s, not %s, scope %s by %v", a.body, action, scope, rule)
	}
	return a
}

// Proves: scope
func TestCase11AnotherSpellingIsStillInScope(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","urlPatterns":["/black-friday*"]`)
		b := w.browser("198.51.100.1")
		for _, page := range []string{
			"https://shop.example/Black-Friday", "https://shop.example/%62lack-friday", "https://shop.example//black-friday", "https://shop.example/a/../black-friday",
			"https://SHOP.EXAMPLE/black-friday", "https://shop.example:443/black-friday", "HTTPS://shop.example/a/%2e%2E/./%42LACK%2dfriday/?x=1#top",
			"/Black-Friday", "/%62lack-friday", "//black-friday", "/a/../black-friday",
		} {
			b.checkOf("rm1", page).scoped(w.T, "queue", "in", "/black-friday*")
		}
		for _, page := range []string{"https://shop.example/", "https://shop.example/blog/black-friday", "https://shop.example/?black-friday", "/black%2Ffriday"} {
			b.checkOf("rm1", page).scoped(w.T, "pass", "out", nil)
		}
		// Not escaped either, as a careless site sends it.
		b.get("/api/v1/check?roomId=rm1&url=https://shop.example/%62lack-friday").scoped(w.T, "queue", "in", "/black-friday*")
	})
}

// Proves: scope
func TestCase12NoURLNoReferer(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","urlPatterns":["/sale*"]`)
		b := w.browser("198.51.100.1")
		ask := func(query, referer, action, scope string, rule any) {
			w.Helper()
			if b.headers["Referer"] = referer; referer == "" {
				delete(b.headers, "Referer")
			}
			b.get("/api/v1/check?roomId=rm1"+query).want(w.T, 200, "").scoped(w.T, action, scope, rule)
		}
		const in, out = "https://shop.example/sale/1", "https://shop.example/about"
		ask("", "", "queue", "unknown", nil)
		ask("", in, "queue", "in", "/sale*")
		ask("", out, "pass", "out", nil)
		ask("&url=", "", "queue", "unknown", nil)
		ask("&url=", in, "queue", "in", "/sale*")
		ask("&url=%20", out, "pass", "out", nil)
		ask("&url="+out+"&url="+in, "", "queue", "unknown", nil)
		ask("&url="+out+"&url="+in, out, "queue", "unknown", nil) // no Referer mends a contradiction
		ask("&url=&url="+out, out, "queue", "unknown", nil)
		ask("&url="+out+"&url="+out, "", "pass", "out", nil)
		ask("&url="+in, out, "queue", "in", "/sale*")
		for _, nonsense := range []string{"nonsense", "ftp://shop.example/about", "https://shop.example:x/about", "https://shop.example/%25zz", "null", "javascript:0"} {
			ask("&url="+nonsense, out, "queue", "unknown", nil)
		}
	})
}

// A browser that asks across origins sends the origin of its page and no more: that is not the home page.
func TestATrimmedRefererIsNoPage(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","urlPatterns":["/sale*"]`)
		for _, test := range []struct {
			headers       map[string]string
			action, scope string
		}{
			{map[string]string{"Sec-Fetch-Site": "cross-site"}, "queue", "unknown"},
			{map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "https://shop.example"}, "queue", "unknown"},
			{map[string]string{"Origin": "https://shop.example"}, "queue", "unknown"},
			{map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "https://shop.example"}, "pass", "out"},
			{nil, "pass", "out"},
		} {
			b := w.browser("198.51.100.1")
			b.headers["Referer"] = "https://shop.example/"
			for name, value := range test.headers {
				b.headers[name] = value
			}
			b.get("/api/v1/check?roomId=rm1").scoped(t, test.action, test.scope, nil)
			if b.headers["Referer"] = "https://shop.example/about"; test.headers != nil {
				b.get("/api/v1/check?roomId=rm1").scoped(t, "pass", "out", nil)
			}
			b.checkOf("rm1", "https://shop.example/").scoped(t, "pass", "out", nil)
		}
	})
}

// A page out of scope takes nothing and costs nothing: no place, no door session, no code, no event.
//
// Proves: scope
func TestAPageOutOfScopeSpendsNothing(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 600, `,"urlPatterns":["/sale*","!/sale/terms"]`)
		a := w.browser("198.51.100.1")
		a.join("rm1")
		door := a.untilPassed("rm1")
		code := strings.TrimSuffix(door[strings.Index(door, "qm_code=")+8:], "#top")
		seq := w.stats("rm1").num(w.T, "seq")
		for _, b := range []*browser{a, w.browser("198.51.100.2")} {
			for _, query := range []string{"", "&code=" + code, "&token=" + a.jar["qm_rm1"]} {
				got := b.get("/api/v1/check?roomId=rm1&url=https://shop.example/sale/terms"+query).want(w.T, 200, "").scoped(w.T, "pass", "out", "!/sale/terms")
				if got.json["reason"] != "out_of_scope" || got.json["sess"] != nil || got.json["token"] != nil || got.json["clearToken"] != nil || got.header["Set-Cookie"] != nil {
					w.Errorf("out of scope: %s %q", got.body, got.header["Set-Cookie"])
				}
			}
		}
		if now := w.stats("rm1").num(w.T, "seq"); now != seq {
			w.Errorf("the room went from event %d to %d", seq, now)
		}
		// The code is still good for a page in scope.
		shop := w.browser("198.51.100.9")
		got := shop.get("/api/v1/check?roomId=rm1&url=https://shop.example/sale&code="+code).want(w.T, 200, "").scoped(w.T, "pass", "in", "/sale*")
		if got.json["sess"] == nil || got.json["reason"] != "passed" {
			w.Errorf("the code opens nothing: %s", got.body)
		}
	})
}

func TestARoomWithoutRulesSaysNothingOfTargeting(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		b := w.browser("198.51.100.1")
		want := b.get("/api/v1/check?roomId=rm1").want(t, 200, "").body
		for _, query := range []string{"&targeting=1", "&url=nonsense", "&url=/a&url=/b", "&url=https://shop.example/"} {
			if got := b.get("/api/v1/check?roomId=rm1" + query); got.body != want {
				t.Errorf("%s changes the answer from %s to %s", query, want, got.body)
			}
		}
		// Rules that come and go take effect at once.
		w.operator().post("/api/admin/rooms", `{"id":"rm1","urlPatterns":["/sale*"]}`).want(t, 200, "")
		b.checkOf("rm1", "https://shop.example/about").scoped(t, "pass", "out", nil)
		if got := w.operator().post("/api/admin/rooms", `{"id":"rm1","urlPatterns":[]}`).want(t, 200, ""); !strings.Contains(got.body, `"urlPatterns":[]`) {
			t.Errorf("the rules are still there: %s", got.body)
		}
		if got := b.checkOf("rm1", "https://shop.example/about"); got.body != want {
			t.Errorf("after the rules: %s", got.body)
		}
		if got := b.get("/api/v1/check?roomId=nowhere&url=/x&targeting=1"); got.json["reason"] != "no_room" || got.json["targeting"] != nil {
			t.Errorf("an unknown room: %s", got.body)
		}
	})
}

func TestURLPatternsAreJudged(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, "")
		op := w.operator()
		for _, test := range []struct{ rules, says string }{
			{`"` + strings.Repeat(`/a","`, 25) + `/b"`, "26 rules"},
			{`"/a","/` + strings.Repeat("x", 300) + `"`, "Rule 2 has 301 characters"},
			{`"` + strings.Repeat("*a", 11) + `"`, "Rule 1 has 11 wildcards"},
			{`"/a","https://shop.example"`, "Rule 2 names an origin and no path"},
		} {
			got := op.post("/api/admin/rooms", `{"id":"rm1","ratePerMinute":7,"urlPatterns":[`+test.rules+`]}`).want(t, 400, "invalid_url_patterns")
			if says, _ := got.json["error"].(string); got.json["field"] != "urlPatterns" || !strings.Contains(says, test.says) {
				t.Errorf("%.60s: %s, not %q", test.rules, got.body, test.says)
			}
		}
		if got := w.stats("rm1"); got.num(t, "ratePerMinute") != 60 || !strings.Contains(got.body, `"urlPatterns":[]`) {
			t.Errorf("refused rules changed the room: %s", got.body)
		}
		got := op.post("/api/admin/rooms", `{"id":"rm1","urlPatterns":[" /Sale* ","!https://Shop.example/x"]}`).want(t, 200, "")
		if diff := cmp.Diff([]any{"/Sale*", "!https://Shop.example/x"}, got.json["urlPatterns"]); diff != "" {
			t.Error(diff)
		}
		// A body that names other things leaves them alone.
		got = op.post("/api/admin/rooms", `{"id":"rm1","ratePerMinute":9}`).want(t, 200, "")
		if list, _ := got.json["urlPatterns"].([]any); len(list) != 2 {
			t.Errorf("the rules are gone: %s", got.body)
		}
		if got := op.post("/api/admin/rooms", `{"id":"rm1","urlPatterns":null}`).want(t, 200, ""); !strings.Contains(got.body, `"urlPatterns":[]`) {
			t.Errorf("null does not clear the rules: %s", got.body)
		}
	})
}

// Proves: targeting
func TestTargetingForConnectors(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"urlPatterns":["/Sale*","!/sale/terms"]`)
		w.room("rm2", 60, "")
		b, op := w.browser("198.51.100.1"), w.operator()
		first := b.get("/api/v1/targeting?roomId=rm1").want(w.T, 200, "")
		tag := first.header.Get("Etag")
		want := map[string]any{
			"roomId": "rm1", "scoped": true, "rev": first.json["rev"], "updatedAt": first.json["updatedAt"],
			"patterns": []any{map[string]any{"pattern": "/Sale*", "action": "queue"}, map[string]any{"pattern": "!/sale/terms", "action": "pass"}},
		}
		if diff := cmp.Diff(want, first.json); diff != "" || tag == "" || first.num(w.T, "updatedAt") == 0 || first.header.Get("Cache-Control") != "no-store" {
			w.Errorf("%s\n%s, headers %v", diff, first.body, first.header)
		}
		if twin := b.get("/api/targeting?roomId=rm1"); twin.body != first.body || twin.header.Get("Etag") != tag {
			w.Errorf("the twin answers %s", twin.body)
		}
		full := b.get("/api/v1/check?roomId=rm1&targeting=1&url=/sale").want(w.T, 200, "")
		told, _ := full.json["targeting"].(map[string]any)
		want = map[string]any{
			"rev": first.json["rev"], "rules": 2.0, "scope": "in", "rule": "/Sale*", "action": "queue", "patterns": first.json["patterns"],
		}
		if diff := cmp.Diff(want, told); diff != "" {
			w.Error(diff)
		}
		for value, status := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, strings.Trim(tag, `"`): 200} {
			b.headers["If-None-Match"] = value
			got := b.get("/api/v1/targeting?roomId=rm1").want(w.T, status, "")
			if got.header.Get("Etag") != tag || status == 304 && got.body != "" {
				w.Errorf("If-None-Match %s: %d %q, %v", value, got.status, got.body, got.header)
			}
		}
		// A change, and one back, are both news.
		b.headers["If-None-Match"] = tag
		for _, rules := range []string{`"/sale*"`, `"/Sale*","!/sale/terms"`} {
			w.later(w.stats("rm1").json["createdAt"].(float64))
			op.post("/api/admin/rooms", `{"id":"rm1","urlPatterns":[`+rules+`]}`).want(w.T, 200, "")
			got := b.get("/api/v1/targeting?roomId=rm1").want(w.T, 200, "")
			if got.num(w.T, "updatedAt") < first.num(w.T, "updatedAt") {
				w.Errorf("updated at %v", got.json["updatedAt"])
			}
			b.headers["If-None-Match"] = got.header.Get("Etag")
			b.get("/api/v1/targeting?roomId=rm1").want(w.T, 304, "")
		}
		delete(b.headers, "If-None-Match")
		if got := b.get("/api/v1/targeting?roomId=rm2").want(w.T, 200, ""); got.json["scoped"] != false || !strings.Contains(got.body, `"patterns":[]`) {
			w.Errorf("a room without rules: %s", got.body)
		}
		b.get("/api/v1/targeting?roomId=nowhere").want(w.T, 404, "room_not_found")
		b.get("/api/v1/targeting").want(w.T, 400, "invalid_room_id")
		b.get("/api/v1/targeting?roomId=RM1").want(w.T, 400, "invalid_room_id")
		b.get("/api/v1/targeting?roomId=rm1&roomId=rm2").want(w.T, 400, "duplicate_parameter")
		if got := b.post("/api/v1/targeting", "{}").want(w.T, 405, "method_not_allowed"); got.header.Get("Allow") != "GET, HEAD, OPTIONS" {
			w.Errorf("Allow is %q", got.header.Get("Allow"))
		}
	})
}

// later waits until the clock, in whole milliseconds, has moved on.
func (w *world) later(than float64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if float64(time.Now().UnixMilli()) > than+1 {
			return
		}
	}
}

func TestTargetingTakesFromTheAllowanceOfChecks(t *testing.T) {
	inMemory(t, Options{CheckLimitPerMin: 3}, func(w *world) {
		w.room("rm1", 60, "")
		b := w.browser("198.51.100.1")
		b.check("rm1").want(t, 200, "")
		b.get("/api/v1/targeting?roomId=rm1").want(t, 200, "")
		b.get("/api/targeting?roomId=nowhere").want(t, 404, "room_not_found")
		b.get("/api/v1/targeting?roomId=rm1").want(t, 429, "rate_limited")
		b.check("rm1").want(t, 429, "rate_limited")
		w.browser("198.51.100.2").get("/api/v1/targeting?roomId=rm1").want(t, 200, "")
	})
}

// Proves: rules.hits
func TestOperatorsSeeWhatEachRuleDecides(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","urlPatterns":["/sale*","!/sale/terms","/never"]`)
		b, op := w.browser("198.51.100.1"), w.operator()
		begun := time.Now().UnixMilli()
		for _, page := range []string{"/sale", "/sale/1", "/sale/terms", "/about", "nonsense", "", ""} {
			b.checkOf("rm1", page)
			time.Sleep(time.Second)
		}
		for range 3 { // none of these counts
			b.raw("HEAD", "/api/v1/check?roomId=rm1&url=/sale")
			op.get("/api/admin/rooms/rm1/targeting?url=/sale").want(t, 200, "")
		}
		b.get("/api/v1/check?roomId=rm1&url=/a&url=/b").want(t, 200, "")
		got := op.get("/api/v1/admin/rooms/rm1/targeting").want(t, 200, "")
		at := func(second int64) any { return float64(begun + 1000*second) }
		want := map[string]any{
			"roomId": "rm1", "scoped": true, "rev": got.json["rev"], "updatedAt": got.json["updatedAt"], "countedSince": at(0),
			"rules": []any{
				map[string]any{"pattern": "/sale*", "action": "queue", "matchCount": 2.0, "lastMatchedAt": at(1)},
				map[string]any{"pattern": "!/sale/terms", "action": "pass", "matchCount": 1.0, "lastMatchedAt": at(2)},
				map[string]any{"pattern": "/never", "action": "queue", "matchCount": 0.0, "lastMatchedAt": nil},
			},
			"unmatchedCount": 1.0, "noUrlCount": 2.0, "unreadableUrlCount": 2.0,
		}
		if diff := cmp.Diff(want, got.json); diff != "" {
			t.Error(diff)
		}
		for page, want := range map[string]map[string]any{
			"HTTPS://Shop.example//sale/./TERMS": {"normalised": "https://shop.example/sale/terms", "scope": "out", "rule": "!/sale/terms", "action": "pass"},
			"/sale/2":                            {"normalised": "/sale/2", "scope": "in", "rule": "/sale*", "action": "queue"},
			"/about":                             {"normalised": "/about", "scope": "out", "rule": nil, "action": "pass"},
			"nonsense":                           {"normalised": nil, "scope": "unknown", "rule": nil, "action": "queue"},
		} {
			want["url"] = page
			got := op.get("/api/admin/rooms/rm1/targeting?url="+url.QueryEscape(page)).want(t, 200, "")
			if diff := cmp.Diff(want, got.json["dryRun"]); diff != "" {
				t.Error(diff)
			}
		}
		counts := func() (sum int) {
			got := op.get("/api/admin/rooms/rm1/targeting").want(t, 200, "")
			for _, rule := range got.json["rules"].([]any) {
				sum += int(rule.(map[string]any)["matchCount"].(float64))
			}
			return sum + got.num(t, "unmatchedCount") + got.num(t, "noUrlCount") + got.num(t, "unreadableUrlCount")
		}
		if n := counts(); n != 8 {
			t.Errorf("%d checks are counted", n)
		}
		// Another setting keeps the counts, other rules begin anew, and so does the same list when it comes back.
		op.post("/api/admin/rooms", `{"id":"rm1","ratePerMinute":9,"urlPatterns":["/sale*","!/sale/terms","/never"]}`).want(t, 200, "")
		if n := counts(); n != 8 {
			t.Errorf("another rate leaves %d counted", n)
		}
		op.post("/api/admin/rooms", `{"id":"rm1","urlPatterns":[]}`).want(t, 200, "")
		if got := op.get("/api/admin/rooms/rm1/targeting?url=/about").want(t, 200, ""); got.json["scoped"] != false || len(got.json["rules"].([]any)) != 0 || got.json["dryRun"].(map[string]any)["scope"] != "in" {
			t.Errorf("a room without rules: %s", got.body)
		}
		op.post("/api/admin/rooms", `{"id":"rm1","urlPatterns":["/sale*","!/sale/terms","/never"]}`).want(t, 200, "")
		if n := counts(); n != 0 {
			t.Errorf("new rules begin with %d counted", n)
		}
	})
}

func TestWhoMaySeeTheTargeting(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"urlPatterns":["/sale*"]`)
		for id, status := range map[string]int{"rm1": 200, "rm9": 404, "-": 400} {
			w.operator().get("/api/admin/rooms/"+id+"/targeting").want(t, status, "")
		}
		w.operator().get("/api/admin/rooms/rm1/targeting?url=/a&url=/b").want(t, 400, "duplicate_parameter")
		w.browser("198.51.100.1").get("/api/admin/rooms/rm1/targeting").want(t, 401, "unauthorized")
		watcher := w.monitor()
		watcher.get("/api/admin/rooms").want(t, 200, "")
		watcher.get("/api/admin/rooms/rm1/targeting").want(t, 403, "insufficient_role")
	})
}

// Rules that this version would not take, from a journal that another one wrote, queue every page.
func TestRulesThatCannotBeReadQueueEverything(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		set := room.DefaultSettings()
		set.Name, set.TargetURL, set.URLPatterns = "Room", testTarget, []string{"regex:^/sale"}
		if _, err := w.engine.Create(context.Background(), "rm1", "admin", set, room.Paused, time.Time{}); err != nil {
			t.Fatal(err)
		}
		b := w.browser("198.51.100.1")
		b.checkOf("rm1", "https://shop.example/about").scoped(t, "queue", "in", "*")
	})
}

// The tag on a page may read that it is out of scope, and only a page of the room's policy may.
func TestOutOfScopeKeepsTheCORSPolicy(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"urlPatterns":["/sale*"]`)
		for origin, allowed := range map[string]string{"https://shop.example": "https://shop.example", "https://evil.example": ""} {
			b := w.browser("198.51.100.1")
			b.headers["Origin"] = origin
			if got := b.checkOf("rm1", "https://shop.example/about"); got.header.Get("Access-Control-Allow-Origin") != allowed || got.status != http.StatusOK {
				t.Errorf("%s may read it: %q", origin, got.header.Get("Access-Control-Allow-Origin"))
			}
		}
	})
}
