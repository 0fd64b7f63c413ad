package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a world behind a listener, for what only a connection shows. Its connections are pipes without buffers in a bubble of
// synctest: deadlines are the real ones and cost no time.
type site struct {
	*world
	pipes  pipes
	client *http.Client
}

// pipes is a net.Listener whose connections are net.Pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   *sync.Once
}

func newPipes() pipes { return pipes{make(chan net.Conn), make(chan struct{}), new(sync.Once)} }

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// dial connects to the site, from a trusted proxy.
func (p pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.conns <- proxied{far}
	return near
}

type proxied struct{ net.Conn }

func (proxied) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711} }

// onNetwork runs a test on a site.
func onNetwork(t *testing.T, o Options, test func(*testing.T, *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, inProcess(t), o)
		s := &site{world: w, pipes: newPipes()}
		server := w.server.HTTP()
		served := make(chan error, 1)
		go func() { served <- server.Serve(s.pipes) }()
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return s.pipes.dial(), nil }}
		s.client = &http.Client{Transport: transport}
		t.Cleanup(func() {
			_ = w.server.Shutdown(context.Background())
			transport.CloseIdleConnections()
			_ = server.Close()
			<-served
		})
		test(t, s)
	})
}

// eventStream reads one event after the other.
type eventStream struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Scanner
}

func (s *site) stream(path string, b *browser) *eventStream {
	s.Helper()
	r, err := http.NewRequest("GET", "http://queue.example"+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	for name, value := range b.jar {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("X-Forwarded-For", b.addr)
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { resp.Body.Close() })
	return &eventStream{s.T, resp, bufio.NewScanner(resp.Body)}
}

// next is the next event; ok is false at the end of the stream.
func (e *eventStream) next() (event string, data map[string]any, ok bool) {
	e.t.Helper()
	for e.lines.Scan() {
		line := e.lines.Text()
		if v, found := strings.CutPrefix(line, "event: "); found {
			event = v
		}
		if v, found := strings.CutPrefix(line, "data: "); found {
			if err := json.Unmarshal([]byte(v), &data); err != nil {
				e.t.Fatalf("a frame is no JSON: %q", v)
			}
		}
		if line == "" && event != "" {
			return event, data, true
		}
	}
	return "", nil, false
}

// Proves: events
func TestStreamTellsOfEachChange(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused"`)
		first, second := s.browser("198.51.100.1"), s.browser("198.51.100.2")
		first.join("rm1")
		second.join("rm1")
		for _, path := range []string{"/api/v1/events", "/api/events", "/events"} {
			st := s.stream(path+"?roomId=rm1", second)
			if st.resp.StatusCode != 200 || st.resp.Header.Get("Content-Type") != "text/event-stream" || st.resp.Header.Get("X-Accel-Buffering") != "no" {
				t.Fatalf("%s answers %s %v", path, st.resp.Status, st.resp.Header)
			}
			if event, frame, ok := st.next(); !ok || event != "status" || frame["position"] != 2.0 || frame["state"] != "paused" {
				t.Errorf("%s begins with %s %v", path, event, frame)
			}
			st.resp.Body.Close()
		}
		st := s.stream("/api/v1/events?roomId=rm1", second)
		st.next()
		first.post("/api/v1/leave", `{"roomId":"rm1"}`).want(t, 200, "")
		if _, frame, ok := st.next(); !ok || frame["position"] != 1.0 {
			t.Errorf("after the first has left: %v", frame)
		}
		s.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":1}`).want(t, 200, "")
		_, frame, ok := st.next()
		if url, _ := frame["redirectUrl"].(string); !ok || frame["passed"] != true || !strings.Contains(url, "qm_code=") {
			t.Errorf("after the flush: %v", frame)
		}
		s.operator().do("DELETE", "/api/v1/admin/rooms/rm1", "").want(t, 200, "")
		if _, frame, ok := st.next(); !ok || frame["expired"] != true || frame["reason"] != "room_reset" {
			t.Errorf("after the room was deleted: %v", frame)
		}
		if event, _, ok := st.next(); ok {
			t.Errorf("the stream of a place that is none goes on with %s", event)
		}
	})
}

