package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"qm/internal/testenv"
)

// The operator's path: Chromium walks through the console's pages of a room and each act there, on the real binary with one room that begins
// empty. Each page is judged by axe and drawn at 360 and 1440 px, and nothing may be wider than the screen or complain.
//
// Proves: console
func TestOperatorInABrowser(t *testing.T) {
	t.Parallel()
	p := startQM(t, stores{}, nil)
	w := newWalker(t, startChromium(t))
	axe := testenv.Axe(t)
	w.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: axe})
		return err
	}))
	step := func(name string, do func(t *testing.T)) {
		if !t.Run(name, func(t *testing.T) { w.t = t; do(t) }) {
			t.FailNow() // what follows builds on it
		}
		w.t = t
	}
	room := func(t *testing.T) map[string]any {
		return p.admin(t, "GET", "rooms/spring", "", http.StatusOK).body
	}
	value := func(field, text string) {
		w.eval(fmt.Sprintf(`(() => { const f = document.querySelector(%q); f.focus(); f.value = %q; f.dispatchEvent(new Event("input", {bubbles: true})); f.dispatchEvent(new Event("change", {bubbles: true})); })()`, field, text))
	}
	press := func(words string) {
		w.await(fmt.Sprintf(`[...document.querySelectorAll("main button")].some((b) => b.textContent === %q)`, words))
		w.eval(fmt.Sprintf(`[...document.querySelectorAll("main button")].findLast((b) => b.textContent === %q).click()`, words))
	}
	undo := func(field string) {
		w.await(fmt.Sprintf(`document.querySelector('.control:has(%s) .out button')`, field))
		w.eval(fmt.Sprintf(`document.querySelector('.control:has(%s) .out button').click()`, field))
	}
	says := func(words string) {
		w.await(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, words))
	}
	at := func(hash, there string) {
		w.eval(fmt.Sprintf("location.hash = %q", hash))
		w.await(there)
	}

	step("first run", func(t *testing.T) {
		w.open(p.url + "/")
		w.await(`document.getElementById("key")`)
		w.look("signin", 360, 1440)
		w.do(chromedp.SendKeys(chromedp.CSS("#key"), adminKey+"\r"))
		w.await(`document.querySelector("h1").textContent === "Your first line"`)
		w.look("first", 360, 1440)
		value("#id", "spring")
		value("#name", "Spring drop")
		// The site is another origin: a page of it carries the tag that the console gives out.
		var tag string
		shop := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(rw, `<!doctype html><link rel=icon href=data:,>%s<p>The shop</p>`, tag)
		}))
		defer shop.Close()
		value("#targetUrl", shop.URL+"/")
		press("Create the room")
		w.await(`location.hash === "#/rooms/spring/install" && document.querySelector(".steps code")`)
		says("Waiting to hear of a site.")
		value("#site", shop.URL+"/")
		press("Check")
		says("The room is ready for this page.")
		w.look("install", 360, 1440)
		if tag = w.eval(`[...document.querySelectorAll(".steps code")].find((c) => c.textContent.includes("<script")).textContent`); !strings.Contains(tag, "/snippet/qm.js") {
			t.Fatalf("the tag is %s", tag)
		}
		visitor, leave := chromedp.NewContext(w.ctx)
		defer leave()
		if err := chromedp.Do(visitor, chromedp.Navigate(shop.URL+"/")); err != nil {
			t.Fatal(err)
		}
		w.await(fmt.Sprintf(`[...document.querySelectorAll(".cards tbody tr")].some((r) => r.textContent.includes(%q))`, shop.URL))
		says("was seen")
	})
	step("people come", func(t *testing.T) {
		p.admin(t, "POST", "rooms/spring/rate", `{"rate":0}`, http.StatusOK)
		p.admin(t, "POST", "rooms", `{"id":"spring","queueMaxPerIp":null}`, http.StatusOK)
		for range 130 {
			resp, err := http.Post(p.url+"/api/v1/join", "application/json", strings.NewReader(`{"roomId":"spring"}`))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		at("#/", `document.querySelector(".rooms tbody tr [data-k=Waiting]")?.textContent >= 130`)
		w.look("rooms", 360, 1440)
	})
	step("now", func(t *testing.T) {
		at("#/rooms/spring", `document.querySelector(".plot canvas") && document.querySelector(".journal li")`)
		w.look("room", 360, 1440)
		w.eval(`document.querySelector(".chart summary").click()`)
		w.await(`document.querySelectorAll(".chart tbody tr").length > 0`)
		press("24 hours")
		w.await(`location.hash === "#/rooms/spring?range=24h"`)

		value("#rate", "12")
		says("12 a minute: the line is gone in about")
		press("Set the rate")
		says("12 a minute, before it was 0.")
		says("by admin key.")
		undo("#rate")
		says("0 a minute, before it was 12.")
		if got := room(t)["ratePerMinute"]; got != 0.0 {
			t.Errorf("undone, and the rate is %v", got)
		}
		press("Paused")
		says("The line is paused; places are kept.")
		undo("[data-s=paused]")
		says("The line moves.")
		press("Bypass")
		w.await(`/lets 1\d\d people in at once/.test(document.querySelector(".ask").textContent)`)
		press("Keep as it is")
		if got := room(t)["state"]; got != "active" {
			t.Errorf("kept as it is, and the room is %v", got)
		}
		value("#message", "Back at noon.")
		press("Publish")
		says("Everyone in line can read it.")
		value("#flushWhy", "a test of the door")
		value("#flush", "3")
		press("Let them in")
		says("3 people let in.")
		value("#flush", "101")
		press("Let them in")
		w.await(`document.querySelector(".ask").textContent.includes("101 people in at once")`)
		press("Keep as it is")
		w.await(`document.querySelectorAll(".marks li").length > 0`)
	})
	step("palette and keys", func(*testing.T) {
		w.eval(`document.activeElement.blur()`)
		w.do(chromedp.KeyEvent("k"))
		w.await(`document.activeElement.getAttribute("role") === "combobox"`)
		w.axe("palette")
		w.do(chromedp.KeyEvent("spring\r"))
		w.await(`!document.querySelector("dialog") && location.hash.startsWith("#/rooms/spring")`)
		w.eval(`document.activeElement.blur()`)
		w.do(chromedp.KeyEvent("?"))
		w.await(`document.querySelector("dialog h2")?.textContent === "Keys"`)
		w.axe("keys")
		w.eval(`document.querySelector("dialog").close()`)
	})
	step("schedule", func(t *testing.T) {
		at("#/rooms/spring/schedule", `document.getElementById("opens")`)
		value("#opens", "2027-01-02T03:04")
		press("Schedule")
		says("The doors open at")
		if got := room(t)["opensAt"]; got == nil {
			t.Error("nothing is scheduled")
		}
		says("Commitment")
		w.look("schedule", 360, 1440)
		undo("#opens")
		says("There is no opening set.")
		press("Add an opening")
		value(".openings input", "2027-02-02T03:04")
		press("Add an opening")
		value(".openings li:last-child input", "2027-03-02T03:04")
		press("Save the openings")
		w.await(`document.querySelector(".control:has(.openings) .out.err")`) // the first never ends
		value(".openings li:first-child label:nth-child(2) input", "2027-02-02T05:00")
		press("Save the openings")
		says("2 openings are set.")
		if got, _ := room(t)["openings"].([]any); len(got) != 2 {
			t.Errorf("the openings are %v", got)
		}
		w.errorsOf("400")
		p.admin(t, "POST", "rooms", `{"id":"spring","openings":null,"opensAt":null}`, http.StatusOK)
	})
	step("visitors", func(t *testing.T) {
		at("#/rooms/spring/visitors?ticket=50", `document.querySelector(".story li")`)
		says("Ticket 50 waits in line")
		w.look("visitors", 360, 1440)
		value("#ejectWhy", "a bot")
		press("Send to the back")
		says("1 person, ticket 50, loses place")
		press("Send to the back")
		says("Ticket 50 ejected; the person now holds ticket")
		value("#who2", "999999")
		press("Look up")
		says("Nobody in this room has that.")
		w.errorsOf("404")
	})
	step("targeting", func(t *testing.T) {
		at("#/rooms/spring/targeting", `document.getElementById("patterns")`)
		value("#patterns", "/sale*\n!/sale/terms")
		press("Save the rules")
		says("2 rules hold.")
		value("#dry", "https://shop.example/sale/terms")
		press("Try")
		says("This page is let through, by the rule !/sale/terms.")
		w.look("targeting", 360, 1440)
		value("#patterns", "sale")
		press("Save the rules")
		w.await(`document.querySelector("#patterns[aria-invalid=true]") && document.querySelector(".err.at").textContent`)
		w.errorsOf("400")
	})
	step("branding", func(t *testing.T) {
		at("#/rooms/spring/branding", `document.getElementById("b-color")`)
		value("#b-color", "#ffff00")
		press("Save")
		w.await(`document.querySelector("#b-color[aria-invalid=true]") && document.getElementById("b-colorErr").textContent.includes("4.5 to 1")`)
		value("#b-color", "#804000")
		w.await(`document.querySelector(".preview").src.includes("804000")`)
		press("Save")
		says("Saved.")
		if brand, _ := room(t)["branding"].(map[string]any); brand["color"] != "#804000" || brand["message"] != "Back at noon." {
			t.Errorf("the branding is %v", brand)
		}
		w.look("branding", 360, 1440)
		w.errorsOf("400")
	})
	step("settings", func(t *testing.T) {
		at("#/rooms/spring/settings", `document.getElementById("s-passedTtlSec")?.value === "600"`)
		value("#s-passedTtlSec", "0")
		press("Save")
		w.await(`document.activeElement.id === "s-passedTtlSec" && document.getElementById("s-passedTtlSecErr").textContent`)
		value("#s-passedTtlSec", "900")
		value("#s-maxConcurrent", "50")
		w.eval(`document.getElementById("s-autotune").click()`)
		value("#s-autotune-floor", "10")
		value("#s-autotune-ceiling", "100")
		w.look("settings", 360, 1440)
		press("Save")
		says("Saved.")
		r := room(t)
		tune, _ := r["autotune"].(map[string]any)
		if r["passedTtlSec"] != 900.0 || r["maxConcurrent"] != 50.0 || tune["ceiling"] != 100.0 {
			t.Errorf("saved %v, %v, %v", r["passedTtlSec"], r["maxConcurrent"], tune)
		}
		undo(".main[type=submit]")
		w.await(`document.getElementById("s-passedTtlSec").value === "600" && document.getElementById("s-maxConcurrent").value === ""`)
		if r := room(t); r["autotune"] != nil || r["passedTtlSec"] != 600.0 {
			t.Errorf("undone, and it is %v, %v", r["autotune"], r["passedTtlSec"])
		}
		w.errorsOf("400")
	})
	step("journal", func(*testing.T) {
		at("#/rooms/spring/journal?ticket=50&words=1", `document.querySelectorAll(".cards tbody tr").length === 2`)
		says("ejected")
		value("#ticketF", "")
		press("Show")
		w.await(`document.querySelectorAll(".cards tbody tr").length === 100`)
		press("Older")
		w.await(`document.querySelector(".cards tbody tr:last-child b")?.textContent === "create" || document.querySelectorAll(".cards tbody tr").length === 100`)
		press("Check the chain")
		says("events follow from one another.")
		w.look("journal", 360, 1440)
	})
	step("purge and delete", func(t *testing.T) {
		at("#/rooms/spring", `document.querySelector(".more summary")`)
		w.eval(`document.querySelector(".controls .more summary").click()`)
		press("Purge the line")
		w.await(`/^1\d\d people lose their places/.test(document.querySelector(".ask").textContent)`)
		w.look("ask", 360, 1440)
		press("Purge the line")
		says("people taken out of the line.")
		if got := room(t)["waiting"]; got != 0.0 {
			t.Errorf("purged, and %v wait", got)
		}
		press("Delete the room")
		w.await(`document.querySelector(".ask").textContent.startsWith("Delete spring?")`)
		press("Delete the room")
		w.await(`document.querySelector("h1")?.textContent === "Your first line"`)
	})
	w.clean()
}

