package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"qm/web"
)

// desk is a scripted queue server as a site's script tag sees it. It is at
// 127.0.0.1, the shop at localhost: another site.
type desk struct {
	*httptest.Server

	mu    sync.Mutex
	reply func(ask) any // to a check: a frame, a status, or what writes the answer itself
	line  func(w http.ResponseWriter, r *http.Request)
	asks  []ask
	lines []*url.URL // visits of the waiting room
	gone  []ask      // calls of leave
}

// ask is one call of the API.
type ask struct {
	path  string
	query url.Values
	key   string // X-QM-Session
	body  string
	w     http.ResponseWriter
	r     *http.Request
}

type answerer func(w http.ResponseWriter, r *http.Request)

func queueing(reason string) frame { return frame{"action": "queue", "reason": reason} }
func passing(reason string) frame  { return frame{"action": "pass", "reason": reason} }

func newDesk(t *testing.T, reply func(ask) any) *desk {
	t.Helper()
	d := &desk{reply: reply}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /snippet/qm.js", func(w http.ResponseWriter, _ *http.Request) {
		body, _ := web.Snippet()
		w.Header().Set("Content-Type", "text/javascript")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write(body)
	})
	mux.HandleFunc("GET /w/{room}", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.lines = append(d.lines, r.URL)
		line := d.line
		d.mu.Unlock()
		if line != nil {
			line(w, r)
			return
		}
		_, _ = w.Write([]byte(`<!doctype html><link rel=icon href=data:,><title>line</title><h1 id=line>The line</h1>`))
	})
	mux.HandleFunc("/", d.api)
	d.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		d.CloseClientConnections()
		d.Close()
	})
	return d
}

func (d *desk) api(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if origin := r.Header.Get("Origin"); origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
	}
	h.Set("Access-Control-Allow-Headers", "Content-Type, X-QM-Session")
	if r.Method == http.MethodOptions {
		return
	}
	a := ask{path: r.URL.Path, query: r.URL.Query(), key: r.Header.Get("X-QM-Session"), w: w, r: r}
	if r.Method == http.MethodPost {
		b := make([]byte, 4096)
		n, _ := r.Body.Read(b)
		a.body = string(b[:n])
		d.mu.Lock()
		d.gone = append(d.gone, a)
		d.mu.Unlock()
		_, _ = w.Write([]byte(`{"left":true}`))
		return
	}
	d.mu.Lock()
	d.asks = append(d.asks, a)
	reply := d.reply
	d.mu.Unlock()
	switch v := reply(a).(type) {
	case int:
		h.Set("Content-Type", "application/json")
		w.WriteHeader(v)
		_, _ = w.Write([]byte(`{"error":"No.","code":"no"}`))
	case answerer:
		v(w, r)
	case frame:
		if v["action"] == "queue" && v["waitingRoomUrl"] == nil {
			v["waitingRoomUrl"] = d.URL + "/w/" + a.query.Get("roomId")
		}
		_ = json.NewEncoder(w).Encode(v)
	}
}

// asked are the checks so far; forget begins anew.
func (d *desk) asked() []ask {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asks)
}

func (d *desk) visits() []*url.URL {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (d *desk) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asks, d.lines, d.gone = nil, nil, nil
}

// say changes what checks are told, and what the waiting room does.
func (d *desk) say(reply func(ask) any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reply = reply
}

func (d *desk) send(line func(http.ResponseWriter, *http.Request)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.line = line
}

// back is a line whose visitors are through at once: the way back with code in
// the query, before the fragment (contract.md 19).
func back(code string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("qm_return")
		if code != "" {
			path, fragment, has := strings.Cut(to, "#")
			glue := "?"
			if strings.Contains(path, "?") {
				glue = "&"
			}
			to = path + glue + "qm_code=" + code
			if has {
				to += "#" + fragment
			}
		}
		w.Header().Set("Location", to)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusFound)
	}
}

// shop is somebody's site, under a policy that allows the tag and nothing
// inline.
type shop struct {
	*httptest.Server
	base      string // at another host name than the queue
	decisions chan decision

	mu   sync.Mutex
	head string // the tags
	seen []*http.Request
}

// decision is what the tag said of a page.
type decision struct{ Room, Decision, Reason string }

func (d decision) String() string { return d.Decision + " " + d.Reason }

// tagOf is the script tag of a room.
func tagOf(queue, attributes string) string {
	// Of an attribute given twice the first counts: a loaded machine must not look like a server that is silent.
	return fmt.Sprintf(`<script src="%s/snippet/qm.js" %s data-timeout="10000"></script>`, queue, attributes)
}

func newShop(t *testing.T, head string) *shop {
	t.Helper()
	s := &shop{head: head, decisions: make(chan decision, 100)}
	// No ServeMux: it tidies paths, and here each byte counts.
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/decided" {
			var d decision
			if json.NewDecoder(r.Body).Decode(&d) == nil {
				s.decisions <- d
			}
			return
		}
		s.mu.Lock()
		s.seen = append(s.seen, r)
		head := s.head
		s.mu.Unlock()
		if r.URL.Path == "/pixel" {
			w.Header().Set("Content-Type", "image/svg+xml")
			_, _ = w.Write([]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src http://127.0.0.1:*; connect-src *; img-src * data:")
		fmt.Fprintf(w, `<!doctype html><html lang=en><head><meta charset=utf-8><link rel=icon href="data:,"><title>Shop</title>%s</head><body><h1>%s</h1><img src="/pixel" alt=""></body></html>`,
			head, html.EscapeString(r.URL.Path))
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	s.base = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	return s
}

func (s *shop) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *shop) wear(head string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = head
}

// watchDecisions tells the shop what the tag decides, even while the page goes.
const watchDecisions = `document.addEventListener("qm:decision", (e) => navigator.sendBeacon("/decided", JSON.stringify(e.detail)));`

// shopper is a browser that visits a shop.
func shopper(t *testing.T) *tab {
	t.Helper()
	b := newTab(t)
	b.before(watchDecisions)
	return b
}

// decided waits for the next decision.
func (s *shop) decided(t *testing.T, want string) decision {
	t.Helper()
	select {
	case d := <-s.decisions:
		if d.String() != want {
			t.Fatalf("decided %q, want %q", d, want)
		}
		return d
	case <-time.After(soon):
		t.Fatalf("waited for the decision %q", want)
	}
	return decision{}
}

// undecided fails when a decision came that nobody expected.
func (s *shop) undecided(t *testing.T) {
	t.Helper()
	select {
	case d := <-s.decisions:
		t.Errorf("decided %q once more", d)
	default:
	}
}

// history is the addresses that Back and Forward lead through, and which of
// them is shown.
func (b *tab) history() (addresses []string, current int, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, soon)
	defer cancel()
	err = chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		h, err := cdp.Call(ctx, target, page.GetNavigationHistory, cdp.Empty{})
		if err != nil {
			return err
		}
		for _, e := range h.Entries {
			addresses = append(addresses, e.URL)
		}
		current = int(h.CurrentIndex)
		return nil
	}))
	return addresses, current, err
}
