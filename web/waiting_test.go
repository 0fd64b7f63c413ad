package web_test

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"qm/web"
)

func TestVisitorWaitsAndGoesIn(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	b.awaitText("big", "24")
	b.awaitText("when", "about 5 minutes")
	b.awaitText("ahead", "23 people before you")
	b.await(`document.title === "24 · Spring drop"`)
	b.await(`window.QM_CONFIG.roomId === "demo"`)

	l.say(at(12, 150))
	b.awaitText("big", "12")
	b.awaitText("part", "50% of your wait is behind you")
	l.say(at(3, 40))
	b.awaitState("near")
	b.awaitText("when", "less than a minute")
	b.awaitText("say", "You are nearly there")

	b.open(l.URL + "/w/demo") // a refresh keeps the place, and what is done of the wait
	b.awaitState("near")
	b.awaitText("part", "87% of your wait is behind you")
	joins := l.asked("join")
	if len(joins) != 2 || joins[1].body["token"] != token(40) {
		t.Errorf("the refresh did not present the place: %v", joins)
	}

	l.say(frame{"state": "active", "position": nil, "passed": true, "redirectUrl": l.URL + "/target?qm_code=once", "expiresInSec": 598})
	b.awaitState("turn")
	b.await(`document.title.startsWith("It is your turn")`)
	b.await(`document.getElementById("go").href.endsWith("/target?qm_code=once")`)
	b.still()
	b.await(`location.pathname === "/target" && location.search === ""`)
	b.await(`document.querySelector("h1").textContent === "You are in"`)
	b.clean()
}

func TestStreamRefusedFallsBackToPolling(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	l.with(func(l *line) { l.refuse["events"] = refusal{503, "sse_capacity", 5} })
	b := newTab(t)
	b.hurry()
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	l.say(at(20, 250)) // nobody streams: only a poll can tell
	b.awaitText("big", "20")

	// Refused polls lose nothing and say nothing while they are a hiccup.
	l.with(func(l *line) { l.refuse["status"] = refusal{429, "rate_limited", 1} })
	n := len(l.asked("status"))
	waitFor(t, func() bool { return len(l.asked("status")) > n })
	l.with(func(l *line) { delete(l.refuse, "status") })
	l.say(at(18, 220))
	b.awaitText("big", "18")
	if got := len(l.asked("join")); got != 1 {
		t.Errorf("joined %d times", got)
	}
	b.clean("503", "429")
}

func TestOfflineKeepsThePlace(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	b.offline(true)
	b.awaitState("offline")
	b.awaitText("lead", "is kept")
	b.awaitText("big", "24")
	l.cut()
	l.with(func(l *line) { l.now = at(21, 260) })
	b.offline(false)
	b.awaitText("big", "21")
	b.awaitState("waiting")
	b.still()
	if got := len(l.asked("join")); got != 1 {
		t.Errorf("joined %d times", got)
	}
	b.clean("ERR_INTERNET_DISCONNECTED")
}

func TestServerRestarts(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.hurry()
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	l.with(func(l *line) {
		l.refuse["events"] = refusal{503, "", 0}
		l.refuse["status"] = refusal{503, "storage_unavailable", 1}
	})
	l.cut()
	b.awaitState("backend")
	b.awaitText("big", "24")
	l.with(func(l *line) { clear(l.refuse) })
	b.awaitState("waiting")
	b.still()
	b.clean("503")
}

// Proves: token.refresh
func TestRefreshFrameReopensOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	waitFor(t, func() bool { return len(l.asked("events")) == 1 })
	fresh := at(23, 290)
	fresh["token"] = token(40) + "x"
	l.say(frame{"event": "refresh"})
	l.with(func(l *line) { l.now = fresh })
	l.cut()
	waitFor(t, func() bool { return len(l.asked("events")) == 2 })
	b.awaitText("big", "23")
	b.await(`JSON.parse(localStorage.getItem("qm:demo")).token.endsWith("x")`)

	// A token that names another place is not taken.
	other := at(22, 280)
	other["token"] = token(99)
	l.say(other)
	b.awaitText("big", "22")
	b.await(`JSON.parse(localStorage.getItem("qm:demo")).token.endsWith("x")`)
	b.clean()
}

// Proves: lapsed
func TestLostPlaceIsSaidInWords(t *testing.T) {
	t.Parallel()
	visitor := newTab(t)
	for _, c := range []struct{ reason, state, words string }{
		{"expired", "expired", "Your turn ran out"},
		{"reset", "reset", "The line was reset"},
		{"room_reset", "reset", "The line was reset"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			l := newLine(t, at(24, 300))
			b := visitor.in(t)
			b.open(l.URL + "/w/demo")
			b.awaitState("waiting")
			l.say(frame{"expired": true, "reason": c.reason})
			b.awaitState(c.state)
			b.awaitText("head", c.words)
			b.awaitText("big", "90")
			joins := l.asked("join")
			if len(joins) != 2 || joins[1].body["token"] != token(40) {
				t.Errorf("did not present the dead token once: %v", joins)
			}
			b.still()
			b.clean()
		})
	}
}

func TestInvalidTokenRejoinsOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	l.with(func(l *line) { l.refuse["events"] = refusal{401, "invalid_token", 0} })
	l.with(func(l *line) { l.refuse["status"] = refusal{401, "invalid_token", 0} })
	b.open(l.URL + "/w/demo")
	b.awaitState("cookies")
	if got := len(l.asked("join")); got != 2 {
		t.Errorf("joined %d times, want 2", got)
	}
	b.clean("401")
}

// Proves: now
func TestScheduledCountsInTheDevicesTime(t *testing.T) {
	t.Parallel()
	// The server's clock is an hour ahead of the device's.
	now := time.Now().Add(time.Hour)
	drop := frame{
		"state": "scheduled", "scheduled": true, "preQueued": true, "preCount": 1204, "position": nil, "ahead": nil,
		"opensAt": now.Add(90 * time.Second).UnixMilli(), "now": now.UnixMilli(),
	}
	l := newLine(t, drop)
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("scheduled")
	b.await(`/^1:(2\d|30)$/.test(document.getElementById("big").textContent)`)
	b.awaitText("ahead", "1,204 people are here")
	skewed := b.text(`Math.abs(new Date().getHours() * 60 + new Date().getMinutes() - ((t) => (t[1] % 12 + (t[3] === "PM" ? 12 : 0)) * 60 + +t[2])(document.getElementById("when").textContent.match(/(\d+):(\d+)\s*(\wM)/))) % 1438 <= 2`)
	if skewed != "true" {
		t.Errorf("doors open at %s on a device whose clock says %s", b.text(`document.getElementById("when").textContent`), b.text("new Date()"))
	}

	// The doors open: the handle becomes a ticket by asking for it.
	over := frame{}
	for k, v := range drop {
		over[k] = v
	}
	over["now"] = over["opensAt"]
	l.say(over)
	b.awaitState("drawing")
	drawn := at(512, 1500)
	l.say(drawn) // without a token: the page asks for it
	b.awaitState("drawn")
	b.awaitText("big", "512")
	b.awaitText("when", "20 to 30 minutes")
	b.await(`JSON.parse(localStorage.getItem("qm:demo")).name === "n1.40"`)
	b.still()
	b.clean()
}

func TestPausedHeldAndFull(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	for _, state := range []string{"paused", "held", "full"} {
		l.say(frame{"state": state, "position": 24, "ahead": 23, "etaSec": nil})
		b.awaitState(state)
		b.awaitText("lead", "Your place is kept")
		b.awaitText("when", "known")
	}
	l.say(frame{"state": "active", "position": 24, "ahead": 23, "etaSec": 90, "message": "We will be back at noon.", "messageAt": time.Now().UnixMilli(), "now": time.Now().UnixMilli()})
	b.awaitState("waiting")
	b.awaitText("newsText", "back at noon")
	b.await(`document.getElementById("newsAt").textContent !== ""`)
	b.still()
	b.clean()
}

func TestRefusedAtTheDoor(t *testing.T) {
	t.Parallel()
	visitor := newTab(t)
	visitor.hurry()
	for _, c := range []struct {
		status      int
		code, state string
		again       bool
	}{
		{404, "room_not_found", "gone", false},
		{403, "blocked_by_protection", "refused", false},
		{429, "queue_identity_limit", "toomany", true},
		{429, "prequeue_identity_limit", "toomany", true},
		{503, "prequeue_full", "linefull", true},
		{503, "storage_unavailable", "backend", false},
		{429, "rate_limited", "busy", false},
	} {
		t.Run(c.code, func(t *testing.T) {
			l := newLine(t, at(24, 300))
			l.with(func(l *line) { l.refuse["join"] = refusal{c.status, c.code, 1} })
			b := visitor.in(t)
			b.open(l.URL + "/w/demo")
			b.awaitState(c.state)
			b.still()
			l.with(func(l *line) { clear(l.refuse) })
			if c.again {
				b.click("#again")
				b.await(`document.activeElement.id === "line"`) // the button is gone, its place is not
			}
			if c.state != "gone" && c.state != "refused" {
				b.awaitState("waiting")
			}
			b.clean("40", "429", "503")
		})
	}
}

