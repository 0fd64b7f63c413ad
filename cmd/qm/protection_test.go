package main

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
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
	w.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 6})
		return err
	}))
	began := time.Now()
	w.open(p.url + "/w/works")
	w.place()
	t.Logf("with a processor six times slower, page, proof and place took %v", time.Since(began).Round(time.Millisecond))
	if v, _ := door("works"); v["offered"] != 1.0 || v["worked"] != 1.0 {
		t.Errorf("work: %v", v)
	}
	w.clean()
}
