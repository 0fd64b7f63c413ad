package web_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"qm/internal/testenv"
	"qm/web"
)

// scene is a state of the waiting page and what leads there.
type scene struct {
	state  string
	set    func(l *line)                       // what the server says
	after  func(t *testing.T, b *tab, l *line) // once the page is open
	page   string                              // its path, "/w/demo" by default
	plain  bool                                // without JavaScript
	errors []string                            // what the browser itself may complain of
}

// scenes are all that look.md names.
func scenes(server string) map[string]scene {
	now := time.Now()
	say := func(f frame) func(*line) { return func(l *line) { l.now = f } }
	refuse := func(status int, code string, routes ...string) func(*line) {
		return func(l *line) {
			for _, route := range routes {
				l.refuse[route] = refusal{status, code, 60}
			}
		}
	}
	drop := func(in time.Duration) frame {
		return frame{
			"state": "scheduled", "scheduled": true, "preCount": 1204, "position": nil, "opensAt": now.Add(in).UnixMilli(), "now": now.UnixMilli(),
			"message": "Tickets are 40 each. Please have your card ready.", "messageAt": now.UnixMilli(),
		}
	}
	still := func(state string) frame {
		return frame{"state": state, "position": 240_128, "ahead": 240_127, "etaSec": nil}
	}
	lost := func(status int, code string) func(*testing.T, *tab, *line) {
		return func(_ *testing.T, b *tab, l *line) {
			b.awaitState("waiting")
			l.with(func(l *line) {
				l.refuse["status"], l.refuse["events"] = refusal{status, code, 0}, refusal{503, "", 0}
			})
			l.cut()
		}
	}
	place := int64(512)
	all := map[string]scene{
		"joining":   {set: func(l *line) { l.hang = true }},
		"busy":      {set: refuse(429, "rate_limited", "join"), errors: []string{"429"}},
		"waiting":   {set: say(at(1524, 1500))},
		"near":      {set: say(frame{"state": "active", "position": 3, "ahead": 2, "etaSec": 40, "message": "The shop has restocked size M. Thank you for waiting.", "messageAt": now.UnixMilli(), "now": now.UnixMilli()})},
		"turn":      {set: say(frame{"state": "active", "position": nil, "passed": true, "expiresInSec": 598, "redirectUrl": server + "/stay"})},
		"bypass":    {set: say(frame{"state": "bypass", "passed": true, "redirectUrl": server + "/stay"})},
		"scheduled": {set: say(drop(2*time.Hour + 14*time.Minute))},
		"shut":      {set: say(frame{"state": "scheduled", "scheduled": true, "position": 40, "ahead": 39, "etaSec": 4000, "opensAt": now.Add(time.Hour).UnixMilli(), "now": now.UnixMilli()})},
		"drawing":   {set: say(frame{"state": "drawing", "position": nil, "etaSec": nil})},
		"drawn": {set: func(l *line) {
			l.page.Drawn, l.now = true, at(512, 1500)
			l.page.First = web.Frame{State: "drawn", Position: &place, Now: now}
		}},
		"paused":       {set: say(still("paused"))},
		"held":         {set: say(still("held"))},
		"full":         {set: say(still("full"))},
		"expired":      {set: func(l *line) { l.page.Lapsed, l.now = "expired", at(2048, 2400) }},
		"reset":        {set: func(l *line) { l.page.Lapsed, l.now = "reset", at(7, 90) }},
		"offline":      {after: func(_ *testing.T, b *tab, _ *line) { b.awaitState("waiting"); b.offline(true) }, errors: []string{"ERR_INTERNET_DISCONNECTED"}},
		"reconnecting": {after: lost(200, ""), errors: []string{"503"}},
		"restarting":   {after: lost(502, ""), errors: []string{"502", "503"}},
		"backend":      {after: lost(503, "storage_unavailable"), errors: []string{"503"}},
		"fault":        {after: lost(500, "internal_error"), errors: []string{"500", "503"}},
		"linefull":     {set: refuse(503, "prequeue_full", "join"), errors: []string{"503"}},
		"toomany":      {set: refuse(429, "queue_identity_limit", "join"), errors: []string{"429"}},
		"refused":      {set: refuse(403, "blocked_by_protection", "join"), errors: []string{"403"}},
		"gone":         {set: func(l *line) { refuse(404, "room_not_found", "join")(l); l.page.SiteURL = server + "/target" }, errors: []string{"404"}},
		"cookies":      {set: func(l *line) { l.now = at(24, 300); refuse(401, "invalid_token", "status", "events")(l) }, errors: []string{"401"}},
		"left": {after: func(_ *testing.T, b *tab, l *line) {
			b.awaitState("waiting")
			l.say(frame{"expired": true, "reason": "left"})
		}},
		"leaving": {state: "waiting", set: say(at(24, 300)), after: func(_ *testing.T, b *tab, _ *line) {
			b.awaitState("waiting")
			b.click("#leave")
			b.await(`document.getElementById("ask").open`)
		}},
		"fair": {state: "waiting", set: say(at(24, 300)), after: func(_ *testing.T, b *tab, _ *line) {
			b.awaitState("waiting")
			b.click(".fair summary")
		}},
		"plain": {state: "waiting", plain: true, set: func(l *line) {
			eta := int64(1500)
			l.page.First = web.Frame{State: "active", Position: &place, EtaSec: &eta, Now: now}
			l.page.Branding.Message = "The shop has restocked size M."
		}},
	}
	for _, n := range []web.Notice{web.NoticeMissing, web.NoticeGone, web.NoticeRefused, web.NoticeTooMany, web.NoticeBusy, web.NoticeFull, web.NoticeBackend, web.NoticeFault} {
		all["notice-"+string(n)] = scene{state: string(n), page: "/notice/" + string(n), set: func(l *line) { l.page.SiteURL = server + "/target" }}
	}
	return all
}

