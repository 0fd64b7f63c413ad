package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"qm/access/org"
	"qm/engine/room"
	"qm/journal"
	"qm/journal/postgres"
	"qm/projection"
	"qm/projection/valkey"
	"qm/replay"
)

// environment is the namespace of the rooms in the database (domain.md, "Words").
const environment = "production"

const maxTicket = room.MaxTicket

// records are where the records of one call come from.
type records struct {
	source  replay.Source
	streams []string          // of the rooms, in the order in which they are told; with a file only --room's, if given
	heads   []journal.Head    // of the streams; none with a file
	reader  replay.Reader     // by stream
	series  projection.Series // nil with a file
	close   func()
}

// open opens FILE or the database. With audit, the organisation's own stream is read too.
func (c *command) open(ctx context.Context, audit bool) (*records, error) {
	if c.file != "" {
		return c.openFile(ctx)
	}
	url := c.env("DATABASE_URL")
	if url == "" {
		return nil, errors.New("no FILE is given and DATABASE_URL is not set")
	}
	j, err := postgres.Open(ctx, url, postgres.Options{SkipMigrate: true, MaxConns: 2})
	if err != nil {
		return nil, err
	}
	heads, err := c.heads(ctx, j, audit)
	if err != nil {
		j.Close()
		return nil, err
	}
	r := &records{heads: heads, reader: j, series: j.Series(), close: j.Close}
	for _, h := range heads {
		r.streams = append(r.streams, h.Stream)
	}
	r.source = replay.Streams(ctx, j, r.streams...)
	return r, nil
}

// heads lists the streams that have records.
// stream is --room's.
func (c *command) stream() string {
	if c.room == org.Stream {
		return org.Stream
	}
	return environment + "/" + c.room
}

// heads says where the streams stand that are to be read.
func (c *command) heads(ctx context.Context, j journal.Journal, audit bool) ([]journal.Head, error) {
	if c.room != "" {
		name := c.stream()
		head, err := j.Head(ctx, name)
		if err != nil {
			return nil, err
		}
		if head.Seq == 0 {
			return nil, fmt.Errorf("the journal has no room %q", c.room)
		}
		return []journal.Head{head}, nil
	}
	heads, err := j.Streams(ctx, environment+"/")
	if err != nil {
		return nil, err
	}
	if audit {
		organisation, err := j.Streams(ctx, "$org")
		if err != nil {
			return nil, err
		}
		heads = append(heads, organisation...)
	}
	return slices.DeleteFunc(heads, func(h journal.Head) bool { return h.Seq == 0 }), nil
}

// openFile opens an NDJSON file. It may be read several times; standard input is kept in memory for that.
func (c *command) openFile(ctx context.Context) (*records, error) {
	f := file{open: func() (io.ReadCloser, error) { return os.Open(c.file) }}
	switch c.file {
	case "-":
		text, err := io.ReadAll(c.stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		f.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	default:
		info, err := os.Stat(c.file)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			return nil, fmt.Errorf("%s is a directory", c.file)
		}
	}
	r := &records{source: f.source(ctx), reader: f, close: func() {}}
	if c.room != "" {
		stream := c.stream()
		r.streams, r.source = []string{stream}, r.source.Only(stream)
	}
	return r, nil
}

// file is an NDJSON file as a replay.Reader.
type file struct{ open func() (io.ReadCloser, error) }

func (f file) source(ctx context.Context) replay.Source {
	return func(fn func(*journal.Record) error) error {
		in, err := f.open()
		if err != nil {
			return err
		}
		defer in.Close()
		n := 0
		return replay.Lines(in)(func(r *journal.Record) error {
			if n++; n%1000 == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			return fn(r)
		})
	}
}

// Read implements replay.Reader.
func (f file) Read(ctx context.Context, stream string, after int64, fn func(*journal.Record) error) error {
	return f.source(ctx).Only(stream)(func(r *journal.Record) error {
		if r.Seq <= after {
			return nil
		}
		return fn(r)
	})
}

// Head implements replay.Reader.
func (f file) Head(ctx context.Context, stream string) (journal.Head, error) {
	head := journal.Head{Stream: stream}
	err := f.Read(ctx, stream, 0, func(r *journal.Record) error {
		head.Seq, head.Hash = r.Seq, r.Hash
		return nil
	})
	return head, err
}

// streamsOf lists the rooms of an NDJSON file.
func streamsOf(source replay.Source) (names []string, err error) {
	seen := map[string]bool{}
	err = source(func(r *journal.Record) error {
		if !seen[r.Stream] && r.Stream[0] != '$' {
			seen[r.Stream] = true
			names = append(names, r.Stream)
		}
		return nil
	})
	return names, err
}

// openStore opens the projection.
func (c *command) openStore(ctx context.Context) (*valkey.Store, error) {
	url := c.env("VALKEY_URL")
	if url == "" {
		return nil, errors.New("VALKEY_URL is not set")
	}
	return valkey.Open(ctx, url, valkey.Options{Timeout: storeTimeout})
}
