package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"qm/web"
)

// office is a scripted admin API behind the console.
type office struct {
	*httptest.Server

	mu      sync.Mutex
	rooms   []frame
	streams map[chan frame]bool
	tickets int
	did     []string // "POST /rooms/demo/rate {...}"
	refuse  *refusal
	journal []frame
	ended   bool // no session is one any more
}

func newOffice(t *testing.T, rooms ...frame) *office {
	t.Helper()
	o := &office{rooms: rooms, streams: map[chan frame]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", web.ConsolePolicy())
		_ = web.Console(w)
	})
	mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		body, contentType, ok := web.Asset(r.URL.Path)
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
	})
	mux.HandleFunc("POST /api/admin/session", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Key string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		if r.Header.Get("X-QM-CSRF") != "1" || body.Key != "admin-dev" {
			answer(w, 401, frame{"error": "That key is not known here.", "code": "unauthorized"})
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "qm_console", Value: "s", Path: "/api/admin", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		answer(w, 200, frame{"ok": true, "name": "admin key", "role": "owner", "expiresInSec": 43200})
	})
	mux.HandleFunc("GET /api/v1/connectors", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, frame{"connectors": []frame{}})
	})
	mux.HandleFunc("/api/admin/", o.admin)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

func (o *office) admin(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	ended := o.ended
	o.mu.Unlock()
	if _, err := r.Cookie("qm_console"); err != nil || ended {
		answer(w, 401, frame{"error": "Sign in first.", "code": "unauthorized"})
		return
	}
	if r.Method != http.MethodGet && r.Header.Get("X-QM-CSRF") != "1" {
		answer(w, 403, frame{"code": "csrf_required"})
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/admin")
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case path == "/events":
		o.events(w, r)
	case path == "/sse-ticket":
		o.tickets++
		answer(w, 200, frame{"ticket": fmt.Sprint("t", o.tickets)})
	case r.Method == http.MethodGet && path == "/session":
		answer(w, 200, frame{"ok": true, "name": "admin key", "role": "owner", "session": true})
	case r.Method == http.MethodGet && path == "/rooms":
		answer(w, 200, frame{"rooms": o.rooms})
	case strings.HasSuffix(path, "/connectors"):
		answer(w, 200, frame{"roomId": "spring", "connectors": []frame{}, "since": time.Now().UnixMilli()})
	case path == "/metrics":
		answer(w, 200, o.history(time.Now().Truncate(time.Minute)))
	case path == "/audit":
		answer(w, 200, frame{"entries": []frame{{
			"at": time.Now().Add(-20 * time.Minute), "actor": "admin", "name": "admin key", "kind": "configure", "seq": 2,
			"before": frame{"ratePerMinute": 300}, "after": frame{"ratePerMinute": 600}, "reason": nil,
		}}})
	case strings.HasSuffix(path, "/journal"):
		var out []frame
		for _, e := range o.journal {
			if fmt.Sprint(e["seq"]) > r.URL.Query().Get("after") {
				out = append(out, e)
			}
		}
		answer(w, 200, frame{"events": out})
	default:
		var body frame
		_ = json.NewDecoder(r.Body).Decode(&body)
		text, _ := json.Marshal(body)
		o.did = append(o.did, fmt.Sprintf("%s %s %s", r.Method, path, text))
		if o.refuse != nil {
			answer(w, o.refuse.status, frame{"code": o.refuse.code, "error": "The rate must be from 0 to 100000."})
			return
		}
		if path == "/rooms" && body["name"] != nil {
			o.rooms = append(o.rooms, frame{"id": body["id"], "name": body["name"], "state": "active", "waiting": 0, "rate": 60})
			o.tell(frame{"rooms": o.rooms})
		}
		did := frame{"ok": true}
		switch {
		case strings.HasSuffix(path, "/flush"):
			did["flushed"] = 7 // fewer than were asked for are there
		case strings.HasSuffix(path, "/eject"):
			did["ejected"], did["ticket"] = body["ticket"], 8401
		case strings.HasSuffix(path, "/purge"):
			did["purged"] = 12
		}
		answer(w, 200, did)
	}
}

// history is an hour of a room's: unknown at first, then a line that grows.
func (o *office) history(now time.Time) frame {
	var points []frame
	for i := range 60 {
		p := frame{"at": now.Add(time.Duration(i-59) * time.Minute).UnixMilli(), "joins": nil, "passes": nil, "depth": nil, "depthMax": nil}
		if i > 5 {
			p["joins"], p["passes"], p["depth"], p["depthMax"] = 900+i%7*40, 598, i*150, i*150
		}
		points = append(points, p)
	}
	return frame{"roomId": "spring", "stepSec": 60, "points": points, "now": now.UnixMilli() + 20_000}
}

