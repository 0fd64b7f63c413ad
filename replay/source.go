// Package replay reads journals back: it verifies the numbered invariants of docs/design/invariants.md, folds a journal into rooms,
// compares what a projection holds with what the journal says, makes projections anew, checks draws and tells histories in words.
//
// There is one verifier, [Verify] (architecture.md, sentence 5): unit tests, the simulation, recorded journals and qm-replay against a
// live database all call it. The package does no I/O beyond an io.Reader, a journal.Journal and a projection.Store.
package replay

import (
	"context"
	"io"

	"qm/journal"
)

// Source gives records to fn, one after the other as they lie, until fn returns an error, which it returns. The record and its
// body are only valid during the call of fn. Records of several streams may lie one after the other or interleaved.
type Source func(fn func(*journal.Record) error) error

// Lines reads the NDJSON form of a journal.
func Lines(r io.Reader) Source {
	return func(fn func(*journal.Record) error) error { return journal.ReadLines(r, fn) }
}

// Stream reads one stream of a journal from its first record to its head as of the call.
func Stream(ctx context.Context, j Reader, stream string) Source {
	return func(fn func(*journal.Record) error) error { return j.Read(ctx, stream, 0, fn) }
}

// Streams reads several streams of a journal, one after the other.
func Streams(ctx context.Context, j Reader, streams ...string) Source {
	return func(fn func(*journal.Record) error) error {
		for _, s := range streams {
			if err := j.Read(ctx, s, 0, fn); err != nil {
				return err
			}
		}
		return nil
	}
}

// Records reads records that are in memory.
func Records(records []journal.Record) Source {
	return func(fn func(*journal.Record) error) error {
		for i := range records {
			r := records[i]
			if err := fn(&r); err != nil {
				return err
			}
		}
		return nil
	}
}

// Only keeps the records of one stream.
func (s Source) Only(stream string) Source {
	return func(fn func(*journal.Record) error) error {
		return s(func(r *journal.Record) error {
			if r.Stream != stream {
				return nil
			}
			return fn(r)
		})
	}
}
