package alert

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"qm/access/org"
	"qm/engine"
	"qm/journal"
	"qm/notify"
	"qm/projection"
)

// house is what a process sees of its rooms, as a test says.
type house struct {
	mu     sync.Mutex
	health engine.Health
	serves bool
}

func (h *house) set(damaged, shared string, serves bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.health = engine.Health{SharedErr: shared, Rooms: []engine.RoomHealth{{Room: "sale", Damaged: damaged}}}
	h.serves = serves
}
func (h *house) Health() engine.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.health
}
func (h *house) Serves(string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.serves
}
func (h *house) Rooms(context.Context) ([]string, error) { return []string{"sale"}, nil }
func (h *house) View(context.Context, string) (projection.View, error) {
	return nil, projection.ErrNoRoom
}

// told is a transport that keeps what the webhook is sent.
type told struct {
	mu       sync.Mutex
	messages []Message
	fail     atomic.Bool
	seen     atomic.Int64
}

func (w *told) RoundTrip(r *http.Request) (*http.Response, error) {
	w.seen.Add(1)
	if w.fail.Load() {
		return nil, errors.New("the network is away")
	}
	var m Message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages = append(w.messages, m)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func (w *told) states() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.messages {
		list = append(list, m.Rule+" "+m.State)
	}
	return list
}

// process is a watcher with a book of its own, over a journal that it may share. It ends with stop.
type process struct {
	*Service
	house *house
	book  *org.Book
	stop  func()
	ahead atomic.Int64 // of the bubble's clock
}

func (p *process) now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

func watching(t *testing.T, name string, memory *journal.Memory, j journal.Journal, hook *told) *process {
	t.Helper()
	p := &process{house: new(house), book: org.NewBook(org.Options{Journal: j, Notes: memory, Vault: memory})}
	var err error
	p.Service, err = New(Options{Rooms: p.house, Book: p.book, Rules: Defaults(), Process: name, WebhookURL: "https://hook.example/x", Now: p.now})
	if err != nil {
		t.Fatal(err)
	}
	p.client = &http.Client{Transport: hook}
	queue := notify.NewMemory(p.o.Log, p.now, notify.NewKinds(p.Kinds()...))
	p.Use(queue)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.book.Run(ctx) })
	running.Go(func() { _ = queue.Run(ctx) })
	running.Go(func() { _ = p.Run(ctx) })
	p.stop = func() { cancel(); running.Wait() }
	return p
}

// wait lets the bubble's time pass.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *told) want(t *testing.T, when string, states ...string) {
	t.Helper()
	if got := w.states(); !slices.Equal(got, states) {
		t.Fatalf("%s the webhook has been told %q, not %q", when, got, states)
	}
}

// Two processes see one room's journal damaged: it is told once, and once that it is over. A process that begins anew tells nothing again.
func TestOneMessageWhateverTheNumberOfProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, hook := journal.NewMemory(), new(told)
		a, b := watching(t, "a:1", memory, memory, hook), watching(t, "b:1", memory, memory, hook)
		a.house.set("seq 7", "", false)
		b.house.set("seq 7", "", false)
		wait(2 * time.Minute)
		hook.want(t, "while it lasts", "room_damaged fired")
		a.stop()
		c := watching(t, "a:1", memory, memory, hook)
		c.house.set("seq 7", "", false)
		wait(2 * time.Minute)
		hook.want(t, "after a restart", "room_damaged fired")
		b.house.set("", "", false)
		c.house.set("", "", true)
		wait(time.Minute)
		hook.want(t, "when it is over", "room_damaged fired", "room_damaged resolved")
		if m := hook.messages; m[0].ID != m[1].ID || m[0].RoomID != "sale" {
			t.Errorf("the messages are %+v", m)
		}
		b.stop()
		c.stop()
	})
}

