package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"qm/internal/testenv"
)

// The console's pages of the organisation in the states that a real server is seldom in: an answer that does not come, one that is a
// refusal, one with nothing in it, and one full of what only a hostile hand would write.

// bureau is an office whose answers can be put in the place of the scripted ones.
type bureau struct {
	*office

	mine    sync.Mutex
	answers map[string]http.HandlerFunc // by "GET /api/admin/alerts"
	acts    []string                    // "DELETE /alerts/silence?id=s1 {}", what changes something
}

func newBureau(t *testing.T) *bureau {
	t.Helper()
	u := &bureau{office: newOffice(t, drop()), answers: map[string]http.HandlerFunc{}}
	behind := u.office.Config.Handler
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + r.URL.Path
		u.mine.Lock()
		scripted := u.answers[key]
		if scripted != nil && r.Method != http.MethodGet {
			body, _ := io.ReadAll(r.Body)
			u.acts = append(u.acts, strings.TrimSpace(r.Method+" "+strings.TrimPrefix(r.URL.RequestURI(), "/api/admin")+" "+string(body)))
		}
		u.mine.Unlock()
		if scripted == nil {
			scripted = behind.ServeHTTP
		}
		scripted(w, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	u.URL = front.URL
	return u
}

// says has the bureau answer a call, such as "GET /api/admin/alerts", with body.
func (u *bureau) says(call string, status int, body frame) {
	u.holds(call, nil, status, body)
}

// holds is says once until is closed; the browser may give up before.
func (u *bureau) holds(call string, until <-chan struct{}, status int, body frame) {
	u.mine.Lock()
	defer u.mine.Unlock()
	u.answers[call] = func(w http.ResponseWriter, r *http.Request) {
		if until != nil {
			select {
			case <-until:
			case <-r.Context().Done():
				return
			}
		}
		answer(w, status, body)
	}
}

func (u *bureau) did() []string {
	u.mine.Lock()
	defer u.mine.Unlock()
	return slices.Clone(u.acts)
}

// goes opens a page of the console, anew even where it is the one that is shown.
func (b *tab) goes(path string) {
	b.t.Helper()
	b.text(`location.hash = "#/no-such-page"`)
	b.await(`document.querySelector("main").textContent.includes("There is no such page.")`)
	b.text(fmt.Sprintf("location.hash = %q", "#"+path))
}

func (b *tab) reads(words string) {
	b.t.Helper()
	b.await(fmt.Sprintf(`document.querySelector("main").textContent.includes(%q)`, words))
}

func (b *tab) presses(words string) {
	b.t.Helper()
	button := fmt.Sprintf(`[...document.querySelectorAll("main button")].find((b) => b.textContent === %q && !b.ariaDisabled)`, words)
	b.await(button)
	b.text(button + ".click()")
}

// seen judges what is shown at each width, such as a telephone's 360 px and a desk's 1440.
func (b *tab) seen(name string, widths ...int64) {
	b.t.Helper()
	for _, width := range widths {
		b.size(width, 900)
		where := fmt.Sprintf("pages-%s-%d", name, width)
		b.await(`document.documentElement.scrollWidth <= innerWidth`) // a chart is drawn anew a frame later
		if cut := b.text(`[...document.querySelectorAll("main .scroll")].filter((s) => s.scrollWidth > s.clientWidth).map((s) => s.querySelector("caption").textContent).join()`); cut != "" {
			b.t.Errorf("%s: what stands at the end of a row is out of sight in: %s", where, cut)
		}
		b.axe(where)
		b.shot(where)
	}
}

// Somebody's name, meant to be run rather than read, and too long for a line.
const hostile = `<img src=x onerror="console.error('ran')">"&'` + "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"

// instant is one that is 08:49 on the next clock in Kathmandu, where no other zone's clock shows those minutes.
const instant, inKathmandu = "2026-01-02T03:04:05.000Z", "08:49"

// organisation is each page, by what it asks, what it says when there is nothing, and what it says of the answer that is full.
var organisation = []struct {
	name, call  string
	empty, full frame
	none        string   // the sentence for nothing
	says        []string // what must be read when it is full
	again       string   // what asks anew after a refusal
}{
	{
		name: "alerts", call: "GET /api/admin/alerts", again: "Try again",
		empty: frame{"enabled": false, "webhook": nil, "mail": false, "mails": 0, "rules": []frame{}, "active": []frame{}, "history": []frame{}, "silences": []frame{}},
		none:  "Nothing is watched on this server.",
		full: frame{
			"enabled": true, "webhook": "hooks.example", "mail": true, "mails": 2,
			"rules":    []frame{{"id": "depth", "title": "The line is long", "limit": 5000, "unit": "people"}, {"id": "store", "title": "The store is away", "limit": nil, "unit": ""}},
			"active":   []frame{{"id": "a1", "rule": "depth", "roomId": "spring", "since": instant, "value": 8400, "limit": 5000, "sentence": hostile, "told": false}},
			"history":  []frame{{"id": "a0", "rule": "store", "roomId": nil, "since": instant, "endedAt": instant, "sentence": "", "told": true}},
			"silences": []frame{{"id": "s1", "rule": "depth", "roomId": nil, "until": instant, "by": "op1", "byName": hostile, "at": instant, "reason": ""}},
		},
		says: []string{"The line is long", "5,000 people", "not yet", "everywhere", "hooks.example", "2 mail addresses", inKathmandu},
	},
	{
		name: "health", call: "GET /api/admin/health", again: "Try again",
		empty: frame{"ok": false, "stopping": false, "config": frame{}, "rooms": []frame{}, "warnings": []string{}},
		none:  "There is nothing to warn of.",
		full: frame{
			"ok": true, "version": "1.2.3", "uptimeSec": 7260, "stores": "postgres+valkey", "now": instant, "journalError": "", "projectionError": "the projection cannot be reached", "organisationError": "",
			"streams": 12, "connections": 40, "checksOfUnknownRooms": 3, "warnings": []string{hostile},
			"rooms":  []frame{{"id": "spring", "owned": true, "damaged": "event 7 does not follow", "lag": 4}},
			"config": frame{"sseMaxTotal": 1000, "maxConnections": 0, "demo": false, "variables": []frame{{"name": "ADMIN_KEY", "set": true, "value": nil, "default": false}, {"name": "PUBLIC_URL", "value": hostile, "default": false}}},
		},
		says: []string{"takes places", "2 h 1 min", "the projection cannot be reached", "12 of 1,000", "event 7 does not follow", "set, and not shown", inKathmandu},
	},
	{
		name: "audit", call: "GET /api/admin/audit", again: "Show",
		empty: frame{"entries": []frame{}}, none: "No act fits this filter.",
		full: frame{"next": "more", "entries": []frame{
			{"at": instant, "actor": "op7", "name": hostile, "room": "spring", "seq": 2, "kind": "configure", "from": "192.0.2.7", "reason": hostile, "before": frame{"ratePerMinute": 300}, "after": frame{"ratePerMinute": 600}},
			{"at": instant, "actor": "op8", "name": "", "room": nil, "seq": 1, "kind": "revoke", "from": nil, "reason": nil, "before": nil, "after": nil},
		}},
		says: []string{"changed settings", "192.0.2.7", "name erased", "the organisation", "2 acts, and there are earlier ones", inKathmandu},
	},
	{
		name: "reports", call: "GET /api/admin/reports", again: "Try again",
		empty: frame{"bucket": "hour", "tz": "Asia/Kathmandu", "rows": []frame{}}, none: "Nothing happened in this time.",
		full: frame{"bucket": "hour", "tz": "Asia/Kathmandu", "rows": []frame{
			{"roomId": "spring", "start": "2026-01-02T08:45:00+05:45", "joins": 1240, "passes": 598, "entered": 500, "lapsed": 9, "left": 3, "removed": 0, "depthMax": 8400, "depthEnd": 8000, "waitAvgSec": 840, "waitMaxSec": 900},
			{"roomId": "spring", "start": "2026-01-02T09:45:00+05:45", "joins": 7, "passes": 0, "entered": 0, "lapsed": 0, "left": 0, "removed": 0, "depthMax": 8007, "depthEnd": 8007, "waitAvgSec": 0, "waitMaxSec": 0},
		}},
		says: []string{"1,240", "14 min", "08:45", "–"},
	},
	{
		name: "security", call: "GET /api/admin/security", again: "Try again",
		empty: frame{"since": instant, "rooms": []frame{}, "refusals": frame{}}, none: "No room scores its visitors.",
		full: frame{"since": instant, "refusals": frame{"rate_limited": 1200, "invalid_token": 3}, "rooms": []frame{
			{
				"roomId": "spring", "mode": "monitor", "threshold": 80, "holdScore": 50, "work": true, "scored": 1000, "scores": []int{700, 100, 50, 50, 0, 50, 0, 0, 40, 10},
				"verdicts": frame{"let_in": 900, "held": 50, "refused": 0, "offered": 0, "worked": 0, "would_refuse": 50},
				"reasons":  []frame{{"id": "no_agent", "points": 40, "sentence": hostile, "count": 60}, {"id": "webdriver", "points": 50, "sentence": "A program drives it.", "count": 0}},
				"flagged":  frame{"kept": 90, "passed": 4},
				"recent": []frame{
					{"at": instant, "score": 90, "verdict": "would_refuse", "reasons": []string{"no_agent"}, "ticket": 8123, "passed": true},
					{"at": instant, "score": 55, "verdict": "held", "reasons": []string{"no_agent"}, "ticket": nil, "passed": false},
				},
			},
			{"roomId": "quiet", "mode": "enforce", "threshold": 80, "holdScore": 50, "work": false, "scored": 0, "scores": make([]int, 10), "verdicts": frame{}, "reasons": []frame{}, "flagged": frame{"kept": 0, "passed": 0}, "recent": []frame{}},
		}},
		says: []string{"Spring drop", "700 (70 %)", "90 to 100", "8,123", "No visitor has been scored here", "rate_limited", "1,200", "–", inKathmandu},
	},
	{
		name: "operators", call: "GET /api/admin/operators", again: "Try again",
		empty: frame{"operators": []frame{}}, none: "Nobody has a key of their own yet",
		full: frame{"operators": []frame{{"id": "op1", "name": hostile, "role": "viewer", "createdAt": instant, "otp": true}}},
		says: []string{"viewer", "Take second factor off", "–", inKathmandu},
	},
	{
		name: "links", call: "GET /api/admin/monitor-token", again: "Try again",
		empty: frame{"links": []frame{}}, none: "There are no share links.",
		full: frame{"links": []frame{{"id": "l1", "createdBy": "op1", "createdByName": hostile, "createdAt": instant, "expiresAt": instant}, {"id": "l2", "createdBy": "admin", "createdByName": "", "createdAt": instant, "expiresAt": nil}}},
		says: []string{"l1", "Revoke all", "admin", "–", inKathmandu},
	},
	{
		name: "connectors", call: "GET /api/v1/connectors", again: "Try again",
		empty: frame{"connectors": []frame{}}, none: "This server hands out no connectors.",
		full: frame{"connectors": []frame{{"id": "snippet", "name": "snippet", "title": "Script tag", "version": "1.2.3", "size": 4096, "sha256": strings.Repeat("ab", 32), "download": "/connectors/snippet/latest.js", "install": hostile, "upgrade": "curl -O latest.js", "verify": "sha256sum latest.js"}}},
		says: []string{"Script tag", "1.2.3, 4 KB", strings.Repeat("ab", 32), "curl -O latest.js"},
	},
}

// TestOrganisationPages opens each page while its answer is under way, refused, empty and full.
func TestOrganisationPages(t *testing.T) {
	t.Parallel()
	u := newBureau(t)
	b := newTab(t)
	b.before(testenv.Axe(t))
	b.inZone("Asia/Kathmandu")
	signIn(b, u.office)
	b.await(`document.querySelectorAll(".rooms tbody tr").length === 1`)
	for _, p := range organisation {
		come := make(chan struct{})
		u.holds(p.call, come, http.StatusForbidden, frame{"error": "Your role does not reach this far.", "code": "forbidden"})
		b.goes("/" + p.name)
		b.reads("Loading")
		close(come)
		b.await(`document.querySelector("main .out.err")?.textContent === "Your role does not reach this far."`)
		b.seen(p.name+"-refused", 360)

		u.says(p.call, http.StatusOK, p.empty)
		b.presses(p.again)
		b.reads(p.none)
		if left := b.text(`document.querySelectorAll("main .out.err").length`); left != "0" {
			t.Errorf("%s: the refusal stays", p.name)
		}
		b.seen(p.name+"-empty", 1440)

		u.says(p.call, http.StatusOK, p.full)
		b.goes("/" + p.name)
		for _, words := range p.says {
			b.reads(words)
		}
		b.text(`(document.querySelectorAll("main details").forEach((d) => (d.open = true)), "")`)
		b.seen(p.name, 1440, 360)
		text, _ := json.Marshal(p.full)
		if strings.Contains(string(text), "onerror") {
			b.reads(hostile)
		}
		if n := b.text(`document.querySelectorAll("main img, main [style*=expression]").length`); n != "0" {
			t.Errorf("%s: what was only to be read became markup", p.name)
		}
		if strings.Contains(string(text), instant) {
			b.await(fmt.Sprintf(`[...document.querySelectorAll('main time[datetime=%q]')].every((t) => t.tabIndex === 0 && /8:49:05/.test(t.title))`, instant))
		}
	}
	b.clean("403")
}

// TestOrganisationActsAnswerInTheirPlace: each act is one call, asked for where it takes something away, and a refusal is said where it was asked.
func TestOrganisationActsAnswerInTheirPlace(t *testing.T) {
	t.Parallel()
	u := newBureau(t)
	for _, p := range organisation {
		u.says(p.call, http.StatusOK, p.full)
	}
	refused := frame{"error": "Your role does not reach this far.", "code": "forbidden"}
	acts := []struct {
		page, press, call string
		confirm           string // what the question's button says; "" where nothing is asked
		status            int
		answer            frame
		says, did         string
	}{
		{"alerts", "Silence it", "POST /api/admin/alerts/silence", "", 403, refused, "Your role does not reach this far.", `POST /alerts/silence {"rule":"depth","forSec":3600}`},
		{"alerts", "End it", "DELETE /api/admin/alerts/silence", "", 200, frame{"ok": true}, "is told again.", `DELETE /alerts/silence?id=s1`},
		{"alerts", "Send a test page", "POST /api/admin/alerts", "", 502, frame{"error": "The webhook did not take it.", "code": "webhook_failed"}, "The webhook did not take it.", `POST /alerts`},
		{"operators", "Revoke", "DELETE /api/admin/operators/op1", "Revoke " + hostile, 200, frame{"ok": true}, "is revoked.", `DELETE /operators/op1`},
		{"operators", "Take second factor off", "DELETE /api/admin/operators/op1/otp", "Take it off", 403, refused, "Your role does not reach this far.", `DELETE /operators/op1/otp`},
		{"links", "Revoke", "DELETE /api/admin/monitor-token", "Revoke it", 200, frame{"revoked": 1}, "1 link is revoked.", `DELETE /monitor-token?id=l1`},
		{"links", "Revoke all", "DELETE /api/admin/monitor-token", "Revoke all", 200, frame{"revoked": 2}, "2 links are revoked.", `DELETE /monitor-token?all=1`},
		{"links", "Make a link", "POST /api/admin/monitor-token", "", 200, frame{"id": "l3", "url": "https://line.example/#monitor=x.y", "expiresAt": instant}, "This address is shown only now.", `POST /monitor-token {"expiresInSec":2592000}`},
	}
	b := newTab(t)
	b.before(testenv.Axe(t))
	signIn(b, u.office)
	b.await(`document.querySelectorAll(".rooms tbody tr").length === 1`)
	for i, a := range acts {
		u.says(a.call, a.status, a.answer)
		b.goes("/" + a.page)
		if a.page == "alerts" {
			b.await(`document.querySelector("#rule option")`)
		}
		b.presses(a.press)
		if a.confirm != "" {
			b.await(`document.querySelector("main .ask")`)
			if n := len(u.did()); n != i {
				t.Fatalf("%s: done before it was asked: %v", a.press, u.did()[i:])
			}
			b.axe(a.page + " asks")
			if got := b.text(`document.activeElement.textContent`); got != "Keep as it is" {
				t.Errorf("%s: what is first at hand is %q", a.press, got)
			}
			if got := b.text(`document.querySelector("main .ask button.bad").textContent`); got != a.confirm {
				t.Errorf("%s: the question's button says %q", a.press, got)
			}
			// Twice, as an impatient hand does.
			b.text(`(() => { const go = document.querySelector("main .ask button.bad"); go.click(); document.querySelector("main .ask button.bad")?.click(); })()`)
		}
		b.reads(a.says)
		if got := u.did(); len(got) != i+1 || got[i] != a.did {
			t.Fatalf("%s did %q, want %s", a.press, got[min(i, len(got)):], a.did)
		}
	}
	b.seen("link-once", 360)
	b.clean("403", "502")
}

// TestOrganisationPagesOfAViewer: whoever may only read is offered no act, and is not led to what they may not read.
func TestOrganisationPagesOfAViewer(t *testing.T) {
	t.Parallel()
	u := newBureau(t)
	u.answers["POST /api/admin/session"] = func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "qm_console", Value: "s", Path: "/api/admin", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		answer(w, 200, frame{"ok": true, "name": "Vera", "role": "viewer", "expiresInSec": 43200})
	}
	u.says("GET /api/admin/session", 200, frame{"ok": true, "name": "Vera", "role": "viewer", "session": true})
	for _, p := range organisation {
		u.says(p.call, http.StatusOK, p.full)
	}
	b := newTab(t)
	signIn(b, u.office)
	b.await(`document.querySelectorAll(".rooms tbody tr").length === 1`)
	for _, p := range organisation {
		b.goes("/" + p.name)
		if p.name == "operators" {
			b.reads("Your role does not reach this page.")
			continue
		}
		for _, words := range p.says {
			if words != "Revoke all" && words != inKathmandu && words != "08:45" {
				b.reads(words)
			}
		}
		for _, act := range []string{"Silence it", "End it", "Send a test page", "Make a link", "Revoke", "Revoke all"} {
			if b.text(fmt.Sprintf(`[...document.querySelectorAll("main button")].some((b) => b.textContent === %q)`, act)) != "false" {
				t.Errorf("a viewer is offered %q at %s", act, p.name)
			}
		}
	}
	if got := b.text(`!document.querySelector('#nav a[href="#/operators"]')`); got != "true" {
		t.Error("a viewer is led to the operators")
	}
	b.clean()
}

// inZone has the tab's clock be that of a time zone.
func (b *tab) inZone(zone string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		return err
	}))
}
