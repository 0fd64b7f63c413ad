package notifytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"qm/notify"
)

// Store is where the queues of one case keep their jobs. Open may be called again: on a durable store it is another
// process.
type Store struct {
	Durable bool
	Open    func(t *testing.T, log *slog.Logger, kinds notify.Kinds) notify.Queue
}

// Queue runs the suite of notify.Queue. open returns an empty store that nobody else uses; it is called once per case.
func Queue(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Store)
	}{
		{"a job is done", done},
		{"one key, one job", oneKey},
		{"retries with backoff until it is given up", retries},
		{"give up", giveUp},
		{"a panic is a failed attempt", panics},
		{"not before its time", runAt},
		{"kinds do not wait for each other", kindsApart},
		{"invalid jobs", invalid},
		{"stopping lets a running job end", stopping},
		{"two processes share the work", shared},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

// patience is how long a test waits for what must happen before it calls it lost.
const patience = 30 * time.Second

// line is a running queue; what its handlers tell comes in order.
type line struct {
	notify.Queue
	stop func()
}

func (s Store) start(t *testing.T, kinds ...notify.Kind) *line {
	t.Helper()
	q := s.Open(t, slog.New(slog.DiscardHandler), notify.NewKinds(kinds...))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return &line{q, stop}
}

func (l *line) add(t *testing.T, jobs ...notify.Job) {
	t.Helper()
	must(t, l.Enqueue(t.Context(), jobs...))
}

// drained waits until no job of a kind is open.
func (l *line) drained(t *testing.T, kind string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		n, err := l.Waiting(t.Context(), kind)
		must(t, err)
		if n == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d jobs are still open", n)
		}
	}
}

func next[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("nothing happened")
	}
	return v
}

// soon is a backoff that a test need not wait for.
func soon(int) time.Duration { return 20 * time.Millisecond }

func done(t *testing.T, s Store) {
	ran := make(chan notify.Job, 10)
	l := s.start(t, notify.Kind{Name: "mail", Handle: func(_ context.Context, j notify.Job) error { ran <- j; return nil }})
	l.add(t, notify.Job{Kind: "mail", Key: "a/1", Payload: json.RawMessage(`{"n": 1, "x": "ü\n"}`)})
	j := next(t, ran)
	var body struct {
		N int
		X string
	}
	must(t, json.Unmarshal(j.Payload, &body))
	if j.Kind != "mail" || j.Key != "a/1" || j.Attempt != 1 || body.N != 1 || body.X != "ü\n" {
		t.Errorf("done %+v %+v", j, body)
	}
	l.drained(t, "mail")
	l.add(t, notify.Job{Kind: "mail", Key: "a/1"}) // it has come to an end, so the key is free
	next(t, ran)
	l.drained(t, "mail")
}

func oneKey(t *testing.T, s Store) {
	ran, hold := make(chan notify.Job, 10), make(chan struct{})
	l := s.start(t, notify.Kind{Name: "mail", Workers: 4, Handle: func(_ context.Context, j notify.Job) error {
		ran <- j
		<-hold
		return nil
	}})
	one := notify.Job{Kind: "mail", Key: "one"}
	l.add(t, one, one)
	next(t, ran)
	l.add(t, one)
	l.add(t, notify.Job{Kind: "mail", Key: "two"})
	if j := next(t, ran); j.Key != "two" {
		t.Errorf("a second job of the key %s", j.Key)
	}
	if n, err := l.Waiting(t.Context(), "mail"); err != nil || n != 2 {
		t.Errorf("%d are waiting, %v", n, err)
	}
	close(hold)
	l.drained(t, "mail")
	if len(ran) != 0 {
		t.Errorf("%d jobs too many", len(ran))
	}
}

func retries(t *testing.T, s Store) {
	ran, gone := make(chan int, 10), make(chan int, 10)
	asked := make(chan int, 10)
	l := s.start(t, notify.Kind{
		Name: "mail", Attempts: 3,
		Backoff: func(attempt int) time.Duration { asked <- attempt; return soon(attempt) },
		Handle:  func(_ context.Context, j notify.Job) error { ran <- j.Attempt; return errors.New("not now") },
		GivenUp: func(_ context.Context, j notify.Job) { gone <- j.Attempt },
	})
	l.add(t, notify.Job{Kind: "mail", Key: "a"})
	for want := 1; want <= 3; want++ {
		if got := next(t, ran); got != want {
			t.Errorf("attempt %d, want %d", got, want)
		}
	}
	if got := next(t, gone); got != 3 {
		t.Errorf("given up after attempt %d", got)
	}
	l.drained(t, "mail")
	if a, b := next(t, asked), next(t, asked); a != 1 || b != 2 || len(ran)+len(gone) != 0 {
		t.Errorf("backoff after %d and %d; %d attempts and %d ends too many", a, b, len(ran), len(gone))
	}
}

func giveUp(t *testing.T, s Store) {
	ran, gone := make(chan int, 10), make(chan string, 10)
	l := s.start(t, notify.Kind{
		Name: "mail", Attempts: 5, Backoff: soon,
		Handle: func(_ context.Context, j notify.Job) error {
			ran <- j.Attempt
			if j.Attempt == 1 {
				return errors.New("not now")
			}
			return fmt.Errorf("there is no such box: %w", notify.ErrGiveUp)
		},
		GivenUp: func(_ context.Context, j notify.Job) { gone <- j.Key },
	})
	l.add(t, notify.Job{Kind: "mail", Key: "a"})
	next(t, ran)
	next(t, ran)
	if key := next(t, gone); key != "a" {
		t.Errorf("given up %s", key)
	}
	l.drained(t, "mail")
	if len(ran)+len(gone) != 0 {
		t.Error("tried again after it was given up")
	}
}

