package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"qm/journal"
)

var (
	_ journal.Notes = (*Journal)(nil)
	_ journal.Acts  = (*Journal)(nil)
)

// WriteNote implements [journal.Notes].
func (j *Journal) WriteNote(ctx context.Context, n journal.Note) error {
	if n.Cause == "" || n.At.Nanosecond()%1000 != 0 {
		return fmt.Errorf("%w: a note without a cause or a time", journal.ErrInvalid)
	}
	_, err := j.pool.Exec(ctx, `insert into note (cause, stream, at, name, origin, reason) values ($1, $2, $3, $4, $5, $6)
		on conflict (cause) do update set stream = excluded.stream, at = excluded.at, name = excluded.name, origin = excluded.origin, reason = excluded.reason`,
		n.Cause, n.Stream, n.At, n.Name, n.From, n.Reason)
	return wrap(err, "write a note on %s", n.Stream)
}

// FindNotes implements [journal.Notes].
func (j *Journal) FindNotes(ctx context.Context, causes []string) (map[string]journal.Note, error) {
	found := make(map[string]journal.Note, len(causes))
	if len(causes) == 0 {
		return found, nil
	}
	rows, err := j.pool.Query(ctx, `select cause, stream, at, name, origin, reason from note where cause = any($1)`, causes)
	if err != nil {
		return nil, wrap(err, "find notes")
	}
	var n journal.Note
	_, err = pgx.ForEachRow(rows, []any{&n.Cause, &n.Stream, &n.At, &n.Name, &n.From, &n.Reason}, func() error {
		n.At = n.At.UTC()
		found[n.Cause] = n
		return nil
	})
	return found, wrap(err, "find notes")
}

// EraseNotes implements [journal.Notes].
func (j *Journal) EraseNotes(ctx context.Context, causes ...string) error {
	_, err := j.pool.Exec(ctx, `delete from note where cause = any($1)`, causes)
	return wrap(err, "erase notes")
}

// ForgetNotes implements [journal.Notes].
func (j *Journal) ForgetNotes(ctx context.Context, before time.Time) (int, error) {
	tag, err := j.pool.Exec(ctx, `update note set origin = '', reason = '' where at < $1 and (origin <> '' or reason <> '')`, before)
	return int(tag.RowsAffected()), wrap(err, "forget notes")
}

// columns are a record's.
const columns = `stream, seq, at, kind, version, actor, cause, body::text, hash`

// The conditions on actor and kind are those of the partial indexes journal_act and journal_shape, word for word.
const (
	actsSQL = `select ` + columns + ` from journal where actor not in ('visitor', 'clock')
		and ($1 = '' or stream = $1) and ($2 = '' or actor = $2) and ($3 = '' or kind = $3)
		and ($4::timestamptz is null or at >= $4) and ($5::timestamptz is null or at < $5)
		and ($6::timestamptz is null or (at, stream, seq) < ($6, $7 collate "C", $8::bigint))
		order by at desc, stream desc, seq desc`
	formerSQL = `select ` + columns + ` from journal where stream = $1 and seq < $2 and kind = any($3)
		and kind in ('create', 'configure', 'state', 'schedule', 'draw', 'close', 'delete') order by seq desc limit 1`
)

// Acts implements [journal.Acts].
func (j *Journal) Acts(ctx context.Context, q journal.ActQuery, fn func(*journal.Record) error) error {
	select {
	case j.reading <- struct{}{}:
		defer func() { <-j.reading }()
	case <-ctx.Done():
		return fmt.Errorf("postgres: acts: wait for a connection: %w", ctx.Err())
	}
	after := journal.ActPlace{}
	if q.After != nil {
		after = *q.After
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // fn may have enough long before the rows end
	rows, err := j.pool.Query(ctx, actsSQL, q.Stream, q.Actor, q.Kind, instant(q.Since), instant(q.Until), instant(after.At), after.Stream, after.Seq)
	if err != nil {
		return wrap(err, "read acts")
	}
	defer rows.Close()
	for rows.Next() {
		r, err := record(rows)
		if err != nil {
			return wrap(err, "read acts")
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return wrap(rows.Err(), "read acts")
}

// Former implements [journal.Acts].
func (j *Journal) Former(ctx context.Context, stream string, seq int64, kinds ...string) (journal.Record, bool, error) {
	r, err := record(j.pool.QueryRow(ctx, formerSQL, stream, seq, kinds))
	if errors.Is(err, pgx.ErrNoRows) {
		return journal.Record{}, false, nil
	}
	return r, err == nil, wrap(err, "read the former state of %s", stream)
}

func record(row pgx.Row) (r journal.Record, err error) {
	var body string
	err = row.Scan(&r.Stream, &r.Seq, &r.At, &r.Kind, &r.Version, &r.Actor, &r.Cause, &body, hash{&r.Hash})
	r.At, r.Body = r.At.UTC(), []byte(body)
	return r, err
}

// instant is null for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
