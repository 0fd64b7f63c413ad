package web_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"qm/web"
)

// frame is one answer of the API.
type frame = map[string]any

// line is a scripted server: the pages as they are, and an API that says what
// a test tells it to.
type line struct {
	*httptest.Server

	mu      sync.Mutex
	page    web.WaitingPage
	ticket  int
	now     frame // what status and the stream say
	refuse  map[string]refusal
	streams map[chan frame]bool
	calls   []call
	bytes   map[string]int // path -> bytes of the body sent
	brief   bool           // a stream ends after its first frame
	hang    bool           // a join is never answered
	deaf    bool           // open streams are told nothing any more
	proofs  int            // so many joins are refused yet, each with another proof of work to do
}

type refusal struct {
	status int
	code   string
	after  int // Retry-After, seconds
}

// call is one request that the page made.
type call struct {
	route string // "join"
	body  frame
	query string
}

func newLine(t *testing.T, first frame) *line {
	t.Helper()
	l := &line{
		page:    web.WaitingPage{RoomID: "demo", RoomName: "Spring drop", PollSeconds: 1, Ref: "7KQ2-M9TX"},
		ticket:  40,
		now:     first,
		refuse:  map[string]refusal{},
		streams: map[chan frame]bool{},
		bytes:   map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /w/{room}", l.waiting)
	mux.HandleFunc("GET /assets/{name}", l.asset)
	mux.HandleFunc("GET /target", l.target)
	mux.HandleFunc("GET /stay", l.stay)
	mux.HandleFunc("GET /notice/{name}", l.notice)
	mux.HandleFunc("GET /back", l.back)
	mux.HandleFunc("POST /api/v1/join", l.join)
	mux.HandleFunc("GET /api/v1/status", l.status)
	mux.HandleFunc("GET /api/v1/events", l.events)
	mux.HandleFunc("POST /api/v1/leave", l.leave)
	l.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		l.CloseClientConnections()
		l.Close()
	})
	return l
}

// token names a place as the server's tokens do; nobody here checks the rest.
func token(n int) string {
	payload, _ := json.Marshal(frame{"r": "demo", "n": n, "g": 1, "iat": 1})
	return base64.RawURLEncoding.EncodeToString(payload) + ".c2ln"
}

func handle(q int) string {
	payload, _ := json.Marshal(frame{"r": "demo", "q": q, "g": 1, "iat": 1})
	return base64.RawURLEncoding.EncodeToString(payload) + ".c2ln"
}

func at(position, etaSec int) frame {
	return frame{"state": "active", "position": position, "ahead": position - 1, "etaSec": etaSec, "passed": false}
}

// say changes what the server says, and tells every open stream.
func (l *line) say(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = f
	if l.deaf {
		return
	}
	for ch := range l.streams {
		ch <- f
	}
}

// with changes the script under the lock.
func (l *line) with(change func(l *line)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// cut ends every open stream, as a restart does.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ch := range l.streams {
		close(ch)
		delete(l.streams, ch)
	}
}

// listening counts the open streams.
func (l *line) listening() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams)
}

// value is a parameter of the call's query.
func (c call) value(name string) string {
	q, _ := url.ParseQuery(c.query)
	return q.Get(name)
}

// asked returns the calls of a route so far.
func (l *line) asked(route string) []call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []call
	for _, c := range l.calls {
		if c.route == route {
			out = append(out, c)
		}
	}
	return out
}

// open takes note of a call and answers it when the script refuses it.
func (l *line) open(w http.ResponseWriter, r *http.Request, route string) (frame, bool) {
	var body frame
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call{route, body, r.URL.RawQuery})
	no, refused := l.refuse[route]
	if !refused {
		return body, true
	}
	if no.after > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(no.after))
	}
	answer(w, no.status, frame{"code": no.code, "error": no.code})
	return nil, false
}

