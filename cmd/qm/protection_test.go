package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"qm/access/token"
)

// A browser that a program drives says so: monitor counts it and lets it in, enforce refuses it in words, and a proof of work opens the
// door. How long the proof takes is in the log, with the processor throttled sixfold.
//
// Proves: protection
func TestProtectionInABrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	p := startQM(t, stores{}, nil)
	for id, protection := range map[string]string{"counts": `{"mode":"monitor"}`, "refuses": `{"mode":"enforce"}`, "works": `{"mode":"enforce","work":true}`} {
		p.createRoom(t, `"id":"`+id+`","ratePerMinute":0,"protection":`+protection)
	}
	door := func(id string) (verdicts map[string]any, reasons []string) {
		view := p.admin(t, "GET", "security?roomId="+id, "", http.StatusOK).body["rooms"].([]any)[0].(map[string]any)
		for _, r := range view["reasons"].([]any) {
			if r := r.(map[string]any); r["count"] != 0.0 {
				reasons = append(reasons, r["id"].(string))
			}
		}
		return view["verdicts"].(map[string]any), reasons
	}

	w := newWalker(t, chromium)
	w.open(p.url + "/w/counts")
	w.place()
	if v, reasons := door("counts"); v["would_refuse"] != 1.0 || !slices.Contains(reasons, "webdriver") || slices.Contains(reasons, "no_page") || slices.Contains(reasons, "no_script") {
		t.Errorf("monitor: %v, %v", v, reasons)
	}
	w.clean()

	w = newWalker(t, chromium)
	w.expectOutage(true) // Chromium itself writes of each 403
	w.open(p.url + "/w/refuses?lang=en")
	w.await(`document.querySelector("main").dataset.state === "refused" && document.querySelector("h1").textContent === "You cannot join here"`)
	if v, _ := door("refuses"); v["refused"] != 1.0 || v["let_in"] != 0.0 {
		t.Errorf("enforce: %v", v)
	}
	w.clean()

	w = newWalker(t, chromium)
	w.expectOutage(true)
	slow(w, 6)
	began := time.Now()
	w.open(p.url + "/w/works")
	w.place()
	t.Logf("with the page slowed down sixfold, page, proof and place took %v", time.Since(began).Round(time.Millisecond))
	if v, _ := door("works"); v["offered"] != 1.0 || v["worked"] != 1.0 {
		t.Errorf("work: %v", v)
	}
	w.proofs(p)
	w.clean()
}

// slow makes a page's thread so many times slower. Chromium leaves its workers as fast as they are.
func slow(w *walker, rate float64) {
	w.t.Helper()
	w.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: rate})
		return err
	}))
}

// proofs logs how long a proof of work takes in the page's worker, and on the page's own thread at full speed and slowed down sixfold,
// which is what a slow phone's worker takes: docs/performance.md has the figures.
func (w *walker) proofs(p *process) {
	w.t.Helper()
	const rounds = 9
	about := fmt.Sprintf(`{stamp: String(Math.random()).padEnd(54, "s"), parts: %d, bits: %d}`, token.WorkParts, token.WorkBits)
	slow(w, 1)
	w.eval(`(() => {
		window.took = [];
		const worker = new Worker(QM_CONFIG.workUrl);
		let began;
		const next = () => { began = performance.now(); worker.postMessage(` + about + `); };
		worker.onmessage = ({ data }) => {
			if (data.split(".").length === ` + fmt.Sprint(token.WorkParts) + `) took.push(performance.now() - began);
			if (took.length < ` + fmt.Sprint(rounds) + `) next();
		};
		next();
	})()`)
	w.await(fmt.Sprintf("window.took.length === %d", rounds))
	w.t.Logf("a proof of work, ms: in the worker %s", w.eval(`took.map(Math.round).sort((a, b) => a - b)`))

	a, err := http.Get(p.url + w.eval("QM_CONFIG.workUrl"))
	if err != nil {
		w.t.Fatal(err)
	}
	script, err := io.ReadAll(a.Body)
	_ = a.Body.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, rate := range []float64{1, 6} {
		slow(w, rate)
		w.t.Logf("on the page's thread, slowed down %v times: %s", rate, w.eval(`(() => {
			let onmessage, found;
			const postMessage = (proof) => (found = proof);
			`+string(script)+`
			return Array.from({ length: `+fmt.Sprint(rounds)+` }, () => {
				const began = performance.now();
				onmessage({ data: `+about+` });
				return Math.round(performance.now() - began);
			}).sort((a, b) => a - b);
		})()`))
	}
}
