package postgres_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"qm/internal/testenv"
	"qm/journal"
	"qm/journal/postgres"
)

// joins returns n sealed records like those of a surge.
func joins(head journal.Head, n int) []journal.Record {
	batch := make([]journal.Record, n)
	at := time.Now().UTC().Truncate(time.Millisecond)
	for i := range batch {
		seq := head.Seq + int64(i) + 1
		batch[i] = journal.Record{Stream: head.Stream, At: at, Kind: "join", Version: 1, Actor: "visitor", Cause: fmt.Sprintf("01JGFJJZ%018d", seq),
			Body: fmt.Appendf(nil, `{"g":1,"n":%d,"h":"%032x","i":"%016x","score":%d}`, seq, seq*0x9e3779b97f4a7c, seq*0x7f4a7c15, seq%100)}
	}
	journal.Seal(head, batch)
	return batch
}

// paired runs base and candidate in alternating slices (base, candidate, base) and reports the median of what the candidate reaches of the
// mean of the two bases around it: machines and disks swing too much for anything else.
func paired(b *testing.B, slice time.Duration, base, candidate func() (rows int)) {
	rate := func(run func() int) float64 {
		rows, start := 0, time.Now()
		for time.Since(start) < slice {
			rows += run()
		}
		return float64(rows) / time.Since(start).Seconds()
	}
	base()
	candidate()
	var ratios, rates []float64
	for b.Loop() {
		before, own, after := rate(base), rate(candidate), rate(base)
		ratios = append(ratios, own/((before+after)/2))
		rates = append(rates, own)
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(rates[len(rates)/2], "rows/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAppend compares Append with pgx.CopyFrom of the same rows into a table of the same form, one commit a batch, on the same database
// with fsync on. Run it with -benchtime=5x or more: an iteration is one set of slices.
func BenchmarkAppend(b *testing.B) {
	pg := testenv.OwnPostgres(b)
	j := open(b, pg.DSN, postgres.Options{})
	conn := pg.Conn(b)
	if _, err := conn.Exec(b.Context(), `create table plain (like journal including indexes including storage)`); err != nil {
		b.Fatal(err)
	}
	columns := []string{"stream", "seq", "at", "kind", "version", "actor", "cause", "body", "hash"}
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			stream := fmt.Sprintf("production/%d-%d", size, time.Now().UnixNano())
			l, err := j.Acquire(b.Context(), stream, "bench", time.Hour)
			if err != nil {
				b.Fatal(err)
			}
			// Both write the same prepared rows with growing seqs; sealing is the engine's work and is measured there.
			batch := joins(l.Head, size)
			var own, plain int64
			number := func(from int64) {
				for i := range batch {
					batch[i].Seq = from + int64(i) + 1
				}
			}
			paired(b, 400*time.Millisecond, func() int {
				number(plain)
				plain += int64(size)
				_, err := conn.CopyFrom(b.Context(), pgx.Identifier{"plain"}, columns, pgx.CopyFromSlice(size, func(i int) ([]any, error) {
					r := &batch[i]
					return []any{r.Stream, r.Seq, r.At, r.Kind, int16(r.Version), r.Actor, r.Cause, r.Body, r.Hash[:]}, nil
				}))
				if err != nil {
					b.Fatal(err)
				}
				return size
			}, func() int {
				number(own)
				own += int64(size)
				if err := j.Append(b.Context(), l.Epoch, batch); err != nil {
					b.Fatal(err)
				}
				return size
			})
		})
	}
}

// BenchmarkRead compares Read, with the checks of gap, order and hash, with a bare binary COPY of the same rows that nobody looks at.
func BenchmarkRead(b *testing.B) {
	const rows = 300_000
	pg := testenv.Postgres(b)
	j := open(b, pg.DSN, postgres.Options{})
	l, err := j.Acquire(b.Context(), "production/shop", "bench", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	for head := l.Head; head.Seq < rows; {
		batch := joins(head, 1000)
		if err := j.Append(b.Context(), l.Epoch, batch); err != nil {
			b.Fatal(err)
		}
		head.Seq, head.Hash = batch[999].Seq, batch[999].Hash
	}
	conn := pg.Conn(b)
	if _, err := conn.Exec(b.Context(), "vacuum analyze journal"); err != nil {
		b.Fatal(err)
	}
	paired(b, time.Millisecond, func() int {
		tag, err := conn.PgConn().CopyTo(b.Context(), io.Discard, `copy (select * from journal where stream = 'production/shop' order by seq) to stdout (format binary)`)
		if err != nil || tag.RowsAffected() != rows {
			b.Fatal(tag, err)
		}
		return rows
	}, func() int {
		chain := journal.NewChain(journal.Head{Stream: "production/shop"})
		if err := j.Read(b.Context(), "production/shop", 0, chain.Check); err != nil {
			b.Fatal(err)
		}
		if chain.Head().Seq != rows {
			b.Fatal("rows are missing")
		}
		return rows
	})
}
