package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"qm/internal/testenv"
)

// The newcomer's path (issue 2): Chromium opens what qm has printed and walks from there, on the real binary with its demo room.
// With QM_TEST_SHOTS=DIR the pictures of the README are written to DIR.
func TestNewcomerInABrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	demo := map[string]string{"QM_DEMO": "1"}

	// Three newcomers in one line.
	memory := startQM(t, stores{}, demo)
	t.Run("sees the place move and lands on the target", func(t *testing.T) {
		t.Parallel()
		w := newWalker(t, chromium)
		w.open(memory.printed(t, "waiting page"))
		place := w.place()
		w.shot("waiting", 760, 700)
		w.moves(place)
		w.arrives()
		w.clean()
	})
	t.Run("keeps the place over a refresh", func(t *testing.T) {
		t.Parallel()
		w := newWalker(t, chromium)
		w.open(memory.printed(t, "waiting page"))
		w.moves(w.place())
		ticket, place := w.ticket(), w.place()
		w.do(chromedp.Reload())
		if again := w.place(); again > place {
			t.Errorf("place %d became %d by a refresh", place, again)
		}
		if again := w.ticket(); again != ticket {
			t.Errorf("ticket %d became %d by a refresh", ticket, again)
		}
		w.arrives()
		w.clean()
	})
	t.Run("gets there without scripts", func(t *testing.T) {
		t.Parallel()
		w := newWalker(t, chromium)
		w.scriptless()
		w.open(memory.printed(t, "waiting page"))
		w.moves(w.place()) // by looking again, with nothing but the page's own refresh
		w.arrives()
		w.clean()
	})
	t.Run("keeps the place over a kill of the server", func(t *testing.T) {
		t.Parallel()
		s, _ := durableStores(t)
		// The same port, as the page and the room's target name it.
		same := map[string]string{"QM_DEMO": "1", "PORT": freePort(t)}
		p := startQM(t, s, same)
		w := newWalker(t, chromium)
		w.open(p.printed(t, "waiting page"))
		w.moves(w.place())
		ticket := w.ticket()
		w.eval("window.walked = true")
		w.expectOutage(true)
		p.kill()
		place := w.place() // the page goes on saying it
		startQM(t, s, same)
		// It waits for the dead owner's lease to run out before the line moves again.
		w.moves(place)
		w.expectOutage(false)
		if again := w.ticket(); again != ticket {
			t.Errorf("ticket %d became %d by a kill", ticket, again)
		}
		w.await("window.walked") // not loaded anew: the page itself came through
		w.arrives()
		w.clean()
		proved(t, s)
	})
	t.Run("steers the room from the console", func(t *testing.T) {
		t.Parallel()
		p := startQM(t, stores{}, demo)
		w := newWalker(t, chromium)
		w.open(p.printed(t, "console"))
		w.await(`document.getElementById("key")`)
		w.do(chromedp.SendKeys(chromedp.CSS("#key"), adminKey+"\r"))
		const row = `document.querySelector(".rooms tbody tr")`
		w.await(row + `?.textContent.includes("Demo room")`)
		w.await(row + `.querySelector("[data-k=Waiting]").textContent > 0`)
		out := w.eval(row + `.querySelector('[data-k="Out a minute"]').textContent`)
		w.await(fmt.Sprintf(`%s.querySelector('[data-k="Out a minute"]').textContent !== %q`, row, out)) // the figures live
		w.eval(`document.querySelector(".rooms tbody a").click()`)
		w.await(`document.querySelector("h1")?.textContent === "Demo room" && document.querySelectorAll(".journal li").length > 20`)
		w.await(`document.querySelector(".chart")`)
		w.shot("console", 1200, 900)
		w.await(`document.getElementById("rate").value === "40"`)
		w.eval(`document.getElementById("rate").focus(), document.getElementById("rate").select()`)
		w.do(chromedp.SendKeys(chromedp.CSS("#rate"), "90\r"))
		w.await(`[...document.querySelectorAll(".control .out")].some((o) => o.textContent.startsWith("90 a minute, before it was 40."))`)
		if room := p.admin(t, "GET", "rooms/demo", "", http.StatusOK); room.body["ratePerMinute"] != 90.0 {
			t.Errorf("the console says that the rate is 90; the server says %v", room.body["ratePerMinute"])
		}
		w.await(`[...document.querySelectorAll("dd")].some((d) => d.textContent.endsWith(" of 90"))`)
		w.clean()
	})
}

