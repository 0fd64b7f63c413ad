package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"qm/access"
	"qm/access/org"
	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

const (
	testAdminKey  = "the-admin-key-of-the-tests"
	testPublicKey = "the-public-key-of-the-tests"
	testTarget    = "https://shop.example/start?from=line#top"
)

// world is a running server with the real engine, and a room rm1 where a test makes it.
type world struct {
	*testing.T // nil in benchmarks
	server     *Server
	engine     *engine.Engine
	book       *org.Book
	journal    journal.Journal
	keys       *token.Keyring
	exact      bool // time is the bubble's: nothing comes late
}

// onEachStore runs a case on every pair of stores.
func onEachStore(t *testing.T, test func(w *world)) {
	t.Parallel()
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			run := func(t *testing.T) {
				w := newWorld(t, s.open(t), Options{})
				w.exact = s.bubble
				test(w)
			}
			if s.bubble {
				synctest.Test(t, run)
				return
			}
			t.Parallel()
			run(t)
		})
	}
}

// pause is d in a bubble, and a shorter time where it has to be waited for.
func (w *world) pause(d, real time.Duration) time.Duration {
	if w.exact {
		return d
	}
	return real
}

// inMemory runs a test on the memory stores alone.
func inMemory(t *testing.T, o Options, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t, inProcess(t), o)) })
}

func newWorld(t *testing.T, eo engine.Options, o Options) *world {
	t.Helper()
	w := build(t, eo, o)
	w.T = t
	return w
}

func newBenchWorld(b *testing.B) *world {
	b.Helper()
	m := journal.NewMemory()
	return build(b, engine.Options{Journal: m, Vault: m}, Options{})
}

func build(t testing.TB, eo engine.Options, o Options) *world {
	t.Helper()
	eo.Environment = "production"
	e := engine.New(eo)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	keys, err := token.New("the secret of the tests", "", token.Options{})
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := access.ParseProxies("127.0.0.0/8 192.0.2.1/32")
	if err != nil {
		t.Fatal(err)
	}
	kept := eo.Vault.(interface {
		journal.Vault
		journal.Notes
		journal.Acts
	})
	book := org.NewBook(org.Options{Journal: eo.Journal, Notes: kept, Vault: kept, Now: o.Now})
	_ = book.Refresh(ctx) // a test may start with its storage away
	bookDone := make(chan error, 1)
	go func() { bookDone <- book.Run(ctx) }()
	o.Book, o.Acts = book, kept
	if o.Engine == nil {
		o.Engine = e
	}
	if o.Stores == "" {
		o.Stores = "memory+memory"
	}
	o.Keys, o.Proxies, o.Collectors = keys, proxies, e.Collectors()
	o.Gate = access.NewGate(access.Credentials{AdminKey: testAdminKey, PublicAPIKey: testPublicKey, AuthFailPerMinute: 10, Tokens: keys, Book: book})
	w := &world{server: New(o), engine: e, book: book, journal: eo.Journal, keys: keys}
	t.Cleanup(func() {
		if err := w.server.Shutdown(context.Background()); err != nil {
			t.Errorf("streams are left over: %v", err)
		}
		stop()
		<-bookDone
		if err := <-done; err != nil {
			t.Errorf("the engine failed: %v", err)
		}
	})
	return w
}

// browser is a visitor with cookies and an address of their own.
type browser struct {
	*world
	addr    string
	jar     map[string]string
	headers map[string]string
}

func (w *world) browser(addr string) *browser {
	return &browser{world: w, addr: addr, jar: map[string]string{}, headers: map[string]string{}}
}

// operator is an API client with the admin key.
func (w *world) operator() *browser {
	b := w.browser("198.51.100.250")
	b.headers["Authorization"] = "Bearer " + testAdminKey
	return b
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	json   map[string]any
}

// do sends a request. No answer may be a 500.
func (b *browser) do(method, path, body string) answer {
	b.Helper()
	a := b.send(method, path, body)
	if a.status >= 500 && a.status != 503 {
		b.Errorf("%s %s answers %d %s", method, path, a.status, a.body)
	}
	return a
}

// raw is do for what is meant to fail.
func (b *browser) raw(method, path string) answer { b.Helper(); return b.send(method, path, "") }

func (b *browser) send(method, path, body string) answer {
	b.Helper()
	var in io.Reader = http.NoBody
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, in)
	if strings.Contains(path, "\x00") {
		b.Fatalf("%q cannot be sent", path)
	}
	r.RemoteAddr = "192.0.2.1:4711" // a trusted proxy
	r.Header.Set("X-Forwarded-For", b.addr)
	for name, value := range b.jar {
		r.Header.Add("Cookie", name+"="+value)
	}
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	b.server.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(b.jar, c.Name)
		} else {
			b.jar[c.Name] = c.Value
		}
	}
	a := answer{status: rec.Code, header: rec.Header(), body: rec.Body.String()}
	if strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json") && len(a.body) > 0 {
		if err := json.Unmarshal([]byte(a.body), &a.json); err != nil {
			b.Fatalf("%s %s answers broken JSON %q: %v", method, path, a.body, err)
		}
	}
	return a
}

