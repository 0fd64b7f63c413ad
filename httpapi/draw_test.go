package httpapi

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"qm/engine"
)

// drawState is what the page says of the draw: draw.none, draw.soon or draw.done.
var drawState = regexp.MustCompile(`data-state="([a-z.]+)"`)

// The page of a draw: what is published before and after it, which place was dealt to whoever asks and to nobody else, and that a line
// without a draw is by arrival. Looking takes no place.
func TestTheDrawPage(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("fifo", 60, `,"state":"paused"`)
		w.room("drop", 0, `,"opensAt":`+ms(time.Now().Add(w.pause(time.Minute, 8*time.Second))))
		const n = 5
		all := w.crowd("drop", n)
		stranger := w.browser("198.51.100.9")
		stood := w.browser("198.51.100.10")
		stood.join("fifo")
		look := func(b *browser, path string, status int, state string, has ...string) string {
			w.Helper()
			page := b.get(path)
			if page.status != status || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || page.header.Get("Cache-Control") != "no-store" {
				w.Fatalf("%s answers %d %v: %.300s", path, page.status, page.header, page.body)
			}
			if m := drawState.FindStringSubmatch(page.body); m == nil || m[1] != state {
				w.Errorf("%s shows %v, not %s", path, m, state)
			}
			if strings.Contains(page.body, "<script") {
				w.Errorf("%s has a script", path)
			}
			for _, h := range has {
				if !strings.Contains(page.body, h) {
					w.Errorf("%s does not show %q: %s", path, h, page.body)
				}
			}
			head := b.raw("HEAD", path)
			if head.status != status || head.body != "" || head.header.Get("Content-Type") != page.header.Get("Content-Type") {
				w.Errorf("HEAD %s answers %d, %d bytes", path, head.status, len(head.body))
			}
			return page.body
		}
		facts := func() map[string]any { return stranger.get("/api/v1/rooms/drop").want(w.T, 200, "").json }
		text := func(name string) string { s, _ := facts()[name].(string); return s }

		for _, b := range []*browser{stranger, stood} {
			if page := look(b, "/w/fifo/draw", 200, "draw.none", "This line goes by arrival"); strings.Contains(page, "<code") {
				w.Errorf("of a line by arrival there is something to check: %s", page)
			}
		}
		commitment := text("commitment")
		for _, b := range []*browser{stranger, all[0]} {
			opens := time.UnixMilli(int64(facts()["opensAt"].(float64))).UTC().Format("2006-01-02 15:04 UTC")
			page := look(b, "/w/drop/draw", 200, "draw.soon", opens, commitment, `href="/api/v1/rooms/drop"`)
			if strings.Contains(page, `id="secret"`) || strings.Contains(page, "You were dealt") {
				w.Errorf("before the draw the page says %s", page)
			}
		}
		look(stranger, "/w/nowhere/draw", 404, "missing")
		look(stranger, "/w/NO%20ROOM/draw", 404, "missing")

		for w.stats("drop").json["effectiveState"] == "scheduled" {
			time.Sleep(time.Second)
		}
		secret := text("secret")
		done := []string{commitment, secret, "qm-replay draw", `href="/api/v1/rooms/drop"`}
		dealt := func(b *browser) string {
			return regexp.MustCompile(`You were dealt place [^<]*`).FindString(look(b, "/w/drop/draw", 200, "draw.done", done...))
		}
		before := all[0].jar["qm_drop"]
		seen := map[string]bool{}
		for _, b := range all {
			early := dealt(b) // by the token of the pre-queue
			want := "You were dealt place " + itoa(b.status("drop").want(w.T, 200, "").num(w.T, "position")) + " of 5."
			if late := dealt(b); early != want || late != want {
				w.Errorf("the page says %q, then %q, not %q", early, late, want)
			}
			seen[want] = true
		}
		if len(seen) != n {
			w.Errorf("dealt were %v", seen)
		}
		if got := dealt(stranger); got != "" {
			w.Errorf("a stranger is told %q", got)
		}
		stranger.jar["qm_drop"] = before // of somebody else, without what makes it theirs
		if got := dealt(stranger); got != "" {
			w.Errorf("whoever shows somebody else's token is told %q", got)
		}
		late := w.browser("198.51.100.11")
		late.join("drop")
		if got := dealt(late); got != "" {
			w.Errorf("who came after the draw is told %q", got)
		}
		all[0].headers["Accept-Language"] = "ar"
		look(all[0], "/w/drop/draw", 200, "draw.done", `<html lang="ar" dir="rtl">`, secret)
		if got := w.stats("drop").num(w.T, "waiting"); got != n+1 {
			w.Errorf("%d are in line: looking has taken a place", got)
		}
	})
}

// A room that cannot be asked is no reason to say that there was no draw.
func TestTheDrawPageOfARoomThatCannotBeAsked(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, "")
		away := &broken{Engine: w.engine, view: engine.ErrStorage}
		failing := newWorld(w.T, inProcess(w.T), Options{Engine: away})
		page := failing.browser("198.51.100.1").get("/w/rm1/draw").want(w.T, http.StatusServiceUnavailable, "")
		if !strings.Contains(page.body, `data-state="backend"`) {
			w.Errorf("the page says %.500s", page.body)
		}
	})
}
