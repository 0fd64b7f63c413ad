package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"qm/internal/testenv"
)

func paths(asks []ask) (list []string) {
	for _, a := range asks {
		list = append(list, strings.TrimPrefix(a.path, "/api/")+" "+a.query.Get("roomId"))
	}
	return list
}

// A visitor who is sent back and forth sees the page after the third time in
// a minute, with the reason. It holds where nothing can be stored, with a code
// and without.
//
// Proves: snippet
func TestSnippetBreaksLoops(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *tab{"with storage": shopper, "storage blocked": blockedShopper} {
		for _, handover := range []string{"", code} {
			t.Run(strings.TrimSpace(name+" "+handover), func(t *testing.T) {
				t.Parallel()
				b := open(t)
				d := newDesk(t, func(ask) any { return queueing("waiting") })
				s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
				d.send(back(handover))
				address := s.base + "/p?a=1&a=2#x"
				b.open(address)
				for range 3 {
					s.decided(t, "queue waiting")
				}
				s.decided(t, "open loop")
				b.await(`document.documentElement.dataset.qm === "open loop" && qm.state.rm1.reason === "loop"`)
				if got := b.text("location.href"); got != address || len(d.visits()) != 3 || len(d.asked()) != 4 {
					t.Errorf("at %s after %d visits of the line and %d checks", got, len(d.visits()), len(d.asked()))
				}
				// A minute later the line is the line again.
				b.before(`{ const real = Date.now; Date.now = () => real() + 61000; }`)
				b.open(s.base + "/later")
				if name == "with storage" {
					s.decided(t, "queue waiting")
				}
				b.clean()
			})
		}
	}
}

// blockedShopper is a browser whose user allows sites to keep nothing.
func blockedShopper(t *testing.T) *tab {
	t.Helper()
	dir := t.TempDir()
	settings, _ := json.Marshal(map[string]any{"profile": map[string]any{"default_content_setting_values": map[string]any{"cookies": 2}}})
	if err := os.MkdirAll(filepath.Join(dir, "Default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Default", "Preferences"), settings, 0o600); err != nil {
		t.Fatal(err)
	}
	seats <- struct{}{}
	t.Cleanup(func() { <-seats })
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(testenv.WholeChromium(t)), chromedp.NoSandbox, chromedp.UserDataDir(dir), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("no-first-run", true))...)
	t.Cleanup(stopAlloc)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	b.listen()
	b.before(watchDecisions)
	probe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<link rel=icon href=data:,>"))
	}))
	t.Cleanup(probe.Close)
	b.open(probe.URL)
	if got := b.text(`(() => { try { return "kept " + localStorage.length } catch (e) { return e.name } })()`); got != "SecurityError" {
		t.Fatalf("storage is not blocked: %s", got)
	}
	return b
}

// With storage blocked the key lives as long as the page.
func TestSnippetWithoutStorageKeepsTheKeyForThePage(t *testing.T) {
	t.Parallel()
	b := blockedShopper(t)
	d := newDesk(t, gate)
	s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
	d.send(back(code))
	b.open(s.base + "/a?b=c#d")
	s.decided(t, "queue no_token")
	s.decided(t, "pass passed")
	b.await(`location.href === "` + s.base + `/a?b=c#d"`)
	b.text(`(history.pushState(null, "", "/b"), 0)`)
	s.decided(t, "pass session")
	if asks := d.asked(); asks[2].key != key || asks[2].query.Get("url") != s.base+"/b" {
		t.Errorf("asked %+v", asks[2])
	}
	b.clean()
}

