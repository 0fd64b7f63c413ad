package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"qm/internal/testenv"
)

// The tests of this package run the real binaries, as an operator would, on real stores.

var built struct {
	once sync.Once
	dir  string
	err  error
}

// TestMain lets more tests run at once than there are processors, since most of them wait for the lease of a server that is dead, and
// removes the binaries that they have built.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// binary builds qm and qm-replay once and gives the path of one.
func binary(t testing.TB, name string) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "qm-test-"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", built.dir+string(filepath.Separator), "qm/cmd/qm", "qm/cmd/qm-replay", "qm/cmd/qm-load").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("build: %v", built.err)
	}
	return filepath.Join(built.dir, name)
}

// stores are where one test keeps its rooms.
type stores struct {
	postgres string
	valkey   string
}

func (s stores) env() map[string]string {
	if s.postgres == "" {
		return map[string]string{}
	}
	return map[string]string{
		"STORE": "valkey", "SIDESTORE": "pg", "DATABASE_URL": s.postgres, "VALKEY_URL": s.valkey,
		"SECRET": "a secret that outlives the process",
	}
}

func durableStores(t *testing.T) (stores, *testenv.VKServer) {
	t.Helper()
	vk := testenv.OwnValkey(t)
	return stores{testenv.Postgres(t).DSN, "redis://" + vk.Addr}, vk
}

// process is a running qm.
type process struct {
	t      testing.TB
	url    string
	cmd    *exec.Cmd
	output *lockedBuffer
	exited chan struct{}
	err    error // of the exit
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// freePort gives a port of the loopback below the range of outgoing connections, so that none takes it while a process that had it
// is away.
func freePort(t testing.TB) string {
	t.Helper()
	for range 200 {
		port := strconv.Itoa(12000 + rand.IntN(20000))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no free port between 12000 and 32000")
	return ""
}

// startQM runs qm and waits until it answers. Every client address is believed, so that each visitor can have one of its own.
func startQM(t testing.TB, s stores, extra map[string]string) *process {
	t.Helper()
	env := s.env()
	port := extra["PORT"] // of a process that this one takes the place of
	if port == "" {
		port = freePort(t)
	}
	maps.Copy(env, map[string]string{
		"HOST": "127.0.0.1", "PORT": port, "ADMIN_KEY": adminKey, "JOIN_LIMIT_PER_MIN": "0", "STATUS_LIMIT_PER_MIN": "0",
		"CHECK_LIMIT_PER_MIN": "0", "TRUSTED_PROXIES": "127.0.0.1/32",
	})
	maps.Copy(env, extra)
	p := &process{t: t, url: "http://127.0.0.1:" + port, output: new(lockedBuffer), exited: make(chan struct{})}
	p.cmd = exec.Command(binary(t, "qm"))
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
		if t.Failed() {
			t.Logf("qm at %s said:\n%s", p.url, p.output)
		}
	})
	eventually(t, "qm answers", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("qm ended: %v", p.err)
		default:
		}
		code, _ := tryGet(p.url + "/api/v1/version")
		return code == http.StatusOK
	})
	return p
}

const adminKey = "a key for tests"

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process as a power cut would.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// stop ends it in order, and requires that it says so.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	<-p.exited
	if p.err != nil {
		p.t.Fatalf("qm did not stop in order: %v", p.err)
	}
}

// eventually awaits a condition that nothing announces.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("it never came true that %s", what)
		case <-again.C:
		}
	}
}

// answer is what an HTTP request came to.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func (a answer) code() string { s, _ := a.body["code"].(string); return s }

var client = &http.Client{
	Timeout:       20 * time.Second,
	Transport:     &http.Transport{MaxIdleConnsPerHost: 256},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func tryGet(url string) (int, error) {
	r, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode, nil
}

// visitor is a browser with a cookie jar and an address of its own.
type visitor struct {
	address string
	cookies map[string]string
}

func newVisitor(i int) *visitor {
	return &visitor{address: fmt.Sprintf("2001:db8:%x:%x::1", i>>16, i&0xffff), cookies: map[string]string{}}
}

// send makes a request and keeps the cookies it sets. An error is one of the network.
func (v *visitor) send(method, url, body string) (answer, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("X-Forwarded-For", v.address)
	for name, value := range v.cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	return v.read(client.Do(req))
}

func (v *visitor) read(r *http.Response, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: r.StatusCode, header: r.Header}
	_ = json.Unmarshal(text, &a.body) // a page has none
	for _, c := range r.Cookies() {
		v.cookies[c.Name] = c.Value
	}
	return a, nil
}

func (v *visitor) join(p *process, room string) (answer, error) {
	return v.send("POST", p.url+"/api/v1/join", fmt.Sprintf(`{"roomId":%q}`, room))
}

func (v *visitor) status(p *process, room string) (answer, error) {
	return v.send("GET", p.url+"/api/v1/status?token="+v.cookies["qm_"+room], "")
}

// ticket reads the number in the visitor's token.
func (v *visitor) ticket(room string) int {
	payload, _, _ := strings.Cut(v.cookies["qm_"+room], ".")
	text, _ := base64.RawURLEncoding.DecodeString(payload)
	var fields struct{ N int }
	_ = json.Unmarshal(text, &fields)
	return fields.N
}

// admin makes a request with the admin key and requires status.
func (p *process) admin(t testing.TB, method, path, body string, status int) answer {
	t.Helper()
	req, err := http.NewRequest(method, p.url+"/api/v1/admin/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	a, err := new(visitor).readAdmin(client.Do(req))
	if err != nil {
		t.Fatal(err)
	}
	if a.status != status {
		t.Fatalf("%s %s: %d %v, not %d", method, path, a.status, a.body, status)
	}
	return a
}

func (v *visitor) readAdmin(r *http.Response, err error) (answer, error) {
	v.cookies = map[string]string{}
	return v.read(r, err)
}

// createRoom makes a room, waiting for the process to own it.
func (p *process) createRoom(t testing.TB, fields string) {
	t.Helper()
	p.admin(t, "POST", "rooms", `{"name":"Test","targetUrl":"https://shop.example/",`+fields+`}`, http.StatusOK)
}

// replay runs qm-replay on the stores.
func replay(t testing.TB, s stores, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t, "qm-replay"), args...)
	cmd.Env = []string{"DATABASE_URL=" + s.postgres, "VALKEY_URL=" + s.valkey}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// proved requires that the journal verifies, and that the projection comes to say what the journal says.
func proved(t testing.TB, s stores) {
	t.Helper()
	if code, out := replay(t, s, "verify"); code != 0 {
		t.Errorf("qm-replay verify: exit %d\n%s", code, out)
	}
	var out string
	deadline := time.Now().Add(20 * time.Second)
	for {
		var code int
		if code, out = replay(t, s, "diff"); code == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("qm-replay diff: exit %d\n%s", code, out)
			return
		}
	}
}