// A webhook that is away is asked again until it takes the message.
//
// Proves: webhook
func TestAMessageIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, hook := journal.NewMemory(), new(told)
		hook.fail.Store(true)
		p := watching(t, "a:1", memory, memory, hook)
		p.house.set("", "connection refused", true)
		wait(time.Minute)
		if hook.seen.Load() < 3 {
			t.Fatalf("it was tried %d times", hook.seen.Load())
		}
		hook.want(t, "while it is away")
		hook.fail.Store(false)
		wait(10 * time.Minute)
		hook.want(t, "when it is back", "backend_down fired")
		p.stop()
	})
}

// A silence keeps messages back. What still stands when it ends is told then; what came and went within it is not.
func TestSilences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, hook := journal.NewMemory(), new(told)
		p := watching(t, "a:1", memory, memory, hook)
		silence := func(rule, room string) {
			if _, err := p.book.Silence(t.Context(), org.By{Actor: org.Admin}, rule, room, time.Now().Add(5*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		silence(BackendDown, "")
		silence(Damaged, "other") // not this room
		p.house.set("seq 7", "away", true)
		wait(time.Minute)
		hook.want(t, "while one is silenced", "room_damaged fired")
		p.house.set("seq 7", "", true)
		wait(time.Minute) // it is over within the silence
		wait(10 * time.Minute)
		hook.want(t, "what came and went in a silence", "room_damaged fired")
		silence(Damaged, "sale")
		silence(BackendDown, "")
		p.house.set("", "away", true)
		wait(time.Minute)
		hook.want(t, "what ends in a silence", "room_damaged fired")
		wait(10 * time.Minute)
		got := hook.states()
		slices.Sort(got)
		if !slices.Equal(got, []string{"backend_down fired", "room_damaged fired", "room_damaged resolved"}) {
			t.Errorf("after the silence %q", got)
		}
		p.book.Look(func(s *org.State) {
			if past := s.PastAlerts(); len(past) != 2 || len(s.Alerts()) != 1 {
				t.Errorf("past %+v, active %+v", past, s.Alerts())
			}
		})
		p.stop()
	})
}

// away is a journal that cannot be reached while down is set.
type away struct {
	journal.Journal
	down atomic.Bool
}

var errAway = errors.New("the database is away")

func (a *away) Append(ctx context.Context, epoch int64, batch []journal.Record) error {
	if a.down.Load() {
		return errAway
	}
	return a.Journal.Append(ctx, epoch, batch)
}

func (a *away) Read(ctx context.Context, stream string, after int64, fn func(*journal.Record) error) error {
	if a.down.Load() {
		return errAway
	}
	return a.Journal.Read(ctx, stream, after, fn)
}

// That the database is away is told without it, once, and is in the history afterwards.
func TestAnOutageIsToldWithoutTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, hook := journal.NewMemory(), new(told)
		j := &away{Journal: memory}
		p := watching(t, "a:1", memory, j, hook)
		wait(10 * time.Second)
		j.down.Store(true)
		p.house.set("", "the database is away", true)
		wait(5 * time.Minute)
		hook.want(t, "during the outage", "backend_down fired")
		j.down.Store(false)
		p.house.set("", "", true)
		wait(time.Minute)
		hook.want(t, "after it", "backend_down fired", "backend_down resolved")
		wait(10 * time.Minute)
		hook.want(t, "and later", "backend_down fired", "backend_down resolved")
		p.book.Look(func(s *org.State) {
			past := s.PastAlerts()
			if len(past) != 1 || past[0].ID != hook.messages[0].ID || len(s.Alerts()) != 0 {
				t.Errorf("the history is %+v", past)
			}
		})
		p.stop()
	})
}

// An alert about a process that is gone is ended by another one that is well, after an hour.
func TestAnAlertOfAProcessThatIsGoneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, hook := journal.NewMemory(), new(told)
		a := watching(t, "a:1", memory, memory, hook)
		a.house.set("", "away", true)
		wait(time.Minute)
		a.stop()
		b := watching(t, "b:1", memory, memory, hook)
		b.house.set("", "", true)
		wait(50 * time.Minute)
		hook.want(t, "soon after", "backend_down fired")
		wait(20 * time.Minute)
		hook.want(t, "after an hour", "backend_down fired", "backend_down resolved")
		b.stop()
	})
}

