package connector_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"qm/access"
	"qm/access/org"
	"qm/access/token"
	"qm/engine"
	"qm/httpapi"
	"qm/internal/testenv"
	"qm/journal"
)

const (
	adminKey  = "the-admin-key-of-the-tests"
	publicKey = "the-public-key-of-the-tests"
	queueURL  = "http://queue.example" // as browsers know it
	shopURL   = "http://shop.example"
)

// startQueue runs the real server on the memory stores with a room rm1 before shopURL, and returns where it listens.
func startQueue(t *testing.T) string {
	t.Helper()
	m := journal.NewMemory()
	e := engine.New(engine.Options{Journal: m, Vault: m, Environment: "production"})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	keys, err := token.New("the secret of the tests", "", token.Options{})
	if err != nil {
		t.Fatal(err)
	}
	book := org.NewBook(org.Options{Journal: m, Notes: m, Vault: m})
	if err := book.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	s := httpapi.New(httpapi.Options{
		Engine: e, Keys: keys, PublicURL: queueURL, Book: book, Acts: m,
		Gate: access.NewGate(access.Credentials{AdminKey: adminKey, PublicAPIKey: publicKey, AuthFailPerMinute: 10, Tokens: keys, Book: book}),
	})
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("streams are left over: %v", err)
		}
		server.Close()
		stop()
		if err := <-done; err != nil {
			t.Errorf("the engine failed: %v", err)
		}
	})
	operator(t, server.URL, "/api/v1/admin/rooms",
		`{"id":"rm1","name":"Room","targetUrl":"`+shopURL+`/","ratePerMinute":60000,"urlPatterns":["/sale*"]}`)
	return server.URL
}

func operator(t *testing.T, server, path, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, server+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminKey)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if said, _ := io.ReadAll(got.Body); got.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %d %s", path, got.StatusCode, said)
	}
}

// visitor is a browser with cookies of its own. To it, queue and shop are two sites.
type visitor struct {
	*testing.T
	http.Client
	dress func(http.Header, string) // what the shop's surroundings add to a request for an address
}

func newVisitor(t *testing.T, queue string, s site, options map[string]any) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{"queue.example:80": strings.TrimPrefix(queue, "http://"), "shop.example:80": strings.TrimPrefix(s.address, "http://")}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at[address])
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{
		T: t,
		Client: http.Client{
			Jar: jar, Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		dress: func(h http.Header, url string) { s.dress(h, vectorRequest{URL: url, Remote: "203.0.113.7"}, options) },
	}
}

