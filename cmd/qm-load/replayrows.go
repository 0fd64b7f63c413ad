package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"qm/access/token"
	"qm/engine/room"
	"qm/journal"
	"qm/journal/postgres"
)

// seeder writes a made-up room's journal, as the engine would have.
type seeder struct {
	ctx   context.Context
	j     *postgres.Journal
	lease journal.Lease
	head  journal.Head
	state *room.State
	batch []journal.Record
	spare []journal.Record
	sent  chan error // the outcome of the append under way; nil when there is none
}

// seed writes a room of that many events of which waiting tickets wait at the end: visitors join, the front passes 1,000 at a
// time, and what passed lapses. A snapshot is kept after snapshotAt events, 0 for none. last is the last ticket.
func seed(ctx context.Context, p *place, events, waiting, snapshotAt int) (last uint64, err error) {
	j, err := postgres.Open(ctx, p.database, postgres.Options{})
	if err != nil {
		return 0, err
	}
	defer j.Close()
	lease, err := j.Acquire(ctx, stream, "seed", time.Hour)
	if err != nil {
		return 0, err
	}
	w := &seeder{ctx: ctx, j: j, lease: lease, head: lease.Head, state: room.New()}
	at := room.Instant(seedStart)
	if err := w.add(room.Event{At: at, Body: &room.Create{Generation: 1, Mode: room.Active, Settings: roomSettings()}}, "qm-load"); err != nil {
		return 0, err
	}
	front := room.Ticket(1)
	snapped := snapshotAt == 0
	for done := 1; done < events; done++ {
		switch {
		case int(last)-int(front)+1 >= waiting+1000 && events-done >= 2:
			spans := []room.Span{{front, front + 999}}
			if err := w.add(room.Event{At: at, Body: &room.Pass{By: "clock", Spans: spans}}, "clock"); err != nil {
				return 0, err
			}
			gone := make([]room.Ticket, 0, 1000)
			for n := front; n < front+1000; n++ {
				gone = append(gone, n)
			}
			done++
			if err := w.add(room.Event{At: at, Body: &room.Lapse{Why: "pass", Tickets: gone}}, "clock"); err != nil {
				return 0, err
			}
			front += 1000
		default:
			last++
			e := visit(last)
			at = e.At
			if err := w.add(e, "visitor"); err != nil {
				return 0, err
			}
		}
		if !snapped && done >= snapshotAt {
			snapped = true
			if err := errors.Join(w.flush(), w.settle()); err != nil {
				return 0, err
			}
			s := journal.Snapshot{Stream: stream, Seq: w.head.Seq, Hash: w.head.Hash, Format: room.SnapshotFormat, State: w.state.AppendBinary(nil)}
			if err := j.SaveSnapshot(ctx, s); err != nil {
				return 0, err
			}
		}
	}
	if err := errors.Join(w.flush(), w.settle()); err != nil {
		return 0, err
	}
	if err := j.Release(ctx, lease); err != nil {
		return 0, err
	}
	return last, vacuum(ctx, p)
}