// Proves: sse.limits
func TestStreamsAreLimitedAndEndWithTheServer(t *testing.T) {
	onNetwork(t, Options{SSEMaxTotal: 3, SSEPerIP: 2}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused"`)
		a, b, c := s.browser("198.51.100.1"), s.browser("198.51.100.2"), s.browser("198.51.100.3")
		for _, v := range []*browser{a, b, c} {
			v.join("rm1")
		}
		one, two := s.stream("/events?roomId=rm1", a), s.stream("/events?roomId=rm1", a)
		one.next()
		two.next()
		refused := func(v *browser, code string) {
			t.Helper()
			got := v.get("/api/v1/events?roomId=rm1")
			if got.json["code"] != code || got.header.Get("Retry-After") != "5" {
				t.Errorf("answered %d %s, Retry-After %q, not %s", got.status, got.body, got.header.Get("Retry-After"), code)
			}
		}
		refused(a, "sse_per_ip_limit")
		s.stream("/events?roomId=rm1", b).next()
		refused(c, "sse_capacity")
		one.resp.Body.Close()
		synctest.Wait() // until the server has noticed
		three := s.stream("/events?roomId=rm1", c)
		three.next()
		ended := make(chan bool)
		go func() { _, _, ok := three.next(); ended <- ok }()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := s.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if <-ended {
			t.Error("a stream goes on after the shutdown")
		}
		if got := c.get("/healthz"); got.status != 503 {
			t.Errorf("a stopping server calls itself ready: %s", got.body)
		}
	})
}

// Bodies and headers that never end, and readers that never read, cost a bounded time (issue 2, Bad input).
func TestWhatNeverEndsIsCut(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused"`)
		for name, bytes := range map[string]string{
			"headers that never end": "GET /api/v1/status HTTP/1.1\r\nHost: x\r\nX-A: ",
			"a body that never ends": "POST /api/v1/join HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"roomId\":",
			"chunks that never end":  "POST /api/v1/join HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"roo",
		} {
			conn := s.pipes.dial()
			if _, err := io.WriteString(conn, bytes); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(conn)
			if err != nil {
				t.Errorf("%s: the connection is still open: %v", name, err)
			}
			if strings.Contains(string(answer), " 500 ") || strings.Contains(name, "body") && !strings.Contains(string(answer), "body_timeout") {
				t.Errorf("%s: answered %s", name, answer)
			}
			_ = conn.Close()
		}
		if n := s.waiting("rm1"); n != 0 {
			t.Errorf("%d waiting", n)
		}
	})
}

func TestLargeHeadersAndBodiesAreRefused(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused"`)
		send := func(method, path string, body io.Reader, header string) (int, string) {
			t.Helper()
			r, err := http.NewRequest(method, "http://queue.example"+path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Large", header)
			r.Header.Set("Authorization", "Bearer "+testAdminKey)
			resp, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(text)
		}
		large := `{"roomId":"rm1","x":"` + strings.Repeat("x", visitorBody) + `"}`
		if status, body := send("POST", "/api/v1/join", strings.NewReader(large), ""); status != 413 || !strings.Contains(body, "body_too_large") {
			t.Errorf("a large body: %d %s", status, body)
		}
		if status, body := send("POST", "/api/v1/join", io.MultiReader(strings.NewReader(large)), ""); status != 413 || !strings.Contains(body, "body_too_large") {
			t.Errorf("a large body of unknown length: %d %s", status, body)
		}
		if status, body := send("POST", "/api/v1/admin/rooms", strings.NewReader(`{"id":"`+strings.Repeat("x", adminBody)+`"}`), ""); status != 413 {
			t.Errorf("a large operator's body: %d %s", status, body)
		}
		if status, _ := send("GET", "/healthz", nil, strings.Repeat("x", 40<<10)); status != 431 {
			t.Errorf("40 KiB of headers: %d", status)
		}
		if status, _ := send("GET", "/healthz", nil, strings.Repeat("x", 20<<10)); status != 200 {
			t.Errorf("20 KiB of headers: %d", status)
		}
		if n := s.waiting("rm1"); n != 0 {
			t.Errorf("%d waiting", n)
		}
	})
}

