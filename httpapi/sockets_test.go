package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"qm/internal/testenv"
)

// port is a world behind a real socket, for what only those show.
type port struct {
	*world
	addr string
}

func onSockets(t *testing.T, o Options) *port {
	t.Helper()
	w := newWorld(t, inProcess(t), o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := w.server.HTTP()
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = w.server.Shutdown(context.Background())
		_ = server.Close()
		<-served
	})
	return &port{w, l.Addr().String()}
}

// listener is a page on a connection of its own.
type listener struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	resp *http.Response
	es   *eventStream
}

func dial(t *testing.T, addr string) *listener {
	t.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	conn, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &listener{t: t, conn: conn, in: bufio.NewReader(conn)}
}

func (l *listener) write(text string) {
	l.t.Helper()
	if _, err := io.WriteString(l.conn, text); err != nil {
		l.t.Fatal(err)
	}
}

// answer reads the head of what comes.
func (l *listener) answer() *http.Response {
	l.t.Helper()
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.resp, l.es = resp, &eventStream{l.t, resp, bufio.NewScanner(resp.Body)}
	return resp
}

// listen opens a stream of b's place in rm1, in the given version of HTTP, with more behind the request.
func (p *port) listen(t *testing.T, addr, path, version string, b *browser, more string) *listener {
	t.Helper()
	l := dial(t, addr)
	l.write(fmt.Sprintf("GET %s?roomId=rm1 HTTP/%s\r\nHost: queue.example\r\nCookie: qm_rm1=%s; qms_rm1=%s\r\nX-Forwarded-For: %s\r\n\r\n%s",
		path, version, b.jar["qm_rm1"], b.jar["qms_rm1"], b.addr, more))
	if resp := l.answer(); resp.StatusCode != 200 {
		t.Fatalf("%s answers %s", path, resp.Status)
	}
	return l
}

// streamsBecome awaits a number of open streams.
func (p *port) streamsBecome(n int) {
	p.Helper()
	eventually(p.T, fmt.Sprintf("%d streams are open", n), func() bool { return p.server.streams.count() == n })
}

// eventually awaits what nothing announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	again, limit := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("it never came true that %s", what)
		}
	}
}

