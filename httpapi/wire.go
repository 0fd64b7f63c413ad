package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// wire is how bytes reach one page. None of its methods waits for the page: a stalled one never delays another.
type wire interface {
	// push takes as much of b as there is room for and says how much that was. An error means that the page is gone.
	push(b []byte) (n int, err error)
	// gone reports that the page has closed its end. What it sends is read into scratch and thrown away: a page has nothing to say.
	gone(scratch []byte) bool
	// close ends the stream. What was pushed is still sent.
	close()
}

// takeOver takes an HTTP/1 connection out of net/http's hands once the head and the first events are on their way. A stream then costs
// a socket and a few hundred bytes; as a handler it would cost two goroutines and two buffers (architecture.md, HTTP). It is nil
// where that cannot be done: HTTP/2, TLS of our own, or a connection that is no socket.
func (s *Server) takeOver(x *exchange, first []byte) (wire, error) {
	c := connectionOf(x.r.Context())
	if c == nil || x.r.ProtoMajor != 1 || !isSocket(c.conn) {
		return nil, nil
	}
	if _, ok := x.w.(http.Hijacker); !ok {
		return nil, nil
	}
	x.w.Header().Set("Transfer-Encoding", "identity") // net/http then announces an answer that ends with the connection
	f, err := x.begin(first)
	if err != nil {
		return nil, err
	}
	conn, _, err := f.ctl.Hijack() // and forgets what the client has sent beyond its request
	if err != nil {
		return nil, err
	}
	network := x.network
	s.ceiling.kept(1)
	w, err := newSocket(conn, func() {
		s.ceiling.kept(-1)
		s.streams.leave(network)
	})
	if err != nil {
		s.ceiling.kept(-1)
		return nil, err
	}
	return w, nil
}

// relay is the wire of a page whose connection net/http keeps: its handler writes, one push at a time.
type relay struct {
	feed  *feed
	full  chan struct{} // pending is to be written
	ended chan struct{}

	mu      sync.Mutex
	pending []byte // the handler is busy while this is not empty
	closed  bool   // the writer has ended the stream
	over    bool   // the handler has left
}

func newRelay(f *feed) *relay {
	return &relay{feed: f, full: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (r *relay) push(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return 0, net.ErrClosed
	case len(r.pending) > 0:
		return 0, nil
	}
	r.pending = append(r.pending, b...)
	r.full <- struct{}{}
	return len(b), nil
}

func (r *relay) gone([]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

func (r *relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if !r.over {
		r.arm() // of a write that is under way
	}
	close(r.ended)
}

// arm sets how long a write may take. The caller holds r.mu. A connection that knows no deadline shows when it is written to.
func (r *relay) arm() {
	patience := writePatient
	if r.closed {
		patience = lastWords
	}
	_ = r.feed.ctl.SetWriteDeadline(time.Now().Add(patience))
}

// run is the handler's part: it writes until the stream ends or the page is gone.
func (r *relay) run(ctx context.Context) {
	defer func() {
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
	}()
	for {
		select {
		case <-r.full:
			if !r.write() {
				return
			}
		case <-ctx.Done():
			return
		case <-r.ended:
			select {
			case <-r.full:
				r.write()
			default:
			}
			return
		}
	}
}

func (r *relay) write() bool {
	r.mu.Lock()
	r.arm()
	r.mu.Unlock()
	if r.feed.write(r.pending) != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = r.pending[:0]
	return true
}