func panics(t *testing.T, s Store) {
	ran := make(chan int, 10)
	l := s.start(t, notify.Kind{Name: "mail", Attempts: 2, Backoff: soon, Handle: func(_ context.Context, j notify.Job) error {
		ran <- j.Attempt
		if j.Attempt == 1 {
			panic("a bug")
		}
		return nil
	}})
	l.add(t, notify.Job{Kind: "mail", Key: "a"})
	if a, b := next(t, ran), next(t, ran); a != 1 || b != 2 {
		t.Errorf("attempts %d and %d", a, b)
	}
	l.drained(t, "mail")
}

func runAt(t *testing.T, s Store) {
	type run struct {
		key string
		at  time.Time
	}
	ran := make(chan run, 10)
	l := s.start(t, notify.Kind{Name: "mail", Handle: func(_ context.Context, j notify.Job) error {
		ran <- run{j.Key, time.Now()}
		return nil
	}})
	later := time.Now().Add(1500 * time.Millisecond)
	l.add(t, notify.Job{Kind: "mail", Key: "later", RunAt: later}, notify.Job{Kind: "mail", Key: "past", RunAt: later.Add(-time.Hour)})
	if r := next(t, ran); r.key != "past" {
		t.Errorf("%s came first", r.key)
	}
	if r := next(t, ran); r.key != "later" || r.at.Before(later.Add(-time.Millisecond)) {
		t.Errorf("%s ran %s early", r.key, later.Sub(r.at))
	}
}

func kindsApart(t *testing.T, s Store) {
	ran, hold := make(chan string, 10), make(chan struct{})
	l := s.start(t,
		notify.Kind{Name: "slow", Handle: func(context.Context, notify.Job) error { ran <- "slow"; <-hold; return nil }},
		notify.Kind{Name: "mail", Handle: func(context.Context, notify.Job) error { ran <- "mail"; return nil }},
	)
	l.add(t, notify.Job{Kind: "slow", Key: "1"}, notify.Job{Kind: "slow", Key: "2"})
	next(t, ran)
	l.add(t, notify.Job{Kind: "mail", Key: "1"}) // the same key of another kind
	if got := next(t, ran); got != "mail" {
		t.Errorf("two jobs of %s run at once, and there is one worker", got)
	}
	close(hold)
	l.drained(t, "slow")
}

func invalid(t *testing.T, s Store) {
	ran := make(chan string, 10)
	l := s.start(t, notify.Kind{Name: "mail", Handle: func(_ context.Context, j notify.Job) error { ran <- j.Key; return nil }})
	good := notify.Job{Kind: "mail", Key: "good"}
	for name, bad := range map[string]notify.Job{
		"kind": {Kind: "post", Key: "a"}, "no key": {Kind: "mail"}, "long key": {Kind: "mail", Key: string(make([]byte, notify.MaxKey+1))},
		"no JSON": {Kind: "mail", Key: "a", Payload: json.RawMessage(`{`)},
		"big":     {Kind: "mail", Key: "a", Payload: json.RawMessage(`"` + string(make([]byte, notify.MaxPayload)) + `"`)},
	} {
		if err := l.Enqueue(t.Context(), good, bad); !errors.Is(err, notify.ErrInvalidJob) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := l.Waiting(t.Context(), "mail"); n != 0 || err != nil {
		t.Errorf("%d of the refused were added, %v", n, err)
	}
}

func stopping(t *testing.T, s Store) {
	ran, hold := make(chan bool, 10), make(chan struct{})
	l := s.start(t, notify.Kind{Name: "mail", Handle: func(ctx context.Context, _ notify.Job) error {
		ran <- true
		<-hold
		ran <- ctx.Err() == nil
		return nil
	}})
	l.add(t, notify.Job{Kind: "mail", Key: "a"})
	next(t, ran)
	stopped := make(chan struct{})
	go func() { l.stop(); close(stopped) }()
	close(hold)
	if !next(t, ran) {
		t.Error("the running job was cut off")
	}
	next(t, stopped)
}

// shared: on a durable store two processes do each job once between them, and a later one finds what an earlier one left.
func shared(t *testing.T, s Store) {
	if !s.Durable {
		q := s.Open(t, slog.New(slog.DiscardHandler), notify.NewKinds(notify.Kind{Name: "mail", Handle: func(context.Context, notify.Job) error { return nil }}))
		must(t, q.Enqueue(t.Context(), notify.Job{Kind: "mail", Key: "a"}))
		if n, _ := q.Waiting(t.Context(), "mail"); n != 1 {
			t.Errorf("%d jobs wait in a queue that does not run", n)
		}
		return
	}
	ran := make(chan string, 100)
	kind := notify.Kind{Name: "mail", Workers: 4, Handle: func(_ context.Context, j notify.Job) error { ran <- j.Key; return nil }}
	idle := s.Open(t, slog.New(slog.DiscardHandler), notify.NewKinds(kind))
	var jobs []notify.Job
	for i := range 40 {
		jobs = append(jobs, notify.Job{Kind: "mail", Key: fmt.Sprint(i)})
	}
	must(t, idle.Enqueue(t.Context(), jobs...)) // and it never runs: its process is gone
	a := s.start(t, kind)
	s.start(t, kind)
	seen := map[string]bool{}
	for range jobs {
		key := next(t, ran)
		if seen[key] {
			t.Errorf("%s was done twice", key)
		}
		seen[key] = true
	}
	a.drained(t, "mail")
	if len(ran) != 0 {
		t.Errorf("%d jobs too many", len(ran))
	}
}
