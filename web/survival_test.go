package web_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"qm/web"
)

// A tab that is closed takes nothing along: the next one stands where it stood, and knows how much of the wait is over.
func TestAClosedTabKeepsThePlace(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	home := newTab(t)
	home.open(l.URL + "/target") // the browser stays open
	b, close := home.another()
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	l.say(at(12, 150))
	b.awaitText("part", "50%")
	close()
	waitFor(t, func() bool { return l.listening() == 0 })
	l.with(func(l *line) { l.now = at(6, 70) })
	b, _ = home.another()
	b.open(l.URL + "/w/demo")
	b.awaitState("near")
	b.awaitText("part", "75% of your wait is behind you")
	joins := l.asked("join")
	if len(joins) != 2 || joins[1].body["token"] != token(40) {
		t.Errorf("the new tab did not present the place: %v", joins)
	}
	b.clean()
}

// Away by a link and back by the Back button, from the history or from memory: the same place, and a live one.
func TestTheBackButtonLeadsBackToThePlace(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	b.open(l.URL + "/target")
	b.await(`location.pathname === "/target"`)
	waitFor(t, func() bool { return l.listening() == 0 }) // a page that nobody looks at costs no stream
	l.with(func(l *line) { l.now = at(17, 200) })
	b.text(`void history.back()`)
	b.await(`location.pathname === "/w/demo"`)
	b.awaitText("big", "17")
	l.say(at(16, 190))
	b.awaitText("big", "16")
	for _, join := range l.asked("join")[1:] {
		if join.body["token"] != token(40) {
			t.Errorf("joined with %v", join.body)
		}
	}
	b.clean()
}

// Two tabs are one visitor: what one learns of the place, the other holds too.
func TestTwoTabsAreOneVisitor(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	second, _ := b.another()
	second.open(l.URL + "/w/demo")
	second.awaitText("big", "24")
	for i, join := range l.asked("join") {
		if i > 0 && join.body["token"] != token(40) {
			t.Errorf("the second tab joined with %v", join.body)
		}
	}
	// One of them is given a fresh token; the other takes it over.
	fresh := at(20, 250)
	fresh["token"] = token(40) + "fresh"
	l.say(fresh)
	for _, tab := range []*tab{b, second} {
		tab.awaitText("big", "20")
		tab.await(`JSON.parse(localStorage.getItem("qm:demo")).token.endsWith("fresh")`)
	}
	// The place is lost: both are told, and both end up with the one new place.
	l.say(frame{"expired": true, "reason": "reset"})
	for _, tab := range []*tab{b, second} {
		tab.awaitText("big", "90")
		tab.await(`JSON.parse(localStorage.getItem("qm:demo")).name === "n1.41"`)
	}
	b.clean()
	second.clean()
}

// A computer that slept for an hour wakes up with timers that are late and a stream that is dead without a word.
func TestSleepAndWake(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(240, 3000))
	b := newTab(t)
	b.before(`{ const now = Date.now; let asleep = 0; Date.now = () => now() + asleep; window.sleep = (ms) => (asleep += ms); }`)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	waitFor(t, func() bool { return l.listening() == 1 })
	l.say(at(239, 3000))
	b.awaitText("big", "239")
	l.with(func(l *line) {
		l.now = at(31, 400)
		l.deaf = true // the stream that is open hears nothing any more
	})
	b.text(`sleep(3600_000)`)
	b.awaitText("big", "31")
	if got := len(l.asked("join")); got != 1 {
		t.Errorf("joined %d times", got)
	}
	b.still()
	b.clean()
}

// A line that is deleted and made again takes its visitors in again by itself, and says what happened.
func TestALineMadeAgainTakesItsVisitorsIn(t *testing.T) {
	t.Parallel()
	visitor := newTab(t)
	visitor.hurry()
	for name, ended := range map[string]frame{"the stream says so": {"expired": true, "reason": "room_reset"}, "the stream ends": nil} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t, at(24, 300))
			l.with(func(l *line) { l.page.SiteURL = l.URL + "/target" })
			b := visitor.in(t)
			b.open(l.URL + "/w/demo")
			b.awaitState("waiting")
			l.with(func(l *line) {
				for _, route := range []string{"join", "status", "events"} {
					l.refuse[route] = refusal{404, "room_not_found", 0}
				}
			})
			if ended != nil {
				l.say(ended)
			} else {
				l.cut()
			}
			b.awaitState("gone")
			b.awaitText("head", "This line has ended")
			b.await(`document.getElementById("go").textContent === "Go to the site" && document.getElementById("go").href.endsWith("/target")`)
			joins := len(l.asked("join"))
			waitFor(t, func() bool { return len(l.asked("join")) > joins }) // it keeps looking
			l.with(func(l *line) {
				clear(l.refuse)
				l.ticket, l.now = 1, at(3, 60)
			})
			b.awaitState("reset")
			b.awaitText("big", "3")
			b.awaitText("lead", "You get a new place")
			all := l.asked("join")
			if last := all[len(all)-1]; last.body["token"] != token(40) {
				t.Errorf("the dead token did not come along: %v", last.body)
			}
			b.text("localStorage.clear()")
			b.clean("404", "400")
		})
	}
}

