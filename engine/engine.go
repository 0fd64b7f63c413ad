// Package engine sets rooms to work: one actor a room owns it under a lease, decides with the pure core (engine/room), appends to the
// journal before it answers, and publishes what is durable. Goroutines live here and nowhere below.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// Options are what an Engine is made of.
type Options struct {
	Environment string // the rooms' namespace, "production"
	Owner       string // unique per process start; "" makes one
	Journal     journal.Journal
	Vault       journal.Vault
	Shared      projection.Store  // where other processes read; nil when there is only this one
	Series      projection.Series // where the rooms' history is written down; nil: nowhere
	Probe       Prober            // looks at targets for autotune; nil: no rate follows one
	Log         *slog.Logger
	Now         func() time.Time // time.Now by default
}

// Engine runs the rooms of one environment.
type Engine struct {
	o        Options
	began    time.Time
	live     *projection.Memory
	requests *sync.Pool
	shared   projection.Preparer // how Options.Shared is written
	metrics  *metrics

	mu       sync.RWMutex
	rooms    map[string]*runner
	order    []string      // room ids as they were found
	serve    func(*runner) // starts a runner; nil before Run and after it
	listedAt time.Time     // of the last successful look at the journal's list
	listErr  error
	pingErr  error // of the shared projection
}

// Errors of the engine, beside the room.Refusal of the core. Each is retryable.
var (
	// ErrBusy: the room's mailbox is full. Nothing has happened.
	ErrBusy = errors.New("engine: the room has too many requests waiting")
	// ErrStorage: the journal could not be written, read or reached in time. The command may have been carried out all the
	// same; doing it again finds out.
	ErrStorage = errors.New("engine: the journal is out of reach")
	// ErrElsewhere: another process owns the room, or it is being taken over. Nothing has happened.
	ErrElsewhere = errors.New("engine: another process owns the room")
	// ErrDamaged: the room's journal does not verify; the room stays shut until it is mended.
	ErrDamaged = errors.New("engine: the room's journal is damaged")
)

// Answer is what a command came to, as of the durable event Seq.
type Answer struct {
	Seq     int64
	Cause   string        // ULID of the command
	Events  []room.Event  // empty when nothing had to happen
	Place   room.Place    // for Join, Enter: the place
	Summary *room.Summary // the room at the end of the batch; not to be written to
	Fresh   bool          // for Join: the place is new

	refused error
}

// New makes an engine. It does nothing until Run.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Owner == "" {
		o.Owner = ulid.Make().String()
	}
	e := &Engine{o: o, began: time.Now(), live: projection.NewMemory(), requests: newRequests(), rooms: make(map[string]*runner)}
	if p, ok := o.Shared.(projection.Preparer); ok {
		e.shared = p
	} else if o.Shared != nil {
		e.shared = eager{o.Shared}
	}
	e.metrics = newMetrics(e)
	return e
}

// Run owns and serves rooms until ctx ends; then it gives its leases up and returns nil.
func (e *Engine) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	serve := func(r *runner) { running.Go(func() { r.run(ctx) }) }
	e.mu.Lock()
	e.serve = serve
	for _, id := range e.order {
		serve(e.rooms[id])
	}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.serve = nil
		e.mu.Unlock()
	}()
	running.Go(func() { e.watchShared(ctx) })
	running.Go(func() { e.sharePresence(ctx) })
	running.Go(func() { e.keepHistory(ctx) })
	running.Go(func() { e.autopilot(ctx) })

	list := time.NewTicker(time.Second)
	defer list.Stop()
	renew := time.NewTicker(leaseRenew)
	defer renew.Stop()
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-renew.C:
				if err := e.renewLeases(ctx); err != nil && ctx.Err() == nil {
					e.o.Log.Warn("leases were not renewed", "error", err)
				}
			}
		}
	})
	for {
		_ = e.list(ctx) // kept for Health and View
		select {
		case <-ctx.Done():
			return nil
		case <-list.C:
		}
	}
}

// list looks at the journal's list of rooms and starts a runner for each new one.
func (e *Engine) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callerWait)
	defer cancel()
	prefix := e.o.Environment + "/"
	heads, err := e.o.Journal.Streams(ctx, prefix)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listErr = err; err != nil {
		return err
	}
	e.listedAt = e.o.Now()
	for _, h := range heads {
		e.runnerLocked(strings.TrimPrefix(h.Stream, prefix))
	}
	return nil
}

