package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cable lies between one engine and the journal that several share. What it does to calls can be changed while they run.
type cable struct {
	journal.Journal
	vault journal.Vault

	mu      sync.Mutex
	state   cableState
	changed chan struct{} // closed and replaced when state changes
	hit     atomic.Int64  // calls that the cable failed
	hung    atomic.Int64  // calls that the cable let hang
}

type cableState int

const (
	whole  cableState = iota
	broken            // every call fails at once
	silent            // every call hangs until its context ends or the cable is mended
)

var errCable = errors.New("the cable is broken")

func newCable(j journal.Journal, v journal.Vault) *cable {
	return &cable{Journal: j, vault: v, changed: make(chan struct{})}
}

func (c *cable) set(s cableState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
	close(c.changed)
	c.changed = make(chan struct{})
}

// through says whether a call gets through.
func (c *cable) through(ctx context.Context) error {
	for {
		c.mu.Lock()
		state, changed := c.state, c.changed
		c.mu.Unlock()
		switch state {
		case whole:
			return nil
		case broken:
			c.hit.Add(1)
			return errCable
		}
		c.hung.Add(1)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *cable) Acquire(ctx context.Context, stream, owner string, ttl time.Duration) (journal.Lease, error) {
	if err := c.through(ctx); err != nil {
		return journal.Lease{}, err
	}
	return c.Journal.Acquire(ctx, stream, owner, ttl)
}

func (c *cable) Renew(ctx context.Context, leases []journal.Lease, ttl time.Duration) ([]string, error) {
	if err := c.through(ctx); err != nil {
		return nil, err
	}
	return c.Journal.Renew(ctx, leases, ttl)
}

func (c *cable) Release(ctx context.Context, l journal.Lease) error {
	if err := c.through(ctx); err != nil {
		return err
	}
	return c.Journal.Release(ctx, l)
}

func (c *cable) Append(ctx context.Context, epoch int64, batch []journal.Record) error {
	if err := c.through(ctx); err != nil {
		return err
	}
	return c.Journal.Append(ctx, epoch, batch)
}

func (c *cable) Read(ctx context.Context, stream string, after int64, fn func(*journal.Record) error) error {
	if err := c.through(ctx); err != nil {
		return err
	}
	return c.Journal.Read(ctx, stream, after, fn)
}

func (c *cable) Head(ctx context.Context, stream string) (journal.Head, error) {
	if err := c.through(ctx); err != nil {
		return journal.Head{}, err
	}
	return c.Journal.Head(ctx, stream)
}

func (c *cable) Streams(ctx context.Context, prefix string) ([]journal.Head, error) {
	if err := c.through(ctx); err != nil {
		return nil, err
	}
	return c.Journal.Streams(ctx, prefix)
}

func (c *cable) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if err := c.through(ctx); err != nil {
		return err
	}
	return c.Journal.SaveSnapshot(ctx, s)
}

func (c *cable) LoadSnapshot(ctx context.Context, stream string) (journal.Snapshot, bool, error) {
	if err := c.through(ctx); err != nil {
		return journal.Snapshot{}, false, err
	}
	return c.Journal.LoadSnapshot(ctx, stream)
}

func (c *cable) Ping(ctx context.Context) error {
	if err := c.through(ctx); err != nil {
		return err
	}
	return c.Journal.Ping(ctx)
}

func (c *cable) Keep(ctx context.Context, stream, name string, value []byte) ([]byte, error) {
	if err := c.through(ctx); err != nil {
		return nil, err
	}
	return c.vault.Keep(ctx, stream, name, value)
}

func (c *cable) Recall(ctx context.Context, stream, name string) ([]byte, bool, error) {
	if err := c.through(ctx); err != nil {
		return nil, false, err
	}
	return c.vault.Recall(ctx, stream, name)
}

func (c *cable) Erase(ctx context.Context, stream, prefix string) error {
	if err := c.through(ctx); err != nil {
		return err
	}
	return c.vault.Erase(ctx, stream, prefix)
}

// fataler is what a house needs of *testing.T and of *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// house is one journal and one shared projection, and the processes that work on them. It lives in a bubble of testing/synctest.
type house struct {
	t      fataler
	ctx    context.Context
	memory *journal.Memory
	series *projection.MemorySeries
	shared *projection.Memory
	fault  *projection.Fault // before shared
	ahead  atomic.Int64      // how far the rooms' clock is ahead of the bubble's, in ns
	all    []*process
	probe  Prober // of targets, for those that open later
}

// process is an engine with its own way to the journal.
type process struct {
	*Engine
	cable  *cable
	faults *journal.Fault
	start  func()
	stop   context.CancelFunc
	done   chan error
}

