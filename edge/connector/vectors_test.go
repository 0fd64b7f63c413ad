package connector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// vectors is vectors.json, as README.md describes it.
type vectors struct {
	Version  int `json:"version"`
	Defaults struct {
		Config  vectorConfig  `json:"config"`
		Request vectorRequest `json:"request"`
	} `json:"defaults"`
	Cookie struct {
		Path     string `json:"path"`
		MaxAge   int    `json:"maxAge"`
		HTTPOnly bool   `json:"httpOnly"`
		SameSite string `json:"sameSite"`
	} `json:"cookie"`
	Own   map[string]string `json:"own"`
	Cases []struct {
		Name    string          `json:"name"`
		Why     string          `json:"why"`
		Real    string          `json:"real"`
		Config  json.RawMessage `json:"config"`
		Request json.RawMessage `json:"request"`
		Asks    []vectorAsk     `json:"asks"`
		Expect  vectorExpect    `json:"expect"`
	} `json:"cases"`
}

type vectorConfig struct {
	RoomID    string `json:"roomId"`
	Server    string `json:"server"`
	PublicKey string `json:"publicKey"`
	Fail      string `json:"fail"`
	TimeoutMs int    `json:"timeoutMs"`
}

type vectorRequest struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Remote  string            `json:"remote"`
	Headers map[string]string `json:"headers"`
	Cookies []string          `json:"cookies"`
}

type vectorAsk struct {
	Path    string            `json:"path"`
	Query   map[string]string `json:"query"`
	Headers map[string]string `json:"headers"`
	Answer  struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		JSON    json.RawMessage   `json:"json"`
		Body    *string           `json:"body"`
		Fault   string            `json:"fault"`
	} `json:"answer"`
}

type vectorExpect struct {
	Decision   string             `json:"decision"`
	Reason     string             `json:"reason"`
	Origin     bool               `json:"origin"`
	Status     int                `json:"status"`
	Location   string             `json:"location"`
	Return     string             `json:"return"`
	RetryAfter bool               `json:"retryAfter"`
	Cookies    map[string]*string `json:"cookies"`
	JSON       map[string]string  `json:"json"`
}

// vector is one case with the defaults filled in.
type vector struct {
	name, real string
	config     vectorConfig
	request    vectorRequest
	asks       []vectorAsk
	expect     vectorExpect
	all        *vectors
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	var all vectors
	d := json.NewDecoder(bytes.NewReader(Vectors))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("read the vectors: %v", err)
	}
	var list []vector
	for _, c := range all.Cases {
		v := vector{name: c.Name, real: c.Real, config: all.Defaults.Config, request: all.Defaults.Request, asks: c.Asks, expect: c.Expect, all: &all}
		var own vectorRequest
		if err := json.Unmarshal(c.Request, &own); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if own.Headers != nil {
			v.request.Headers = nil
		}
		if err := json.Unmarshal(c.Request, &v.request); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if c.Config != nil {
			if err := json.Unmarshal(c.Config, &v.config); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
		}
		list = append(list, v)
	}
	if len(list) < 100 {
		t.Fatalf("only %d vectors", len(list))
	}
	return list
}

// queue answers questions as a vector says, and notes what is wrong with them. Questions come over real connections.
type queue struct {
	*httptest.Server
	mu    sync.Mutex
	asks  []vectorAsk
	asked int
	wrong []string
	over  chan struct{} // closed when the case is over, so that nobody waits for an answer that does not come
}

func newQueue(t *testing.T) *queue {
	q := &queue{}
	q.Server = httptest.NewServer(q)
	t.Cleanup(q.Close)
	return q
}

// play begins a case.
func (q *queue) play(asks []vectorAsk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asks, q.asked, q.wrong, q.over = asks, 0, nil, make(chan struct{})
}

// done ends it, and says what was wrong.
func (q *queue) done() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.over)
	if q.asked != len(q.asks) {
		q.wrong = append(q.wrong, fmt.Sprintf("%d questions were asked, not %d", q.asked, len(q.asks)))
	}
	return q.wrong
}

