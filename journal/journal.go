// Package journal is the contract of the product's truth: per-stream, gap-free, hash-chained, fenced append.
//
// A room is a fold over the records of its stream (architecture.md, sentence 1); an answer that gives, takes or spends a
// place leaves the server only after its records are durable here (domain.md rule 2). Implementations: [Memory] in this
// package (in process, volatile) and journal/postgres. journal/journaltest is the suite that both pass.
package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HashSize is the size of a record's hash in bytes (SHA-256).
const HashSize = 32

// Hash is the chain hash of a record: it covers the hash before it (see [Sum]). The hash before seq 1 is all zero.
type Hash [HashSize]byte

// Record is one event of a stream as it is stored: bytes decided are bytes stored.
type Record struct {
	Stream  string    // "<environment>/<room>" or "$org"
	Seq     int64     // 1, 2, 3 … without gaps, never reset within a stream; assigned by the writer, never by a database
	At      time.Time // UTC, whole microseconds (rooms use whole milliseconds); never runs back within a room
	Kind    string    // the event's kind, e.g. "join"
	Version int       // the kind's version, from 1
	Actor   string    // "visitor", "clock" or an operator's id
	Cause   string    // ULID of the command that led to it
	Body    []byte    // a JSON object, stored byte for byte
	Hash    Hash      // see Sum
}

// Head is where a stream stands: its last record's seq and hash (0 and zero before the first), and the lease epoch.
type Head struct {
	Stream string
	Seq    int64
	Hash   Hash
	Epoch  int64
}

// Lease is the right to append to a stream. Only the holder of the newest epoch can append (domain.md rule 13).
type Lease struct {
	Stream string
	Owner  string // the process that holds it, unique per process start
	Epoch  int64  // grows with each acquisition by another owner or after expiry; 1 is the first
	Head   Head   // the head at the time of acquisition, read after the epoch was raised
}

// Snapshot is a fold's state at a durable seq. It only shortens a start: a reader throws it away when the format or the
// hash at that seq differs, and verification never starts from one.
type Snapshot struct {
	Stream string
	Seq    int64
	Hash   Hash // the hash of record Seq
	Format int  // the encoder's format number
	State  []byte
}

// Errors of a Journal. Anything else is a failure of the storage itself: the append may or may not have happened, and the
// caller must read the stream again before it goes on.
var (
	// ErrFenced: the lease's epoch is not the stream's newest. Nothing was written.
	ErrFenced = errors.New("journal: fenced out by a newer epoch")
	// ErrConflict: the batch does not start right after the stream's head. Nothing was written.
	ErrConflict = errors.New("journal: the head has moved")
	// ErrInvalid: the batch is malformed (empty, gaps inside, other streams, a body that is not JSON, unsealed; see [Validate]), or a
	// name is one that no storage can hold. Nothing was written.
	ErrInvalid = errors.New("journal: invalid batch")
)

// HeldError says that another owner holds the lease.
type HeldError struct {
	Stream string
	Owner  string
	For    time.Duration // how long the lease still runs on the journal's clock
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("journal: %s is held by %s for another %s", e.Stream, e.Owner, e.For)
}

// Journal is the seam to the storage of record. All methods are safe for concurrent use and return soon after ctx ends.
type Journal interface {
	// Acquire takes the lease of a stream for ttl (on the journal's own clock), creating the stream when it does not exist
	// yet. It succeeds when nobody holds it, when it has run out, or when owner holds it already; each success by
	// another owner or after expiry raises the epoch. *HeldError when another owner holds it.
	Acquire(ctx context.Context, stream, owner string, ttl time.Duration) (Lease, error)
	// Renew extends leases that are still the newest, and returns the streams of those that are not.
	// A lease that ran out but that nobody took is extended with its epoch.
	Renew(ctx context.Context, leases []Lease, ttl time.Duration) (lost []string, err error)
	// Release gives a lease up at once, so that another process need not wait for it to run out; an append that still comes under it is
	// fenced out. Releasing a lost lease does nothing.
	Release(ctx context.Context, lease Lease) error

	// Append writes a batch of sealed records (see [Seal]) as one atomic unit and returns when it is durable. The records continue the
	// stream's head without a gap. epoch is the lease's; 0 appends without a lease, optimistically, to streams that never
	// had one ("$org"). Errors: ErrFenced, ErrConflict, ErrInvalid, or a storage failure (outcome unknown).
	Append(ctx context.Context, epoch int64, batch []Record) error
	// Read calls fn for each record of the stream with seq > after, in seq order, until fn returns an error (which Read returns)
	// or the head as of the call is reached. The record and its Body are only valid during the call of fn.
	Read(ctx context.Context, stream string, after int64, fn func(*Record) error) error
	// Head returns where a stream stands; the zero Head (with Stream set) when it does not exist.
	Head(ctx context.Context, stream string) (Head, error)
	// Streams lists the heads of all streams whose name starts with prefix, by name.
	Streams(ctx context.Context, prefix string) ([]Head, error)

	// SaveSnapshot stores s in place of the stream's older snapshot; one that is not newer is ignored.
	SaveSnapshot(ctx context.Context, s Snapshot) error
	// LoadSnapshot returns the newest snapshot of a stream, ok=false when there is none.
	LoadSnapshot(ctx context.Context, stream string) (s Snapshot, ok bool, err error)

	// Ping tells whether records could be appended now.
	Ping(ctx context.Context) error
}

// Vault keeps the secrets that must stay out of the journal and be erasable: the digest keys of a room's generations and the
// sealed secrets of its drops (domain.md rules 4 and 7).
type Vault interface {
	// Keep stores value under (stream, name) if nothing is there yet and returns what is stored: the first writer wins.
	Keep(ctx context.Context, stream, name string, value []byte) (stored []byte, err error)
	// Recall returns what is stored, ok=false when nothing is.
	Recall(ctx context.Context, stream, name string) (value []byte, ok bool, err error)
	// Erase removes everything of the stream whose name starts with prefix.
	Erase(ctx context.Context, stream, prefix string) error
}
