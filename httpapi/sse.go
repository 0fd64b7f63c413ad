package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"qm/access"
)

// Times of a stream. A frame comes at least every five seconds (seed 004, GET /api/events): heartbeat leaves room for the way.
const (
	heartbeat    = 4500 * time.Millisecond
	writePatient = 10 * time.Second // a consumer that takes no bytes for so long is cut
)

// streams counts the open streams, in all and a client, and lets Shutdown wait for them.
type streams struct {
	mu      sync.Mutex
	max     int
	perIP   int
	open    int
	clients map[access.Network]int
	idle    chan struct{} // closed when the last one leaves, if somebody waits
	pulses  map[string]*pulse
}

func newStreams(max, perIP int) *streams {
	return &streams{max: max, perIP: perIP, clients: make(map[access.Network]int), pulses: make(map[string]*pulse)}
}

// enter admits one more stream of a client.
func (t *streams) enter(n access.Network) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open >= t.max {
		return refuse("sse_capacity")
	}
	if t.clients[n] >= t.perIP {
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

// drained waits until no stream is open.
func (t *streams) drained(ctx context.Context) error {
	t.mu.Lock()
	if t.open == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stream writes server-sent events. It is the one place that does, so that how bytes reach the client can change.
type stream struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	line []byte
}

// begin sends the head of an event stream. A connection that cannot be flushed cannot stream.
func (x *exchange) begin() (*stream, error) {
	s := &stream{w: x.w, ctl: http.NewResponseController(x.w)}
	// The server's own deadlines are for requests that end.
	if err := s.ctl.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx would hold frames back
	x.status, x.wrote = http.StatusOK, true
	x.w.WriteHeader(http.StatusOK)
	return s, nil
}

// send writes one event. An error means that the consumer is gone, or too slow.
func (s *stream) send(event string, data []byte) error {
	return s.sendWithin(event, data, writePatient)
}

func (s *stream) sendWithin(event string, data []byte, patience time.Duration) error {
	b := append(s.line[:0], "event: "...)
	b = append(b, event...)
	b = append(b, "\ndata: "...)
	b = append(b, data...) // JSON of ours has no line breaks
	b = append(b, "\n\n"...)
	s.line = b
	if err := s.ctl.SetWriteDeadline(time.Now().Add(writePatient)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.ctl.Flush()
}
