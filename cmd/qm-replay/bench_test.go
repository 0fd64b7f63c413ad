package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"qm/engine/room"
	"qm/internal/testenv"
	"qm/journal"
	"qm/journal/postgres"
	"qm/replay"
)

// benchEvents is how many events the benchmark replays; with -short a tenth.
const benchEvents = 1_000_000

// BenchmarkReplay replays a room of a million events, with gap and hash checks, against a raw binary COPY of the same rows whose bytes are
// thrown away. Base and candidate run in turns (base, replay, base), because machines and disks swing; the metric
// copy/replay is the median of five ratios: 1.00 would be as fast as the bare read. The bound is 0.60.
//
//	go test ./cmd/qm-replay -run '^$' -bench Replay -benchtime 1x
func BenchmarkReplay(b *testing.B) {
	events := benchEvents
	if testing.Short() {
		events /= 10
	}
	pg := testenv.Postgres(b)
	ctx := b.Context()
	j, err := postgres.Open(ctx, pg.DSN, postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	const stream = "production/surge"
	fillSurge(b, j, stream, events)
	conn := pg.Conn(b)
	if _, err := conn.Exec(ctx, "vacuum analyze journal"); err != nil {
		b.Fatal(err)
	}
	raw := func() time.Duration { return rawCopy(b, conn, stream) }
	fold := func() time.Duration {
		start := time.Now()
		f, err := replay.Fold(replay.Stream(ctx, j, stream), stream, 0)
		if err != nil || f.Head.Seq != int64(events) {
			b.Fatal(f.Head.Seq, err)
		}
		return time.Since(start)
	}
	raw()
	for b.Loop() {
		var ratios []float64
		var spent time.Duration
		for range 5 {
			before, own, after := raw(), fold(), raw()
			ratios = append(ratios, (before+after).Seconds()/2/own.Seconds())
			spent += own
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/2], "copy/replay")
		b.ReportMetric(float64(spent.Nanoseconds())/float64(5*events), "ns/event")
	}
}

// rawCopy reads the rows as fast as the server sends them.
func rawCopy(b *testing.B, conn *pgx.Conn, stream string) time.Duration {
	start := time.Now()
	sql := fmt.Sprintf("copy (select stream, seq, at, kind, version, actor, cause, body, hash from journal where stream = '%s' order by seq) to stdout (format binary)", stream)
	if _, err := conn.PgConn().CopyTo(b.Context(), io.Discard, sql); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// fillSurge appends a surge: joins, and after each 100 of them a pass of 50.
func fillSurge(b *testing.B, j *postgres.Journal, stream string, events int) {
	b.Helper()
	lease, err := j.Acquire(b.Context(), stream, "owner", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	head, at := lease.Head, time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)
	var batch []journal.Record
	flush := func() {
		head = journal.Seal(head, batch)
		if err := j.Append(context.WithoutCancel(b.Context()), lease.Epoch, batch); err != nil {
			b.Fatal(err)
		}
		batch = batch[:0]
	}
	add := func(actor string, body room.Body) {
		text, version := room.EncodeBody(nil, body)
		batch = append(batch, journal.Record{Stream: stream, At: at, Kind: body.Kind(), Version: version, Actor: actor, Cause: "01KJN8X880DMBZ8JTBM9KK577F", Body: text})
		at = at.Add(time.Millisecond)
		if len(batch) == 1000 {
			flush()
		}
	}
	s := room.DefaultSettings()
	s.Name, s.TargetURL = "Surge", "https://shop.example/"
	add("op", &room.Create{Generation: 1, Mode: room.Active, Settings: s})
	last, passed := room.Ticket(0), room.Ticket(0)
	for n := 1; n < events; n++ {
		if n%101 == 0 {
			add("clock", &room.Pass{By: "clock", Spans: []room.Span{{passed + 1, passed + 50}}})
			passed += 50
			continue
		}
		last++
		sum := sha256.Sum256(binary.BigEndian.AppendUint32(nil, uint32(last)))
		add("visitor", &room.Join{Ticket: last, Holder: room.Holder(sum[:16]), Identity: room.Identity(binary.BigEndian.Uint64(sum[16:]) | 1)})
	}
	if len(batch) > 0 {
		flush()
	}
}
