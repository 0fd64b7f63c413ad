package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"qm/internal/testenv"
)

// The owner's path: Chromium walks through the console's pages of the organisation and each act there, on the real binary. Each page is
// judged by axe and drawn at 360 and 1440 px; nothing may be wider than the screen, and the browser's console has nothing to say.
//
// Proves: console
func TestOwnerInABrowser(t *testing.T) {
	t.Parallel()
	paged := make(chan string, 16)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		paged <- string(body)
	}))
	t.Cleanup(hook.Close)
	p := startQM(t, stores{}, map[string]string{"ALERT_WEBHOOK_URL": hook.URL, "QM_ALLOW_PRIVATE_OUTBOUND": "1"})
	p.admin(t, "POST", "rooms", `{"id":"spring","name":"Spring drop","targetUrl":"https://shop.example/","ratePerMinute":60}`, http.StatusOK)
	p.admin(t, "POST", "rooms", `{"id":"spring","ratePerMinute":90,"branding":{"message":"Back at noon."}}`, http.StatusOK)
	p.admin(t, "POST", "rooms", `{"id":"quiet","name":"Quiet","targetUrl":"https://shop.example/"}`, http.StatusOK)
	chromium := startChromium(t)
	w := owner(t, chromium)

	step := func(name string, do func(t *testing.T)) {
		if !t.Run(name, func(t *testing.T) { w.t = t; do(t) }) {
			t.FailNow() // what follows builds on it
		}
		w.t = t
	}
	w.signsIn(p, adminKey)

	step("health", func(t *testing.T) {
		w.goes("/health", "Configuration in force")
		w.says("takes places")
		w.says("STORE=memory: every restart starts empty.")
		w.says("set, and not shown")
		if text := w.eval(`document.querySelector("main").textContent`); strings.Contains(text, adminKey) {
			t.Error("the admin key is on the page")
		}
		w.judged("health")
	})
	step("connectors", func(t *testing.T) {
		w.goes("/connectors", "SHA-256")
		w.says("No connector has asked for a report since this server started.")
		resp, err := http.Get(p.url + "/api/v1/verify?roomId=spring&connector=snippet&version=0.0.1&url=https://shop.example/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		w.goes("/connectors?room=spring", "0.0.1, the newest is")
		w.await(`[...document.querySelectorAll(".cmd code")].some((c) => c.textContent.includes('data-room="spring"'))`)
		w.eval(`document.querySelector(".connector summary").click()`)
		w.judged("connectors")
	})
	step("share links", func(t *testing.T) {
		w.goes("/links", "There are no share links.")
		w.types("#days", "0")
		w.presses("Make a link")
		w.await(`document.getElementById("days").getAttribute("aria-invalid") === "true"`)
		w.refused()
		w.types("#days", "2")
		w.presses("Make a link")
		w.says("This address is shown only now.")
		link := w.eval(`document.querySelector(".once code").textContent`)
		if !strings.Contains(link, "/#monitor=") {
			t.Fatalf("the link is %s", link)
		}
		w.judged("links")
		looker := owner(t, chromium)
		looker.open(link)
		looker.await(`document.getElementById("who").textContent.includes("looking on")`)
		if at := looker.eval("location.href"); strings.Contains(at, "monitor") {
			t.Errorf("the token stays in the address bar: %s", at)
		}
		looker.says("Spring drop")
		looker.await(`!document.querySelector('#nav a[href="#/operators"], #nav a[href="#/audit"]')`)
		looker.goes("/rooms/spring", "In a minute")
		if text := looker.eval(`document.querySelector("main").textContent`); strings.Contains(text, "shop.example") {
			t.Error("whoever looks on sees where the line leads")
		}
		looker.goes("/operators", "Your role does not reach this page.")
		looker.goes("/health", "Warnings are not shown with a share link.")
		looker.goes("/alerts", "Nothing is wrong.")
		if n := looker.eval(`document.querySelectorAll("main form").length`); n != "0" {
			t.Error("whoever looks on is offered acts")
		}
		looker.goes("/reports", "Back")
		looker.clean()

		w.presses("I have kept it")
		w.await(`!document.querySelector(".once")`)
		w.presses("Make a link")
		w.says("Revoke all")
		w.presses("Revoke")
		w.says("stops working, and whoever looks on by it is signed out.")
		w.presses("Revoke it")
		w.says("1 link is revoked.")
		w.presses("Make a link")
		w.presses("Revoke all")
		w.await(`document.querySelector(".ask")`)
		w.eval(`document.querySelector(".ask button.bad").click()`)
		w.says("2 links are revoked.")
		w.says("There are no share links.")
		looker.expectOutage(true)
		looker.await(`document.querySelector("h1").textContent === "Sign in"`)
	})
	var key string
	step("operators", func(t *testing.T) {
		w.goes("/operators", "Nobody has a key of their own yet")
		w.presses("Give a key")
		w.await(`document.getElementById("opname").getAttribute("aria-invalid") === "true"`)
		w.refused()
		w.types("#opname", "Ada")
		w.types("#oprole", "operator")
		w.presses("Give a key")
		w.says("The key of Ada. It is shown only now")
		key = w.eval(`document.querySelector(".once code").textContent`)
		w.judged("operators")
		w.presses("I have kept it")
	})
	step("account", func(t *testing.T) {
		w.goes("/account", "belongs to nobody and has no second factor")
		ada := owner(t, chromium)
		ada.signsIn(p, key)
		ada.await(`document.getElementById("who").textContent === "Ada, operator" && !document.querySelector('#nav a[href="#/operators"]')`)
		ada.goes("/account", "Set up a second factor")
		ada.presses("Set up a second factor")
		ada.says("Scan this with your authenticator app")
		secret := ada.eval(`document.querySelector(".once code").textContent`)
		if d := ada.eval(`document.querySelector(".qr path").getAttribute("d").length > 1000`); d != "true" {
			t.Error("the code for the camera is empty")
		}
		ada.judged("account")
		ada.types("#otp", "000000")
		ada.presses("Turn it on")
		ada.await(`document.getElementById("otp").getAttribute("aria-invalid") === "true"`)
		ada.refused()
		code, err := totp.GenerateCode(secret, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ada.types("#otp", code)
		ada.presses("Turn it on")
		ada.says("Your second factor is on.")
		w.goes("/operators", "Ada")
		w.await(`document.querySelector("[data-k='Second factor']").textContent === "on" && document.querySelector("[data-k='Last sign-in'] time")`)
		ada.eval(`document.getElementById("signout").click()`)
		ada.await(`document.getElementById("key")`)
		ada.do(chromedp.SendKeys(chromedp.CSS("#key"), key+"\r"))
		ada.says("Now the code that your authenticator app shows.")
		ada.refused()
		ada.clean()
		w.presses("Take second factor off")
		w.presses("Take it off")
		w.says("The second factor of Ada is off.")
	})
	step("alerts", func(t *testing.T) {
		w.goes("/alerts", "Nothing is wrong.")
		w.types("#silenceWhy", "a rehearsal")
		w.presses("Silence it")
		w.says("tells nobody for 1 hour.")
		w.says("a rehearsal")
		w.judged("alerts")
		w.presses("End it")
		w.says("is told again.")
		w.presses("Send a test page")
		w.says("A test went to")
		if body := <-paged; !strings.Contains(body, "test") {
			t.Errorf("the page says %s", body)
		}
	})
	step("reports", func(t *testing.T) {
		resp, err := http.Post(p.url+"/api/v1/join", "application/json", strings.NewReader(`{"roomId":"spring"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		w.goes("/audit", "made a room")
		w.goes("/reports", "Longest line")
		w.await(`document.querySelector("[data-k=Joined]").textContent === "1" && document.querySelector(".plot canvas")`)
		w.judged("reports")
		if got := w.eval(`[...document.querySelectorAll("a[download]")].map((a) => a.getAttribute("href")).join()`); !strings.Contains(got, "format=csv") {
			t.Errorf("the download leads to %s", got)
		}
		w.types("#bucket", "day")
		w.await(`location.hash.includes("by=day") && document.querySelector("thead th")?.textContent === "Day"`)
	})
	step("security", func(t *testing.T) {
		p.admin(t, "POST", "rooms", `{"id":"spring","protection":{"mode":"monitor"}}`, http.StatusOK)
		p.admin(t, "POST", "rooms", `{"id":"spring","colour":"red"}`, http.StatusBadRequest)
		resp, err := http.Post(p.url+"/api/v1/join", "application/json", strings.NewReader(`{"roomId":"spring"}`)) // names no browser that it is
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		w.goes("/security", "The request names a program that is no browser.")
		w.says("unknown_field")
		w.judged("security")
		w.types("#room", "quiet")
		w.says("No visitor has been scored here since this server started.")
	})
	step("revoke", func(t *testing.T) {
		w.goes("/operators", "Ada")
		w.presses("Revoke")
		w.says("Ada (operator) is signed out everywhere within seconds")
		w.presses("Revoke Ada")
		w.says("The key of Ada is revoked.")
		w.says("Nobody has a key of their own yet")
	})
	step("audit", func(t *testing.T) {
		w.goes("/audit", "ratePerMinute")
		w.says("60 → 90")
		w.says("Reason: a rehearsal")
		w.says("gave a key")
		w.judged("audit")
		w.types("#kind", "revoke")
		w.presses("Show")
		w.says("1 act")
		w.await(`location.hash === "#/audit?kind=revoke" && document.querySelectorAll(".cards tbody tr").length === 1`)
		w.eval(`(window.taken = "", fetch([...document.querySelectorAll("a[download]")].find((a) => a.href.includes("ndjson")).href).then((r) => r.text()).then((text) => (taken = text)))`)
		w.await(`taken`)
		body := w.eval(`taken`)
		if strings.Count(body, "\n") != 1 || !strings.Contains(body, `"kind":"revoke"`) {
			t.Errorf("the export has %s", body)
		}
		w.types("#operator", strings.Repeat("x", 101))
		w.presses("Show")
		w.await(`document.getElementById("operator").getAttribute("aria-invalid") === "true"`)
		w.refused()
	})
	w.clean()
}

// owner is a walker whose pages axe can judge.
func owner(t *testing.T, chromium context.Context) *walker {
	t.Helper()
	w := newWalker(t, chromium)
	axe := testenv.Axe(t)
	w.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: axe})
		return err
	}))
	return w
}

func (w *walker) signsIn(p *process, key string) {
	w.t.Helper()
	w.open(p.url + "/")
	w.await(`document.getElementById("key")`)
	w.do(chromedp.SendKeys(chromedp.CSS("#key"), key+"\r"))
	w.await(`!document.getElementById("nav").hidden`)
}

// goes opens a page of the console, anew even if it is the one that is shown, and waits until it says something.
func (w *walker) goes(path, words string) {
	w.t.Helper()
	w.eval(`location.hash = "#/no-such-page"`)
	w.await(`document.querySelector("h1")?.textContent === "Not here" && document.querySelector("main").innerText.includes("There is no such page.")`)
	w.eval(fmt.Sprintf("location.hash = %q", "#"+path))
	w.says(words)
}

func (w *walker) says(words string) {
	w.t.Helper()
	w.await(fmt.Sprintf(`document.querySelector("main").textContent.includes(%q)`, words))
}

func (w *walker) presses(words string) {
	w.t.Helper()
	w.await(fmt.Sprintf(`[...document.querySelectorAll("main button")].some((b) => b.textContent === %q && !b.ariaDisabled)`, words))
	w.eval(fmt.Sprintf(`[...document.querySelectorAll("main button")].find((b) => b.textContent === %q && !b.ariaDisabled).click()`, words))
}

func (w *walker) types(field, text string) {
	w.t.Helper()
	w.eval(fmt.Sprintf(`(() => { const f = document.querySelector(%q); f.focus(); f.value = %q; for (const e of ["input", "change"]) f.dispatchEvent(new Event(e, {bubbles: true})); })()`, field, text))
}

// refused takes out what the browser itself says of an answer that was meant to be a refusal, and waits for it.
func (w *walker) refused() {
	w.t.Helper()
	limit := time.After(patience)
	for {
		w.mu.Lock()
		i := slices.IndexFunc(w.errors, func(e string) bool { return strings.Contains(e, "status of 4") })
		if i >= 0 {
			w.errors = slices.Delete(w.errors, i, i+1)
		}
		w.mu.Unlock()
		if i >= 0 {
			return
		}
		select {
		case <-limit:
			w.t.Fatal("nothing was refused")
		default:
			w.eval("1") // a turn of the browser
		}
	}
}

// judged has axe look at the page at each width, the narrow one in the dark, and draws it when QM_TEST_SHOTS names a directory.
func (w *walker) judged(name string) {
	w.t.Helper()
	for width, scheme := range map[int64]string{1440: "light", 360: "dark"} {
		w.do(chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}))
		where := fmt.Sprintf("organisation-%s-%d", name, width)
		if w.eval("document.documentElement.scrollWidth > innerWidth") != "false" {
			w.t.Errorf("%s is wider than the screen", where)
		}
		w.eval(`(window.__axe = "", axe.run(document, {resultTypes: ["violations"]}).then(
			(r) => (__axe = "done " + r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target + " " + n.failureSummary)).join("\n")), (e) => (__axe = "done axe failed: " + e)))`)
		w.await(`__axe`)
		if found := strings.TrimPrefix(w.eval("__axe"), "done "); found != "" {
			w.t.Errorf("%s: %s", where, found)
		}
		dir := os.Getenv("QM_TEST_SHOTS")
		if dir == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(w.ctx, patience)
		png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		cancel()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, where+".png"), png, 0o600)
		}
		if err != nil {
			w.t.Errorf("picture of %s: %v", where, err)
		}
	}
}
