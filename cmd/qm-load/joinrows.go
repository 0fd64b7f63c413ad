package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"qm/engine/room"
	"qm/journal"
)

const commitRows = 1000 // rows a commit of the base

// visit makes event n of a stream of joins.
func visit(n uint64) room.Event {
	j := &room.Join{Ticket: room.Ticket(n), Identity: room.Identity(1 + n*7919%identities*0x9e3779b97f4a7c15)}
	for i := range 2 {
		x := (n + uint64(i)<<32) * 0x9e3779b97f4a7c15
		for k := range 8 {
			j.Holder[8*i+k] = byte(x >> (8 * k))
		}
	}
	return room.Event{At: room.Instant(seedStart + int64(n)/50), Body: j}
}

// seedStart is when the made-up streams begin, in Unix milliseconds.
const seedStart = 1_790_000_000_000

// record is an event as the journal takes it, not sealed.
func record(e room.Event, actor string) journal.Record {
	body, version := room.EncodeBody(nil, e.Body)
	return journal.Record{Stream: stream, At: time.UnixMilli(int64(e.At)).UTC(), Kind: e.Body.Kind(), Version: version,
		Actor: actor, Cause: fmt.Sprintf("01M3PRPB%018d", e.At), Body: body}
}

// copier is the base of durable joins: pgx.CopyFrom of the same rows (JSON, hashes) into a table of the same form, commitRows a
// commit, on the same database. The rows are made and sealed beforehand.
type copier struct {
	conn *pgx.Conn
	rows []journal.Record
	seq  int64
}

func newCopier(ctx context.Context, p *place) (*copier, error) {
	conn, err := pgx.Connect(ctx, p.database)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, `create table plain (like journal including indexes including storage)`); err != nil {
		return nil, err
	}
	c := &copier{conn: conn}
	for n := range uint64(commitRows) {
		c.rows = append(c.rows, record(visit(n+1), "visitor"))
	}
	journal.Seal(journal.Head{Stream: stream}, c.rows)
	return c, nil
}

func (c *copier) close() { _ = c.conn.Close(context.Background()) }

// run copies for a slice and returns rows a second.
func (c *copier) run(ctx context.Context, slice time.Duration) (float64, error) {
	columns := []string{"stream", "seq", "at", "kind", "version", "actor", "cause", "body", "hash"}
	start, rows := time.Now(), 0
	for time.Since(start) < slice {
		for i := range c.rows {
			c.seq++
			c.rows[i].Seq = c.seq
		}
		_, err := c.conn.CopyFrom(ctx, pgx.Identifier{"plain"}, columns, pgx.CopyFromSlice(len(c.rows), func(i int) ([]any, error) {
			r := &c.rows[i]
			return []any{r.Stream, r.Seq, r.At, r.Kind, int16(r.Version), r.Actor, r.Cause, r.Body, r.Hash[:]}, nil
		}))
		if err != nil {
			return 0, err
		}
		rows += len(c.rows)
	}
	return float64(rows) / time.Since(start).Seconds(), nil
}

// measureActorJoins compares durable joins through the actor with COPY.
func measureActorJoins(ctx context.Context, b *bench) (figures []figure, err error) {
	for _, callers := range []int{1000, 5000} {
		f, err := b.actorJoins(ctx, callers)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

func (b *bench) actorJoins(ctx context.Context, callers int) (figure, error) {
	p, err := b.servers.place(ctx)
	if err != nil {
		return figure{}, err
	}
	defer p.drop()
	h, err := openHouse(ctx, p, houseOptions{})
	if err != nil {
		return figure{}, err
	}
	defer func() { _ = h.stop() }()
	if err := h.createRoom(ctx); err != nil {
		return figure{}, err
	}
	c, err := newCopier(ctx, p)
	if err != nil {
		return figure{}, err
	}
	defer c.close()
	r, err := pair(b.rounds, func() (float64, error) { return c.run(ctx, b.slice) },
		func() (float64, error) { return h.joins(ctx, callers, b.slice) })
	if err != nil {
		return figure{}, err
	}
	return atLeast(fmt.Sprintf("durable joins through the actor, %s callers, in pgx.CopyFrom of the same rows", grouped(callers)),
		0.85, r.ratio, "%.0f joins a second, COPY %.0f rows", r.candidate, r.base), nil
}

// grouped prints 5000 as 5,000.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// slow adds time to each commit.
type slow struct {
	journal.Journal
	by time.Duration
}

func (s slow) Append(ctx context.Context, epoch int64, batch []journal.Record) error {
	time.Sleep(s.by)
	return s.Journal.Append(ctx, epoch, batch)
}

// measureAnswerTime asks how many commits a caller waits for, when commits are slow: a commit is what one caller alone waits for.
func measureAnswerTime(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.servers.place(ctx)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	h, err := openHouse(ctx, p, houseOptions{wrap: func(j journal.Journal) journal.Journal { return slow{j, 2 * time.Millisecond} }})
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.stop() }()
	if err := h.createRoom(ctx); err != nil {
		return nil, err
	}
	r, err := pair(b.rounds, func() (float64, error) { return h.answerTime(ctx, 1, b.slice) },
		func() (float64, error) { return h.answerTime(ctx, 64, b.slice) })
	if err != nil {
		return nil, err
	}
	return []figure{atMost("the same, 64 callers, 2 ms added to each commit: median answer in single-commit times", 2.6, r.ratio,
		"%.2f ms, one commit %.2f ms", r.candidate, r.base)}, nil
}

// answerTime is the median time that a join takes, in milliseconds.
func (h *house) answerTime(ctx context.Context, callers int, slice time.Duration) (float64, error) {
	var mu sync.Mutex
	var all []float64
	_, err := together(callers, slice, func(over *atomic.Bool) error {
		var own []float64
		for !over.Load() {
			start := time.Now()
			if err := h.join(ctx); err != nil {
				return err
			}
			own = append(own, time.Since(start).Seconds()*1000)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, own...)
		return nil
	})
	return median(all), err
}