func (v *visitor) asks(method, address, body string) (*http.Response, string) {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), method, address, strings.NewReader(body))
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,*/*")
	if strings.HasPrefix(address, shopURL) {
		v.dress(r.Header, address)
	}
	got, err := v.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer got.Body.Close()
	said, err := io.ReadAll(got.Body)
	if err != nil {
		v.Fatal(err)
	}
	return got, string(said)
}

// wants asks the shop and checks what becomes of it: the decision, and either the place to go to or the shop itself.
func (v *visitor) wants(method, url, decision, location string) (to string) {
	v.Helper()
	got, said := v.asks(method, url, "")
	to = got.Header.Get("Location")
	if d := got.Header.Get("X-QM-Decision"); d != decision {
		v.Fatalf("%s %s is decided as %q, not %q: %d %s", method, url, d, decision, got.StatusCode, said)
	}
	if !strings.HasPrefix(to, location) || location == "" && (got.StatusCode != http.StatusOK || !strings.Contains(said, `"reached":true`)) {
		v.Fatalf("%s %s: %d to %q, not to %q: %s", method, url, got.StatusCode, to, location, said)
	}
	return to
}

// waits follows the event stream of the place until the turn has come, and returns where to go.
func (v *visitor) waits(back string) string {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), http.MethodGet, queueURL+"/api/v1/events?roomId=rm1&"+back, nil)
	if err != nil {
		v.Fatal(err)
	}
	got, err := v.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var frame struct {
			Passed      bool
			RedirectURL string
		}
		if err := json.Unmarshal([]byte(data), &frame); err != nil {
			v.Fatal(err)
		}
		if frame.Passed {
			return frame.RedirectURL
		}
	}
	v.Fatalf("the stream ended: %d %v", got.StatusCode, lines.Err())
	return ""
}

// walk takes a visitor from a page of the shop through the line and back to the very page, on the real server.
func (s site) walk(t *testing.T) {
	queue := startQueue(t)
	options := map[string]any{"roomId": "rm1", "server": queue, "publicKey": publicKey, "fail": "closed", "timeoutMs": 30_000}
	v := newVisitor(t, queue, s, options)
	const page = shopURL + "/sale?b=2&a=1&a=0&q=a+b%20c"

	v.wants("GET", shopURL+"/imprint", "pass; reason=out_of_scope", "")
	room := v.wants("GET", page, "queue; reason=no_token", queueURL+"/w/rm1?qm_return=")
	_, back, _ := strings.Cut(room, "?")

	if got, said := v.asks("POST", queueURL+"/api/v1/join", `{"roomId":"rm1"}`); got.StatusCode != http.StatusOK {
		t.Fatalf("join: %d %s", got.StatusCode, said)
	}
	door := v.waits(back)
	if !strings.HasPrefix(door, page+"&qm_code=") {
		t.Fatalf("the way back is %s", door)
	}
	if to := v.wants("GET", door, "pass; reason=passed", shopURL); to != page {
		t.Fatalf("the code leaves %s behind", to)
	}
	v.wants("GET", page, "pass; reason=session", "")
	v.wants("POST", shopURL+"/sale/basket", "pass; reason=session", "")

	thief := newVisitor(t, queue, s, options)
	thief.wants("GET", door, "queue; reason=no_token", queueURL+"/w/rm1")

	if got, said := v.asks("POST", queueURL+"/api/v1/leave", `{"roomId":"rm1"}`); !strings.Contains(said, `"left":true`) {
		t.Fatalf("leave: %d %s", got.StatusCode, said)
	}
	v.wants("GET", page, "queue; reason=left", queueURL+"/w/rm1")
	shop, err := url.Parse(shopURL)
	if err != nil {
		t.Fatal(err)
	}
	if cookies := v.Jar.Cookies(shop); len(cookies) != 1 || cookies[0].Name != "site" {
		t.Errorf("the shop's cookies are still %v", cookies)
	}
}

// TestVerifyCommand runs the install check of the connectors that have a command line, against the real server.
func TestVerifyCommand(t *testing.T) {
	queue := startQueue(t)
	for _, name := range []string{"node", "worker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := install(t, name)
			for _, c := range []struct {
				what, key string
				args      []string
				exit      int
				says      string
			}{
				{"all is well", publicKey, []string{"verify", "--base", queue + "/", "--room", "rm1", "--url", shopURL + "/sale"}, 0, "pass  The key is the Public API key of this server."},
				{"a wrong key", "wrong", []string{"verify", "--base", queue, "--room", "rm1"}, 1, "fail  The key is not"},
				{"no such room", "", []string{"verify", "--base", queue, "--room", "rm2"}, 1, "fail  There is no such room."},
				{"no room id", "", []string{"verify", "--base", queue, "--room", "!"}, 1, "(invalid_room_id)"},
				{"nobody listens", "", []string{"verify", "--base", deaf(t), "--room", "rm1"}, 1, "could not be asked"},
				{"no address", "", []string{"verify", "--base", "queue", "--room", "rm1"}, 1, "is no address"},
				{"no command", "", nil, 2, "usage"},
				{"an unknown option", "", []string{"verify", "--key", "x"}, 2, "--key"},
			} {
				if name == "worker" && c.what != "all is well" {
					continue // the same program
				}
				cmd := exec.Command(testenv.Node(t), append([]string{filepath.Join(folder, "cli.mjs")}, c.args...)...)
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "QM_PUBLIC_KEY=" + c.key}
				out, err := cmd.CombinedOutput()
				if exit := cmd.ProcessState.ExitCode(); exit != c.exit || !strings.Contains(string(out), c.says) {
					t.Errorf("%s: exit %d, not %d, %v:\n%s", c.what, exit, c.exit, err, out)
				}
			}
		})
	}
}
