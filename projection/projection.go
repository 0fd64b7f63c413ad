// Package projection is the contract of everything that reads: views of rooms that may be lost at any time and are rebuilt from
// the journal, equal in every field (architecture.md, sentence 4; domain.md rule 2).
//
// [Memory] is the live view that answers this process's polls. projection/valkey is what other processes, consoles and edges
// read. projection/projectiontest is the suite that both pass.
package projection

import (
	"context"
	"errors"

	"qm/engine/room"
)

// Position is where a room's projection stands.
type Position struct {
	Incarnation string // changes whenever the projection is rebuilt, and may change with a batch that is big; "" when there is none
	Epoch       int64  // the lease epoch of the last writer
	Seq         int64  // the last event applied
}

// Batch is a run of consecutive events of one room, on the way into a Store.
type Batch struct {
	Room   string // the room's stream, "<environment>/<room>"
	Epoch  int64  // the writer's lease epoch
	After  int64  // seq before the first event
	Events []room.Event
	State  *room.State // the room as of the last event; only read, and only during Apply
}

// Last is the seq of the batch's last event.
func (b *Batch) Last() int64 { return b.After + int64(len(b.Events)) }

// Errors of a Store. Anything else means that the store could not be reached or is damaged.
var (
	// ErrGap: the batch starts after the projection's position, or there is no projection yet. Nothing was applied; Reset it.
	ErrGap = errors.New("projection: events are missing before the batch")
	// ErrStale: a writer with a newer epoch has been here. Nothing was applied.
	ErrStale = errors.New("projection: a newer owner has written")
	// ErrNoRoom: there is no projection of the room.
	ErrNoRoom = errors.New("projection: no such room")
)

// Store holds a projection of each room. All methods are safe for concurrent use.
type Store interface {
	// Apply makes a batch visible as one unit. Events at or before the position are ignored; a hole is ErrGap; an epoch
	// older than the position's is ErrStale.
	Apply(ctx context.Context, b Batch) error
	// Reset replaces whatever there is by the room as of seq, under a new incarnation, visible as one unit.
	// ErrStale when a newer epoch has written.
	Reset(ctx context.Context, stream string, epoch, seq int64, s *room.State) error
	// Disown forgets which epoch wrote last, so that any owner may write; what there is stays until then. See [Reclaim].
	Disown(ctx context.Context, stream string) error
	// Position tells where the room's projection stands; the zero Position when there is none.
	Position(ctx context.Context, stream string) (Position, error)
	// View reads a room. It does no I/O by itself.
	View(stream string) View
	// Watch hints that a room may have changed: it sends (without blocking, at most one pending) after an Apply or Reset until ctx
	// ends. Hints may be lost; readers re-read now and then all the same.
	Watch(ctx context.Context, stream string) (<-chan struct{}, error)
	// Ping tells whether the store can be reached and kept its settings (for Valkey: maxmemory-policy is noeviction).
	Ping(ctx context.Context) error
}

// View reads one room, each call as of one seq. ErrNoRoom when there is no projection of it.
type View interface {
	Summary(ctx context.Context) (room.Summary, Position, error)
	Ticket(ctx context.Context, n room.Ticket) (room.Summary, room.Place, error)
	Handle(ctx context.Context, q room.Handle) (room.Summary, room.Place, error)
}
