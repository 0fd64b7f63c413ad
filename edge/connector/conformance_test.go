package connector_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"qm/edge/connector"
)

// The vectors, as README.md describes them.
type (
	vectors struct {
		Version  int
		Defaults struct {
			Config  map[string]any
			Request vectorRequest
		}
		Cookie struct {
			Path     string
			MaxAge   int
			HTTPOnly bool
			SameSite string
		}
		Own   map[string]string
		Cases []vector
	}
	vector struct {
		Name    string
		Config  map[string]any
		Request vectorRequest
		Asks    []vectorAsk
		Expect  vectorExpect
	}
	vectorRequest struct {
		Method, URL, Remote string
		Headers             map[string]string
		Cookies             []string
	}
	vectorAsk struct {
		Path           string
		Query, Headers map[string]string
		Answer         vectorAnswer
	}
	vectorAnswer struct {
		Status  int
		Headers map[string]string
		JSON    json.RawMessage
		Body    string
		Fault   string
	}
	vectorExpect struct {
		Decision, Reason string
		Origin           bool
		Status           int
		Location         string
		Return           *string
		JSON             map[string]any
		RetryAfter       bool
		Cookies          map[string]*string
	}
)

// site is a site of another language in front of which a connector stands.
type site struct {
	address string // where it listens
	// dress says what else a request needs so that the site takes it for one from r.Remote for r.URL, and with these options of the connector.
	dress func(h http.Header, r vectorRequest, options map[string]any)
	// not names the vectors that the connector's surroundings make impossible, and says why.
	not map[string]string
}

// conform runs every vector through a site.
func (s site) conform(t *testing.T) {
	t.Helper()
	var all vectors
	d := json.NewDecoder(bytes.NewReader(connector.Vectors))
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	if all.Version != 1 || len(all.Cases) < 100 {
		t.Fatalf("version %d with %d cases", all.Version, len(all.Cases))
	}
	queue := newScripted(t, all.Cases)
	left := maps.Clone(s.not)
	for i, v := range all.Cases {
		if _, ok := s.not[v.Name]; ok {
			delete(left, v.Name)
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s.run(t, &all, v, queue, i)
		})
	}
	for name := range left {
		t.Errorf("no case is called %q", name)
	}
}

func (s site) run(t *testing.T, all *vectors, v vector, queue *scripted, index int) {
	r := all.Defaults.Request
	r.URL = v.Request.URL
	if v.Request.Method != "" {
		r.Method = v.Request.Method
	}
	if v.Request.Remote != "" {
		r.Remote = v.Request.Remote
	}
	if v.Request.Headers != nil {
		r.Headers = v.Request.Headers
	}
	if v.Request.Cookies != nil {
		r.Cookies = v.Request.Cookies
	}
	options := maps.Clone(all.Defaults.Config)
	options["timeoutMs"] = 30_000 // the machine may be busy, and only the cases that set it are about time
	maps.Copy(options, v.Config)
	options["server"] = queue.server(v, index)

	got, body := s.send(t, r, options)
	asked := queue.asked(index)

	want := v.Expect
	if said := got.Header.Get("X-QM-Decision"); said != want.Decision+"; reason="+want.Reason {
		t.Errorf("X-QM-Decision is %q, not %s; reason=%s", said, want.Decision, want.Reason)
	}
	for _, problem := range asked {
		t.Error(problem)
	}
	s.cookies(t, all, r, got, want)
	if want.Origin {
		s.reached(t, r, got, body)
		return
	}
	if strings.Contains(body, `"reached":true`) {
		t.Error("the site was reached")
	}
	if got.StatusCode != want.Status {
		t.Errorf("status %d, not %d: %s", got.StatusCode, want.Status, body)
	}
	for name, value := range all.Own {
		if got.Header.Get(name) != value {
			t.Errorf("%s is %q, not %q", name, got.Header.Get(name), value)
		}
	}
	location := strings.Replace(got.Header.Get("Location"), fmt.Sprint(options["server"]), fmt.Sprint(all.Defaults.Config["server"]), 1)
	if base, back := cutReturn(t, location); base != want.Location || (back == nil) != (want.Return == nil) || back != nil && *back != *want.Return {
		t.Errorf("Location is %q; want %q back to %s", location, want.Location, or(want.Return, "nowhere"))
	}
	if after, _ := strconv.Atoi(got.Header.Get("Retry-After")); want.RetryAfter != (after >= 1) {
		t.Errorf("Retry-After is %q", got.Header.Get("Retry-After"))
	}
	if want.JSON != nil {
		var said map[string]any
		if err := json.Unmarshal([]byte(body), &said); err != nil || said["error"] == "" || said["error"] == nil {
			t.Errorf("the body is %q: %v", body, err)
		}
		for name, value := range want.JSON {
			if !reflect.DeepEqual(said[name], value) {
				t.Errorf("%s is %v, not %v", name, said[name], value)
			}
		}
	}
	if want.Decision == "closed" && want.Status == http.StatusServiceUnavailable && want.JSON == nil && r.Method != http.MethodHead && body != string(connector.Closed) {
		t.Errorf("the page is %q", body)
	}
}