// A page that changes its address without loading is asked about anew: once a
// burst, the latest alone, and never because of the fragment.
//
// Proves: snippet
func TestSnippetFollowsSinglePageApplications(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	hold := make(chan struct{})
	var held atomic.Int32
	d := newDesk(t, func(a ask) any {
		switch page := a.query.Get("url"); {
		case strings.HasSuffix(page, "/slow"):
			return answerer(func(w http.ResponseWriter, r *http.Request) {
				held.Add(1)
				<-hold
				_, _ = fmt.Fprintf(w, `{"action":"queue","reason":"waiting","waitingRoomUrl":"http://%s/w/rm1"}`, r.Host)
			})
		case strings.Contains(page, "/sale"):
			return queueing("no_token")
		}
		return passing("out_of_scope")
	})
	s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
	b.open(s.base + "/")
	s.decided(t, "pass out_of_scope")
	before := b.text("history.length")

	b.text(`(location.hash = "#a", history.replaceState({mine: 1}, "", "#b"), history.pushState({mine: 2}, "", "/#c"), 0)`)
	b.text(`(["/1", "/2", "/3", "/4?x"].forEach((p) => history.pushState(null, "", p)), 0)`)
	s.decided(t, "pass out_of_scope")
	asks := d.asked()
	if len(asks) != 2 || asks[1].query.Get("url") != s.base+"/4?x" {
		t.Errorf("asked about %d pages, last %v", len(asks), asks[len(asks)-1].query)
	}
	b.text(`(history.back(), 0)`)
	s.decided(t, "pass out_of_scope")
	if asks := d.asked(); asks[2].query.Get("url") != s.base+"/3" {
		t.Errorf("after Back asked about %v", asks[2].query)
	}

	// The visitor has left the slow page before its answer came: that answer sends nobody anywhere.
	b.text(`(history.pushState(null, "", "/slow"), 0)`)
	b.await(`qm.state.rm1 && ` + `location.pathname === "/slow"`)
	awaitCount(t, &held, 1)
	b.text(`(history.pushState({mine: 3}, "", "/quick"), 0)`)
	s.decided(t, "pass out_of_scope")
	close(hold)
	if got := b.text(`location.pathname + JSON.stringify(history.state) + (history.length > ` + before + `)`); got != `/quick{"mine":3}true` || len(d.visits()) != 0 {
		t.Errorf("at %s, %d visits of the line", got, len(d.visits()))
	}

	b.text(`(history.pushState(null, "", "/sale?item=1#size"), 0)`)
	s.decided(t, "queue no_token")
	awaitAddress(b, d.URL+"/w/rm1?qm_return="+uriComponent(s.base+"/sale?item=1#size"))
	addresses, current, err := b.history()
	if err != nil || addresses[current-1] != s.base+"/quick" {
		t.Errorf("Back leads to %s (%v)", addresses[current-1], err)
	}
	b.clean()
}

func awaitCount(t *testing.T, n *atomic.Int32, want int32) {
	t.Helper()
	limit := time.After(soon)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n.Load() < want {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited for %d, counted %d", want, n.Load())
		}
	}
}

// A code is presented to the end, whatever the page does meanwhile: nobody
// could present it again.
func TestSnippetNeverGivesUpACode(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	hold := make(chan struct{})
	var held atomic.Int32
	d := newDesk(t, func(a ask) any {
		if a.query.Has("code") {
			held.Add(1)
			<-hold
		}
		return gate(a)
	})
	s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
	b.open(s.base + "/p?qm_code=" + code)
	awaitCount(t, &held, 1)
	b.text(`(history.replaceState({router: 1}, "", "/p?qm_code=` + code + `&step=2"), 0)`) // a router that had read the address before
	b.await(`location.search === "?step=2" && history.state.router === 1`)
	close(hold)
	s.decided(t, "pass session")
	if asks := d.asked(); len(asks) != 2 || !asks[0].query.Has("code") || asks[1].key != key || asks[1].query.Has("code") || asks[1].query.Get("url") != s.base+"/p?step=2" {
		t.Errorf("asked %+v", asks)
	}
	b.clean()
}

// A page that comes back out of the browser's memory is asked about anew.
func TestSnippetAsksAgainWhenAPageComesBack(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	var out atomic.Bool
	d := newDesk(t, func(ask) any {
		if out.Load() {
			return queueing("expired")
		}
		return passing("bypass")
	})
	s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
	b.open(s.base + "/a")
	s.decided(t, "pass bypass")
	b.text(`(dispatchEvent(new PageTransitionEvent("pageshow", {persisted: false})), 0)`)
	out.Store(true)
	b.text(`(dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true})), 0)`)
	s.decided(t, "queue expired")
	awaitAddress(b, d.URL+"/w/rm1?qm_return="+uriComponent(s.base+"/a"))
	if n := len(d.asked()); n != 2 {
		t.Errorf("asked %d times", n)
	}
	b.clean()
}

