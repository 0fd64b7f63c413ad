package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"qm/journal"
)

// Leases live in the head rows and run on the database's clock (clock_timestamp: it moves within a statement that waited for a lock).

// heldSQL asks first, without a write: processes that wait for a room ask every second.
const heldSQL = `select owner, (extract(epoch from expires_at - clock_timestamp()) * 1000000)::bigint from head
	where stream = $1 and owner <> $2 and expires_at > clock_timestamp()`

// acquireSQL locks the row before it looks, so that what it returns is the head after the epoch was raised: an append of
// the old owner is either in it or fenced out.
const acquireSQL = `insert into head as h (stream, epoch, owner, expires_at)
	values ($1, 1, $2, clock_timestamp() + $3 * interval '1 microsecond')
	on conflict (stream) do update set
		epoch = h.epoch + case when h.owner = $2 and h.expires_at > clock_timestamp() then 0 else 1 end,
		owner = excluded.owner, expires_at = clock_timestamp() + $3 * interval '1 microsecond'
	where h.owner is null or h.owner = $2 or h.expires_at <= clock_timestamp()
	returning seq, hash, epoch`

// Acquire implements [journal.Journal].
func (j *Journal) Acquire(ctx context.Context, stream, owner string, ttl time.Duration) (journal.Lease, error) {
	if stream == "" || owner == "" {
		return journal.Lease{}, fmt.Errorf("postgres: %w: lease of stream %q by owner %q", journal.ErrInvalid, stream, owner)
	}
	for {
		var other string
		var left int64
		err := j.pool.QueryRow(ctx, heldSQL, stream, owner).Scan(&other, &left)
		if err == nil {
			return journal.Lease{}, &journal.HeldError{Stream: stream, Owner: other, For: time.Duration(max(left, 1)) * time.Microsecond}
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return journal.Lease{}, wrap(err, "acquire %s", stream)
		}
		l := journal.Lease{Stream: stream, Owner: owner, Head: journal.Head{Stream: stream}}
		err = j.pool.QueryRow(ctx, acquireSQL, stream, owner, ttl.Microseconds()).Scan(&l.Head.Seq, hash{&l.Head.Hash}, &l.Epoch)
		if err == nil {
			l.Head.Epoch = l.Epoch
			return l, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return journal.Lease{}, wrap(err, "acquire %s", stream)
		}
		// Somebody else was faster; the next look says who.
	}
}

// Renew implements [journal.Journal], in one statement for all of them.
func (j *Journal) Renew(ctx context.Context, leases []journal.Lease, ttl time.Duration) (lost []string, err error) {
	if len(leases) == 0 {
		return nil, nil
	}
	streams, epochs, owners := make([]string, len(leases)), make([]int64, len(leases)), make([]string, len(leases))
	for i, l := range leases {
		streams[i], epochs[i], owners[i] = l.Stream, l.Epoch, l.Owner
	}
	rows, _ := j.pool.Query(ctx, `update head h set expires_at = clock_timestamp() + $4 * interval '1 microsecond'
		from unnest($1::text[], $2::bigint[], $3::text[]) l(stream, epoch, owner)
		where h.stream = l.stream and h.epoch = l.epoch and h.owner = l.owner returning h.stream`,
		streams, epochs, owners, ttl.Microseconds())
	renewed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, wrap(err, "renew %d leases", len(leases))
	}
	slices.Sort(renewed)
	for _, stream := range streams {
		if _, ok := slices.BinarySearch(renewed, stream); !ok {
			lost = append(lost, stream)
		}
	}
	return lost, nil
}

// Release implements [journal.Journal].
func (j *Journal) Release(ctx context.Context, l journal.Lease) error {
	_, err := j.pool.Exec(ctx, `update head set owner = null, expires_at = null where stream = $1 and epoch = $2 and owner = $3`,
		l.Stream, l.Epoch, l.Owner)
	return wrap(err, "release %s", l.Stream)
}

// Head implements [journal.Journal].
func (j *Journal) Head(ctx context.Context, stream string) (journal.Head, error) {
	h := journal.Head{Stream: stream}
	err := j.pool.QueryRow(ctx, `select seq, hash, epoch from head where stream = $1`, stream).Scan(&h.Seq, hash{&h.Hash}, &h.Epoch)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return journal.Head{}, wrap(err, "head of %s", stream)
	}
	return h, nil
}

// Streams implements [journal.Journal].
func (j *Journal) Streams(ctx context.Context, prefix string) ([]journal.Head, error) {
	rows, _ := j.pool.Query(ctx, `select stream, seq, hash, epoch from head where starts_with(stream, $1) order by stream`, prefix)
	heads, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h journal.Head, err error) {
		err = row.Scan(&h.Stream, &h.Seq, hash{&h.Hash}, &h.Epoch)
		return h, err
	})
	return heads, wrap(err, "streams %s", prefix)
}

// hash reads a bytea of exactly the right size.
type hash struct{ to *journal.Hash }

// ScanBytes implements pgtype.BytesScanner.
func (h hash) ScanBytes(b []byte) error {
	if len(b) != journal.HashSize {
		return fmt.Errorf("a stored hash has %d bytes instead of %d", len(b), journal.HashSize)
	}
	copy(h.to[:], b)
	return nil
}
