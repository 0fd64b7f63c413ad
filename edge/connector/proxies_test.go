package connector_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"qm/edge/connector"
	"qm/internal/testenv"
)

// judge is the queue that a proxy asks in the vectors: [connector.Judge] with the options that come with the request.
func judge(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail := func(err error) { http.Error(w, err.Error(), http.StatusTeapot) }
		var o struct {
			RoomID, Server, PublicKey, Fail string
			TimeoutMs                       int
		}
		if err := json.Unmarshal([]byte(r.Header.Get("X-Test-Options")), &o); err != nil {
			fail(err)
			return
		}
		q := r.URL.Query()
		if r.URL.Path != "/api/v1/check/forward" || r.Method != http.MethodGet || q.Get("roomId") != o.RoomID || r.Header.Get("Authorization") != "Bearer the-key-of-the-proxy" {
			fail(fmt.Errorf("asked %s %s with %q", r.Method, r.URL, r.Header.Get("Authorization")))
			return
		}
		if b, err := io.ReadAll(r.Body); err != nil || len(b) > 0 {
			fail(errors.Join(fmt.Errorf("the visitor's body came along: %q", b), err))
			return
		}
		visited, origin, err := connector.Forwarded(r)
		if err != nil {
			fail(err)
			return
		}
		middleware, err := connector.New(connector.Config{
			Room: o.RoomID, Server: o.Server, PublicKey: o.PublicKey, FailOpen: o.Fail == "open", Timeout: time.Duration(o.TimeoutMs) * time.Millisecond,
			Visitor:   func(*http.Request) (string, string) { return origin, q.Get("ip") },
			Transport: &http.Transport{DisableKeepAlives: true},
		})
		if err != nil {
			fail(err)
			return
		}
		connector.Judge(w, visited, middleware, q.Get("headers") == "1")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// origin is a site that says what reached it.
func origin(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "site", Value: "1"})
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"reached": true, "method": r.Method, "target": r.RequestURI, "body": string(body), "authorization": r.Header.Get("Authorization")})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func dress(h http.Header, r vectorRequest, options map[string]any) {
	o, err := json.Marshal(options)
	if err != nil {
		panic(err)
	}
	scheme, _, _ := strings.Cut(r.URL, ":")
	h.Set("X-Test-Options", string(o))
	h.Set("X-Test-Remote", r.Remote)
	h.Set("X-Test-Proto", scheme)
}

func host(address string) string { return strings.TrimPrefix(address, "http://") }

// freeAddress is an address of the loopback where nobody listens yet.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// settings are what an integrator writes into nginx's server block.
type settings struct {
	queue, room, key, fail, scheme, more string
}

// nginx runs nginx with the connector as the registry hands it out, in front of a site, and returns its address.
func nginx(t *testing.T, s settings, app string) string {
	t.Helper()
	return nginxWith(t, s, app, func(queued string) string { return queued })
}

// nginxWith is nginx with a queued.conf that its owner has edited.
func nginxWith(t *testing.T, s settings, app string, edit func(string) string) string {
	t.Helper()
	files := install(t, "nginx")
	queued, err := os.ReadFile(filepath.Join(files, "queued.conf"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(files, "queued.conf"), edit(string(queued)))
	dir := t.TempDir()
	address := freeAddress(t)
	config := fmt.Sprintf(`
daemon off;
master_process off; # one process, which ends as one
pid %[1]s/pid;
error_log stderr notice;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	include %[2]s/http.conf;
	upstream qm { server %[3]s; keepalive 8; }
	upstream app { server %[4]s; }
	server {
		listen %[5]s;
		large_client_header_buffers 8 32k;
		set $qm_upstream http://qm;
		set $qm_host queue.example;
		set $qm_room %[6]s;
		set $qm_key %[7]s;
		set $qm_fail %[8]s;
		set $qm_scheme %[9]s;
		set $qm_files %[2]s;
		include %[2]s/server.conf;
		location = /ready { return 204; }
		location / {
			include %[2]s/queued.conf;
			proxy_pass http://app;
		}
		%[10]s
	}
}
`, dir, files, host(s.queue), host(app), address, s.room, s.key, s.fail, s.scheme, s.more)
	write(t, dir+"/nginx.conf", config)
	run(t, address, testenv.Nginx(t), "-p", dir, "-c", dir+"/nginx.conf", "-e", "stderr")
	return "http://" + address
}

// caddy does the same with Caddy. edit changes the connector's file, for what no visitor of a test can be.
func caddy(t *testing.T, s settings, app string, edit func(string) string) string {
	t.Helper()
	files := install(t, "caddy")
	shared, err := os.ReadFile(filepath.Join(files, "qm.caddy"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(files, "qm.caddy"), edit(string(shared)))
	address := freeAddress(t)
	config := fmt.Sprintf(`{
	admin off
	auto_https off
	servers {
		max_header_size 128KB
	}
}
import %[1]s/qm.caddy
http://:%[2]s {
	bind 127.0.0.1
	handle /ready {
		respond 204
	}
	handle {
		import qm_queued %[3]s %[4]s %[5]s %[6]s
		reverse_proxy %[7]s
	}
	%[8]s
}
`, files, address[strings.LastIndexByte(address, ':')+1:], s.queue, s.room, s.key, s.fail, app, s.more)
	if s.more == "" {
		config = strings.Replace(config, "\t\n}", "\timport qm_unanswered "+files+"\n}", 1)
	}
	path := filepath.Join(t.TempDir(), "Caddyfile")
	write(t, path, config)
	run(t, address, testenv.Caddy(t), "run", "--config", path, "--adapter", "caddyfile")
	return "http://" + address
}

// run starts a proxy until the test ends, and waits until it answers.
func run(t *testing.T, address, program string, args ...string) {
	t.Helper()
	said := launch(t, nil, program, args...)
	for {
		select {
		case <-said.ended:
			t.Fatalf("%s has ended:\n%s", program, said)
		case <-t.Context().Done():
			t.Fatalf("%s is not ready", program)
		case <-time.After(5 * time.Millisecond):
		}
		res, err := http.Get("http://" + address + "/ready")
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusNoContent {
			return
		}
	}
}

// Proves: connectors
func TestNginx(t *testing.T) {
	address := nginx(t, settings{
		queue: judge(t), room: "rm1", key: "the-key-of-the-proxy", fail: "closed", scheme: "$http_x_test_proto",
		more: "set_real_ip_from 127.0.0.1; real_ip_header X-Test-Remote;",
	}, origin(t))
	site{address: address, dress: dress, not: map[string]string{
		"a visitor without an address is not vouched for": "nginx has an address of everybody who comes by TCP",
	}}.conform(t)
}

// Proves: connectors
func TestCaddy(t *testing.T) {
	address := caddy(t, settings{queue: judge(t), room: "rm1", key: "the-key-of-the-proxy", fail: "closed"}, origin(t), func(file string) string {
		for _, own := range []string{"{remote_host}", "{scheme}"} {
			if !strings.Contains(file, own) {
				t.Fatalf("qm.caddy does not ask with %s", own)
			}
		}
		return strings.NewReplacer("{remote_host}", "{header.X-Test-Remote}", "{scheme}", "{header.X-Test-Proto}").Replace(file)
	})
	site{address: address, dress: dress}.conform(t)
}