// While the room cannot be asked the page says so, takes no place at once, and has one as soon as it can.
//
// Proves: backend.down
func TestThePageInRetryMode(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	l.with(func(l *line) { l.page.Retry, l.page.PollSeconds = true, 2 })
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("backend")
	b.awaitText("head", "The line cannot answer")
	if got := len(l.asked("join")); got != 0 {
		t.Errorf("joined %d times at once", got)
	}
	b.awaitState("waiting")
	b.awaitText("big", "24")
	b.still()
	b.clean()
}

// Where the visitor wants to return to goes along with everything that the page asks.
func TestThePageKeepsWhereTheVisitorWantsToReturn(t *testing.T) {
	t.Parallel()
	const wanted = "https://shop.example/a?b=1&b=2&c=%20+#d"
	l := newLine(t, at(24, 300))
	l.with(func(l *line) { l.page.ReturnURL = wanted })
	b := newTab(t)
	b.before(movable)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	waitFor(t, func() bool { return l.listening() == 1 })
	l.cut()
	waitFor(t, func() bool { b.text("(pass(5000), 0)"); return len(l.asked("status")) > 0 })
	if got := l.asked("join")[0].body["qm_return"]; got != wanted {
		t.Errorf("join is asked to return to %v", got)
	}
	for _, route := range []string{"events", "status"} {
		if got := l.asked(route)[0].value("qm_return"); got != wanted {
			t.Errorf("%s is asked to return to %q", route, got)
		}
	}
	b.click(`.langs a[lang="de"]`)
	b.await(`new URLSearchParams(location.search).get("qm_return") === "` + wanted + `"`)
	b.clean()
}

// When the line has become slower than it was said to be, the page says so in words; nothing runs backwards.
func TestASlowerLineIsSaidInWords(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(40, 600))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	l.say(at(20, 300))
	b.awaitText("part", "50% of your wait is behind you")
	l.say(at(20, 1800))
	b.awaitText("part", "Slower than we thought; your place is kept")
	b.await(`document.getElementById("bar").getAttribute("aria-valuenow") === "50"`)
	b.awaitText("when", "25 to 35 minutes")
	b.still()
	b.clean()
}

// movable lets a test move the page's clock on: pass(milliseconds).
const movable = `{ const now = Date.now; let later = 0; Date.now = () => now() + later; window.pass = (ms) => (later += ms); }`

// The minute between two announcements of a place, and those that come at once.
func TestPlacesAreSpokenSparingly(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(40, 600))
	b := newTab(t)
	b.before(movable)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	b.text(`(window.spoken = [], new MutationObserver(() => spoken.push(document.getElementById("say").textContent)).observe(document.getElementById("say"), {childList: true, characterData: true, subtree: true}))`)
	for _, place := range []int{39, 38, 30, 12, 11} {
		l.say(at(place, 600))
		b.awaitText("big", digits(place))
	}
	if said := b.text("spoken.length"); said != "0" {
		t.Errorf("spoke %s times within a minute: %s", said, b.text("spoken.join('|')"))
	}
	b.text("pass(61_000)")
	b.awaitText("say", "Your place is 11.")
	for _, place := range []int{10, 9, 8, 7, 6, 5, 4, 3, 2, 1} {
		l.say(at(place, 60))
		b.awaitText("big", digits(place))
	}
	b.await(`spoken.length === 6`)
	if got := b.text(`spoken.map((s) => s.match(/Your place is (\d+)/)[1]).join(" ")`); got != "11 10 5 3 2 1" {
		t.Errorf("spoke of the places %s", got)
	}
	b.clean()
}

// Without motion nothing moves step by step, and the moment of the turn is the same.
func TestReducedMotion(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(400, 600))
	b := newTab(t)
	b.media(feature("prefers-reduced-motion", "reduce"))
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	b.text(`(window.seen = [], new MutationObserver(() => seen.push(document.getElementById("big").textContent)).observe(document.getElementById("big"), {childList: true, characterData: true, subtree: true}))`)
	l.say(at(100, 150))
	b.awaitText("big", "100")
	if got := b.text("seen.join()"); got != "100" {
		t.Errorf("the figure went by %s", got)
	}
	if got := b.text(`document.getAnimations().filter((a) => a.effect.getComputedTiming().duration > 0 && a.animationName !== "late").length`); got != "0" {
		t.Errorf("%s animations run", got)
	}
	b.do(chromedp.Reload())
	b.awaitText("big", "100")
	l.say(frame{"state": "active", "passed": true, "redirectUrl": l.URL + "/target", "expiresInSec": 60})
	b.await(`location.pathname === "/target"`)
	b.clean()
}

// The page of a place that was drawn since the last look says so, and leads to the proof.
func TestTheDrawnPlaceLeadsToItsProof(t *testing.T) {
	t.Parallel()
	place := int64(40)
	l := newLine(t, at(40, 600))
	l.with(func(l *line) {
		l.page.Drawn = true
		l.page.First = web.Frame{State: "drawn", Position: &place, Now: time.Now()}
	})
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("drawn")
	b.await(`document.querySelector("#next a").href.endsWith("/w/demo/draw") && document.querySelector("#next a").textContent === "Check the draw"`)
	b.still()
	b.scripts(false)
	b.do(chromedp.Reload())
	b.await(`document.querySelector("#next a").getClientRects().length === 1 && !document.getElementById("proof").hidden`)
	b.clean()
}
