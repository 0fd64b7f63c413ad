package httpapi

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"qm/access"
)

// Times of a stream.
const (
	// A frame comes at least every five seconds (seed 004, GET /api/events). The latest beat leaves room for a round and the way; from
	// the earliest on they are spread, so that what was told to everybody at once is not repeated to everybody at once.
	beatEarliest = 3400 * time.Millisecond
	beatLatest   = 4200 * time.Millisecond
	writePatient = 10 * time.Second // a consumer that takes no bytes for so long is cut
	lastWords    = time.Second      // and one that is to hear that the stream ends, sooner

	retryFirst  = time.Second            // a page whose stream broke off comes back no sooner
	retrySpread = 4 * time.Second        // and within so much more, one page sooner and the next one later
	retryEach   = 500 * time.Microsecond // what each open stream adds to the spread when the server stops
	retryLatest = 30 * time.Second
)

// streams is every open event stream: it counts them, in all and a client, finds each a writer, and lets Shutdown wait for them.
type streams struct {
	max     int
	perIP   int
	born    time.Time // what the times of streams are counted from
	seed    maphash.Seed
	running context.Context
	halt    context.CancelFunc // ends the writers, and with them the streams
	working sync.WaitGroup     // the writers

	mu      sync.Mutex
	open    int
	stopped bool
	clients map[access.Network]int
	idle    chan struct{} // closed when the last one leaves, if somebody waits
	writers map[string][]*writer
}

func newStreams(max, perIP int) *streams {
	t := &streams{max: max, perIP: perIP, born: time.Now(), seed: maphash.MakeSeed(), clients: make(map[access.Network]int), writers: make(map[string][]*writer)}
	t.running, t.halt = context.WithCancel(context.Background())
	return t
}

// enter admits one more stream of a client.
func (t *streams) enter(n access.Network) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.stopped:
		return refuse("shutting_down")
	case t.open >= t.max:
		return refuse("sse_capacity")
	case t.clients[n] >= t.perIP:
		return refuse("sse_per_ip_limit")
	}
	t.open++
	t.clients[n]++
	return nil
}

func (t *streams) leave(n access.Network) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	if t.clients[n]--; t.clients[n] == 0 {
		delete(t.clients, n)
	}
	if t.open == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

func (t *streams) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// A room's streams are shared among so many writers at most, and one more is only worth it for so many streams.
var (
	writersMost = min(max(runtime.GOMAXPROCS(0), 2), 8)
	writerWorth = 256
)

// hand gives a stream to the writer of its room that has the fewest, or to a new one. It is false when the server stops.
func (t *streams) hand(s *Server, st *stream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	id := st.visitor.Room
	list := t.writers[id]
	var w *writer
	for _, other := range list {
		if w == nil || other.size < w.size {
			w = other
		}
	}
	if w == nil || w.size >= writerWorth && len(list) < writersMost {
		w = &writer{s: s, room: strings.Clone(id)}
		t.writers[w.room] = append(list, w)
		t.working.Go(w.run)
	}
	st.visitor.Room = w.room // one text for all
	w.size++
	w.arrived = append(w.arrived, st)
	return true
}

// dismiss takes streams that have ended off a writer's count, and reports whether it is left without any: it is forgotten then.
func (t *streams) dismiss(w *writer, ended int) (idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.size -= ended; w.size > 0 {
		return false
	}
	list := slices.DeleteFunc(t.writers[w.room], func(other *writer) bool { return other == w })
	if t.writers[w.room] = list; len(list) == 0 {
		delete(t.writers, w.room)
	}
	return true
}

// stop lets nobody in any more, and ends all streams.
func (t *streams) stop() {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	t.halt()
}

// drained waits until no stream is open and no writer at work.
func (t *streams) drained(ctx context.Context) error {
	t.mu.Lock()
	idle := t.idle
	if t.open > 0 && idle == nil {
		idle = make(chan struct{})
		t.idle = idle
	}
	open := t.open
	t.mu.Unlock()
	if open > 0 {
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.working.Wait() // they end by themselves, and have nobody left to write to
	return nil
}

// retryAfter is when a page should come back whose stream has just been opened: should this process die without a word, the pages
// do not all knock on the next one's door at once.
func retryAfter() time.Duration { return retryFirst + rand.N(retrySpread) }

// retryStopped is when a page should come back whose stream ends because the server stops: the more streams, the more spread.
func retryStopped(open int) time.Duration {
	return retryFirst + rand.N(min(retrySpread+time.Duration(open)*retryEach, retryLatest))
}

func appendRetry(b []byte, d time.Duration) []byte {
	b = append(b, "retry: "...)
	b = strconv.AppendInt(b, d.Milliseconds(), 10)
	return append(b, '\n')
}

// appendEvent appends one server-sent event. JSON of ours has no line breaks.
func appendEvent(b []byte, event string, data []byte) []byte {
	b = append(b, "event: "...)
	b = append(b, event...)
	b = append(b, "\ndata: "...)
	b = append(b, data...)
	return append(b, "\n\n"...)
}

// feed writes events through net/http: the console's streams, and those of visitors whose connection cannot be taken over.
type feed struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
	buf []byte
}

// begin sends the head of an event stream, and what is to follow it at once. A connection that cannot be flushed cannot stream.
func (x *exchange) begin(first []byte) (*feed, error) {
	f := &feed{w: x.w, ctl: http.NewResponseController(x.w)}
	// The server's own deadlines are for requests that end.
	if err := f.ctl.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx would hold frames back
	x.status, x.wrote = http.StatusOK, true
	x.w.WriteHeader(http.StatusOK)
	return f, f.writeWithin(first, writePatient)
}

// write writes events. An error means that the consumer is gone, or too slow.
func (f *feed) write(events []byte) error {
	if _, err := f.w.Write(events); err != nil {
		return err
	}
	return f.ctl.Flush()
}

func (f *feed) writeWithin(events []byte, patience time.Duration) error {
	if err := f.ctl.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return f.write(events)
}

// send writes one event.
func (f *feed) send(event string, data []byte) error {
	f.buf = appendEvent(f.buf[:0], event, data)
	return f.writeWithin(f.buf, writePatient)
}