// Several tags: each room is asked about once, the first that says so sends
// the visitor away, and a code is shown to each. One global, whoever else wants
// its name.
func TestSnippetBesideOthers(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	d := newDesk(t, func(a ask) any {
		if a.query.Get("roomId") == "rm1" {
			return gate(a)
		}
		return passing("bypass")
	})
	two := tagOf(d.URL, `data-room="rm1"`) + tagOf(d.URL, `async data-room="rm2"`) + tagOf(d.URL, `data-room="rm1" data-fail="open"`)
	s := newShop(t, two)
	s.wear("")
	b.open(s.base + "/plain")
	plain := b.text(`Object.keys(window).sort().join()`)
	s.wear(two)
	b.open(s.base + "/p?qm_code=" + code)
	b.await(`window.qm && qm.state.rm1 && qm.state.rm2`)
	got := paths(d.asked())
	slices.Sort(got)
	if fmt.Sprint(got) != "[v1/check rm1 v1/check rm2]" || b.text(`qm.state.rm1.reason + qm.state.rm2.reason`) != "passedbypass" {
		t.Errorf("asked %v, decided %s", got, b.text(`JSON.stringify(qm.state)`))
	}
	for _, a := range d.asked() {
		if a.query.Get("code") != code || strings.Contains(a.query.Get("url"), "qm_code") {
			t.Errorf("asked %v", a.query)
		}
	}
	if all := b.text(`Object.keys(window).filter((k) => k !== "qm").sort().join()`); all != plain {
		t.Errorf("globals: %s\nbefore: %s", all, plain)
	}

	// A page with an element of that name, as a tag that a script adds.
	d.forget()
	s.wear(`<qm id="qm"></qm>` + tagOf(d.URL, `data-room="rm1"`))
	b.open(s.base + "/element")
	b.await(`window.qm.state && window.qm.state.rm1`)

	// A script that is added, with its settings in the address, as tag managers do.
	s.wear("")
	b.open(s.base + "/added")
	d.forget()
	b.text(`(document.head.append(Object.assign(document.createElement("script"), {async: true, src: "` + d.URL + `/snippet/qm.js?room=rm2&fail=open&timeout=9000"})), 0)`)
	b.await(`window.qm && qm.state.rm2 && qm.state.rm2.reason === "bypass"`)

	// Without a room nothing happens, and it is said.
	s.wear(tagOf(d.URL, ``))
	b.open(s.base + "/unset")
	b.await(`document.documentElement.dataset.qm === "open not_configured"`)
	// A second visitor of two lines goes to one of them.
	b.text(`(localStorage.clear(), 0)`)
	d.forget()
	d.say(func(ask) any { return queueing("no_token") })
	s.wear(two)
	b.open(s.base + "/both")
	b.await(`location.pathname.startsWith("/w/rm")`)
	if n := len(d.visits()); n != 1 {
		t.Errorf("sent to %d lines", n)
	}
	b.clean()
}

// A page out of scope, or of a room in bypass, stays as it was.
func TestSnippetLeavesOtherPagesAlone(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	d := newDesk(t, func(ask) any { return passing("out_of_scope") })
	s := newShop(t, tagOf(d.URL, `data-room="rm1" async`))
	b.open(s.base + "/imprint?a=+%20b#c")
	s.decided(t, "pass out_of_scope")
	got := b.text(`[location.href, localStorage.length, sessionStorage.length, document.cookie, document.documentElement.getAttribute("style"), history.state].join()`)
	if got != s.base+"/imprint?a=+%20b#c,0,0,,," {
		t.Errorf("left %s", got)
	}
	b.clean()
}

// A prefix that the server does not know is tried once a page, also when the
// browser hides that answer; from then on the other one is asked.
//
// Proves: snippet
func TestSnippetFallsBackOnce(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	var hidden atomic.Bool
	d := newDesk(t, func(a ask) any {
		if strings.HasPrefix(a.path, "/api/v1/") {
			if hidden.Load() {
				a.w.Header().Del("Access-Control-Allow-Origin")
			}
			return http.StatusNotFound
		}
		return passing("session")
	})
	s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
	for _, hide := range []bool{false, true} {
		hidden.Store(hide)
		d.forget()
		b.open(s.base + "/")
		s.decided(t, "pass session")
		b.text(`(history.pushState(null, "", "/two"), 0)`)
		s.decided(t, "pass session")
		if got := fmt.Sprint(paths(d.asked())); got != "[v1/check rm1 check rm1 check rm1]" {
			t.Errorf("hidden %v: asked %s", hide, got)
		}
	}
	// A server that knows neither is asked at both, and after that at the first alone.
	d.forget()
	d.say(func(ask) any { return http.StatusNotFound })
	s.wear(tagOf(d.URL, `data-room="rm1" data-fail="open"`))
	b.open(s.base + "/")
	s.decided(t, "open status_404")
	b.text(`(history.pushState(null, "", "/two"), 0)`)
	s.decided(t, "open status_404")
	if got := fmt.Sprint(paths(d.asked())); got != "[v1/check rm1 check rm1 v1/check rm1]" {
		t.Errorf("asked %s", got)
	}
	b.clean("404", "CORS policy", "ERR_FAILED")
}

