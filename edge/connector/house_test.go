package connector_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"qm/edge/connector"
	"qm/engine"
	"qm/httpapi"
	"qm/journal"
)

const (
	houseAdminKey  = "the-admin-key-of-the-tests"
	housePublicKey = "the-public-key"
)

// house is a real queue, on the memory stores, behind a real port.
type house struct {
	*testing.T
	url  string
	keys *token.Keyring
}

// newHouse starts one. publicURL "": its own address.
func newHouse(t *testing.T, publicURL string) *house {
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
	bookDone := make(chan error, 1)
	go func() { bookDone <- book.Run(ctx) }()
	server := httptest.NewUnstartedServer(nil)
	h := &house{T: t, url: "http://" + server.Listener.Addr().String(), keys: keys}
	if publicURL == "" {
		publicURL = h.url
	}
	queue := httpapi.New(httpapi.Options{
		Engine: e, Keys: keys, PublicURL: publicURL, Book: book, Acts: m,
		Gate: access.NewGate(access.Credentials{AdminKey: houseAdminKey, PublicAPIKey: housePublicKey, AuthFailPerMinute: 10, Tokens: keys, Book: book}),
	})
	server.Config.Handler = queue
	server.Start()
	t.Cleanup(func() {
		server.Close()
		if err := queue.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		stop()
		<-bookDone
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

// operate posts as an operator.
func (h *house) operate(path, body string) {
	h.Helper()
	r, err := http.NewRequest(http.MethodPost, h.url+"/api/v1/admin/rooms"+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+houseAdminKey)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		h.Fatalf("POST %s %s: %d %s", path, body, res.StatusCode, b)
	}
}

// browser is a browser: it keeps cookies, and follows no redirect by itself.
type browser struct {
	*house
	client *http.Client
}

func (h *house) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.Fatal(err)
	}
	return &browser{h, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (v *browser) get(address string) (*http.Response, string) {
	v.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		v.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	res, err := v.client.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.Fatal(err)
	}
	return res, string(body)
}

// join takes a place; the answer's members come back.
func (v *browser) join(room string) map[string]any {
	v.Helper()
	res, err := v.client.Post(v.url+"/api/v1/join", "application/json", strings.NewReader(`{"roomId":"`+room+`"}`))
	if err != nil {
		v.Fatal(err)
	}
	defer res.Body.Close()
	var m map[string]any
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil || res.StatusCode != http.StatusOK {
		v.Fatalf("join: %d %v %v", res.StatusCode, m, err)
	}
	return m
}

// pass is let through, and returns where the waiting page then leads.
func (v *browser) pass(room, back string) string {
	v.Helper()
	v.join(room)
	v.operate("/"+room+"/flush", `{"count":1}`)
	_, body := v.get(v.url + "/api/v1/status?roomId=" + room + "&qm_return=" + url.QueryEscape(back))
	var m struct {
		Passed      bool
		RedirectURL string
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || !m.Passed || m.RedirectURL == "" {
		v.Fatalf("status: %s %v", body, err)
	}
	return m.RedirectURL
}

// walk is the whole way through a site with a connector in front: wait, pass, hand-over, door session; and nobody else by the same link.
func (h *house) walk(site string) {
	h.Helper()
	h.operate("", `{"id":"rm1","name":"Room","targetUrl":"`+site+`/","ratePerMinute":0}`)
	want := site + "/p?b=2&a=1&a=a+b%20c"
	decided := func(res *http.Response, body, decision string, status int) {
		h.Helper()
		if res.StatusCode != status || res.Header.Get("X-QM-Decision") != decision {
			h.Fatalf("%d, decision %q, not %d, %q: %s", res.StatusCode, res.Header.Get("X-QM-Decision"), status, decision, body)
		}
	}
	a, b := h.browser(), h.browser()
	res, body := a.get(want)
	decided(res, body, "queue; reason=no_token", http.StatusFound)
	if got := res.Header.Get("Location"); got != h.url+"/w/rm1?qm_return="+url.QueryEscape(want) {
		h.Fatalf("sent to %s", got)
	}
	door := a.pass("rm1", want)
	if !strings.HasPrefix(door, want+"&qm_code=") {
		h.Fatalf("let through to %s", door)
	}
	res, body = a.get(door)
	decided(res, body, "pass; reason=passed", http.StatusFound)
	if got := res.Header.Get("Location"); got != want {
		h.Fatalf("handed over to %s", got)
	}
	for range 2 {
		res, body = a.get(want)
		decided(res, body, "pass; reason=session", http.StatusOK)
		if !strings.Contains(body, `"target":"/p?b=2\u0026a=1\u0026a=a+b%20c"`) {
			h.Fatalf("the site saw %s", body)
		}
	}
	res, body = a.get(door) // the back button
	decided(res, body, "pass; reason=session", http.StatusFound)
	res, body = b.get(door)
	decided(res, body, "queue; reason=no_token", http.StatusFound)
	res, body = b.get(want)
	decided(res, body, "queue; reason=no_token", http.StatusFound)
}

func TestWalkThroughGo(t *testing.T) {
	h := newHouse(t, "")
	queued, err := connector.New(connector.Config{Room: "rm1", Server: h.url, PublicKey: housePublicKey})
	if err != nil {
		t.Fatal(err)
	}
	app, err := url.Parse(origin(t))
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(queued(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"reached":true,"target":%s,"app":%q}`, jsonOf(r.RequestURI), app)
	})))
	defer site.Close()
	h.walk(site.URL)
}

func jsonOf(s string) []byte {
	b, _ := json.Marshal(s) // a string always can be
	return b
}

func TestWalkThroughNginx(t *testing.T) {
	h := newHouse(t, "")
	h.walk(nginx(t, settings{queue: h.url, room: "rm1", key: housePublicKey, fail: "closed", scheme: "$scheme"}, origin(t)))
}

func TestWalkThroughCaddy(t *testing.T) {
	h := newHouse(t, "")
	h.walk(caddy(t, settings{queue: h.url, room: "rm1", key: housePublicKey, fail: "closed"}, origin(t), func(file string) string { return file }))
}

// TestProxiesWithoutAQueue: while nobody listens, or with a wrong key, nobody is served; unless the site has chosen otherwise.
func TestProxiesWithoutAQueue(t *testing.T) {
	app, h := origin(t), newHouse(t, "")
	h.operate("", `{"id":"rm1","name":"Room","targetUrl":"https://shop.example/","state":"bypass","ratePerMinute":0}`)
	as := func(file string) string { return file }
	closed := settings{queue: deaf(t), room: "rm1", key: housePublicKey, fail: "closed", scheme: "$scheme"}
	for name, c := range map[string]struct{ address, reason string }{
		"nginx": {nginx(t, closed, app), "unreachable"},
		"caddy": {caddy(t, closed, app, as), "status_502"},
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT"} {
			for _, accept := range []string{"text/html", "application/json"} {
				r, err := http.NewRequest(method, c.address+"/p", strings.NewReader(""))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Accept", accept)
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("X-QM-Decision") != "closed; reason="+c.reason ||
					res.Header.Get("Retry-After") != "5" || res.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s: %s %s: %d %v", name, method, accept, res.StatusCode, res.Header)
				}
				page := accept == "text/html" && method != "PUT"
				if page && method != "HEAD" && !bytes.Equal(body, connector.Closed) || !page && method != "HEAD" && !strings.Contains(string(body), `"code":"queue_unavailable"`) {
					t.Errorf("%s: %s %s: %s", name, method, accept, body)
				}
			}
		}
	}
	wrong := settings{queue: h.url, room: "rm1", key: "wrong", fail: "open", scheme: "$scheme"}
	for name, address := range map[string]string{"nginx": nginx(t, wrong, app), "caddy": caddy(t, wrong, app, as)} {
		if res, body := h.browser().get(address + "/p"); res.StatusCode != http.StatusForbidden || strings.Contains(body, "reached") {
			t.Errorf("%s with a wrong key: %d %s", name, res.StatusCode, body)
		}
	}
}

// TestVectorsAreTrue asks the real server the questions of the vectors that say it answers so.
func TestVectorsAreTrue(t *testing.T) {
	const vKey, vToken, vCode = "ds1.1.7.c2VjcmV0b2Z0aGVkb29yMQ", "eyJyIjoicm0xIn0.dG9rZW4", "eyJyIjoicm0xIn0.Y29kZQ"
	var all vectors
	if err := json.Unmarshal(connector.Vectors, &all); err != nil {
		t.Fatal(err)
	}
	var reals struct{ Cases []struct{ Real string } }
	if err := json.Unmarshal(connector.Vectors, &reals); err != nil {
		t.Fatal(err)
	}
	// One queue for each way in which things can stand.
	settings := map[string]string{"bypass": `,"state":"bypass"`, "scoped": `,"urlPatterns":["/sale*"]`}
	houses := map[string]*house{}
	asked := map[string]int{}
	for i, v := range all.Cases {
		real := reals.Cases[i].Real
		if real == "" {
			continue
		}
		asked[real]++
		h := houses[real]
		if h == nil {
			h = newHouse(t, "https://queue.example")
			if real != "no_room" {
				h.operate("", `{"id":"rm1","name":"Room","targetUrl":"https://shop.example/","ratePerMinute":0`+settings[real]+`}`)
			}
			houses[real] = h
		}
		// What the vectors' credentials are here.
		swap := []string{}
		switch b := h.browser(); real {
		case "waiting":
			swap = []string{vToken, b.join("rm1")["token"].(string)}
		case "code", "spent_code", "inside":
			_, code, _ := strings.Cut(b.pass("rm1", ""), "qm_code=")
			if real == "code" {
				swap = []string{vCode, code}
				break
			}
			_, body := b.get(h.url + "/api/v1/check?roomId=rm1&url=https://shop.example/&code=" + code)
			var m struct{ Sess, Token string }
			if err := json.Unmarshal([]byte(body), &m); err != nil || m.Sess == "" || m.Token == "" {
				t.Fatalf("%s: %s", real, body)
			}
			swap = []string{vCode, code}
			if real == "inside" {
				swap = append(swap, vKey, m.Sess, vToken, m.Token)
			}
		}
		here := strings.NewReplacer(swap...)
		q := url.Values{}
		for name, value := range v.Asks[0].Query {
			q.Set(name, here.Replace(value))
		}
		r, err := http.NewRequest(http.MethodGet, h.url+v.Asks[0].Path+"?"+q.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range v.Asks[0].Headers {
			r.Header.Set(name, here.Replace(value))
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		var got, want map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(here.Replace(string(v.Asks[0].Answer.JSON))), &want); err != nil {
			t.Fatal(err)
		}
		for _, fresh := range []string{"sess", "token"} {
			if real == "code" && got[fresh] != nil && got[fresh] != "" {
				got[fresh] = want[fresh] // made on the spot
			}
		}
		for _, m := range []map[string]any{got, want} {
			if rules, ok := m["targeting"].(map[string]any); ok {
				m["targeting"] = rules["scope"]
			}
		}
		if res.StatusCode != v.Asks[0].Answer.Status || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the server answers %d %v, the vector %d %v", v.Name, res.StatusCode, got, v.Asks[0].Answer.Status, want)
		}
	}
	for _, real := range []string{"stranger", "waiting", "code", "spent_code", "inside", "bypass", "scoped", "no_room"} {
		if asked[real] == 0 {
			t.Errorf("no vector is about %s", real)
		}
	}
}

// TestProxiesThatFailOpen: as their pages say it is set up, everybody is served while nobody listens, and told so.
func TestProxiesThatFailOpen(t *testing.T) {
	app := origin(t)
	s := settings{queue: deaf(t), room: "rm1", key: housePublicKey, fail: "open", scheme: "$scheme"}
	s.more = `location @qm_open {
		add_header X-QM-Decision "open; reason=$qm_failure" always;
		proxy_pass http://app;
	}`
	one := nginxWith(t, s, app, func(queued string) string {
		const line = "error_page 500 =503 /_qm_unanswered;\n"
		if !strings.Contains(queued, line) {
			t.Fatal("queued.conf has no such line")
		}
		return strings.Replace(queued, line, "error_page 500 = @qm_open;\n", 1)
	})
	s.more = `handle_errors {
		@undecided vars qm_state asking
		handle @undecided {
			header X-QM-Decision "open; reason=status_{err.status_code}"
			reverse_proxy ` + app + `
		}
	}`
	two := caddy(t, s, app, func(file string) string { return file })
	for address, want := range map[string]string{one: "open; reason=unreachable", two: "open; reason=status_502"} {
		for _, method := range []string{"GET", "POST"} {
			r, err := http.NewRequest(method, address+"/p?a=1", strings.NewReader("a=b"))
			if err != nil {
				t.Fatal(err)
			}
			r.SetBasicAuth("visitor", "of the site")
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.Header.Get("X-QM-Decision") != want || !strings.Contains(string(body), `"body":"a=b"`) || !strings.Contains(string(body), `"authorization":"Basic `) || !strings.Contains(string(body), `"method":"`+method+`"`) {
				t.Errorf("%s: %d %q %s", method, res.StatusCode, res.Header.Get("X-QM-Decision"), body)
			}
		}
	}
}

// TestVerifyScript runs the installation check that the archives carry against a real queue.
func TestVerifyScript(t *testing.T) {
	h := newHouse(t, "")
	h.operate("", `{"id":"rm1","name":"Room","targetUrl":"https://shop.example/","ratePerMinute":60}`)
	script := filepath.Join(install(t, "nginx"), "verify.sh")
	for _, c := range []struct {
		server, room, page string
		code               int
		says               string
	}{
		{h.url, "rm1", "https://shop.example/", 0, `"ok":true`},
		{h.url, "nowhere", "https://shop.example/", 1, `"ok":false`},
		{h.url, "NO", "https://shop.example/", 2, ""},
		{deaf(t), "rm1", "https://shop.example/", 2, ""},
	} {
		cmd := exec.Command("sh", script, c.server, c.room, c.page, "nginx", "1.0.0")
		cmd.Env = append(os.Environ(), "QM_PUBLIC_KEY="+housePublicKey)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("verify.sh %s %s exits %d, not %d: %v %s", c.server, c.room, got, c.code, err, out)
		}
	}
}