// A proof of work that came to nothing is followed by another, but not for ever.
//
// Proves: protection
func TestProofsOfWorkAreFoundAFewTimes(t *testing.T) {
	t.Parallel()
	visitor := newTab(t)
	for refused, state := range map[int]string{3: "waiting", 1000: "refused"} {
		t.Run(state, func(t *testing.T) {
			l := newLine(t, at(24, 300))
			l.with(func(l *line) { l.page.Stamp, l.proofs = "first", refused })
			b := visitor.in(t)
			b.open(l.URL + "/w/demo")
			b.awaitState(state)
			joins := l.asked("join")
			if len(joins) != 4 || joins[0].body["stamp"] != "first" || joins[0].body["work"] != nil {
				t.Fatalf("%d: %v", len(joins), joins)
			}
			for i, j := range joins[1:] {
				stamp := fmt.Sprintf("stamp-%d", refused-1-i)
				numbers := strings.Split(fmt.Sprint(j.body["work"]), ".")
				if j.body["stamp"] != stamp || len(numbers) != 3 {
					t.Fatalf("%v, and it was asked about %s", j.body, stamp)
				}
				for part, n := range numbers {
					if sum := sha256.Sum256(fmt.Appendf(nil, "%s.%d.%s", stamp, part, n)); sum[0]>>1 != 0 {
						t.Errorf("%v does not begin with 7 zero bits", sum)
					}
				}
			}
			b.clean("403")
		})
	}
}

// A page that was made without a stamp, because protection was off or the room could not be asked, does a proof of work like any other.
//
// Proves: protection
func TestAPageOlderThanTheProtectionDoesItsProof(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	l.with(func(l *line) { l.proofs = 1 })
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	joins := l.asked("join")
	if len(joins) != 2 || joins[0].body["stamp"] != nil || joins[1].body["stamp"] != "stamp-0" || joins[1].body["work"] == nil {
		t.Fatalf("%d: %v", len(joins), joins)
	}
	b.clean("403")
}

func TestLeaveAsksOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	b.click("#leave")
	b.awaitText("askText", "You give up place 24")
	b.click("#ask button[value=stay]")
	b.await(`!document.getElementById("ask").open`)
	if len(l.asked("leave")) != 0 {
		t.Fatal("left without being told to")
	}
	l.with(func(l *line) { l.refuse["leave"] = refusal{503, "storage_unavailable", 1} })
	b.click("#leave")
	b.click("#ask button[value=leave]")
	b.awaitText("askText", "your place is still yours")
	l.with(func(l *line) { clear(l.refuse) })
	b.click("#ask button[value=leave]")
	b.awaitState("left")
	b.await(`document.activeElement.id === "line"`)
	b.await(`localStorage.getItem("qm:demo") === null`)
	b.click("#again")
	b.awaitState("waiting")
	if got := l.asked("leave"); len(got) != 2 || got[1].body["token"] != token(40) {
		t.Errorf("leave: %v", got)
	}
	b.clean("503")
}

// The frame after the draw may name the ticket; nobody has to join again.
func TestDrawnTicketComesWithTheFrame(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLine(t, frame{"state": "scheduled", "scheduled": true, "position": nil, "preCount": 2, "opensAt": now.Add(time.Minute).UnixMilli(), "now": now.UnixMilli()})
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("scheduled")
	waitFor(t, func() bool { return len(l.asked("events")) == 1 })
	drawn := at(40, 400)
	drawn["token"] = token(40)
	l.say(drawn)
	b.awaitState("drawn")
	b.await(`JSON.parse(localStorage.getItem("qm:demo")).name === "n1.40"`)
	held := at(40, 400)
	held["scheduled"], held["opensAt"], held["now"] = true, now.Add(time.Minute).UnixMilli(), now.UnixMilli()
	l.say(held)
	b.awaitState("shut")
	b.awaitText("big", "40")
	if got := len(l.asked("join")); got != 1 {
		t.Errorf("joined %d times", got)
	}
	b.clean()
}

// A turn without a door yet, or with one that no browser should be sent to,
// leads nowhere until the server names a good one.
func TestTurnWithoutADoorStays(t *testing.T) {
	t.Parallel()
	l := newLine(t, frame{"state": "active", "position": nil, "passed": true})
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("turn")
	b.await(`!document.getElementById("go").hasAttribute("href")`)
	l.say(frame{"state": "active", "position": nil, "passed": true, "redirectUrl": "javascript:alert(1)", "ref": "ABCD-12"})
	b.awaitText("ref", "ABCD-12")
	b.await(`!document.getElementById("go").hasAttribute("href")`)
	l.say(frame{"state": "bypass", "passed": true, "redirectUrl": "/target"})
	b.awaitState("bypass")
	b.await(`location.pathname === "/target"`)
	b.clean()
}

func TestLeavingInOneTabLeavesInTheOther(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	l.with(func(l *line) { l.now = frame{"expired": true, "reason": "left"} }) // the server knows
	b.text(`localStorage.removeItem("qm:demo"), dispatchEvent(new StorageEvent("storage", {key: "qm:demo", newValue: null}))`)
	b.awaitState("left")
	if got := len(l.asked("join")); got != 1 {
		t.Errorf("joined %d times", got)
	}
	b.clean()
}

func TestPageAsleepAsksAtOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	waitFor(t, func() bool { return len(l.asked("events")) == 1 })
	l.with(func(l *line) { l.now = at(11, 100) })
	b.text(`dispatchEvent(new PageTransitionEvent("pagehide", {persisted: true}))`)
	b.text(`dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true}))`)
	b.awaitText("big", "11")
	b.clean()
}

// Proves: waiting.page
func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	l := newLine(t, at(24, 300))
	l.with(func(l *line) {
		l.page.First = web.Frame{State: "active", Position: n(1524), Ahead: n(1523), EtaSec: n(1500)}
		l.page.PollSeconds = 5
	})
	b := newTab(t)
	b.scripts(false)
	b.size(360, 780)
	b.open(l.URL + "/w/demo")
	b.shot("nojs-360")
	for id, want := range map[string]string{"head": "You are in line", "big": "1,524", "when": "20 to 30 minutes", "ahead": "1,523 people before you"} {
		if got := b.text(`document.getElementById("` + id + `").textContent`); got != want {
			t.Errorf("%s says %q, want %q", id, got, want)
		}
	}
	if got := b.text(`document.querySelector("noscript meta[http-equiv=refresh]")?.content`); got != "5" {
		t.Errorf("refreshes by %q, want 5", got)
	}
	if len(l.asked("join")) != 0 {
		t.Error("a page without scripts called the API")
	}
	b.clean()
}

// Nothing moves the layout, whatever the line does, on any width.
//
// Proves: waiting.page
func TestNothingMoves(t *testing.T) {
	t.Parallel()
	visitor := newTab(t)
	now := time.Now()
	drop := func(in time.Duration) frame {
		return frame{"state": "scheduled", "scheduled": true, "preCount": 3, "position": nil, "opensAt": now.Add(in).UnixMilli(), "now": now.UnixMilli()}
	}
	still := func(state string) frame {
		return frame{"state": state, "position": 240_128, "ahead": 240_127, "etaSec": nil}
	}
	frames := []struct {
		state string
		frame frame
	}{
		{"waiting", at(240_127, 90_000)},
		{"waiting", at(1_024, 3_500)},
		{"near", at(9, 55)},
		{"paused", still("paused")},
		{"held", still("held")},
		{"full", still("full")},
		{"drawing", still("drawing")},
		{"scheduled", drop(300 * time.Hour)},
		{"scheduled", drop(30 * time.Hour)},
		{"scheduled", drop(30 * time.Second)},
		{"waiting", frame{"state": "active", "position": 64, "ahead": 63, "etaSec": 3000, "message": strings.Repeat("We are sorry. ", 40)}},
		{"turn", frame{"state": "active", "position": nil, "passed": true, "expiresInSec": 600}},
	}
	for _, width := range []int64{1280, 360, 320} {
		t.Run(strconv.FormatInt(width, 10), func(t *testing.T) {
			l := newLine(t, frames[0].frame)
			b := visitor.in(t)
			b.size(width, 800)
			b.open(l.URL + "/w/demo")
			for _, f := range frames {
				l.say(f.frame)
				b.awaitState(f.state)
				if p, ok := f.frame["position"].(int); ok && f.state != "drawing" {
					b.awaitText("big", digits(p))
				}
			}
			if b.text("document.documentElement.scrollWidth > innerWidth") != "false" {
				t.Error("the page is wider than the screen")
			}
			b.still()
			b.clean()
		})
	}
}

// waitFor waits for what the browser does to the fake server.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(soon)
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it did not happen")
		}
	}
}

// digits writes a number as the page does in English.
func digits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// After a restart each page comes back when the server told it to: by its stream, and without another question before.
func TestABrokenStreamComesBackWhenTheServerSays(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	waitFor(t, func() bool { return l.listening() == 1 })
	l.with(func(l *line) { l.now = at(19, 240) })
	l.cut()
	b.awaitText("big", "19")
	waitFor(t, func() bool { return l.listening() == 1 })
	if asked := l.asked("status"); len(asked) != 0 {
		t.Errorf("asked at once as well: %v", asked)
	}
	l.say(at(18, 230)) // the stream that came back is heard
	b.awaitText("big", "18")

	// Refused when it comes back, it asks and goes on asking, and a stream again follows.
	l.with(func(l *line) { l.refuse["events"] = refusal{503, "", 0} })
	l.cut()
	waitFor(t, func() bool { return len(l.asked("status")) > 0 })
	l.with(func(l *line) { clear(l.refuse) })
	l.say(at(12, 100))
	b.awaitText("big", "12")
	b.still()
	if got := len(l.asked("join")); got != 1 {
		t.Errorf("joined %d times", got)
	}
	b.clean("503")
}
