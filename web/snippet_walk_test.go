package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"qm/access"
	"qm/access/org"
	keyring "qm/access/token"
	"qm/engine"
	"qm/httpapi"
	"qm/journal"
	"qm/web"
)

// house is the real server with the real engine, in memory.
type house struct {
	*httptest.Server
	t *testing.T
}

const houseKey = "the-admin-key-of-the-house"

func newHouse(t *testing.T) *house {
	t.Helper()
	m := journal.NewMemory()
	e := engine.New(engine.Options{Environment: "production", Journal: m, Vault: m})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	keys, err := keyring.New("the secret of the house", "", keyring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	book := org.NewBook(org.Options{Journal: m, Notes: m, Vault: m})
	if err := book.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	bookDone := make(chan error, 1)
	go func() { bookDone <- book.Run(ctx) }()
	gate := access.NewGate(access.Credentials{AdminKey: houseKey, AuthFailPerMinute: 10, Tokens: keys, Book: book})
	server := httpapi.New(httpapi.Options{Engine: e, Keys: keys, Gate: gate, Book: book, Acts: m})
	h := &house{Server: httptest.NewServer(server), t: t}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Errorf("end the streams: %v", err)
		}
		h.CloseClientConnections()
		h.Close()
		stop()
		if err := <-bookDone; err != nil {
			t.Errorf("the organisation failed: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("the engine failed: %v", err)
		}
	})
	return h
}

// operate does something as the operator.
func (h *house) operate(path, body string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.URL+"/api/v1/admin/rooms"+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+houseKey)
	r.Header.Set("Content-Type", "application/json")
	res, err := h.Client().Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		h.t.Fatalf("POST %s: %d %s", path, res.StatusCode, b)
	}
}

// tracker is somebody else's server that a shop's pages load from.
type tracker struct {
	*httptest.Server
	mu       sync.Mutex
	referers []string
}

func newTracker(t *testing.T) *tracker {
	k := &tracker{}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.referers = append(k.referers, r.Referer())
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = w.Write([]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))
	}))
	t.Cleanup(k.Close)
	return k
}

// From the shop into the line, through it, and back to the exact page, with the
// real server and its waiting page on another site; then what a pasted address,
// a spent code, the browser's history and a finished checkout are worth.
func TestSnippetWalksThroughARealLine(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	k := newTracker(t)
	s := newShop(t, tagOf(h.URL, `data-room="rm1"`)+`<img src="`+k.URL+`/a" alt="">`)
	h.operate("", `{"id":"rm1","name":"Shop","targetUrl":"`+s.base+`/","ratePerMinute":0}`)
	h.operate("/rm1/state", `{"state":"active"}`)
	wanted := s.base + "/caf%c3%a9/p?z=1&a=2&a=1&q=a+b%20c&next=https%3A%2F%2Fx.example%2F%3Fa%3D1#/route?x=%20"

	a := shopper(t)
	a.open(s.base + "/home")
	s.decided(t, "queue no_token")
	a.awaitState("near")
	h.operate("/rm1/state", `{"state":"bypass"}`)
	a.await(`location.href === "` + s.base + `/home"`)
	s.decided(t, "pass bypass")
	h.operate("/rm1/state", `{"state":"active"}`)

	a.open(wanted)
	s.decided(t, "queue no_token")
	a.awaitState("near")
	h.operate("/rm1/flush", `{"count":1}`)
	s.decided(t, "pass passed")
	a.await(`location.href === "` + wanted + `" && document.documentElement.dataset.qm === "pass passed"`)

	// Nothing of it stays where somebody could find it.
	addresses, _, err := a.history()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if strings.Contains(address, "qm_code") || strings.Contains(address, h.URL) {
			t.Errorf("Back leads to %s", address)
		}
	}
	late := `(() => { const i = new Image; i.referrerPolicy = "unsafe-url"; i.onload = () => document.title = "late"; i.src = "` + k.URL + `/late"; document.body.append(i); return 0 })()`
	a.text(late)
	a.await(`document.title === "late"`)
	k.mu.Lock()
	if len(k.referers) < 3 || k.referers[len(k.referers)-1] == "" {
		t.Errorf("Referers: %q", k.referers)
	}
	for _, referer := range k.referers {
		if strings.Contains(referer, "qm_code") {
			t.Errorf("another site was told %s", referer)
		}
	}
	k.mu.Unlock()
	arrival := ""
	for _, r := range s.requests() {
		if strings.Contains(r.RequestURI, "qm_code=") && r.URL.Path != "/pixel" {
			arrival = r.RequestURI
		}
	}
	if arrival == "" {
		t.Fatal("nobody arrived with a code")
	}

	// Inside, on every page, and back.
	a.open(s.base + "/cart")
	s.decided(t, "pass session")
	a.text(`(history.back(), 0)`)
	s.decided(t, "pass session")
	a.await(`location.href === "` + wanted + `"`)
	a.clean()

	// The address alone is worth nothing to another browser, nor is the one with the code, which is spent.
	b := shopper(t)
	for _, address := range []string{wanted, s.base + arrival} {
		b.open(address)
		s.decided(t, "queue no_token")
		b.awaitState("near")
	}
	b.clean()

	// Who is done gives the place back, and waits for the next one.
	a.text(`(qm.leave().then((left) => document.title = "left " + left), 0)`)
	a.await(`document.title === "left true"`)
	a.open(s.base + "/again")
	s.decided(t, "queue no_token")
	a.awaitState("near")
	a.clean()
	s.undecided(t)
}

// The rules of the room decide as the visitor moves within one document.
func TestSnippetMovesIntoScope(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	body, _ := web.Snippet()
	sum := sha256.Sum256(body)
	// Told exactly which script to run, a browser runs it.
	s := newShop(t, tagOf(h.URL, `data-room="rm1" async crossorigin integrity="sha256-`+base64.StdEncoding.EncodeToString(sum[:])+`"`))
	h.operate("", `{"id":"rm1","name":"Shop","targetUrl":"`+s.base+`/","ratePerMinute":0,"urlPatterns":["/sale*","!/sale/help"]}`)
	h.operate("/rm1/state", `{"state":"active"}`)
	b := shopper(t)
	b.open(s.base + "/imprint")
	s.decided(t, "pass out_of_scope")
	b.text(`(history.pushState(null, "", "/sale/help"), 0)`)
	s.decided(t, "pass out_of_scope")
	b.text(`(history.pushState(null, "", "/SALE/%69tem?x=+#y"), 0)`)
	s.decided(t, "queue no_token")
	b.awaitState("near")
	h.operate("/rm1/flush", `{"count":1}`)
	b.awaitState("turn")
	s.decided(t, "pass passed")
	b.await(`location.href === "` + s.base + `/SALE/%69tem?x=+#y"`)
	b.clean()
}

// A page of an origin that the room does not name cannot read the answer: it
// fails by the tag's own policy, and says so.
func TestSnippetOnAForeignPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := newShop(t, tagOf(h.URL, `data-room="rm1" data-fail="open"`))
	h.operate("", `{"id":"rm1","name":"Shop","targetUrl":"https://shop.example/","ratePerMinute":0}`)
	b := shopper(t)
	b.open(s.base + "/")
	s.decided(t, "open unreachable")
	b.clean("CORS policy", "ERR_FAILED")
	s.wear(tagOf(h.URL, `data-room="unknown"`))
	b.open(s.base + "/")
	s.decided(t, "open no_room")
	b.clean("CORS policy", "ERR_FAILED")
}