// send asks the site byte for byte, and follows nothing.
func (s site) send(t *testing.T, r vectorRequest, options map[string]any) (*http.Response, string) {
	t.Helper()
	scheme, rest, _ := strings.Cut(r.URL, "://")
	slash := strings.IndexByte(rest, '/')
	h := http.Header{"Connection": {"close"}, "X-Forwarded-Proto": {scheme}}
	for name, value := range r.Headers {
		h.Set(name, value)
	}
	h["Cookie"] = r.Cookies
	s.dress(h, r, options)
	var raw bytes.Buffer
	fmt.Fprintf(&raw, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, rest[slash:], rest[:slash])
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions {
		raw.WriteString("Content-Length: 0\r\n")
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fmt.Fprintf(&raw, "%s: %s\r\n", name, value)
		}
	}
	raw.WriteString("\r\n")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(raw.Bytes()); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.Method})
	if err != nil {
		t.Fatalf("the site's answer: %v", err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatalf("the site's answer: %v", err)
	}
	return got, string(body)
}

// reached checks that the site has seen the request just as it was.
func (s site) reached(t *testing.T, r vectorRequest, got *http.Response, body string) {
	t.Helper()
	if got.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", got.StatusCode, body)
	}
	if r.Method == http.MethodHead {
		return
	}
	var seen struct {
		Reached        bool
		Method, Target string
	}
	if err := json.Unmarshal([]byte(body), &seen); err != nil || !seen.Reached {
		t.Fatalf("the site was not reached: %s", body)
	}
	if seen.Method != r.Method || !strings.HasSuffix(r.URL, seen.Target) || len(seen.Target) < 2 {
		t.Errorf("the site saw %s %s of %s %s", seen.Method, seen.Target, r.Method, r.URL)
	}
}

func (s site) cookies(t *testing.T, all *vectors, r vectorRequest, got *http.Response, want vectorExpect) {
	t.Helper()
	set := map[string]*string{}
	for _, c := range got.Cookies() {
		if c.Name == "site" {
			if !want.Origin {
				t.Error("the site has set a cookie, so it was reached")
			}
			continue
		}
		if _, twice := set[c.Name]; twice {
			t.Errorf("%s is set twice", c.Name)
		}
		age := all.Cookie.MaxAge
		set[c.Name] = &c.Value
		if c.MaxAge < 0 {
			set[c.Name], age = nil, -1
		}
		sameSite := map[string]http.SameSite{"Lax": http.SameSiteLaxMode}[all.Cookie.SameSite]
		if c.Path != all.Cookie.Path || c.MaxAge != age || c.HttpOnly != all.Cookie.HTTPOnly || c.SameSite != sameSite ||
			c.Secure != strings.HasPrefix(r.URL, "https:") || c.Domain != "" {
			t.Errorf("the cookie is %s", c)
		}
	}
	if want.Cookies == nil {
		want.Cookies = map[string]*string{}
	}
	if !reflect.DeepEqual(set, want.Cookies) {
		t.Errorf("Set-Cookie is %q", got.Header["Set-Cookie"])
	}
}

