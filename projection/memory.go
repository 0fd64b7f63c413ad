package projection

import (
	"context"
	"crypto/rand"
	"sync"

	"qm/engine/room"
)

// Memory is the live view: a lean [room.State] per room, in this process. It answers polls (architecture.md, sentence 6),
// outlives the actor that feeds it, and is lost with the process.
//
// It folds events itself and never looks at [Batch.State].
type Memory struct {
	rooms sync.Map // stream -> *memoryRoom; read far more often than written
	hints Hints
}

// memoryRoom is replaced in the map only by Drop, so a reader that still has a dropped one reads a room as it was.
type memoryRoom struct {
	mu       sync.RWMutex
	position Position
	state    *room.State // nil until the first Reset
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{} }

// NewIncarnation names a projection that is about to be built.
func NewIncarnation() string { return rand.Text() }

// Apply implements [Store]. Readers of the room wait while it folds.
func (m *Memory) Apply(_ context.Context, b Batch) error {
	r := m.room(b.Room)
	if r == nil {
		return ErrGap
	}
	moved, err := r.apply(&b)
	if moved {
		m.hints.Send(b.Room)
	}
	return err
}

func (r *memoryRoom) apply(b *Batch) (moved bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.state == nil:
		return false, ErrGap
	case b.Epoch < r.position.Epoch:
		return false, ErrStale
	case b.After > r.position.Seq:
		return false, ErrGap
	case b.Last() <= r.position.Seq:
		return false, nil
	}
	for _, e := range b.Events[r.position.Seq-b.After:] {
		r.state.Apply(e)
	}
	r.position.Epoch, r.position.Seq = b.Epoch, b.Last()
	return true, nil
}

// Reset implements [Store]. It keeps a lean copy of s.
func (m *Memory) Reset(_ context.Context, stream string, epoch, seq int64, s *room.State) error {
	lean := s.Lean() // Outside the lock: a big room takes a while to copy, and readers go on with the old one.
	found, _ := m.rooms.LoadOrStore(stream, &memoryRoom{})
	r := found.(*memoryRoom)
	if err := r.reset(epoch, seq, lean); err != nil {
		return err
	}
	m.hints.Send(stream)
	return nil
}

func (r *memoryRoom) reset(epoch, seq int64, lean *room.State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != nil && epoch < r.position.Epoch {
		return ErrStale
	}
	r.state, r.position = lean, Position{Incarnation: NewIncarnation(), Epoch: epoch, Seq: seq}
	return nil
}

// Disown implements [Store].
func (m *Memory) Disown(_ context.Context, stream string) error {
	if r := m.room(stream); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.position.Epoch = 0
	}
	return nil
}

// Drop forgets a room: reads give ErrNoRoom, Apply gives ErrGap until a Reset.
func (m *Memory) Drop(stream string) {
	if _, was := m.rooms.LoadAndDelete(stream); was {
		m.hints.Send(stream)
	}
}

// With runs fn on the room's durable state and position, which stand still meanwhile: polls go on, Apply waits. So fn must
// only read and must not do I/O; see [Preparer] for handing the state to a Store that does. ErrNoRoom when there is none.
func (m *Memory) With(stream string, fn func(epoch, seq int64, s *room.State) error) error {
	r := m.room(stream)
	if r == nil {
		return ErrNoRoom
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.state == nil {
		return ErrNoRoom
	}
	return fn(r.position.Epoch, r.position.Seq, r.state)
}

// Position implements [Store].
func (m *Memory) Position(_ context.Context, stream string) (Position, error) {
	r := m.room(stream)
	if r == nil {
		return Position{}, nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.position, nil
}

// Watch implements [Store].
func (m *Memory) Watch(ctx context.Context, stream string) (<-chan struct{}, error) {
	return m.hints.Watch(ctx, stream), nil
}

// Ping implements [Store]: memory can always be reached.
func (m *Memory) Ping(context.Context) error { return nil }

// View implements [Store].
func (m *Memory) View(stream string) View { return &memoryView{m: m, stream: stream} }

func (m *Memory) room(stream any) *memoryRoom {
	if found, ok := m.rooms.Load(stream); ok {
		return found.(*memoryRoom)
	}
	return nil
}

// memoryView keeps the stream as the map's key type, so that a poll allocates nothing.
type memoryView struct {
	m      *Memory
	stream any
}

// hold gives the room under its read lock, which the caller releases.
func (v *memoryView) hold() (*memoryRoom, error) {
	r := v.m.room(v.stream)
	if r == nil {
		return nil, ErrNoRoom
	}
	r.mu.RLock()
	if r.state == nil {
		r.mu.RUnlock()
		return nil, ErrNoRoom
	}
	return r, nil
}

func (v *memoryView) Summary(context.Context) (room.Summary, Position, error) {
	r, err := v.hold()
	if err != nil {
		return room.Summary{}, Position{}, err
	}
	defer r.mu.RUnlock()
	return r.state.Summary(), r.position, nil
}

func (v *memoryView) Ticket(_ context.Context, n room.Ticket) (room.Summary, room.Place, error) {
	r, err := v.hold()
	if err != nil {
		return room.Summary{}, room.Place{}, err
	}
	defer r.mu.RUnlock()
	return r.state.Summary(), r.state.Ticket(n), nil
}

func (v *memoryView) Handle(_ context.Context, q room.Handle) (room.Summary, room.Place, error) {
	r, err := v.hold()
	if err != nil {
		return room.Summary{}, room.Place{}, err
	}
	defer r.mu.RUnlock()
	return r.state.Summary(), r.state.Handle(q), nil
}
