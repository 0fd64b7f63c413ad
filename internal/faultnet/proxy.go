// Package faultnet is a TCP proxy that fails on request. A test puts it between the code under test
// and Postgres or Valkey, breaks the network, and reads from the counters that the fault fired. Only
// tests may import it (internal/archtest holds that).
package faultnet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// chunk is how many bytes travel at once. Under [Proxy.Slow] each chunk is one delay.
const chunk = 16 << 10

// dialLimit bounds the wait for the target, which is on this machine.
const dialLimit = 10 * time.Second

// Counts tells what a proxy has done since it was made. Numbers only grow.
type Counts struct {
	Accepted int64 // connections that were taken and reach the target
	Refused  int64 // connections that were closed at once, while cut
	Severed  int64 // connections that a cut closed in mid-life
	Held     int64 // times that bytes, or a new connection, were stopped by a stall
	Delayed  int64 // chunks that were slowed
	Bytes    int64 // bytes passed on, in both directions
}

// Proxy passes TCP connections on to a target, or fails to, as its last fault says. Faults act on
// open connections and on new ones alike. All methods may be called from any goroutine.
type Proxy struct {
	target   string
	listener net.Listener
	working  sync.WaitGroup
	counts   struct{ accepted, refused, severed, held, delayed, bytes atomic.Int64 }

	mu     sync.Mutex
	fault  fault
	links  map[*link]struct{}
	closed bool
}

// fault is what the network does now. A fault is never changed, only replaced.
type fault struct {
	cut   bool
	stall bool
	slow  time.Duration
	// over is closed when another fault takes its place, which wakes those who wait in this one.
	over chan struct{}
}

// link is one connection through the proxy.
type link struct {
	client net.Conn
	server net.Conn // nil until the target is dialled; written once, under Proxy.mu
	gone   context.Context
	end    context.CancelFunc
}

// sever closes both ends; it may be called many times.
func (l *link) sever() {
	l.end()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// New starts a proxy on a free port of the loopback in front of target, a host:port. It passes
// everything on until a fault is set, and ends with the test, leaving no goroutine.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("faultnet: listen: %v", err)
	}
	p := &Proxy{target: target, listener: listener, links: map[*link]struct{}{}}
	p.fault.over = make(chan struct{})
	p.working.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host:port to connect to instead of the target's.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut closes every connection and refuses new ones, as when the target died. When it returns, none
// is open.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace(fault{cut: true})
	// Under the same lock: bytes that a stall held must not slip through before their link ends.
	for l := range p.links {
		p.counts.severed.Add(1)
		l.sever()
		delete(p.links, l)
	}
}

// Stall keeps connections open, takes new ones and passes nothing on, as when packets are dropped:
// only a deadline of the code under test notices. Bytes that were read before it stay held until
// [Proxy.Restore].
func (p *Proxy) Stall() { p.become(fault{stall: true}) }

// Slow delays each chunk of up to 16 KiB by d, in both directions.
func (p *Proxy) Slow(d time.Duration) { p.become(fault{slow: d}) }

// Restore ends the fault. What a stall held is passed on; what a cut closed stays closed.
func (p *Proxy) Restore() { p.become(fault{}) }

// Counts returns what has happened so far. Compare two of them to prove that a fault fired.
func (p *Proxy) Counts() Counts {
	return Counts{
		Accepted: p.counts.accepted.Load(),
		Refused:  p.counts.refused.Load(),
		Severed:  p.counts.severed.Load(),
		Held:     p.counts.held.Load(),
		Delayed:  p.counts.delayed.Load(),
		Bytes:    p.counts.bytes.Load(),
	}
}

func (p *Proxy) become(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace(f)
}

// replace is become for who holds the lock.
func (p *Proxy) replace(f fault) {
	f.over = make(chan struct{})
	close(p.fault.over)
	p.fault = f
}

func (p *Proxy) now() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	_ = p.listener.Close()
	for l := range p.links {
		l.sever()
	}
	p.mu.Unlock()
	p.working.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // A client that was gone before it was taken.
		}
		l := &link{client: client}
		l.gone, l.end = context.WithCancel(context.Background())
		if p.admit(l) {
			p.working.Go(func() { p.carry(l) })
		}
	}
}

// admit enters the link into the list, or refuses it while the network is cut. It decides and enters
// under one lock, so that no link slips past a cut.
func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.cut || p.closed {
		p.counts.refused.Add(1)
		l.end()
		refuse(l.client)
		return false
	}
	p.links[l] = struct{}{}
	return true
}

// refuse closes with a reset, which is what a client of a port without a listener sees.
func refuse(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// carry serves one link until either end closes it.
func (p *Proxy) carry(l *link) {
	defer func() {
		l.sever()
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	// A stall holds the dial too: the target must not greet a client that it cannot hear.
	if !p.pass(l, 0) || !p.dial(l) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.copy(l, l.client, l.server) })
	p.copy(l, l.server, l.client)
	back.Wait()
}

// dial connects the link to the target, unless it was severed meanwhile.
func (p *Proxy) dial(l *link) bool {
	server, err := (&net.Dialer{Timeout: dialLimit}).DialContext(l.gone, "tcp", p.target)
	if err != nil {
		refuse(l.client)
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.gone.Err() != nil { // Severed before there was this end to close.
		_ = server.Close()
		return false
	}
	l.server = server
	p.counts.accepted.Add(1)
	return true
}

// copy passes bytes from one end to the other until one of them closes.
func (p *Proxy) copy(l *link, to, from net.Conn) {
	buffer := make([]byte, chunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.pass(l, n) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				l.sever()
				return
			}
			p.counts.bytes.Add(int64(n))
		}
		if errors.Is(err, io.EOF) { // The end of one direction is passed on too, once no fault holds it.
			if tcp, ok := to.(*net.TCPConn); ok && p.pass(l, 0) {
				_ = tcp.CloseWrite()
			}
			return
		}
		if err != nil {
			l.sever()
			return
		}
	}
}

// pass returns true once n bytes may go on, and false when the link has been severed. It waits as
// long as a stall lasts and as a slow network needs.
func (p *Proxy) pass(l *link, n int) bool {
	for slowed := false; ; {
		f := p.now()
		var enough <-chan time.Time
		switch {
		case f.stall:
			p.counts.held.Add(1)
		case f.slow > 0 && n > 0 && !slowed:
			p.counts.delayed.Add(1)
			slowed = true
			timer := time.NewTimer(f.slow)
			defer timer.Stop()
			enough = timer.C
		default:
			return l.gone.Err() == nil
		}
		select {
		case <-l.gone.Done():
			return false
		case <-f.over:
		case <-enough:
		}
	}
}
