package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"qm/journal"
)

// appendSQL is the whole of an append: it moves the head row if, and only if, it stands where the writer thinks, under the writer's epoch,
// and inserts the rows from arrays. One statement needs no transaction around it and one round trip.
//
// What varies from row to row comes in arrays. kind, version and actor seldom do, so a batch that has just one of each sends it
// once and the array empty, which unnest fills up with nulls.
const (
	appendName = "qm_append"
	appendSQL  = `with moved as (
	update head set seq = $4, hash = $5
	where stream = $1::text and epoch = $2::bigint and seq = $3::bigint and (owner is not null or epoch = 0)
	returning stream)
insert into journal (stream, seq, at, kind, version, actor, cause, body, hash)
select moved.stream, $3 + r.n, r.at, coalesce(r.kind, $6::text), coalesce(r.version, $7::smallint), coalesce(r.actor, $8::text), r.cause, r.body, r.hash
from moved, unnest($9::timestamptz[], $10::text[], $11::smallint[], $12::text[], $13::text[], $14::json[], $15::bytea[])
	with ordinality r(at, kind, version, actor, cause, body, hash, n)`
	appendParams = 15
)

// Append implements [journal.Journal].
func (j *Journal) Append(ctx context.Context, epoch int64, batch []journal.Record) error {
	if err := journal.Validate(batch); err != nil {
		return err
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.encode(epoch, batch)
	stream, first := batch[0].Stream, batch[0].Seq
	for {
		moved, err := j.exec(ctx, e)
		if err != nil {
			return wrap(err, "append %s seq %d, %d records", stream, first, len(batch))
		}
		if moved {
			return nil
		}
		again, err := j.refused(ctx, stream, first, epoch)
		if !again {
			return err
		}
	}
}

func (j *Journal) exec(ctx context.Context, e *encoder) (moved bool, err error) {
	conn, err := j.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	tag, err := conn.Conn().PgConn().ExecPrepared(ctx, appendName, e.params[:], binaryFormat, binaryFormat).Close()
	if useless(err) {
		_ = conn.Conn().Close(ctx) // and the pool makes another
	}
	return tag.RowsAffected() > 0, err
}

// useless tells whether a session that answers as if all were well can take no append any more: its statement is gone or out of date (a pooler
// reset it, somebody changed the table), or its server became a standby.
func useless(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains([]string{"26000", "0A000", "25006"}, pg.Code)
}

var binaryFormat = []int16{1} // of all parameters and results

// refused finds out why an append moved no row. again means that it deserves another try: a stream without leases has no head row before
// its first append.
func (j *Journal) refused(ctx context.Context, stream string, first, epoch int64) (again bool, err error) {
	var seq, newest int64
	var owned bool
	rows, err := j.pool.Query(ctx, `select seq, epoch, owner is not null from head where stream = $1`, stream)
	if err != nil {
		return false, wrap(err, "append %s seq %d", stream, first)
	}
	found := rows.Next()
	if found {
		err = rows.Scan(&seq, &newest, &owned)
	}
	rows.Close()
	if err == nil {
		err = rows.Err()
	}
	switch {
	case err != nil:
		return false, wrap(err, "append %s seq %d", stream, first)
	case newest != epoch, epoch != 0 && !owned:
		return false, fmt.Errorf("append %s with epoch %d: %w", stream, epoch, journal.ErrFenced)
	case seq != first-1:
		return false, fmt.Errorf("append %s seq %d: %w", stream, first, journal.ErrConflict)
	case found:
		return true, nil
	}
	_, err = j.pool.Exec(ctx, `insert into head (stream) values ($1) on conflict do nothing`, stream)
	return err == nil, wrap(err, "append %s seq %d", stream, first)
}

// encoder writes the parameters of appendSQL in PostgreSQL's binary form into one buffer that is used again and again.
type encoder struct {
	buf    []byte
	ends   [appendParams]int
	params [appendParams][]byte
}

var encoders = sync.Pool{New: func() any { return &encoder{} }}

// keepBuffer bounds the buffer that waits for the next batch.
const keepBuffer = 16 << 20

func (e *encoder) encode(epoch int64, batch []journal.Record) {
	first, last := &batch[0], &batch[len(batch)-1]
	oneKind, oneVersion, oneActor, size := true, true, true, 0
	for i := range batch {
		r := &batch[i]
		oneKind = oneKind && r.Kind == first.Kind
		oneVersion = oneVersion && r.Version == first.Version
		oneActor = oneActor && r.Actor == first.Actor
		size += len(r.Kind) + len(r.Actor) + len(r.Cause) + len(r.Body) + 80
	}
	b, n := e.buf[:0], 0
	if cap(b) < size+1024 {
		b = make([]byte, 0, size+size/4+1024)
	}
	end := func() { e.ends[n] = len(b); n++ }

	b = append(b, first.Stream...)
	end()
	b = binary.BigEndian.AppendUint64(b, uint64(epoch))
	end()
	b = binary.BigEndian.AppendUint64(b, uint64(first.Seq-1))
	end()
	b = binary.BigEndian.AppendUint64(b, uint64(last.Seq))
	end()
	b = append(b, last.Hash[:]...)
	end()
	b = append(b, first.Kind...)
	end()
	b = binary.BigEndian.AppendUint16(b, uint16(first.Version))
	end()
	b = append(b, first.Actor...)
	end()

	b = array(b, pgtype.TimestamptzOID, len(batch))
	for i := range batch {
		b = append(b, 0, 0, 0, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(batch[i].At.UnixMicro()-epoch2000))
	}
	end()
	if oneKind {
		b = array(b, pgtype.TextOID, 0)
	} else {
		b = array(b, pgtype.TextOID, len(batch))
		for i := range batch {
			b = text(b, batch[i].Kind)
		}
	}
	end()
	if oneVersion {
		b = array(b, pgtype.Int2OID, 0)
	} else {
		b = array(b, pgtype.Int2OID, len(batch))
		for i := range batch {
			b = append(b, 0, 0, 0, 2, byte(batch[i].Version>>8), byte(batch[i].Version))
		}
	}
	end()
	if oneActor {
		b = array(b, pgtype.TextOID, 0)
	} else {
		b = array(b, pgtype.TextOID, len(batch))
		for i := range batch {
			b = text(b, batch[i].Actor)
		}
	}
	end()
	b = array(b, pgtype.TextOID, len(batch))
	for i := range batch {
		b = text(b, batch[i].Cause)
	}
	end()
	b = array(b, pgtype.JSONOID, len(batch))
	for i := range batch {
		b = binary.BigEndian.AppendUint32(b, uint32(len(batch[i].Body)))
		b = append(b, batch[i].Body...)
	}
	end()
	b = array(b, pgtype.ByteaOID, len(batch))
	for i := range batch {
		b = append(b, 0, 0, 0, journal.HashSize)
		b = append(b, batch[i].Hash[:]...)
	}
	end()

	from := 0
	for i, to := range e.ends {
		e.params[i] = b[from:to]
		from = to
	}
	if e.buf = b; cap(b) > keepBuffer {
		e.buf = nil
	}
}

// epoch2000 is where PostgreSQL's timestamps start, in Unix microseconds.
const epoch2000 = int64(946684800 * time.Second / time.Microsecond)

// array begins a one-dimensional array of n elements without nulls; each element is its length and its bytes.
func array(b []byte, oid uint32, n int) []byte {
	if n == 0 {
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
		return binary.BigEndian.AppendUint32(b, oid)
	}
	b = append(b, 0, 0, 0, 1, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, oid)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return append(b, 0, 0, 0, 1)
}

func text(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