// cutReturn takes qm_return out of an address; nil when it has none.
func cutReturn(t *testing.T, location string) (base string, back *string) {
	t.Helper()
	at := strings.Index(location, "qm_return=")
	if at < 1 {
		return location, nil
	}
	value, fragment, has := strings.Cut(location[at+len("qm_return="):], "#")
	if has {
		fragment = "#" + fragment
	}
	text, err := url.QueryUnescape(value)
	if glue := location[at-1]; err != nil || (glue == '?') == strings.Contains(location[:at-1], "?") {
		t.Errorf("%q: %v", location, err)
	}
	return location[:at-1] + fragment, &text
}

func or(s *string, none string) string {
	if s == nil {
		return none
	}
	return *s
}

// scripted is a queue that answers what the vectors say. Each case has an address of its own, so that they may run side by side.
type scripted struct {
	url     string
	refused string // an address where nobody listens
	cases   []vector
	closing chan struct{}

	mu       sync.Mutex
	next     map[int]int      // by case: how many questions it has asked
	problems map[int][]string // by case
}

func newScripted(t *testing.T, cases []vector) *scripted {
	t.Helper()
	q := &scripted{cases: cases, closing: make(chan struct{}), next: map[int]int{}, problems: map[int][]string{}}
	server := httptest.NewServer(q)
	q.url = server.URL
	t.Cleanup(func() {
		close(q.closing)
		server.Close()
	})
	q.refused = deaf(t)
	return q
}

// deaf is an address at which nobody listens, and nobody else will until the test ends.
func deaf(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// server is the queue's address for one case.
func (q *scripted) server(v vector, index int) string {
	if len(v.Asks) > 0 && v.Asks[0].Answer.Fault == "refused" {
		return q.refused
	}
	return fmt.Sprintf("%s/case/%d", q.url, index)
}

// asked returns what was wrong with the questions of a case.
func (q *scripted) asked(index int) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, n := q.problems[index], q.next[index]
	if v := q.cases[index]; n < len(v.Asks) && v.Asks[n].Answer.Fault != "refused" {
		list = append(list, fmt.Sprintf("%d questions, not %d", n, len(v.Asks)))
	}
	return list
}

func (q *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/case/"), "/")
	index, err := strconv.Atoi(number)
	if err != nil || index >= len(q.cases) {
		http.Error(w, "no such case", http.StatusTeapot)
		return
	}
	v := q.cases[index]
	q.mu.Lock()
	n := q.next[index]
	q.next[index]++
	complain := func(format string, args ...any) {
		q.problems[index] = append(q.problems[index], fmt.Sprintf("question %d: ", n+1)+fmt.Sprintf(format, args...))
	}
	if n >= len(v.Asks) {
		complain("one too many: %s", r.URL)
		q.mu.Unlock()
		http.Error(w, "one too many", http.StatusTeapot)
		return
	}
	ask := v.Asks[n]
	if "/"+path != ask.Path || r.Method != http.MethodGet {
		complain("%s /%s, not GET %s", r.Method, path, ask.Path)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		complain("%v", err)
	}
	want := url.Values{}
	for name, value := range ask.Query {
		want.Set(name, value)
	}
	if !reflect.DeepEqual(query, want) {
		complain("the query is %v, not %v", query, want)
	}
	for _, name := range []string{"X-QM-Session", "Authorization", "Cookie"} {
		if got := strings.Join(r.Header.Values(name), "; "); got != ask.Headers[name] {
			complain("%s is %q, not %q", name, got, ask.Headers[name])
		}
	}
	q.mu.Unlock()
	q.answer(w, r, ask.Answer)
}

func (q *scripted) answer(w http.ResponseWriter, r *http.Request, a vectorAnswer) {
	hang := func() {
		select {
		case <-r.Context().Done():
		case <-q.closing:
		}
	}
	switch a.Fault {
	case "":
	case "reset":
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
		return
	case "timeout":
		hang()
		return
	case "stall":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"action":"pass",`)
		w.(http.Flusher).Flush()
		hang()
		return
	default:
		panic("no such fault: " + a.Fault)
	}
	body := []byte(a.Body)
	if a.JSON != nil {
		body = a.JSON
		w.Header().Set("Content-Type", "application/json")
	}
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(body)
}