// TestEveryStateOnEveryScreen draws each state at three widths, in both colour schemes, from left to right and from right to left: axe
// finds nothing, nothing is wider than the screen, the console has nothing to say. With QM_TEST_SHOTS=dir or go test -artifacts it draws
// every width in both schemes and keeps the pictures for eyes.
//
// Proves: waiting.page
func TestEveryStateOnEveryScreen(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("QM_TEST_SHOTS")
	if kept := flag.Lookup("test.artifacts"); dir == "" && kept != nil && kept.Value.String() == "true" {
		dir = t.ArtifactDir()
	}
	l := newLine(t, nil)
	blank := web.WaitingPage{RoomID: "demo", RoomName: "Spring drop", PollSeconds: 5, Ref: "7KQ2-M9TX", Branding: web.Branding{Name: "North & Sons"}}
	visitor := newTab(t)
	visitor.hurry()
	visitor.before(testenv.Axe(t))
	all := scenes(l.URL)
	for _, locale := range []string{"en", "ar"} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			t.Run(locale+"/"+name, func(t *testing.T) {
				s := all[name]
				b := visitor.in(t)
				l.with(func(l *line) {
					clear(l.refuse)
					l.now, l.ticket, l.hang, l.page = at(24, 300), 40, false, blank
					l.page.Locale = locale
					if s.set != nil {
						s.set(l)
					}
				})
				t.Cleanup(func() {
					b.offline(false)
					b.scripts(true)
				})
				b.scripts(!s.plain)
				path := "/w/demo"
				if s.page != "" {
					path = s.page
				}
				b.open(l.URL + path)
				if s.after != nil {
					s.after(t, b, l)
				}
				state := s.state
				if state == "" {
					state = name
				}
				b.await(fmt.Sprintf("document.querySelector('main')?.dataset.state === %q", state))
				for i, width := range []int64{320, 768, 1440} {
					b.size(width, 900)
					for j, scheme := range []string{"light", "dark"} {
						if dir == "" && ((i+j)%2 == 1 || locale != "en" && width != 320) {
							continue // for axe each width once, each scheme once: the colours do not change with the width
						}
						b.media(feature("prefers-color-scheme", scheme), feature("prefers-reduced-motion", "reduce"))
						where := fmt.Sprintf("%s-%s-%d-%s", name, locale, width, scheme)
						if !s.plain {
							b.axe(where)
						}
						if wide := b.text("document.documentElement.scrollWidth - innerWidth"); wide != "0" && wide[0] != '-' {
							t.Errorf("%s is %s px wider than the screen", where, wide)
						}
						if dir != "" {
							b.picture(dir + "/" + where + ".png")
						}
					}
				}
				if !s.plain {
					b.text("localStorage.clear(), sessionStorage.clear()")
				}
				b.clean(s.errors...)
			})
		}
	}
}

// picture writes what the page looks like, from top to bottom.
func (b *tab) picture(file string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(file, png, 0o600)
	}
	if err != nil {
		b.t.Errorf("picture %s: %v", file, err)
	}
}
