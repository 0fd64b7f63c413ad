package web_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"qm/web"
)

// TestPictures draws every state, for eyes: QM_TEST_SHOTS=dir go test -run Pictures.
// Without a directory it draws one state in each colour scheme, so that the
// path stays alive.
func TestPictures(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLine(t, at(1524, 1500))
	b := newTab(t)
	states := map[string]frame{
		"waiting": {"state": "active", "position": 1524, "ahead": 1523, "etaSec": 1500},
	}
	if os.Getenv("QM_TEST_SHOTS") != "" {
		for name, f := range map[string]frame{
			"near":      {"state": "active", "position": 3, "ahead": 2, "etaSec": 40, "message": "The shop has restocked size M. Thank you for waiting.", "messageAt": now.UnixMilli(), "now": now.UnixMilli()},
			"paused":    {"state": "paused", "position": 240_128, "ahead": 240_127, "etaSec": nil},
			"turn":      {"state": "active", "position": nil, "passed": true, "expiresInSec": 598, "redirectUrl": l.URL + "/stay"},
			"scheduled": {"state": "scheduled", "scheduled": true, "preCount": 1204, "position": nil, "opensAt": now.Add(2*time.Hour + 14*time.Minute).UnixMilli(), "now": now.UnixMilli()},
			"toomany":   {"refuse": "queue_identity_limit"},
			"gone":      {"refuse": "room_not_found"},
			"drawing":   {"state": "drawing", "position": nil, "etaSec": nil},
		} {
			states[name] = f
		}
	}
	l.with(func(l *line) {
		l.page.Branding = web.Branding{Name: "North & Sons"}
	})
	for _, scheme := range []string{"light", "dark"} {
		b.media(&emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
		for _, width := range []int64{1280, 360} {
			b.size(width, 860)
			for name, f := range states {
				l.with(func(l *line) { l.now = f; clear(l.refuse) })
				if code, ok := f["refuse"].(string); ok {
					l.with(func(l *line) { l.refuse["join"] = refusal{429, code, 60} })
				}
				b.open(l.URL + "/w/demo")
				b.awaitState(name)
				b.await(`document.getElementById("fill").getAnimations().length === 0`)
				b.text("localStorage.clear(), sessionStorage.clear()")
				b.shot(fmt.Sprintf("%s-%s-%d", name, scheme, width))
			}
		}
	}
	for _, width := range []int64{1280, 360} {
		b.size(width, 860)
		b.open(l.URL + "/target")
		b.shot(fmt.Sprintf("target-dark-%d", width))
	}
	b.clean("429")
}
