package web_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"qm/internal/testenv"
)

var browser struct {
	sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.stop != nil {
		browser.stop()
	}
	os.Exit(code)
}

// tab is one visitor's browser: cookies and storage of its own.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string
}

// watchLayout adds up what moved without being asked to.
const watchLayout = `window.__cls = 0; window.__moved = [];
new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) {
  __cls += e.value;
  for (const s of e.sources) __moved.push((s.node?.id || s.node?.className || s.node?.nodeName) + " " + s.previousRect.y + ">" + s.currentRect.y + " in " + document.querySelector("main")?.dataset.state);
} }).observe({type: "layout-shift", buffered: true});`

// seats are for the tests that have a browser open: more of them at once would
// only slow each other down.
var seats = make(chan struct{}, 2)

func newTab(t *testing.T) *tab {
	t.Helper()
	seats <- struct{}{}
	t.Cleanup(func() { <-seats })
	browser.Do(func() {
		dir, err := os.MkdirTemp("", "qm-web-*")
		if err != nil {
			browser.err = err
			return
		}
		opts := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(testenv.Chromium(t)), chromedp.NoSandbox, chromedp.UserDataDir(dir),
			chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
			chromedp.Flag("disable-sync", true), chromedp.Flag("no-first-run", true))
		alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
		ctx, stop := chromedp.NewContext(alloc)
		browser.ctx, browser.err = ctx, chromedp.Do(ctx)
		browser.stop = func() {
			stop()
			stopAlloc()
			_ = os.RemoveAll(dir)
		}
	})
	if browser.err != nil {
		t.Fatalf("start chromium: %v", browser.err)
	}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	return watch(t, ctx)
}

// another is a second tab of the same browser, with the same cookies and storage. close closes it.
func (b *tab) another() (second *tab, close func()) {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	return watch(b.t, ctx), cancel
}

// watch makes a tab of a context, and takes note of what it says and of what moves in it.
func watch(t *testing.T, ctx context.Context) *tab {
	t.Helper()
	b := &tab{t: t, ctx: ctx}
	b.before(watchLayout)
	b.listen()
	b.size(1280, 900)
	return b
}

// listen notes what the pages write as errors.
func (b *tab) listen() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		return err
	}))
	err := chromedp.Listen(b.ctx, func(ev any) {
		var text string
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			text = fmt.Sprint("exception: ", e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError {
				text = fmt.Sprint("console.error: ", e.Args)
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				text = e.Entry.Text + " " + e.Entry.URL
			}
		}
		if text != "" {
			b.mu.Lock()
			b.errors = append(b.errors, text)
			b.mu.Unlock()
		}
	})
	if err != nil {
		b.t.Fatalf("listen to the tab: %v", err)
	}
}

// in is the same browser in a subtest, with what it said so far forgotten. It
// leaves the page before the subtest's server goes.
func (b *tab) in(t *testing.T) *tab {
	t.Cleanup(func() { b.open("about:blank") })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.t, b.errors = t, nil
	return b
}

// before runs a script in whatever is opened from now on, before its own.
func (b *tab) before(script string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// hurry makes the timers of what is opened from now on run ten times as fast;
// its clock stays right.
func (b *tab) hurry() {
	b.t.Helper()
	b.before(`{ const later = setTimeout; window.setTimeout = (f, ms, ...args) => later(f, ms / 10, ...args); }`)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, soon)
	defer cancel()
	if len(steps) > 0 && chromedp.FromContext(b.ctx).Target == nil {
		ctx = b.ctx // the first call must not carry a limit
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

func (b *tab) open(url string) {
	b.t.Helper()
	for again := range 3 {
		ctx, cancel := context.WithTimeout(b.ctx, soon)
		err := chromedp.Do(ctx, chromedp.Navigate(url))
		cancel()
		if err == nil {
			return
		}
		if again == 2 || !strings.Contains(err.Error(), "net::ERR_ABORTED") { // where the page was on its way elsewhere by itself
			b.t.Fatalf("open %s: %v", url, err)
		}
	}
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// await waits until a JavaScript expression is true, across navigations.
func (b *tab) await(expression string) {
	b.t.Helper()
	limit := time.After(soon)
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ctx, cancel := context.WithTimeout(b.ctx, soon)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		if ok && err == nil {
			return
		}
		last = err // the document may be on its way out
		select {
		case <-tick.C:
		case <-limit:
			b.t.Fatalf("waited for %s (%v)\nthe page says:\n%s", expression, last, b.text("document.body?.innerText ?? ''"))
		}
	}
}

// awaitState waits for the page's state and, where given, its place.
func (b *tab) awaitState(state string) {
	b.t.Helper()
	b.await(fmt.Sprintf("document.getElementById('line')?.dataset.state === %q", state))
}

func (b *tab) awaitText(id, text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("document.getElementById(%q)?.textContent.includes(%q)", id, text))
}

// text evaluates an expression to a string.
func (b *tab) text(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, soon)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return s
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// offline cuts the browser from every network, or gives it back.
func (b *tab) offline(off bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: off, DownloadThroughput: -1, UploadThroughput: -1}},
		})
		if err == nil {
			_, err = cdp.Call(ctx, target, network.OverrideNetworkState, network.OverrideNetworkStateParams{
				Offline: off, DownloadThroughput: -1, UploadThroughput: -1,
			})
		}
		return err
	}))
}

// scripts switches JavaScript on or off for what is opened next.
func (b *tab) scripts(on bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	}))
}

// feature is what the visitor's device prefers.
func feature(name, value string) *emulation.MediaFeature {
	return &emulation.MediaFeature{Name: name, Value: value}
}

func (b *tab) media(features ...*emulation.MediaFeature) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}))
}

// clean fails when the page wrote an error, but for those that the browser
// writes itself when the test had a request refused.
func (b *tab) clean(refused ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, e := range b.errors {
		for _, r := range refused {
			if strings.Contains(e, r) {
				continue next
			}
		}
		b.t.Errorf("console: %s", e)
	}
}

// still fails when the layout moved by itself.
func (b *tab) still() {
	b.t.Helper()
	if cls := b.text("__cls"); cls != "0" {
		b.t.Errorf("layout shift %s: %s", cls, b.text("__moved.slice(0, 6).join('; ')"))
	}
}

// axe fails when axe-core finds anything that keeps somebody from using the page (WCAG 2.2 AA, and its own good practice). The tab must
// have been opened with axe in it: before(testenv.Axe(t)).
func (b *tab) axe(where string) {
	b.t.Helper()
	b.text(`(window.__axe = "", axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
		.then((r) => (__axe = "done " + r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target + " " + n.failureSummary)).join("\n")), (e) => (__axe = "done axe failed: " + e)))`)
	b.await(`__axe`)
	if found := strings.TrimPrefix(b.text("__axe"), "done "); found != "" {
		b.t.Errorf("%s: %s", where, found)
	}
}

// shot writes a picture when QM_TEST_SHOTS names a directory.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("QM_TEST_SHOTS")
	if dir == "" {
		return
	}
	b.picture(dir + "/" + name + ".png")
}
