package postgres

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5"

	"qm/journal"
)

// SaveSnapshot implements [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	conn, err := j.pool.Acquire(ctx)
	if err != nil {
		return wrap(err, "save snapshot of %s", s.Stream)
	}
	defer conn.Release()
	// Below pgx, whose connection would keep a buffer as large as the state.
	params := [][]byte{[]byte(s.Stream), binary.BigEndian.AppendUint64(nil, uint64(s.Seq)), s.Hash[:],
		binary.BigEndian.AppendUint32(nil, uint32(s.Format)), some(s.State)}
	_, err = conn.Conn().PgConn().ExecParams(ctx, saveSQL, params, nil, binaryFormat, nil).Close()
	return wrap(err, "save snapshot of %s", s.Stream)
}

const saveSQL = `insert into snapshot as s (stream, seq, hash, format, state) values ($1::text, $2::bigint, $3::bytea, $4::integer, $5::bytea)
	on conflict (stream) do update set seq = excluded.seq, hash = excluded.hash, format = excluded.format, state = excluded.state
	where s.seq < excluded.seq`

// LoadSnapshot implements [journal.Journal].
func (j *Journal) LoadSnapshot(ctx context.Context, stream string) (journal.Snapshot, bool, error) {
	s := journal.Snapshot{Stream: stream}
	err := j.pool.QueryRow(ctx, `select seq, hash, format, state from snapshot where stream = $1`, stream).
		Scan(&s.Seq, hash{&s.Hash}, &s.Format, &s.State)
	if errors.Is(err, pgx.ErrNoRows) {
		return journal.Snapshot{}, false, nil
	}
	if err != nil {
		return journal.Snapshot{}, false, wrap(err, "load snapshot of %s", stream)
	}
	return s, true, nil
}

// Keep implements [journal.Vault].
func (j *Journal) Keep(ctx context.Context, stream, name string, value []byte) (stored []byte, err error) {
	for {
		err = j.pool.QueryRow(ctx, `with kept as (insert into vault (stream, name, value) values ($1, $2, $3) on conflict do nothing returning value)
			select value from kept union all select value from vault where stream = $1 and name = $2`, stream, name, some(value)).Scan(&stored)
		// Nothing came back when another writer committed while the insert waited for it: it is too new for this statement to see.
		if !errors.Is(err, pgx.ErrNoRows) {
			return stored, wrap(err, "keep %s of %s", name, stream)
		}
	}
}

// Recall implements [journal.Vault].
func (j *Journal) Recall(ctx context.Context, stream, name string) (value []byte, ok bool, err error) {
	err = j.pool.QueryRow(ctx, `select value from vault where stream = $1 and name = $2`, stream, name).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return value, err == nil, wrap(err, "recall %s of %s", name, stream)
}

// Erase implements [journal.Vault].
func (j *Journal) Erase(ctx context.Context, stream, prefix string) error {
	_, err := j.pool.Exec(ctx, `delete from vault where stream = $1 and starts_with(name, $2)`, stream, prefix)
	return wrap(err, "erase %s of %s", prefix, stream)
}

// some keeps pgx from writing a nil slice as null.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