// vacuum settles the table, as autovacuum does soon after a load: hint bits are set, statistics taken, dirty pages written.
func vacuum(ctx context.Context, p *place) error {
	conn, err := pgx.Connect(ctx, p.database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range []string{"vacuum analyze journal", "checkpoint"} {
		if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}

func (w *seeder) add(e room.Event, actor string) error {
	w.state.Apply(e)
	w.batch = append(w.batch, record(e, actor))
	if len(w.batch) < 5000 {
		return nil
	}
	return w.flush()
}

func (w *seeder) flush() error {
	if len(w.batch) == 0 {
		return nil
	}
	w.head = journal.Seal(w.head, w.batch)
	if err := w.settle(); err != nil {
		return err
	}
	batch, sent := w.batch, make(chan error, 1)
	w.batch, w.spare, w.sent = w.spare[:0], batch, sent
	go func() { sent <- w.j.Append(w.ctx, w.lease.Epoch, batch) }()
	return nil
}

// settle waits for the append under way.
func (w *seeder) settle() error {
	if w.sent == nil {
		return nil
	}
	err := <-w.sent
	w.sent = nil
	return err
}

// replay reads a room from its first record, checks gaps and hashes, decodes and applies: what a start without a snapshot does.
func replay(ctx context.Context, j *postgres.Journal, want int) error {
	state, chain := room.New(), journal.NewChain(journal.Head{Stream: stream})
	err := j.Read(ctx, stream, 0, func(r *journal.Record) error {
		if err := chain.Check(r); err != nil {
			return err
		}
		e, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
		if err != nil {
			return err
		}
		state.Apply(e)
		return nil
	})
	if err == nil && chain.Head().Seq != int64(want) {
		err = fmt.Errorf("replayed to seq %d, not %d", chain.Head().Seq, want)
	}
	return err
}

// measureReplay compares a full replay with a raw binary COPY of the same rows that nobody looks at.
func measureReplay(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.servers.place(ctx)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	events := b.scale(1_000_000, 200_000)
	if _, err := seed(ctx, p, events, events, 0); err != nil {
		return nil, err
	}
	j, err := postgres.Open(ctx, p.database, postgres.Options{})
	if err != nil {
		return nil, err
	}
	defer j.Close()
	conn, err := pgx.Connect(ctx, p.database)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rate := func(start time.Time) float64 { return float64(events) / time.Since(start).Seconds() }
	r, err := pair(b.rounds, func() (float64, error) {
		start := time.Now()
		tag, err := conn.PgConn().CopyTo(ctx, io.Discard, `copy (select * from journal where stream = '`+stream+`' order by seq) to stdout (format binary)`)
		if err == nil && tag.RowsAffected() != int64(events) {
			err = fmt.Errorf("COPY gave %d rows", tag.RowsAffected())
		}
		return rate(start), err
	}, func() (float64, error) {
		start := time.Now()
		err := replay(ctx, j, events)
		return rate(start), err
	})
	if err != nil {
		return nil, err
	}
	return []figure{atLeast(fmt.Sprintf("full replay of %s events with gap and hash checks, in raw binary COPY reads of the same rows", grouped(events)),
		0.60, r.ratio, "%.0f events a second, COPY %.0f rows", r.candidate, r.base)}, nil
}

// firstPoll waits until the holder of the last ticket is answered and returns how long that took.
func (h *house) firstPoll(ctx context.Context, last uint64) (time.Duration, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	addr, stop, err := listen(h.web.HTTP())
	if err != nil {
		return 0, err
	}
	defer stop()
	w, err := dialWire(addr)
	if err != nil {
		return 0, err
	}
	defer w.conn.Close()
	t := h.keys.SignVisitor(token.Visitor{Room: roomID, Ticket: uint32(last), Generation: 1, IssuedAt: time.Now().UnixMilli()})
	request := fmt.Appendf(nil, "GET /api/v1/status?roomId=%s&token=%s HTTP/1.1\r\nHost: qm\r\n\r\n", roomID, t)
	for {
		status, _, _, err := w.roundTrip(request)
		if err != nil {
			return 0, err
		}
		if status == 200 {
			return time.Since(start), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// snapshotEvery is how many events the engine lets pass between two snapshots (engine, snapEvents).
const snapshotEvery = 500_000

// forgetful keeps no snapshots, so that every start finds the same old one.
type forgetful struct{ journal.Journal }

func (forgetful) SaveSnapshot(context.Context, journal.Snapshot) error { return nil }

// measureStart compares a start, to the first answered poll, with the full replay of the same room. The snapshot that it finds is as
// old as it can be: the process before it died just before it would have kept the next one.
func measureStart(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.servers.place(ctx)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	events, waiting, tail := b.scale(10_000_000, 1_000_000), b.scale(1_000_000, 100_000), b.scale(snapshotEvery, snapshotEvery/10)
	at := time.Now()
	last, err := seed(ctx, p, events, waiting, events-tail)
	if err != nil {
		return nil, err
	}
	b.say("  %s events written in %s", grouped(events), time.Since(at).Round(time.Second))
	j, err := postgres.Open(ctx, p.database, postgres.Options{})
	if err != nil {
		return nil, err
	}
	defer j.Close()
	start := func() (float64, error) {
		at := time.Now()
		h, err := openHouse(ctx, p, houseOptions{projected: true, wrap: func(j journal.Journal) journal.Journal { return forgetful{j} }})
		if err != nil {
			return 0, err
		}
		_, err = h.firstPoll(ctx, last)
		took := time.Since(at)
		return took.Seconds(), errors.Join(err, h.stop())
	}
	full := func() (float64, error) {
		at := time.Now()
		err := replay(ctx, j, events)
		return time.Since(at).Seconds(), err
	}
	r, err := pairCold(b.scale(5, 3), full, start)
	if err != nil {
		return nil, err
	}
	return []figure{atMost(fmt.Sprintf("start after %s events with %s waiting to the first answered poll, in full replays", grouped(events), grouped(waiting)),
		0.2, r.ratio, "%.2f s, the replay %.1f s; the last snapshot %s events old", r.candidate, r.base, grouped(tail))}, nil
}