// errorsOf forgets the complaints of the browser itself about requests that the test had refused with status.
func (w *walker) errorsOf(status string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.errors[:0]
	for _, e := range w.errors {
		if !strings.Contains(e, "status of "+status) {
			left = append(left, e)
		}
	}
	w.errors = left
}

// axe fails when axe-core finds anything on the page that keeps somebody from using it (WCAG 2.2 AA and its own good practice).
func (w *walker) axe(where string) {
	w.t.Helper()
	w.eval(`(window.__axe = "", axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
		.then((r) => (__axe = "done " + r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target + " " + n.failureSummary)).join("\n")), (e) => (__axe = "done axe failed: " + e)))`)
	w.await(`__axe`)
	if found := strings.TrimPrefix(w.eval("__axe"), "done "); found != "" {
		w.t.Errorf("%s: %s", where, found)
	}
}

// look judges what is shown at each width, and draws it when QM_TEST_SHOTS names a directory: the narrow in the dark.
func (w *walker) look(name string, widths ...int64) {
	w.t.Helper()
	for _, width := range widths {
		scheme := "light"
		if width < 500 {
			scheme = "dark"
		}
		w.do(chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}))
		where := fmt.Sprintf("%s-%d", name, width)
		if w.eval("document.documentElement.scrollWidth > innerWidth") != "false" {
			w.t.Errorf("%s is wider than the screen", where)
		}
		w.eval("scrollTo(0, document.documentElement.scrollHeight)") // where what sticks to the window's edge covers nothing
		w.axe(where)
		if dir := os.Getenv("QM_TEST_SHOTS"); dir != "" {
			ctx, cancel := context.WithTimeout(w.ctx, patience)
			png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			cancel()
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "console-"+where+".png"), png, 0o600)
			}
			if err != nil {
				w.t.Errorf("picture of %s: %v", where, err)
			}
		}
	}
}
