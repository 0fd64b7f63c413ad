package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// What a room's owner or anybody else may have written, tried as markup.
const markup = `<img src=x onerror="document.title='owned'"><b id="planted">bold</b>`

func TestNothingThatIsSaidBecomesMarkup(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	l.with(func(l *line) {
		l.page.RoomName, l.page.Branding.Name, l.page.Branding.Message, l.page.Ref = markup, markup, markup, markup
	})
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitText("newsText", "<img")
	evil := at(9, 60)
	evil["message"], evil["ref"], evil["state"], evil["token"] = markup+"2", markup+"2", markup, markup
	l.say(evil)
	b.awaitText("ref", "</b>2")
	b.awaitState("near")
	if got := b.text(`document.querySelectorAll("img, #planted").length + document.title`); !strings.HasPrefix(got, "0") || strings.HasSuffix(got, "owned") {
		t.Errorf("the waiting page has %s", got)
	}
	b.clean()

	r := drop()
	r["name"], r["error"], r["branding"] = markup, markup, frame{"name": markup, "message": markup}
	o := newOffice(t, r)
	o.with(func(o *office) {
		o.journal = []frame{{"seq": 1, "at": time.Now(), "kind": markup, "actor": markup, "body": frame{"n": markup}}}
	})
	signIn(b, o)
	b.await(`document.querySelector(".rooms tbody")?.innerText.includes("<img")`)
	b.click(".rooms tbody a")
	b.await(`document.querySelector(".journal li")?.innerText.includes("<img")`)
	if got := b.text(`document.querySelectorAll("main img, #planted").length`); got != "0" {
		t.Errorf("the console has %s elements of somebody else's", got)
	}
	b.text(`location.hash = "#/rooms/%E0%A4%A"`) // no address throws
	b.await(`document.querySelector("h1").textContent === "There is no room %E0%A4%A."`)
	b.clean()
}

func TestStorageThatIsForbiddenOrSpoilt(t *testing.T) {
	t.Parallel()
	visitor := newTab(t)
	t.Run("spoilt", func(t *testing.T) {
		l := newLine(t, at(24, 300))
		b := visitor.in(t)
		b.open(l.URL + "/target")
		for _, kept := range []string{"5", "null", "[]", `{"token":7,"first":"x"}`, "{"} {
			b.text("localStorage['qm:demo'] = sessionStorage['qm:demo'] = '" + kept + "'")
			b.open(l.URL + "/w/demo")
			b.awaitText("big", "24")
			b.await(`JSON.parse(localStorage.getItem("qm:demo")).name === "n1.40"`)
		}
		b.clean()
	})
	t.Run("forbidden", func(t *testing.T) {
		l := newLine(t, at(24, 300))
		b := visitor.in(t)
		b.before(`for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { get() { throw new DOMException("no", "SecurityError"); } });`)
		b.open(l.URL + "/w/demo")
		b.awaitText("big", "24")
		l.say(frame{"state": "active", "position": nil, "passed": true, "redirectUrl": "/target"})
		b.await(`location.pathname === "/target"`)
		b.clean()
	})
}

// A site that sends its visitors back to the line is no reason to send them to
// and fro for ever; the button still does.
func TestPageMovesByItselfOnlyAFewTimes(t *testing.T) {
	t.Parallel()
	l := newLine(t, frame{"state": "active", "passed": true, "redirectUrl": "/back"})
	b := newTab(t)
	b.open(l.URL + "/target")
	b.text(`sessionStorage["qm:demo"] = JSON.stringify([0, Date.now(), Date.now()])`) // two before
	b.open(l.URL + "/w/demo")
	waitFor(t, func() bool { return len(l.asked("back")) == 1 })
	waitFor(t, func() bool { return len(l.asked("join")) == 2 })
	b.awaitState("turn")
	b.await(`performance.now() > 2500`) // longer than it stays when it moves
	if got := len(l.asked("back")); got != 1 {
		t.Errorf("moved %d times", got)
	}
	b.click("#go")
	waitFor(t, func() bool { return len(l.asked("back")) == 2 })
	b.clean()
}

// A door that does not lead off the page, such as a download, leaves a page
// that still hears what becomes of the place.
func TestPageThatStayedListensAgain(t *testing.T) {
	t.Parallel()
	l := newLine(t, frame{"state": "active", "passed": true, "redirectUrl": "/stay"})
	b := newTab(t)
	b.hurry()
	b.open(l.URL + "/w/demo")
	waitFor(t, func() bool { return len(l.asked("stay")) == 1 })
	l.say(frame{"expired": true, "reason": "expired"})
	b.awaitState("expired")
	b.awaitText("big", "90")
	b.clean()
}

// Something on the way that cuts every stream must not make a page open
// streams for ever.
func TestStreamsThatAreCutEachTimeGiveWayToPolls(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	l.with(func(l *line) { l.brief = true })
	b := newTab(t)
	b.hurry()
	b.open(l.URL + "/w/demo")
	waitFor(t, func() bool { return len(l.asked("status")) >= 10 })
	if got := len(l.asked("events")); got != 3 {
		t.Errorf("opened %d streams", got)
	}
	b.awaitState("waiting")
	b.clean()
}

// Coming back to the tab does not ask earlier than the server said.
func TestRetryAfterOutlastsAGlance(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	l.with(func(l *line) { l.refuse["join"] = refusal{503, "storage_unavailable", 60} })
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("backend")
	b.text(`dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true})), document.dispatchEvent(new Event("visibilitychange"))`)
	b.text(`void setTimeout(() => fetch("/api/v1/status?probe"))`)
	waitFor(t, func() bool { return len(l.asked("status")) == 1 })
	if got := len(l.asked("join")); got != 1 {
		t.Errorf("joined %d times", got)
	}
	b.clean("503")
}