func newHouse(t fataler, ctx context.Context) *house {
	h := &house{t: t, ctx: ctx, memory: journal.NewMemory(), series: projection.NewMemorySeries(), shared: projection.NewMemory()}
	h.fault = projection.NewFault(h.shared)
	return h
}

func (h *house) now() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }

// open starts a process.
func (h *house) open() *process { return h.openOn(h.memory) }

// openOn starts a process that sees the journal through j.
func (h *house) openOn(j journal.Journal) *process {
	p := h.prepare(j)
	p.start()
	return p
}

// prepare makes a process that is yet to be started, for instance with faults armed for its first steps.
func (h *house) prepare(j journal.Journal) *process {
	f := journal.NewFault(j)
	c := newCable(f, h.memory)
	p := &process{cable: c, faults: f, done: make(chan error, 1)}
	p.Engine = New(Options{
		Environment: "production", Owner: fmt.Sprint("process-", len(h.all)+1), Journal: c, Vault: c, Shared: h.fault, Series: h.series, Probe: h.probe, Now: h.now,
	})
	ctx, stop := context.WithCancel(h.ctx)
	p.stop = stop
	p.start = func() {
		go func() { p.done <- p.Run(ctx) }()
		h.all = append(h.all, p)
	}
	return p
}

// kill ends a process as kill -9 does: nothing more of it reaches the journal.
func (h *house) kill(p *process) {
	p.faults.Disarm()
	p.cable.set(broken)
	h.close(p)
}

// close ends a process and waits for its end.
func (h *house) close(p *process) {
	h.t.Helper()
	p.stop()
	if err := <-p.done; err != nil {
		h.t.Fatalf("Run: %v", err)
	}
	p.done <- nil
}

// closeAll ends all processes.
func (h *house) closeAll() {
	for _, p := range h.all {
		p.faults.Disarm()
		p.stop()
	}
	for _, p := range h.all {
		<-p.done
	}
}

const stream = "production/shop"

// build makes the room "shop" through p.
func (h *house) build(p *process, change func(*room.Settings)) {
	h.t.Helper()
	s := testSettings(60)
	if change != nil {
		change(&s)
	}
	if _, err := p.Create(h.ctx, "shop", "admin", s, room.Active, time.Time{}); err != nil {
		h.t.Fatalf("create: %v", err)
	}
}

func (h *house) join(p *process, i int) (Answer, error) {
	return p.Join(h.ctx, "shop", fmt.Sprint("session-", i), network(i), 0)
}

// joins expects visitors first to last to get the tickets that begin with n.
func (h *house) joins(p *process, first, last int, n room.Ticket) {
	h.t.Helper()
	for i := first; i <= last; i++ {
		ans, err := h.join(p, i)
		if err != nil || ans.Place.Ticket != n {
			h.t.Fatalf("visitor %d: ticket %d, %v; not ticket %d", i, ans.Place.Ticket, err, n)
		}
		n++
	}
}

// ticket reads a ticket through p.
func (h *house) ticket(p *process, n room.Ticket) (room.Summary, room.Place) {
	h.t.Helper()
	synctest.Wait() // whatever else happens at this instant has happened
	v, err := p.View(h.ctx, "shop")
	if err != nil {
		h.t.Fatalf("view: %v", err)
	}
	sum, place, err := v.Ticket(h.ctx, n)
	if err != nil {
		h.t.Fatalf("ticket %d: %v", n, err)
	}
	return sum, place
}

// within waits until what holds, in steps of the bubble's time.
func (h *house) within(limit time.Duration, what string, holds func() bool) time.Duration {
	h.t.Helper()
	began := time.Now()
	for synctest.Wait(); !holds(); synctest.Wait() {
		if time.Since(began) > limit {
			h.t.Fatalf("not within %s: %s", limit, what)
		}
		nap(10 * time.Millisecond)
	}
	return time.Since(began)
}

// struck waits until a fault has struck.
func (h *house) struck(s *journal.Shot) {
	h.t.Helper()
	select {
	case <-s.Fired:
	case <-time.After(time.Hour + time.Minute): // drops here are an hour away
		h.t.Fatalf("the fault did not strike")
	}
}

func (h *house) owns(p *process) bool {
	r := p.known("shop")
	return r != nil && r.current() == owned
}

// nap waits in the bubble's time.
func nap(d time.Duration) { <-time.After(d) }

// expect fails unless err is want.
func (h *house) expect(what string, err, want error) {
	h.t.Helper()
	if !errors.Is(err, want) {
		h.t.Fatalf("%s: %v, not %v", what, err, want)
	}
}

// inside runs a test in a house with one process that has the room.
func inHouse(t *testing.T, change func(*room.Settings), test func(h *house, p *process)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		h := newHouse(t, t.Context())
		defer h.closeAll()
		p := h.open()
		h.build(p, change)
		test(h, p)
	})
}