// A reader that takes nothing is cut, and its stream is given back.
func TestSlowReadersAreCut(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused"`)
		a := s.browser("198.51.100.1")
		a.join("rm1")
		conn := s.pipes.dial()
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /events?roomId=rm1 HTTP/1.1\r\nHost: x\r\nCookie: qm_rm1="+a.jar["qm_rm1"]+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := s.server.streams.count(); n != 1 {
			t.Fatalf("%d streams are open", n)
		}
		time.Sleep(2 * writePatient)
		synctest.Wait()
		if n := s.server.streams.count(); n != 0 {
			t.Errorf("%d streams are open to a reader that takes nothing", n)
		}
	})
}

// An idle stream says something at least every five seconds (seed 004, GET /api/events).
//
// Proves: events
func TestStreamsBeat(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused","presenceSec":30`)
		a := s.browser("198.51.100.1")
		a.join("rm1")
		st := s.stream("/events?roomId=rm1", a)
		last := time.Now()
		for range 40 {
			if _, _, ok := st.next(); !ok {
				t.Fatal("the stream has ended")
			}
			if pause := time.Since(last); pause > 5*time.Second {
				t.Errorf("nothing came for %v", pause)
			}
			last = time.Now()
		}
		if pause := time.Since(last); pause > time.Second {
			t.Error(pause)
		}
	})
}

// Proves: admin.events
func TestConsoleStreamSendsFullFramesThenDeltas(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused"`)
		s.room("rm2", 60, `,"state":"paused"`)
		op := s.operator()
		ticket := op.post("/api/v1/admin/sse-ticket", "").want(t, 200, "").json["ticket"].(string)
		nobody := s.browser("198.51.100.9")
		st := s.stream("/api/admin/events?ticket="+ticket, nobody)
		ids := func(frame map[string]any) string {
			var list []string
			for _, r := range frame["rooms"].([]any) {
				list = append(list, r.(map[string]any)["id"].(string))
			}
			return fmt.Sprint(list)
		}
		for range 2 {
			if _, frame, ok := st.next(); !ok || frame["delta"] != nil || ids(frame) != "[rm1 rm2]" || frame["totals"] == nil {
				t.Fatalf("not a full frame: %v", frame)
			}
		}
		s.browser("198.51.100.1").join("rm1")
		if _, frame, ok := st.next(); !ok || frame["delta"] != true || ids(frame) != "[rm1]" || frame["totals"].(map[string]any)["waiting"] != 1.0 {
			t.Errorf("after a join: %v", frame)
		}
		op.do("DELETE", "/api/admin/rooms/rm2", "").want(t, 200, "")
		for {
			_, frame, ok := st.next()
			if !ok {
				t.Fatal("the stream has ended")
			}
			if removed := frame["removed"].([]any); len(removed) > 0 {
				if removed[0] != "rm2" || frame["delta"] != true {
					t.Errorf("after the delete: %v", frame)
				}
				break
			}
		}
		nobody.get("/api/admin/events?ticket="+ticket).want(t, 401, "invalid_sse_ticket")
		nobody.get("/api/admin/events").want(t, 401, "unauthorized")
		nobody.get("/api/admin/events?key="+testAdminKey).want(t, 401, "credential_in_query")
	})
}

// HTTP/1.0 need not say whom it asks; the address of the line then is the one that was asked.
func TestTheLineHasAnAddressWithoutAHostHeader(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused"`)
		conn := s.pipes.dial()
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /api/v1/check?roomId=rm1 HTTP/1.0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var body struct{ Action, WaitingRoomURL string }
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || body.Action != "queue" || body.WaitingRoomURL != "http://pipe/w/rm1" {
			t.Errorf("%v %+v", err, body)
		}
	})
}
