// Package engine sets rooms to work: one actor a room owns it under a lease, decides with the pure core (engine/room), appends to the
// journal before it answers, and publishes what is durable. Goroutines live here and nowhere below.
package engine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"time"

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
	Shared      projection.Store // where other processes read; nil when there is only this one
	Log         *slog.Logger
	Now         func() time.Time // time.Now by default
}

// Engine runs the rooms of one environment.
type Engine struct{}

// New makes an engine. It does nothing until Run.
func New(o Options) *Engine { panic("under construction") }

// Run owns and serves rooms until ctx ends; then it gives its leases up and returns nil.
func (e *Engine) Run(ctx context.Context) error { return nil }

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
	Cause   string       // ULID of the command
	Events  []room.Event // empty when nothing had to happen
	Place   room.Place   // for Join, Enter: the place
	Summary room.Summary // the room right after the decision
	Fresh   bool         // for Join: the place is new
}

// Join takes a place, or returns the one that the session holds. network is where the visitor comes from (an IPv4
// address or an IPv6 /64; the zero Prefix when unknown), score 0 to 100. Before the doors open the place is a handle. In bypass there is no place:
// Answer.Place is zero and Summary.Mode is Bypass. room.ErrRoomNotFound when there is no such room.
func (e *Engine) Join(ctx context.Context, roomID, session string, network netip.Prefix, score uint8) (Answer, error) {
	return Answer{}, nil
}

// Enter opens (or reclaims) the door session of a ticket for whoever proves that the pass is theirs: session is the ownership
// session of their browser ("" if not shown), codeAt the issue time of a verified hand-over code (0 if none). door is the
// digest of the fresh door-session key.
func (e *Engine) Enter(ctx context.Context, roomID string, n room.Ticket, session string, codeAt room.Instant, door room.Holder) (Answer, error) {
	return Answer{}, nil
}

// Leave gives back whatever place the session holds; Events is empty when there was none.
func (e *Engine) Leave(ctx context.Context, roomID, session string) (Answer, error) {
	return Answer{}, nil
}

// Do carries out an operator's command: Reconfigure, SetMode, Flush, EjectTicket, PurgeLine, CloseRoom, DeleteRoom, NewRoom. The engine fills
// in credit and presence. actor is the operator's id.
func (e *Engine) Do(ctx context.Context, roomID, actor string, c room.Command) (Answer, error) {
	return Answer{}, nil
}

// Schedule sets (or with the zero time cancels) the doors-open instant, with a sealed secret committed to in the event.
func (e *Engine) Schedule(ctx context.Context, roomID, actor string, opensAt time.Time) (Answer, error) {
	return Answer{}, nil
}

// Owns tells whether session is the ownership session that holds the place, in constant time.
func (e *Engine) Owns(ctx context.Context, roomID, session string, p room.Place) (bool, error) {
	return false, nil
}

// View reads a room: from memory where this process owns it (or did, as long as nobody else does), else from the shared
// projection. projection.ErrNoRoom when the journal has no such room (looked at no longer than a second ago); ErrStorage when that is unknown.
func (e *Engine) View(ctx context.Context, roomID string) (projection.View, error) {
	return nil, nil
}

// Rooms lists the ids of the rooms that exist, in order of creation.
func (e *Engine) Rooms(ctx context.Context) ([]string, error) { return nil, nil }

// Seen notes that the ticket's holder was here (a join, a status, a stream's heartbeat).
func (e *Engine) Seen(roomID string, n room.Ticket) {}

// SeenDoor notes that a door session was used, and tells when it was last seen by this process (0: never).
func (e *Engine) SeenDoor(roomID string, n room.Ticket) {}

// DoorOpen tells whether a door session still stands at now: renewed within sessionTtlSec and younger than sessionMaxSec.
func (e *Engine) DoorOpen(roomID string, s *room.Summary, p room.Place, now time.Time) bool {
	return false
}

// Read gives the records of a room with seq > after, in order; see journal.Journal.Read.
func (e *Engine) Read(ctx context.Context, roomID string, after int64, fn func(*journal.Record) error) error {
	return nil
}

// Export writes a room's records as NDJSON in the form that qm-replay reads.
func (e *Engine) Export(ctx context.Context, roomID string, w io.Writer) error { return nil }

// RoomHealth is how one room does in this process.
type RoomHealth struct {
	Room    string
	Owned   bool
	Damaged string // what is wrong with the journal; "" when nothing
	Lag     int64  // events that the shared projection is behind
}

// Health is what readiness rests on.
type Health struct {
	Ready      bool // joins can be made durable, and the shared projection (if any) is reachable
	JournalErr string
	SharedErr  string
	Rooms      []RoomHealth
}

// Health tells how the engine does, without waiting for I/O.
func (e *Engine) Health() Health { return Health{} }

// Stats are counters for /metrics; see metrics.go.