// printed is the address that qm printed beside what.
func (p *process) printed(t testing.TB, what string) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^ .*` + what + `.*?:\s+(http\S+)`)
	var found []string
	eventually(t, "qm prints the address of the "+what, func() bool {
		found = line.FindStringSubmatch(p.output.String())
		return found != nil
	})
	return found[1]
}

// startChromium runs a browser with a fresh profile, until the test and its subtests have ended.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(testenv.Chromium(t)), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("no-first-run", true))...)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		stop()
		stopAlloc()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// walker is a newcomer's browser: cookies and storage of its own.
type walker struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	outage bool     // requests may fail: the server is down
	errors []string // what the console had to say
}

// patience is how long a walker waits for what must come: the whole wait in line, on a machine that does much else.
const patience = 2 * time.Minute

func newWalker(t *testing.T, chromium context.Context) *walker {
	t.Helper()
	ctx, leave := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(leave)
	w := &walker{t: t, ctx: ctx}
	err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		return err
	}))
	if err == nil {
		err = chromedp.Listen(ctx, w.hear)
	}
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return w
}

func (w *walker) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		w.errors = append(w.errors, fmt.Sprint("exception: ", e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			w.errors = append(w.errors, fmt.Sprint("console.error: ", e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !(w.outage && e.Entry.Source == log.EntrySourceNetwork) {
			w.errors = append(w.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// expectOutage says whether the browser may complain about failed requests now. It will: nothing that a page does prevents it.
func (w *walker) expectOutage(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outage = yes
}

// clean requires that the console has nothing to say.
func (w *walker) clean() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.errors {
		w.t.Errorf("the browser's console: %s", e)
	}
}

func (w *walker) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		w.t.Fatalf("browser: %v", err)
	}
}

func (w *walker) open(url string) {
	w.t.Helper()
	w.do(chromedp.Navigate(url))
}

// scriptless switches JavaScript off for what is opened next.
func (w *walker) scriptless() {
	w.t.Helper()
	w.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// eval gives the value of a JavaScript expression as a string.
func (w *walker) eval(expression string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		w.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return s
}

// await waits until an expression is true, across navigations: a document may go away while it is asked.
func (w *walker) await(expression string) {
	w.t.Helper()
	limit := time.After(patience)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		ctx, cancel := context.WithTimeout(w.ctx, patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		if err == nil && ok {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			w.t.Fatalf("it never came true that %s (%v)\nthe page says:\n%s", expression, err, w.eval("location.href + document.body?.innerText"))
		}
	}
}

const big = `Number(document.getElementById("big")?.textContent)`

// place awaits the newcomer's place and gives it.
func (w *walker) place() int {
	w.t.Helper()
	w.await(big + " > 0")
	n, err := strconv.Atoi(w.eval(big))
	if err != nil {
		w.t.Fatalf("read the place: %v", err)
	}
	return n
}

// moves awaits that the page shows a smaller place than the given one.
func (w *walker) moves(from int) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s > 0 && %[1]s < %d", big, from))
}

// arrives awaits the page behind the line, and requires that the door has taken the pass.
func (w *walker) arrives() {
	w.t.Helper()
	w.await(`location.pathname === "/demo" && document.querySelector("h1")?.textContent === "You are in"`)
	if w.cookie("qm_dk_demo") == "" {
		w.t.Error("the target page has opened no door session")
	}
}

// ticket reads the ticket in the token of the browser's cookie.
func (w *walker) ticket() int {
	w.t.Helper()
	v := visitor{cookies: map[string]string{"qm_demo": w.cookie("qm_demo")}}
	n := v.ticket("demo")
	if n == 0 {
		w.t.Fatalf("no ticket in the token %q", v.cookies["qm_demo"])
	}
	return n
}

// cookie is one that the page's address has; "" when there is none.
func (w *walker) cookie(name string) (value string) {
	w.t.Helper()
	w.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		r, err := cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{})
		if err == nil {
			for _, c := range r.Cookies {
				if c.Name == name {
					value = c.Value
				}
			}
		}
		return err
	}))
	return value
}

// shot writes a picture of what is in the window when QM_TEST_SHOTS names a directory.
func (w *walker) shot(name string, width, height int64) {
	w.t.Helper()
	dir := os.Getenv("QM_TEST_SHOTS")
	if dir == "" {
		return
	}
	w.do(chromedp.EmulateViewport(width, height))
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	}
	if err != nil {
		w.t.Errorf("picture of %s: %v", name, err)
	}
}
