package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"qm/engine/room"
	"qm/projection"
)

// Series is the history of rooms, beside their journal.
type Series struct{ pool *pgxpool.Pool }

var _ projection.Series = Series{}

// Series gives what keeps the history of rooms in the journal's database.
func (j *Journal) Series() Series { return Series{j.pool} }

const seriesSQL = `insert into series as s (stream, span, minute, seq, joined, passed, entered, lapsed, gone, removed, wait_sum, wait_most, depth, depth_most, pre_queue, doors, generation)
	select $1, $2, m, $3, joined, passed, entered, lapsed, gone, removed, wait_sum, wait_most, depth, depth_most, pre_queue, doors, generation
	from unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
		$13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[])
		as r (m, joined, passed, entered, lapsed, gone, removed, wait_sum, wait_most, depth, depth_most, pre_queue, doors, generation)
	on conflict (stream, span, minute) do update set (seq, joined, passed, entered, lapsed, gone, removed, wait_sum, wait_most, depth, depth_most, pre_queue, doors, generation)
		= (excluded.seq, excluded.joined, excluded.passed, excluded.entered, excluded.lapsed, excluded.gone, excluded.removed, excluded.wait_sum, excluded.wait_most,
			excluded.depth, excluded.depth_most, excluded.pre_queue, excluded.doors, excluded.generation)
	where s.seq <= excluded.seq`

// figures are a row's in the order of the table's columns.
func figures(m *room.Minute) [14]int64 {
	return [14]int64{
		m.Minute, int64(m.Joined), int64(m.Passed), int64(m.Entered), int64(m.Lapsed), int64(m.Left), int64(m.Removed), int64(m.WaitSum), int64(m.WaitMost),
		int64(m.Depth), int64(m.DepthMost), int64(m.PreQueue), int64(m.Doors), int64(m.Generation),
	}
}

// Save implements [projection.Series].
func (s Series) Save(ctx context.Context, stream string, span projection.Span, seq int64, rows []room.Minute) error {
	var columns [14][]int64
	for i := range rows {
		for c, v := range figures(&rows[i]) {
			columns[c] = append(columns[c], v)
		}
	}
	args := []any{stream, int16(span), seq}
	for _, c := range columns {
		args = append(args, c)
	}
	_, err := s.pool.Exec(ctx, seriesSQL, args...)
	return wrap(err, "save the history of %s", stream)
}

// Load implements [projection.Series].
func (s Series) Load(ctx context.Context, stream string, span projection.Span, from, to int64) ([]room.Minute, error) {
	rows, err := s.pool.Query(ctx, loadSQL+` and minute >= $3 and minute < $4 order by minute`, stream, int16(span), from, to)
	if err != nil {
		return nil, wrap(err, "load the history of %s", stream)
	}
	list, err := pgx.CollectRows(rows, minuteOf)
	return list, wrap(err, "load the history of %s", stream)
}

const loadSQL = `select minute, joined, passed, entered, lapsed, gone, removed, wait_sum, wait_most, depth, depth_most, pre_queue, doors, generation
	from series where stream = $1 and span = $2`

func minuteOf(r pgx.CollectableRow) (m room.Minute, err error) {
	err = r.Scan(&m.Minute, &m.Joined, &m.Passed, &m.Entered, &m.Lapsed, &m.Left, &m.Removed, &m.WaitSum, &m.WaitMost,
		&m.Depth, &m.DepthMost, &m.PreQueue, &m.Doors, &m.Generation)
	return m, err
}

// Last implements [projection.Series].
func (s Series) Last(ctx context.Context, stream string, span projection.Span, before int64) (room.Minute, bool, error) {
	rows, err := s.pool.Query(ctx, loadSQL+` and minute < $3 order by minute desc limit 1`, stream, int16(span), before)
	if err != nil {
		return room.Minute{}, false, wrap(err, "load the history of %s", stream)
	}
	list, err := pgx.CollectRows(rows, minuteOf)
	if err != nil || len(list) == 0 {
		return room.Minute{}, false, wrap(err, "load the history of %s", stream)
	}
	return list[0], true, nil
}

// Prune implements [projection.Series].
func (s Series) Prune(ctx context.Context, span projection.Span, before int64) error {
	_, err := s.pool.Exec(ctx, `delete from series where span = $1 and minute < $2`, int16(span), before)
	return wrap(err, "prune the history")
}