func (b *browser) get(path string) answer        { b.Helper(); return b.do("GET", path, "") }
func (b *browser) post(path, body string) answer { b.Helper(); return b.do("POST", path, body) }

// join is POST /api/v1/join {"roomId":…}, and must succeed.
func (b *browser) join(id string) answer {
	b.Helper()
	a := b.post("/api/v1/join", `{"roomId":"`+id+`"}`)
	if a.status != http.StatusOK {
		b.Fatalf("join answers %d %s", a.status, a.body)
	}
	return a
}

func (b *browser) status(id string) answer {
	b.Helper()
	return b.get("/api/v1/status?roomId=" + id)
}

func (b *browser) check(id string) answer {
	b.Helper()
	return b.get("/api/v1/check?roomId=" + id + "&url=https://shop.example/")
}

// ticket is the ticket that the browser's token names.
func (b *browser) ticket(id string) uint32 {
	b.Helper()
	v, err := b.keys.VerifyVisitor(b.jar["qm_"+id], id, time.Now())
	if err != nil {
		b.Fatalf("the token of %s is none: %v", id, err)
	}
	return v.Ticket
}

func (a answer) num(t *testing.T, name string) int {
	t.Helper()
	n, ok := a.json[name].(float64)
	if !ok {
		t.Fatalf("%s is %v in %s", name, a.json[name], a.body)
	}
	return int(n)
}

// want checks the status and, where given, the code.
func (a answer) want(t *testing.T, status int, code string) answer {
	t.Helper()
	if a.status != status || code != "" && a.json["code"] != code {
		t.Errorf("answered %d %s, not %d %s", a.status, a.body, status, code)
	}
	if code != "" && a.json["error"] == "" {
		t.Errorf("no sentence in %s", a.body)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%d %s without Retry-After", a.status, a.body)
		}
	}
	return a
}

// room makes a room with more members of the writable set.
func (w *world) room(id string, rate int, more string) {
	w.Helper()
	body := `{"id":"` + id + `","name":"Room","targetUrl":"` + testTarget + `","ratePerMinute":` + itoa(rate) + more + `}`
	if a := w.operator().post("/api/v1/admin/rooms", body); a.status != http.StatusOK {
		w.Fatalf("create %s: %d %s", id, a.status, a.body)
	}
}

func (w *world) stats(id string) answer {
	w.Helper()
	return w.operator().get("/api/v1/admin/rooms/"+id).want(w.T, 200, "")
}

func (w *world) waiting(id string) int { w.Helper(); return w.stats(id).num(w.T, "waiting") }

// crowd is n visitors in line who keep polling until the test ends.
func (w *world) crowd(id string, n int) []*browser {
	w.Helper()
	list := make([]*browser, n)
	for i := range list {
		list[i] = w.browser(addrOf(i))
		list[i].join(id)
	}
	return list
}

func addrOf(i int) string {
	return "203." + itoa(i>>16&255) + "." + itoa(i>>8&255) + "." + itoa(i&255)
}

// keepPolling sees a crowd until stop is called: each is at most five seconds away.
func (w *world) keepPolling(id string, crowd []*browser) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	tickets := make([]uint32, len(crowd))
	for i, b := range crowd {
		tickets[i] = b.ticket(id)
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			for _, n := range tickets {
				w.engine.Seen(id, room.Ticket(n))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// passes are the times at which tickets passed, in ticket order, as the journal has them.
func (w *world) passes(id string) []passed {
	w.Helper()
	var list []passed
	err := w.engine.Read(context.Background(), id, 0, func(r *journal.Record) error {
		if r.Kind != "pass" {
			return nil
		}
		e, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), bytes.Clone(r.Body))
		if err != nil {
			return err
		}
		for _, span := range e.Body.(*room.Pass).Spans {
			for n := span[0]; n <= span[1]; n++ {
				list = append(list, passed{n, r.At})
			}
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return list
}

type passed struct {
	ticket room.Ticket
	at     time.Time
}

// between counts the passes in (from, to].
func between(list []passed, from, to time.Time) (n int) {
	for _, p := range list {
		if p.at.After(from) && !p.at.After(to) {
			n++
		}
	}
	return n
}

// broken is an engine whose joins and reads fail in a given way.
type broken struct {
	Engine
	join, view error
	health     *engine.Health
}

func (b *broken) Health() engine.Health {
	if b.health != nil {
		return *b.health
	}
	return b.Engine.Health()
}

func (b *broken) Join(ctx context.Context, id, session string, n netip.Prefix, score uint8) (engine.Answer, error) {
	if b.join != nil {
		return engine.Answer{}, b.join
	}
	return b.Engine.Join(ctx, id, session, n, score)
}

func (b *broken) View(ctx context.Context, id string) (projection.View, error) {
	if b.view != nil {
		return nil, b.view
	}
	return b.Engine.View(ctx, id)
}

func jsonString(s string) (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}