func answer(w http.ResponseWriter, status int, body frame) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (l *line) join(w http.ResponseWriter, r *http.Request) {
	body, ok := l.open(w, r, "join")
	if !ok {
		return
	}
	if l.set(&l.hang) {
		<-r.Context().Done()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proofs > 0 {
		l.proofs--
		answer(w, 403, frame{"code": "blocked_by_protection", "error": "blocked", "work": frame{"stamp": fmt.Sprintf("stamp-%d", l.proofs), "parts": 3, "bits": 7}})
		return
	}
	out := frame{}
	maps.Copy(out, l.now)
	own := token(l.ticket)
	if l.now["scheduled"] == true {
		own = handle(l.ticket)
	}
	if presented, _ := body["token"].(string); l.now["expired"] == true || presented != own {
		if l.now["expired"] == true {
			l.ticket++
			l.now = at(90, 900)
			maps.Copy(out, l.now)
			delete(out, "expired")
			delete(out, "reason")
			own = token(l.ticket)
		}
	}
	out["token"] = own
	answer(w, 200, out)
}

func (l *line) status(w http.ResponseWriter, r *http.Request) {
	if _, ok := l.open(w, r, "status"); !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	answer(w, 200, l.now)
}

func (l *line) leave(w http.ResponseWriter, r *http.Request) {
	if _, ok := l.open(w, r, "leave"); ok {
		answer(w, 200, frame{"left": true})
	}
}

func (l *line) events(w http.ResponseWriter, r *http.Request) {
	if _, ok := l.open(w, r, "events"); !ok {
		return
	}
	ch := make(chan frame, 256)
	l.mu.Lock()
	l.streams[ch] = true
	ch <- l.now
	l.mu.Unlock()
	defer l.with(func(l *line) { delete(l.streams, ch) })
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprint(w, "retry: 50\n") // as the server does, though sooner
	for {
		select {
		case <-r.Context().Done():
			return
		case f, ok := <-ch:
			if !ok {
				return
			}
			event := "status"
			if f["event"] == "refresh" {
				event, f = "refresh", frame{}
			}
			data, _ := json.Marshal(f)
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
			w.(http.Flusher).Flush()
			if l.set(&l.brief) {
				return
			}
		}
	}
}

func (l *line) set(flag *bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *flag
}

// notice is the page of a refusal, as the server words one.
func (l *line) notice(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	p := web.NoticePage{
		Notice: web.Notice(r.PathValue("name")), RoomName: l.page.RoomName, Branding: l.page.Branding, SiteURL: l.page.SiteURL, Locale: l.page.Locale,
	}
	p.ScriptsOff = p.Notice == web.NoticeRefused // as the server says it, whose pages with scripts refuse by themselves
	l.mu.Unlock()
	var b strings.Builder
	if err := web.RenderNotice(&b, p); err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", web.Policy(p.Branding))
	l.send(w, "notice", b.String())
}

func (l *line) send(w http.ResponseWriter, path, body string) {
	l.with(func(l *line) { l.bytes[path] = len(body) })
	_, _ = w.Write([]byte(body))
}

func (l *line) waiting(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	p := l.page
	l.mu.Unlock()
	p.RoomID = r.PathValue("room")
	var b strings.Builder
	if err := web.Waiting(&b, p); err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", web.Policy(p.Branding))
	l.send(w, "page", b.String())
}

func (l *line) asset(w http.ResponseWriter, r *http.Request) {
	body, contentType, ok := web.Asset(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", web.AssetCacheControl)
	l.send(w, r.URL.Path, string(body))
}

// stay is a door that no browser leaves its page for.
func (l *line) stay(w http.ResponseWriter, r *http.Request) {
	if _, ok := l.open(w, r, "stay"); ok {
		w.WriteHeader(http.StatusNoContent)
	}
}

// back is a door that sends everyone back to the line.
func (l *line) back(w http.ResponseWriter, r *http.Request) {
	if _, ok := l.open(w, r, "back"); ok {
		http.Redirect(w, r, "/w/demo", http.StatusFound)
	}
}

func (l *line) target(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", web.Policy(web.Branding{}))
	_ = web.DemoTarget(w, web.DemoPage{RoomID: "demo", RoomName: "Spring drop"})
}

// soon is how long a test waits for what must come, on a machine that does much else.
const soon = 60 * time.Second