func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q.mu.Lock()
	n, over := q.asked, q.over
	q.asked++
	if n >= len(q.asks) {
		q.mu.Unlock()
		w.WriteHeader(http.StatusTeapot)
		return
	}
	ask := q.asks[n]
	q.wrong = append(q.wrong, ask.compare(r)...)
	q.mu.Unlock()
	a := ask.Answer
	switch a.Fault {
	case "refused", "reset":
		// A port where nobody listens is what a caller finds there; how a case without a listener is played, its runner says.
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
		return
	case "timeout":
		<-over
		return
	case "stall":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"action":"pass",`)
		_ = http.NewResponseController(w).Flush()
		<-over
		return
	}
	if a.JSON != nil {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	if a.Body != nil {
		_, _ = io.WriteString(w, *a.Body)
	} else {
		_, _ = w.Write(a.JSON)
	}
}

// compare says in which way a question is not the one of the vector.
func (a *vectorAsk) compare(r *http.Request) (wrong []string) {
	if r.Method != http.MethodGet || r.URL.Path != a.Path {
		wrong = append(wrong, fmt.Sprintf("asked %s %s, not GET %s", r.Method, r.URL.Path, a.Path))
	}
	form, err := url.ParseQuery(r.URL.RawQuery)
	got := map[string]string{}
	for name, values := range form {
		got[name] = strings.Join(values, " AND ")
	}
	if err != nil || !maps.Equal(got, a.Query) {
		wrong = append(wrong, fmt.Sprintf("asked with %q, not %q", got, a.Query))
	}
	for _, name := range []string{"X-QM-Session", "Authorization", "Cookie"} {
		if got, want := strings.Join(r.Header.Values(name), " AND "), a.Headers[name]; got != want {
			wrong = append(wrong, fmt.Sprintf("asked with the header %s %q, not %q", name, got, want))
		}
	}
	return wrong
}

// compare says in which way an answer to the visitor is not the one of the vector. served: the site answered.
func (v *vector) compare(res *http.Response, body []byte, served bool) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	e := v.expect
	if got, want := res.Header.Values("X-QM-Decision"), e.Decision+"; reason="+e.Reason; len(got) != 1 || got[0] != want {
		bad("the decision is %q, not %q", got, want)
	}
	if served != e.Origin {
		bad("the site was reached: %v", served)
	}
	cookies := map[string]bool{}
	for _, c := range res.Cookies() {
		want, ok := e.Cookies[c.Name]
		if !ok || cookies[c.Name] {
			bad("the cookie %s is set", c.Name)
			continue
		}
		cookies[c.Name] = true
		age, value := v.all.Cookie.MaxAge, ""
		if want == nil {
			age = -1 // as net/http reads Max-Age=0
		} else {
			value = *want
		}
		secure := strings.HasPrefix(v.request.URL, "https:")
		if c.Value != value || c.MaxAge != age || c.Path != v.all.Cookie.Path || c.HttpOnly != v.all.Cookie.HTTPOnly || c.Secure != secure || c.SameSite != http.SameSiteLaxMode || c.Domain != "" {
			bad("the cookie is %q", c.Raw)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Cookies)) {
		if !cookies[name] {
			bad("the cookie %s is not set", name)
		}
	}
	if e.Origin {
		return wrong
	}
	if res.StatusCode != e.Status {
		bad("the status is %d, not %d", res.StatusCode, e.Status)
	}
	for name, want := range v.all.Own {
		if got := strings.Join(res.Header.Values(name), " AND "); got != want {
			bad("%s is %q, not %q", name, got, want)
		}
	}
	location := res.Header.Get("Location")
	if e.Return != "" {
		before, fragment, _ := strings.Cut(location, "#")
		i := strings.LastIndex(before, "qm_return=")
		if i < 1 {
			bad("Location is %q, without a way back", location)
		} else {
			if back, err := url.QueryUnescape(before[i+len("qm_return="):]); err != nil || back != e.Return {
				bad("the way back is %q, not %q", back, e.Return)
			}
			location = before[:i-1]
			if glue := before[i-1]; (glue == '&') != strings.Contains(location, "?") {
				bad("the way back is glued by %q to %q", glue, location)
			}
			if fragment != "" {
				location += "#" + fragment
			}
		}
	}
	if location != e.Location {
		bad("Location is %q, not %q", location, e.Location)
	}
	if (res.Header.Get("Retry-After") != "") != e.RetryAfter {
		bad("Retry-After is %q", res.Header.Get("Retry-After"))
	}
	if e.JSON != nil {
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			bad("the body is %q", body)
		}
		for name, want := range e.JSON {
			if got[name] != want {
				bad("%s is %v, not %q", name, got[name], want)
			}
		}
		if got["error"] == "" {
			bad("no sentence in %s", body)
		}
	}
	if e.Decision == "closed" && e.Status == http.StatusServiceUnavailable && e.JSON == nil && !bytes.Equal(body, Closed) {
		bad("the page is %q", body)
	}
	return wrong
}

// TestGoConnector runs every vector.
//
// Proves: connectors
func TestGoConnector(t *testing.T) {
	q := newQueue(t)
	away := httptest.NewServer(http.NotFoundHandler())
	nobody := away.URL
	away.Close()
	for _, v := range readVectors(t) {
		t.Run(v.name, func(t *testing.T) {
			server := q.URL
			if slices.ContainsFunc(v.asks, func(a vectorAsk) bool { return a.Answer.Fault == "refused" }) {
				server, v.asks = nobody, nil
			}
			q.play(v.asks)
			told := Decision{}
			wrap, err := New(Config{
				Room: v.config.RoomID, Server: server, PublicKey: v.config.PublicKey, FailOpen: v.config.Fail == "open",
				Timeout: time.Duration(v.config.TimeoutMs) * time.Millisecond,
				Visitor: func(r *http.Request) (string, string) {
					scheme, _, _ := strings.Cut(v.request.URL, ":")
					return scheme + "://" + r.Host, v.request.Remote
				},
				Decided: func(_ *http.Request, d Decision) { told = d },
				// A connection for each question: on one that was kept, a broken one is tried again.
				Transport: &http.Transport{DisableKeepAlives: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			served := false
			handler := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served = true }))
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, v.received(t))
			res := rec.Result()
			if l := res.Header.Get("Location"); l != "" { // the queue of the vectors is where ours is
				res.Header.Set("Location", strings.Replace(l, server+"/w/", v.config.Server+"/w/", 1))
			}
			wrong := append(q.done(), v.compare(res, rec.Body.Bytes(), served)...)
			if string(told.Outcome) != v.expect.Decision || told.Reason != v.expect.Reason {
				wrong = append(wrong, fmt.Sprintf("the site was told %v", told))
			}
			for _, w := range wrong {
				t.Error(w)
			}
		})
	}
}

// received is the vector's request as a server receives it.
func (v *vector) received(t *testing.T) *http.Request {
	t.Helper()
	_, rest, _ := strings.Cut(v.request.URL, "://")
	host, target := rest, "/"
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, target = rest[:i], rest[i:]
	}
	r := httptest.NewRequest(v.request.Method, target, nil)
	r.Host, r.RequestURI = host, target
	for name, value := range v.request.Headers {
		r.Header.Set(name, value)
	}
	for _, line := range v.request.Cookies {
		r.Header.Add("Cookie", line)
	}
	return r
}
