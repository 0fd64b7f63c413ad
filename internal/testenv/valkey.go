package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"
)

// ValkeyVariable is the environment variable that names a running server for [Valkey]: a redis:// or
// valkey:// URL.
const ValkeyVariable = "QM_TEST_VALKEY_URL"

const valkeyHint = "run scripts/deps.sh as root, or set " + ValkeyVariable

// VK is a place in a Valkey server where one test may do as it likes.
type VK struct {
	// URL is for VALKEY_URL and for valkey.ParseURL.
	URL string
	// Addr is the server's host:port.
	Addr string
	// Prefix begins every key and channel of the test, and ends in a colon. Keys that have it are
	// deleted after the test. It holds no character that a key pattern or a hash tag would read.
	Prefix string

	t testing.TB
}

// Valkey gives the test a key prefix in the shared server. A test whose code under test takes no
// prefix needs [OwnValkey], which costs some tens of milliseconds.
func Valkey(t testing.TB) *VK {
	t.Helper()
	location := os.Getenv(ValkeyVariable)
	if location == "" {
		var err error
		if location, err = sharedValkey(); err != nil {
			t.Fatalf("testenv: %v", err)
		}
	}
	vk := newVK(t, location)
	t.Cleanup(vk.forget)
	return vk
}

func newVK(t testing.TB, location string) *VK {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil || u.Host == "" {
		t.Fatalf("testenv: %s must be a URL such as redis://127.0.0.1:6379", ValkeyVariable)
	}
	vk := &VK{URL: location, Addr: u.Host, Prefix: unique(t) + ":", t: t}
	if u.Port() == "" {
		vk.Addr += ":6379"
	}
	return vk
}

// Via returns the URL with another host:port in it, such as a proxy's.
func (vk *VK) Via(addr string) string {
	u, _ := url.Parse(vk.URL) // newVK has parsed it once.
	u.Host = addr
	return u.String()
}

// Client opens a client without client-side caching that is closed after the test.
func (vk *VK) Client(t testing.TB) valkey.Client {
	t.Helper()
	client, err := vk.client()
	if err != nil {
		t.Fatalf("testenv: connect to Valkey: %v (%s)", err, valkeyHint)
	}
	t.Cleanup(client.Close)
	return client
}

func (vk *VK) client() (valkey.Client, error) {
	options, err := valkey.ParseURL(vk.URL)
	if err != nil {
		return nil, err
	}
	options.DisableCache, options.ForceSingleClient = true, true
	return valkey.NewClient(options)
}

// forget deletes the test's keys.
func (vk *VK) forget() {
	client, err := vk.client()
	if err != nil {
		vk.t.Errorf("testenv: connect to Valkey: %v", err)
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		page, err := client.Do(ctx, client.B().Scan().Cursor(cursor).Match(vk.Prefix+"*").Count(1000).Build()).AsScanEntry()
		if err == nil && len(page.Elements) > 0 {
			err = client.Do(ctx, client.B().Unlink().Key(page.Elements...).Build()).Error()
		}
		if err != nil {
			vk.t.Errorf("testenv: delete the keys of %s: %v", vk.Prefix, err)
			return
		}
		cursor = page.Cursor
	}
}

// VKServer is a Valkey server that belongs to one test. It keeps nothing on disk: a Start finds it
// empty, as a projection that was lost.
type VKServer struct {
	VK
	instance *instance
}

// OwnValkey starts a server for this test alone, with maxmemory-policy noeviction. Its address stays
// the same over Stop, Kill and Start.
func OwnValkey(t testing.TB) *VKServer {
	t.Helper()
	i, err := newInstance()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		if err := i.remove(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	s := &VKServer{VK: *newVK(t, i.url()), instance: i}
	s.Start()
	return s
}

// Start starts the server, empty, after [VKServer.Stop] or [VKServer.Kill].
func (s *VKServer) Start() {
	s.t.Helper()
	s.must("start Valkey", s.instance.start())
}

// Stop ends the server in order.
func (s *VKServer) Stop() {
	s.t.Helper()
	s.must("stop Valkey", s.instance.stop(syscall.SIGTERM))
}

// Kill ends the server with SIGKILL.
func (s *VKServer) Kill() {
	s.t.Helper()
	s.must("kill Valkey", s.instance.kill())
}

// Pause stops the server with SIGSTOP: connections stay open and nothing answers. It returns when
// the server stands still. Linux only.
func (s *VKServer) Pause() {
	s.t.Helper()
	s.must("pause Valkey", s.instance.pause())
}

// Resume undoes [VKServer.Pause].
func (s *VKServer) Resume() {
	s.t.Helper()
	s.must("resume Valkey", s.instance.resume())
}

// FlushAll deletes every key: the server's data is lost while its connections stay open.
func (s *VKServer) FlushAll() {
	s.t.Helper()
	reply, err := call(s.Addr, "FLUSHALL")
	if err == nil && reply != "+OK" {
		err = errors.New(reply)
	}
	s.must("flush Valkey", err)
}

func (s *VKServer) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("testenv: %s: %v", what, err)
	}
}

// sharedValkey starts the server of this test binary; its guard ends it after the binary.
var sharedValkey = sync.OnceValues(func() (string, error) {
	i, err := newInstance()
	if err != nil {
		return "", err
	}
	if err := i.start(); err != nil {
		return "", errors.Join(err, i.remove())
	}
	shared.instance = i
	return i.url(), nil
})

// instance is a Valkey program, its address, and the server that runs there, if one does.
type instance struct {
	program string
	dir     string
	port    int
	as      *syscall.Credential
	server
}

func newInstance() (*instance, error) {
	program, err := exec.LookPath("valkey-server")
	if err != nil {
		return nil, errors.New("no valkey-server found: " + valkeyHint)
	}
	as, err := servant()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := dataDir("qm-valkey-", as)
	if err != nil {
		return nil, err
	}
	return &instance{program: program, dir: dir, port: port, as: as}, nil
}

func (i *instance) url() string { return "redis://" + loopback(i.port) }

func (i *instance) start() error {
	return i.server.start(i.dir, i.as, i.answers, i.program, "--bind", "127.0.0.1", "--port", strconv.Itoa(i.port),
		"--dir", i.dir, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")
}

func (i *instance) answers() bool {
	reply, err := call(loopback(i.port), "PING")
	return err == nil && reply == "+PONG"
}

func (i *instance) remove() error {
	return errors.Join(i.server.remove(), os.RemoveAll(i.dir))
}

// call sends one inline command and returns the first line of the answer.
func call(addr, command string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(stopLimit))
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}