// Share links that were made to last are watched; those made to be short are not.
func TestShareLinksAboutToExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, hook := journal.NewMemory(), new(told)
		p := watching(t, "a:1", memory, memory, hook)
		p.house.set("", "", true)
		link := func(id string, life time.Duration) {
			err := p.book.Change(t.Context(), org.By{Actor: org.Admin}, func(*org.State) (org.Body, error) {
				return &org.LinkMade{ID: id, Ends: time.Now().Add(life).UnixMilli()}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		link("ml_long", 6*day+time.Hour)
		link("ml_short", time.Hour)
		wait(time.Minute)
		hook.want(t, "at first")
		p.ahead.Store(int64(4 * day))
		wait(time.Minute)
		hook.want(t, "three days before", "key_expiry fired")
		if m := hook.messages[0]; m.Subject != "ml_long" || m.Value != 2 {
			t.Errorf("told %+v", m)
		}
		p.ahead.Store(int64(7 * day))
		wait(time.Minute)
		hook.want(t, "once it is gone", "key_expiry fired", "key_expiry resolved")
		p.stop()
	})
}

// A receiver can tell our messages from others' by the key that SECRET gives.
//
// Proves: webhook
func TestSignature(t *testing.T) {
	var header string
	var body []byte
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header.Get("QM-Signature")
		body, _ = io.ReadAll(r.Body)
	}))
	defer hook.Close()
	memory := journal.NewMemory()
	s, err := New(Options{Rooms: new(house), Book: org.NewBook(org.Options{Journal: memory, Notes: memory, Vault: memory}), Rules: Defaults(), WebhookURL: hook.URL, SigningKey: "a secret", AllowPrivate: true, Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Test(t.Context()); err != nil {
		t.Fatal(err)
	}
	key, err := hkdf.Key(sha256.New, []byte("a secret"), nil, "qm:alert", 32)
	if err != nil {
		t.Fatal(err)
	}
	if header != sign(key, start, body) || len(body) == 0 {
		t.Errorf("signed %q over %s", header, body)
	}
	// A private address is not reached unless the configuration allows it.
	closed, err := New(Options{Rooms: new(house), Book: s.o.Book, Rules: Defaults(), WebhookURL: hook.URL})
	if err != nil {
		t.Fatal(err)
	}
	header = ""
	if _, err := closed.Test(t.Context()); !errors.Is(err, notify.ErrWebhook) || header != "" {
		t.Errorf("a private address: %v, %q", err, header)
	}
}

// A real certificate is looked at; one that ends soon is told of, and its renewal ends that.
func TestACertificateAboutToExpire(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	end := server.Certificate().NotAfter
	memory := journal.NewMemory()
	now := end.Add(-13 * day)
	book := org.NewBook(org.Options{Journal: memory, Notes: memory, Vault: memory, Now: func() time.Time { return now }})
	s, err := New(Options{Rooms: new(house), Book: book, Rules: Defaults(), Process: "a:1", PublicURL: server.URL, AllowPrivate: true, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	active := func() (list []org.Alert) {
		s.look(t.Context())
		book.Look(func(st *org.State) { list = st.Alerts() })
		return list
	}
	if list := active(); len(list) != 0 {
		t.Fatalf("before anybody looked: %+v", list)
	}
	s.lookAtCertificate(t.Context(), originOf(server.URL))
	list := active()
	if len(list) != 1 || list[0].Rule != Certificate || list[0].Subject != publicSubject || list[0].Value != 13 {
		t.Fatalf("13 days before: %+v", list)
	}
	// Another process, or this one after a restart, has not looked yet: that is no renewal.
	delete(s.certificates.until, originOf(server.URL))
	if list := active(); len(list) != 1 {
		t.Fatalf("unlooked: %+v", list)
	}
	s.certificates.until[originOf(server.URL)] = looked{now, end.Add(90 * day)}
	if list := active(); len(list) != 0 {
		t.Errorf("renewed: %+v", list)
	}
}