// A network that answers in the server's place gives no place.
func TestAnotherNetworksAnswerIsNoPlace(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	l.with(func(l *line) { l.refuse["join"] = refusal{200, "", 0} })
	b := newTab(t)
	b.hurry()
	b.open(l.URL + "/w/demo")
	waitFor(t, func() bool { return len(l.asked("join")) >= 2 })
	if got := b.text(`document.getElementById("line").dataset.state`); got == "waiting" {
		t.Error("a place that nobody gave")
	}
	l.with(func(l *line) { clear(l.refuse) })
	b.awaitState("waiting")
	b.clean()
}

func TestOfflineBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.before(`{ const real = fetch; let on = false;
Object.defineProperty(navigator, "onLine", { get: () => on });
window.fetch = (...args) => (on ? real(...args) : Promise.reject(new TypeError("offline")));
window.plugIn = () => { on = true; dispatchEvent(new Event("online")); }; }`)
	b.open(l.URL + "/w/demo")
	b.awaitState("offline")
	b.text("plugIn()")
	b.awaitState("waiting")
	b.awaitText("big", "24")
	b.still()
	b.clean()
}

// News and a new state that come together are both read out.
func TestWhatComesTogetherIsReadTogether(t *testing.T) {
	t.Parallel()
	l := newLine(t, at(24, 300))
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	both := at(5, 60)
	both["message"] = "Size M is back."
	l.say(both)
	b.awaitText("say", "From the organiser: Size M is back. You are nearly there.")
	b.await(`document.getElementById("say").getAttribute("aria-live") === "polite"`)
	b.clean()
}

// An opening that the server did not date is no countdown to nonsense.
func TestOpeningWithoutADate(t *testing.T) {
	t.Parallel()
	l := newLine(t, frame{"state": "scheduled", "scheduled": true, "position": nil})
	b := newTab(t)
	b.open(l.URL + "/w/demo")
	b.awaitState("drawing")
	if got := b.text(`document.getElementById("big").textContent + document.getElementById("when").textContent`); got != "0:00–" {
		t.Errorf("the page says %s", got)
	}
	b.clean()
}

func TestConsoleActsSayWhatHappened(t *testing.T) {
	t.Parallel()
	o := newOffice(t, drop())
	o.with(func(o *office) {
		for i, kind := range []string{"create", "join", "pass"} {
			o.journal = append(o.journal, frame{"seq": i + 1, "at": time.Now().UnixMilli(), "kind": kind, "actor": "owner", "body": frame{}})
		}
	})
	b := newTab(t)
	b.hurry()
	signIn(b, o)
	b.await(`document.querySelector(".rooms tbody time")?.title`)
	b.click(".rooms tbody a")
	b.await(`document.querySelectorAll(".journal li").length === 3`)

	out := func(control, want string) {
		t.Helper()
		b.await(`document.querySelector('.control:has(` + control + `) .out').textContent.startsWith("` + want + `")`)
		b.await(`document.querySelector('.control:has(` + control + `) .out time').title.includes(String(new Date().getFullYear()))`)
	}
	b.click(`.control:has(#flush) button`) // ten, and seven were there
	out("#flush", "7 people let in.")
	b.await(`document.activeElement === document.querySelector(".control:has(#flush) button")`)
	b.click(`.controls .more summary`)
	b.do(chromedp.SendKeys(chromedp.CSS("#purgeWhy"), "The event is over."))
	b.text(`[...document.querySelectorAll("button.bad")].find((x) => x.textContent === "Purge the line").click()`)
	b.await(`document.querySelector(".ask").innerText.includes("8,400 people lose their places")`)
	b.click(".ask button.bad")
	b.await(`document.querySelector(".controls .more .out").textContent.startsWith("12 people taken out of the line.")`)

	// No rate is no rate of zero.
	b.text(`document.getElementById("rate").value = "", document.querySelector(".control:has(#rate) button").click()`)
	if got := o.last(); got != `POST /rooms/spring/purge {"reason":"The event is over."}` {
		t.Errorf("an empty rate did %s", got)
	}

	// One stop for the Tab key; the arrows tell of each event.
	b.text(`document.querySelector('.journal [tabindex="0"]').focus()`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.await(`document.activeElement === document.querySelectorAll(".journal li")[1] && document.querySelectorAll('.journal [tabindex="0"]').length === 1`)
	b.await(`/^No\. 2, .*20\d\d.*, by owner\.$/.test(document.querySelector('[aria-label="What happened"] .hint').textContent)`)

	// The session ends on the server: back to signing in, with a sentence, and
	// what is being typed there stays.
	o.with(func(o *office) { o.ended = true })
	b.await(`document.body.innerText.includes("Your session has ended. Please sign in again.")`)
	b.await(`document.querySelector("h1").textContent === "Sign in" && document.activeElement.id === "key"`)
	o.with(func(o *office) { o.ended = false })
	b.do(chromedp.SendKeys(chromedp.CSS("#key"), "admin-dev\r"))
	b.await(`document.querySelector("h1").textContent === "Spring drop"`)
	b.clean("401")
}

// A browser that keeps no cookie is told so, not asked again and again.
func TestConsoleWithoutCookies(t *testing.T) {
	t.Parallel()
	o := newOffice(t, drop())
	o.with(func(o *office) { o.ended = true })
	b := newTab(t)
	signIn(b, o)
	b.await(`document.body.innerText.includes("this browser did not keep it")`)
	b.await(`!document.querySelector("form button").disabled`)
	b.clean("401")
}
