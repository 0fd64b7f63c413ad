package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"qm/journal"
)

// readSQL streams rows in PostgreSQL's binary COPY form, the fastest way out of it. Columns of fixed size come first, so that a row is taken apart with
// few checks. It runs on one MVCC snapshot: what it shows is the stream up to the head as of the call.
const readSQL = `copy (select seq, at, version, hash, kind, actor, cause, body from journal where stream = '%s' and seq > %d order by seq)
	to stdout (format binary)`

// Read implements [journal.Journal].
func (j *Journal) Read(ctx context.Context, stream string, after int64, fn func(*journal.Record) error) error {
	select {
	case j.reading <- struct{}{}:
		defer func() { <-j.reading }()
	case <-ctx.Done():
		return fmt.Errorf("postgres: read %s after %d: wait for a connection: %w", stream, after, ctx.Err())
	}
	conn, err := j.pool.Acquire(ctx)
	if err != nil {
		return wrap(err, "read %s after %d", stream, after)
	}
	defer conn.Release()
	pg := conn.Conn().PgConn()
	name, err := pg.EscapeString(stream)
	if err != nil {
		return wrap(err, "read %s after %d", stream, after)
	}
	d := decoder{stream: stream, fn: fn}
	_, err = pg.CopyTo(ctx, &d, fmt.Sprintf(readSQL, name, max(after, 0)))
	if d.stop != nil {
		return d.stop
	}
	if err == nil && !d.ended {
		err = errors.New("the stream of rows broke off")
	}
	return wrap(err, "read %s after %d", stream, max(after, d.r.Seq))
}

// decoder takes the binary COPY form apart as it arrives and hands on each row.
type decoder struct {
	stream string
	fn     func(*journal.Record) error

	r     journal.Record
	carry []byte // the beginning of a row whose end has not arrived: servers send whole rows, but nothing promises that
	begun bool   // the header was seen
	ended bool   // the trailer was seen
	stop  error  // what fn or a damaged row ended the read with
}

var copyHeader = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00")

// fixedPart is the size of a row up to its hash: the number of columns, then the length and the bytes of each column.
const fixedPart = 2 + (4 + 8) + (4 + 8) + (4 + 2) + (4 + journal.HashSize)

var errStop = errors.New("stop")

// Write implements io.Writer for pgconn.CopyTo.
func (d *decoder) Write(p []byte) (int, error) {
	data := p
	if len(d.carry) > 0 {
		d.carry = append(d.carry, p...)
		data = d.carry
	}
	for len(data) > 0 {
		n, err := d.take(data)
		if err != nil {
			d.stop = err
			return 0, errStop
		}
		if n == 0 {
			break
		}
		data = data[n:]
	}
	d.carry = append(d.carry[:0], data...)
	return len(p), nil
}

// take consumes the header, one row or the trailer, and returns its size; 0 when it is not there as a whole.
func (d *decoder) take(b []byte) (int, error) {
	if !d.begun {
		size := len(copyHeader) + 4
		if len(b) < size {
			return 0, nil
		}
		if !bytes.Equal(b[:len(copyHeader)], copyHeader) || binary.BigEndian.Uint32(b[size-4:]) != 0 {
			return 0, errors.New("postgres: COPY began with a header that is unknown here")
		}
		d.begun = true
		return size, nil
	}
	if len(b) < 2 {
		return 0, nil
	}
	if b[0] == 0xff && b[1] == 0xff {
		d.ended = true
		return 2, nil
	}
	if len(b) < fixedPart {
		return 0, nil
	}
	if binary.BigEndian.Uint16(b) != 8 || binary.BigEndian.Uint32(b[2:]) != 8 || binary.BigEndian.Uint32(b[14:]) != 8 ||
		binary.BigEndian.Uint32(b[26:]) != 2 {
		return 0, fmt.Errorf("postgres: read %s: a row after seq %d has columns that are unknown here", d.stream, d.r.Seq)
	}
	r := &d.r
	r.Seq = int64(binary.BigEndian.Uint64(b[6:]))
	if n := int32(binary.BigEndian.Uint32(b[32:])); n != journal.HashSize {
		return 0, fmt.Errorf("postgres: read %s seq %d: its hash has %d bytes", d.stream, r.Seq, n)
	}
	r.At = time.UnixMicro(int64(binary.BigEndian.Uint64(b[18:])) + epoch2000).UTC()
	r.Version = int(int16(binary.BigEndian.Uint16(b[30:])))
	copy(r.Hash[:], b[36:])

	at := fixedPart
	var texts [4][]byte
	for i := range texts {
		if len(b) < at+4 {
			return 0, nil
		}
		n := int(int32(binary.BigEndian.Uint32(b[at:])))
		if at += 4; n < 0 {
			return 0, fmt.Errorf("postgres: read %s seq %d: a column is null", d.stream, r.Seq)
		}
		if len(b)-at < n {
			return 0, nil
		}
		texts[i] = b[at : at+n : at+n]
		at += n
	}
	r.Stream = d.stream
	same(&r.Kind, texts[0])
	same(&r.Actor, texts[1])
	same(&r.Cause, texts[2])
	r.Body = texts[3]
	return at, d.fn(r)
}

// same sets s to b, and allocates only when it is another text than in the row before.
func same(s *string, b []byte) {
	if *s != string(b) {
		*s = string(b)
	}
}