// watchShared keeps an eye on the shared projection, for Health.
func (e *Engine) watchShared(ctx context.Context) {
	if e.o.Shared == nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		ping, cancel := context.WithTimeout(ctx, callerWait)
		err := e.o.Shared.Ping(ping)
		cancel()
		if ctx.Err() != nil {
			return
		}
		e.mu.Lock()
		e.pingErr = err
		e.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *Engine) runnerLocked(id string) *runner {
	r := e.rooms[id]
	if r == nil {
		r = newRunner(e, id)
		e.rooms[id] = r
		e.order = append(e.order, id)
		if e.serve != nil {
			e.serve(r)
		}
	}
	return r
}

func (e *Engine) runners() []*runner {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*runner, 0, len(e.order))
	for _, id := range e.order {
		all = append(all, e.rooms[id])
	}
	return all
}

// listFresh is how old a look at the journal's room list may be for "there is no such room" (contract.md 17).
const listFresh = time.Second

// runner finds a room that the journal knows: projection.ErrNoRoom when it does not, ErrStorage when that cannot be told.
func (e *Engine) runner(ctx context.Context, id string) (*runner, error) {
	for look := true; ; look = false {
		if r := e.known(id); r != nil {
			return r, nil
		}
		e.mu.RLock()
		r, fresh := e.rooms[id], e.listErr == nil && e.o.Now().Sub(e.listedAt) <= listFresh
		e.mu.RUnlock()
		switch {
		case r != nil:
			return r, nil
		case fresh:
			return nil, projection.ErrNoRoom
		case !look || e.list(ctx) != nil:
			return nil, ErrStorage
		}
	}
}

// View reads a room: from memory where this process owns it (or did, as long as nobody else does), else from the shared
// projection. projection.ErrNoRoom when the journal has no such room (looked at no longer than a second ago); ErrStorage when that is unknown,
// ErrDamaged when the room is shut.
func (e *Engine) View(ctx context.Context, roomID string) (projection.View, error) {
	r, err := e.runner(ctx, roomID)
	if err != nil {
		return nil, err
	}
	switch r.settled(ctx) {
	case elsewhere:
		if r.shared == nil {
			return nil, ErrElsewhere
		}
		return r.shared, nil
	case damaged:
		return nil, ErrDamaged
	case owned:
		return r.view, nil
	}
	if _, _, err := r.view.Summary(ctx); err != nil { // never read since this process started
		if r.shared == nil {
			return nil, ErrStorage
		}
		return r.shared, nil
	}
	return r.view, nil
}

// Rooms lists the ids of the rooms that exist, in order of creation.
func (e *Engine) Rooms(ctx context.Context) ([]string, error) {
	type born struct {
		id string
		at room.Instant
	}
	var all []born
	for _, r := range e.runners() {
		v, err := e.View(ctx, r.id)
		if err != nil {
			if errors.Is(err, ErrDamaged) {
				continue
			}
			return nil, err
		}
		s, _, err := v.Summary(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStorage, err)
		}
		if !s.Exists {
			continue
		}
		all = append(all, born{r.id, s.CreatedAt})
	}
	slices.SortStableFunc(all, func(a, b born) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.id, b.id))
	})
	ids := make([]string, len(all))
	for i, b := range all {
		ids[i] = b.id
	}
	return ids, nil
}

// found is runner, for commands: an unknown room is the core's refusal.
func (e *Engine) found(ctx context.Context, roomID string) (*runner, error) {
	r, err := e.runner(ctx, roomID)
	if errors.Is(err, projection.ErrNoRoom) {
		return nil, room.ErrRoomNotFound
	}
	return r, err
}

// Read gives the records of a room with seq > after, in order; see journal.Journal.Read.
func (e *Engine) Read(ctx context.Context, roomID string, after int64, fn func(*journal.Record) error) error {
	r, err := e.runner(ctx, roomID)
	if err != nil {
		return err
	}
	return e.o.Journal.Read(ctx, r.stream, after, fn)
}

// Export writes a room's records as NDJSON in the form that qm-replay reads.
func (e *Engine) Export(ctx context.Context, roomID string, w io.Writer) error {
	out := journal.NewLineWriter(w)
	if err := e.Read(ctx, roomID, 0, out.Write); err != nil {
		return err
	}
	return out.Flush()
}