// throughNginx puts an nginx with its defaults in front of an address: nothing is said but where the requests go.
func throughNginx(t *testing.T, addr string) string {
	t.Helper()
	dir := t.TempDir()
	// nginx takes no port 0, and a port that was just free may be taken by then; a socket in a directory of one's own is neither.
	socket := filepath.Join(dir, "nginx.sock")
	config := fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr; worker_processes 1; %[3]s
events {}
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server { listen unix:%[2]s; location / { proxy_pass http://%[4]s; } }
}`, dir, socket, map[bool]string{true: "user root;", false: ""}[os.Geteuid() == 0], addr)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.Command(testenv.Nginx(t), "-p", dir, "-c", filepath.Join(dir, "conf"), "-e", "stderr")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	})
	eventually(t, "nginx listens", func() bool {
		select {
		case <-ended:
			t.Fatalf("nginx ended: %s", said.String())
		default:
		}
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return socket
}

// Case 17: a stream reaches the page frame by frame on all its addresses, direct by either version of HTTP and through an nginx with its
// defaults, which would hold back what it may.
//
// Proves: events
func TestStreamsReachThePageThroughAProxy(t *testing.T) {
	t.Parallel()
	p := onSockets(t, Options{})
	p.room("rm1", 60, `,"state":"paused"`)
	a := p.browser("198.51.100.1")
	a.join("rm1")
	nginx := throughNginx(t, p.addr)
	pages := map[string]*listener{}
	for _, path := range []string{"/api/v1/events", "/api/events", "/events"} {
		for _, way := range []string{"1.1", "1.0", "nginx"} {
			addr, version := p.addr, way
			if way == "nginx" {
				addr, version = "unix:"+nginx, "1.1"
			}
			l := p.listen(t, addr, path, version, a, "")
			h := l.resp.Header
			if h.Get("Content-Type") != "text/event-stream" || !strings.Contains(h.Get("Cache-Control"), "no-store") {
				t.Errorf("%s %s: answered %v", way, path, h)
			}
			if way != "nginx" && (h.Get("X-Accel-Buffering") != "no" || !l.resp.Close || l.resp.TransferEncoding != nil || l.resp.ContentLength != -1) {
				t.Errorf("%s %s: %v, to end with the connection: %v, encoded %v", way, path, h, l.resp.Close, l.resp.TransferEncoding)
			}
			pages[way+" "+path] = l
		}
	}
	for i := range 4 { // the first, and three beats
		for name, l := range pages {
			if event, frame, ok := l.es.next(); !ok || event != "status" || frame["position"] != 1.0 {
				t.Fatalf("%s: frame %d is %s %v", name, i, event, frame)
			}
		}
	}
}

// What a client does beside reading changes nothing for the others, and a stream that nobody reads any more is given back.
func TestStreamsOutliveBadManners(t *testing.T) {
	t.Parallel()
	p := onSockets(t, Options{})
	p.room("rm1", 60, `,"state":"paused"`)
	first, second := p.browser("198.51.100.1"), p.browser("198.51.100.2")
	first.join("rm1")
	second.join("rm1")
	good := p.listen(t, p.addr, "/events", "1.1", second, "")
	good.es.next()
	pipelined := p.listen(t, p.addr, "/events", "1.1", second, "GET /healthz HTTP/1.1\r\nHost: queue.example\r\n\r\n")
	garbage := p.listen(t, p.addr, "/events", "1.1", second, "")
	garbage.write(strings.Repeat("\x00\xffnonsense\r\n", 20_000))
	halfClosed := p.listen(t, p.addr, "/events", "1.1", second, "")
	_ = halfClosed.conn.(*net.TCPConn).CloseWrite() // as net/http has it, a client that says no more has gone
	closed := p.listen(t, p.addr, "/events", "1.1", second, "")
	_ = closed.conn.Close()
	reset := p.listen(t, p.addr, "/events", "1.1", second, "")
	_ = reset.conn.(*net.TCPConn).SetLinger(0)
	_ = reset.conn.Close()
	p.streamsBecome(3)
	if _, err := io.Copy(io.Discard, halfClosed.in); err != nil {
		t.Errorf("the half-closed stream did not end in order: %v", err)
	}
	// The next change reaches those who are left, and only events do.
	first.post("/api/v1/leave", `{"roomId":"rm1"}`).want(t, 200, "")
	for _, l := range []*listener{good, pipelined, garbage} {
		for {
			event, frame, ok := l.es.next()
			if !ok || event != "status" {
				t.Fatalf("%q %v", event, frame)
			}
			if frame["position"] == 1.0 {
				break
			}
		}
	}
	for _, l := range []*listener{good, pipelined, garbage} {
		_ = l.conn.Close()
	}
	p.streamsBecome(0)
}

// A page that reads nothing is cut once the system's buffers are full, however much is pushed to it, and delays nobody.
func TestPushesNeverWait(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	sock, err := newSocket(near, func() { ended++ })
	if err != nil {
		t.Fatal(err)
	}
	scratch := make([]byte, 16)
	if sock.gone(scratch) {
		t.Error("a page that says nothing is taken for gone")
	}
	block, taken := make([]byte, 64<<10), 0
	for {
		n, err := sock.push(block)
		if err != nil {
			t.Fatal(err)
		}
		if taken += n; n < len(block) {
			break
		}
	}
	if n, err := sock.push(block); err != nil || n > 0 && n == len(block) {
		t.Errorf("a full socket takes %d more: %v", n, err)
	}
	// What was taken arrives, and then there is room again.
	if _, err := io.CopyN(io.Discard, far, int64(taken)); err != nil {
		t.Error(err)
	}
	eventually(t, "there is room again", func() bool { n, err := sock.push([]byte("x")); return n == 1 && err == nil })
	_ = far.Close()
	eventually(t, "the page has gone", func() bool { return sock.gone(scratch) })
	sock.close()
	if ended != 1 {
		t.Errorf("counted off %d times", ended)
	}
}

// A server that stops ends its streams, tells each page a time of its own to come back at, and leaves none behind.
func TestStoppingSpreadsTheReturn(t *testing.T) {
	t.Parallel()
	p := onSockets(t, Options{SSEPerIP: 1000})
	p.room("rm1", 60, `,"state":"paused"`)
	a := p.browser("198.51.100.1")
	a.join("rm1")
	pages := make([]*listener, 300) // two writers' worth
	for i := range pages {
		pages[i] = p.listen(t, p.addr, "/events", "1.1", a, "")
	}
	if err := p.server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := map[string]int{}
	for _, l := range pages {
		text, err := io.ReadAll(l.in)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(strings.TrimSuffix(string(text), "\n\n"), "\n\n")
		if end := blocks[len(blocks)-1]; strings.HasPrefix(end, "retry: ") && len(blocks) > 1 {
			last[end]++
		} else {
			t.Fatalf("the stream ends with %q", end)
		}
	}
	if len(last) < len(pages)/2 {
		t.Errorf("%d pages come back at %d different times", len(pages), len(last))
	}
	if n := p.server.ceiling.open.Load(); n != 0 {
		eventually(t, "no connection is open", func() bool { return p.server.ceiling.open.Load() == 0 })
	}
	p.browser("198.51.100.9").get("/events?roomId=rm1&token="+a.jar["qm_rm1"]).want(t, 503, "shutting_down")
}

// Beyond the ceiling of connections a request is refused at once, health excepted (seed 004, Health).
func TestTheCeilingShedsAllButHealth(t *testing.T) {
	p := onSockets(t, Options{Files: 64})
	p.room("rm1", 60, `,"state":"paused"`)
	a := p.browser("198.51.100.1")
	a.join("rm1")
	ask := func(l *listener, path string) *http.Response {
		l.write("GET " + path + " HTTP/1.1\r\nHost: queue.example\r\nCookie: qm_rm1=" + a.jar["qm_rm1"] + "\r\n\r\n")
		resp := l.answer()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body = io.NopCloser(strings.NewReader(string(body)))
		return resp
	}
	most := int(p.server.ceiling.most)
	early := make([]*listener, most)
	for i := range early {
		early[i] = dial(t, p.addr)
	}
	eventually(t, "the server has them all", func() bool { return p.server.ceiling.open.Load() == int64(most) })
	for path, wants := range map[string]int{
		"/healthz": 200, "/api/health": 200, "/api/v1/health": 200, "/api/version": 200, "/api/v1/version": 200,
		"/api/v1/status?roomId=rm1": 503, "/w/rm1": 503, "/events?roomId=rm1": 503, "/api/v1/check?roomId=rm1": 503, "/nowhere": 503,
	} {
		late := dial(t, p.addr)
		resp := ask(late, path)
		if resp.StatusCode != wants {
			t.Errorf("beyond the ceiling %s answers %s", path, resp.Status)
		}
		if wants == 503 {
			text, _ := io.ReadAll(resp.Body)
			if resp.Header.Get("Retry-After") != "5" || !resp.Close || strings.HasPrefix(path, "/api") && !strings.Contains(string(text), `"code":"over_capacity"`) {
				t.Errorf("%s is refused with %v %s", path, resp.Header, text)
			}
		}
		_ = late.conn.Close()
		eventually(t, "it is closed", func() bool { return p.server.ceiling.open.Load() == int64(most) })
	}
	if resp := ask(early[0], "/api/v1/status?roomId=rm1"); resp.StatusCode != 200 {
		t.Errorf("who was there before is answered %s", resp.Status)
	}
	// With room again, all are served.
	_ = early[1].conn.Close()
	eventually(t, "there is room", func() bool { return p.server.ceiling.open.Load() < int64(most) })
	if resp := ask(dial(t, p.addr), "/api/v1/status?roomId=rm1"); resp.StatusCode != 200 {
		t.Errorf("with room again: %s", resp.Status)
	}
}

// The ceiling follows from the files that the process may open, and streams leave room below it.
func TestTheCeilingIsDerived(t *testing.T) {
	for _, c := range []struct{ files, streams, most, fit int }{
		{0, 50_000, 62_500, 50_000},
		{1 << 20, 50_000, 62_500, 50_000},
		{20_000, 50_000, 19_127, 17_932}, // 17,000 streams, and joins beside them
		{1024, 50_000, 744, 698},
		{1 << 20, 10, 4106, 10},
		{1, 1, 1, 1},
	} {
		l, fit := ceilingOf(c.files, c.streams)
		if int(l.most) != c.most || fit != c.fit {
			t.Errorf("%d files and %d streams: %d connections, %d streams", c.files, c.streams, l.most, fit)
		}
		if c.files > 1 && int(l.most+l.spare) >= c.files {
			t.Errorf("%d files do not leave any for the process", c.files)
		}
	}
}