// events streams frames; the lock is held on entry and on return.
func (o *office) events(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("ticket") != fmt.Sprint("t", o.tickets) {
		answer(w, 401, frame{"code": "unauthorized"})
		return
	}
	ch := make(chan frame, 64)
	ch <- frame{"rooms": o.rooms, "totals": frame{}}
	o.streams[ch] = true
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		delete(o.streams, ch)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		select {
		case <-r.Context().Done():
			return
		case f, ok := <-ch:
			if !ok {
				return
			}
			data, _ := json.Marshal(f)
			fmt.Fprintf(w, "data: %s\n\n", data)
			w.(http.Flusher).Flush()
		}
	}
}

func (o *office) tell(f frame) {
	for ch := range o.streams {
		ch <- f
	}
}

func (o *office) with(change func(o *office)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
}

func (o *office) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.did) == 0 {
		return ""
	}
	return o.did[len(o.did)-1]
}

// signIn opens the console as the owner.
func signIn(b *tab, o *office) {
	b.t.Helper()
	b.open(o.URL + "/")
	b.await(`document.getElementById("key")`)
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), "admin-dev\r"))
}

func drop() frame {
	return frame{
		"id": "spring", "name": "Spring drop", "state": "active", "waiting": 8400, "preQueue": 0, "passedLastMin": 598, "joinedLastMin": 1240,
		"rate": 600, "oldestWaitSec": 840, "estWaitSec": 850, "live": 412, "maxConcurrent": 500, "seq": 3,
		"branding": frame{"name": "North & Sons", "logoUrl": "", "color": "#f60", "background": "", "message": "", "messageAt": nil},
	}
}

func TestConsoleFirstRun(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	b := newTab(t)
	b.open(o.URL + "/")
	b.await(`document.getElementById("key")`)
	b.shot("console-signin")
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), "wrong\r"))
	b.await(`document.body.innerText.includes("That key is not known here.")`)
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), "admin-dev\r"))
	b.await(`document.querySelector("h1").textContent === "Your first line"`)
	b.shot("console-first")
	b.do(
		chromedp.SendKeys(chromedp.CSS("#id"), "spring"),
		chromedp.SendKeys(chromedp.CSS("#name"), "Spring drop"),
		chromedp.SendKeys(chromedp.CSS("#targetUrl"), "https://shop.example/\r"),
	)
	b.await(`location.hash === "#/rooms/spring/install" && document.querySelector("h1").textContent === "Spring drop"`)
	b.await(`document.querySelector('a[href="/w/spring"]').textContent === location.origin + "/w/spring"`)
	if got, want := o.last(), `POST /rooms {"id":"spring","name":"Spring drop","ratePerMinute":60,"targetUrl":"https://shop.example/"}`; got != want {
		t.Errorf("did %s, want %s", got, want)
	}
	b.clean("401")
}

func TestConsoleSteersARoom(t *testing.T) {
	t.Parallel()
	quiet := frame{"id": "checkout", "name": "Checkout", "state": "paused", "waiting": 3, "rate": 0, "estWaitSec": nil, "oldestWaitSec": 95}
	o := newOffice(t, drop(), quiet)
	o.with(func(o *office) {
		now := time.Now()
		o.journal = []frame{
			{"seq": 1, "at": now.Add(-time.Minute), "kind": "create", "actor": "owner", "body": frame{"name": "Spring drop"}},
			{"seq": 2, "at": now.Add(-30 * time.Second), "kind": "join", "actor": "visitor", "body": frame{"n": 1}},
			{"seq": 3, "at": now, "kind": "pass", "actor": "clock", "body": frame{"p": [][]int{{1, 10}}, "by": "clock"}},
		}
	})
	b := newTab(t)
	signIn(b, o)
	b.await(`document.querySelectorAll(".rooms tbody tr").length === 2`)
	b.await(`document.querySelector(".rooms").innerText.includes("8,400")`)
	delta := drop()
	delta["waiting"] = 8100
	waitFor(t, func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.streams) == 1 })
	o.with(func(o *office) {
		o.tell(frame{"delta": true, "rooms": []frame{delta}, "removed": []string{"checkout"}})
	})
	b.await(`document.querySelectorAll(".rooms tbody tr").length === 1 && document.querySelector(".rooms").innerText.includes("8,100")`)

	b.click(".rooms tbody a")
	b.await(`document.querySelector("h1").textContent === "Spring drop"`)
	b.await(`document.getElementById("rateHint").textContent === "600 a minute: the line is gone in about 14 minutes, if nobody else joins."`)
	b.await(`document.querySelectorAll(".journal li").length === 3`)
	b.do(chromedp.SetValue(chromedp.CSS("#rate"), "1200"))
	b.text(`document.getElementById("rate").dispatchEvent(new Event("input"))`)
	b.await(`document.getElementById("rateHint").textContent.includes("about 7 minutes")`)
	b.do(chromedp.SendKeys(chromedp.CSS("#rate"), "\r"))
	b.await(`document.body.innerText.includes("1,200 a minute, before it was 600.")`)
	if got, want := o.last(), `POST /rooms/spring/rate {"ratePerMinute":1200}`; got != want {
		t.Errorf("did %s, want %s", got, want)
	}

	b.click(`button[data-s="paused"]`)
	b.await(`document.body.innerText.includes("The line is paused; places are kept.")`)
	b.click(`button[data-s="bypass"]`)
	b.await(`document.querySelector(".ask").innerText.includes("8,100 people")`)
	if got, want := o.last(), `POST /rooms/spring/state {"state":"paused"}`; got != want {
		t.Errorf("bypass did not ask first: %s", got)
	}
	b.click(`.ask button.bad`)
	waitFor(t, func() bool { return o.last() == `POST /rooms/spring/state {"state":"bypass"}` })

	b.do(chromedp.SendKeys(chromedp.CSS("#message"), "Back at noon."))
	b.click(`.control:has(#message) button`)
	b.await(`document.body.innerText.includes("Everyone in line can read it.")`)
	if got, want := o.last(), `POST /rooms {"branding":{"message":"Back at noon."},"id":"spring"}`; got != want {
		t.Errorf("did %s, want %s", got, want)
	}

	o.with(func(o *office) { o.refuse = &refusal{400, "invalid_rate", 0} })
	b.do(chromedp.SendKeys(chromedp.CSS("#rate"), "\r"))
	b.await(`document.querySelector(".out.err")?.textContent === "The rate must be from 0 to 100000."`)

	// The stream ends: a new ticket, and a bar meanwhile only when it lasts.
	o.with(func(o *office) {
		o.refuse = nil
		for ch := range o.streams {
			close(ch)
			delete(o.streams, ch)
		}
	})
	waitFor(t, func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.tickets >= 2 && len(o.streams) == 1 })
	b.click("#signout")
	b.await(`document.querySelector("h1").textContent === "Sign in"`)
	b.clean("400")
}