// Another tab came through while this one asked with a key that is none any
// more: its key is asked about, not dropped.
func TestSnippetKeepsAnotherTabsKey(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	hold := make(chan struct{})
	var held atomic.Int32
	d := newDesk(t, func(a ask) any {
		if a.key == other {
			held.Add(1)
			<-hold
			return frame{"action": "queue", "reason": "no_token", "clearToken": true}
		}
		return gate(a)
	})
	s := newShop(t, "")
	b.open(s.base + "/")
	b.text(`(localStorage.setItem("qm.door:rm1", '{"sess":"` + other + `"}'), 0)`)
	s.wear(tagOf(d.URL, `data-room="rm1"`))
	b.do(chromedp.Evaluate[chromedp.Void](`location.href = "/two"`))
	awaitCount(t, &held, 1)
	b.text(`(localStorage.setItem("qm.door:rm1", '{"sess":"` + key + `"}'), 0)`)
	close(hold)
	s.decided(t, "pass session")
	if got := b.text(`localStorage.getItem("qm.door:rm1")`); !strings.Contains(got, key) {
		t.Errorf("kept %s", got)
	}
	b.clean()
}

// data-hide: nobody sees a page that is not theirs, nor waits for it longer
// than the time-out.
func TestSnippetHidesThePageUntilItKnows(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	hold := make(chan struct{})
	var held atomic.Int32
	d := newDesk(t, func(ask) any {
		held.Add(1)
		<-hold
		return passing("session")
	})
	s := newShop(t, tagOf(d.URL, `data-room="rm1" data-hide`))
	b.open(s.base + "/")
	awaitCount(t, &held, 1)
	if got := b.text(`getComputedStyle(document.querySelector("h1")).visibility`); got != "hidden" {
		t.Errorf("the page is %s before the answer", got)
	}
	close(hold)
	s.decided(t, "pass session")
	if got := b.text(`getComputedStyle(document.querySelector("h1")).visibility`); got != "visible" {
		t.Errorf("the page is %s after the answer", got)
	}
	over := make(chan struct{})
	defer close(over)
	d.say(func(ask) any {
		<-over
		return passing("session")
	})
	s.wear(tagOf(d.URL, `data-room="rm1" data-hide data-fail="open" data-timeout="150"`))
	b.open(s.base + "/")
	s.decided(t, "open timeout")
	b.await(`getComputedStyle(document.querySelector("h1")).visibility === "visible"`)
	b.clean()
}

// An address longer than a request should carry is not sent, and not cut:
// half of it may be another page.
func TestSnippetDoesNotSendLongAddresses(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	d := newDesk(t, gate)
	s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
	address := s.base + "/p?q="
	address += strings.Repeat("x", 4096-len(address))
	b.open(address)
	s.decided(t, "queue no_token")
	awaitAddress(b, d.URL+"/w/rm1?qm_return="+uriComponent(address))
	b.open(address + "x")
	s.decided(t, "queue no_token")
	awaitAddress(b, d.URL+"/w/rm1")
	if asks := d.asked(); asks[0].query.Get("url") != address || asks[1].query.Has("url") {
		t.Errorf("asked about %d and %d bytes", len(asks[0].query.Get("url")), len(asks[1].query.Get("url")))
	}
	b.clean()
}

// qm.leave gives the place back by the key, and forgets it.
func TestSnippetLeaves(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	d := newDesk(t, gate)
	s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
	b.open(s.base + "/done?qm_code=" + code)
	s.decided(t, "pass passed")
	b.text(`(qm.leave("other").then((left) => qm.leave().then((l) => document.title = [left, l, localStorage.length].join())), 0)`)
	b.await(`document.title === "false,true,0"`)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.gone) != 1 || d.gone[0].path != "/api/v1/leave" || d.gone[0].key != key || d.gone[0].query.Get("roomId") != "rm1" ||
		d.gone[0].body != `{"roomId":"rm1","token":"`+tick+`"}` {
		t.Errorf("left by %+v", d.gone)
	}
	b.clean()
}