// TestConsolePictures draws the console for eyes, as TestPictures does.
func TestConsolePictures(t *testing.T) {
	t.Parallel()
	o := newOffice(t, drop(),
		frame{"id": "checkout", "name": "Checkout", "state": "paused", "waiting": 3, "rate": 0, "estWaitSec": nil, "oldestWaitSec": 95, "passedLastMin": 0, "joinedLastMin": 1},
		frame{"id": "noon", "name": "Noon sale", "state": "active", "effectiveState": "scheduled", "opensAt": time.Now().Add(time.Hour).UnixMilli(), "waiting": 0, "preQueue": 1204, "rate": 300, "estWaitSec": 3600, "estWaitFloor": true, "passedLastMin": 0, "joinedLastMin": 88},
		frame{"id": "help", "name": "Help desk", "state": "bypass", "waiting": 0, "rate": 60, "estWaitSec": 0, "passedLastMin": 12, "joinedLastMin": 12, "oldestWaitSec": 0})
	now := time.Now()
	var line [][]int64
	for i := range 90 {
		line = append(line, []int64{now.Add(time.Duration(i-90) * 10 * time.Second).UnixMilli(), int64(2000 + i*90 - (i%7)*60)})
	}
	o.with(func(o *office) {
		o.rooms[0]["sparkline"] = line
		for i, kind := range []string{"create", "configure", "join", "join", "pass", "state", "pass"} {
			o.journal = append(o.journal, frame{"seq": i + 1, "at": now.Add(time.Duration(i-7) * time.Second), "kind": kind, "actor": "visitor", "body": frame{"n": 8400 + i, "holder": "b1946ac92492d2347c6235b4d2611184"}})
		}
	})
	b := newTab(t)
	signIn(b, o)
	b.await(`document.querySelectorAll(".rooms tbody tr").length === 4`)
	schemes := []string{"light"}
	if os.Getenv("QM_TEST_SHOTS") != "" {
		schemes = append(schemes, "dark")
	}
	for _, scheme := range schemes {
		b.media(&emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
		for _, width := range []int64{1280, 360, 320} {
			b.size(width, 900)
			for name, hash := range map[string]string{"rooms": "#/", "room": "#/rooms/spring", "new": "#/new"} {
				b.text(fmt.Sprintf("location.hash = %q", hash))
				b.await(map[string]string{"rooms": `document.querySelector(".rooms")`, "room": `document.querySelectorAll(".journal li").length === 7 && document.querySelector(".plot canvas") && document.querySelectorAll(".marks li").length === 1`, "new": `document.getElementById("targetUrl")`}[name])
				if b.text("document.documentElement.scrollWidth > innerWidth") != "false" {
					t.Errorf("%s at %d px is wider than the screen", name, width)
				}
				b.shot(fmt.Sprintf("console-%s-%s-%d", name, scheme, width))
			}
		}
	}
	b.clean()
}
