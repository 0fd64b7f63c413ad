package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"qm/access/org"
	"qm/engine/room"
	"qm/journal"
	"qm/replay"
)

// storeTimeout is generous: a whole room may be read at once.
const storeTimeout = 30 * time.Second

// report prints a finding.
func (c *command) report(f replay.Finding) {
	c.found++
	if c.json {
		c.line(f)
		return
	}
	fmt.Fprintln(c.out, f)
}

// line prints v as a JSON line.
func (c *command) line(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of texts and numbers: it cannot fail
	}
	fmt.Fprintf(c.out, "%s\n", text)
}

// notes is where what is no finding goes: beside the findings, but not among JSON lines.
func (c *command) notes() io.Writer {
	if c.json {
		return c.stderr
	}
	return c.out
}

func (c *command) verify(ctx context.Context) error {
	o := replay.Options{Progress: c.meter.records}
	if c.head != "" {
		o.Head = new(journal.Hash)
		if n, err := hex.Decode(o.Head[:], padded(c.head)); err != nil || n != journal.HashSize || len(c.head) != 2*n {
			return fmt.Errorf("--head %q is not a hash of 64 hex digits", c.head)
		}
	}
	in, err := c.open(ctx, c.room == "")
	if err != nil {
		return err
	}
	defer in.close()
	o.Heads = in.heads
	report, findings, err := replay.Verify(in.source, o)
	for _, f := range findings {
		c.report(f)
	}
	if err != nil {
		return err
	}
	if err := c.someRecords(report); err != nil {
		return err
	}
	c.meter.end()
	for _, r := range report.Rooms {
		cut := ""
		if r.First > 1 {
			cut = fmt.Sprintf(" (what came before seq %d is not there)", r.First)
		}
		outcome := "all holds"
		switch {
		case r.Gave:
			outcome = fmt.Sprintf("more than %d findings: the rest was not looked at", replay.MaxFindings)
		case r.Findings == 1:
			outcome = "1 finding"
		case r.Findings > 1:
			outcome = fmt.Sprintf("%d findings", r.Findings)
		}
		fmt.Fprintf(c.notes(), "%s: %d records up to seq %d%s, head %s: %s\n", r.Room, r.Records, r.Last, cut, r.Head, outcome)
	}
	return nil
}

// padded keeps hex.Decode within its destination.
func padded(s string) []byte { return []byte(s[:min(len(s), 2*journal.HashSize)]) }

// someRecords: a file without a record, or without the room asked for, could not be looked at.
func (c *command) someRecords(r replay.Report) error {
	switch {
	case r.Records > 0 || c.file == "" || c.found > 0:
		return nil
	case c.room != "":
		return fmt.Errorf("%s has no records of room %q", c.file, c.room)
	}
	return fmt.Errorf("%s has no records", c.file)
}

func (c *command) show(ctx context.Context) error {
	in, err := c.open(ctx, c.ticket == 0)
	if err != nil {
		return err
	}
	defer in.close()
	last, told := "", 0
	report, findings, err := replay.Tell(in.source, replay.StoryOptions{Ticket: room.Ticket(c.ticket), Progress: c.meter.records}, func(t replay.Told) error {
		told++
		if c.json {
			c.line(t)
			return nil
		}
		at := fmt.Sprintf("%s, generation %d", t.Room, t.Generation)
		if t.Stream == org.Stream {
			at = "the organisation"
		}
		if at != last {
			last = at
			if c.ticket > 0 {
				at += fmt.Sprintf(", ticket %d", c.ticket)
			}
			fmt.Fprintf(c.out, "%s\n", at)
		}
		fmt.Fprintf(c.out, "  %s\n", t)
		return nil
	})
	for _, f := range findings {
		c.report(f)
	}
	if err != nil {
		return err
	}
	if err := c.someRecords(report); err != nil {
		return err
	}
	if c.ticket > 0 && told == 0 && c.found == 0 {
		return fmt.Errorf("there is no ticket %d", c.ticket)
	}
	return nil
}

func (c *command) export(ctx context.Context) error {
	in, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer in.close()
	n := int64(0)
	_, err = replay.Export(c.out, func(fn func(*journal.Record) error) error {
		return in.source(func(r *journal.Record) error {
			if n++; n%10_000 == 0 {
				c.meter.records(n)
			}
			return fn(r)
		})
	})
	if line := (*journal.LineError)(nil); errors.As(err, &line) {
		// What was readable is written; the finding must not stand among the records.
		c.found++
		fmt.Fprintf(c.stderr, "qm-replay: %v\n", err)
		return nil
	}
	if err == nil && n == 0 && c.file != "" {
		return c.someRecords(replay.Report{})
	}
	return err
}

// rooms lists the streams to work on one by one; a file without any is no file to compare with.
func (c *command) rooms(in *records) ([]string, error) {
	if c.file == "" {
		return in.streams, nil
	}
	names, err := streamsOf(in.source)
	if err == nil && len(names) == 0 {
		err = c.someRecords(replay.Report{})
	}
	return names, err
}

func (c *command) diff(ctx context.Context) error {
	in, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer in.close()
	store, err := c.openStore(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	streams, err := c.rooms(in)
	if err != nil {
		return err
	}
	for _, stream := range streams {
		c.meter.say("comparing " + replay.RoomID(stream))
		compared, findings, err := replay.Diff(ctx, in.reader, store, stream, 0)
		c.meter.end()
		var damage *replay.DamageError
		if errors.As(err, &damage) {
			c.report(damage.Finding) // and on with the other rooms
			continue
		}
		if err != nil {
			return err
		}
		for _, f := range findings {
			c.report(f)
		}
		outcome := "equal"
		if len(findings) > 0 {
			outcome = "different"
		} else if compared.Incarnation == "" {
			outcome = "the room is deleted and has no projection"
		}
		fmt.Fprintf(c.notes(), "%s: %d tickets and %d handles compared as of seq %d, %d records behind the journal: %s\n",
			compared.Room, compared.Tickets, compared.Handles, compared.Seq, compared.Lag, outcome)
		if err := c.diffHistory(ctx, in, stream); err != nil {
			return err
		}
	}
	return nil
}

// diffHistory compares a room's stored history too, where the database is at hand.
func (c *command) diffHistory(ctx context.Context, in *records, stream string) error {
	if in.series == nil {
		return nil
	}
	compared, findings, err := replay.DiffHistory(ctx, in.reader, in.series, stream, time.Now())
	if err != nil {
		return err
	}
	for _, f := range findings {
		c.report(f)
	}
	outcome := "equal"
	if len(findings) > 0 {
		outcome = "different"
	}
	fmt.Fprintf(c.notes(), "%s: %d rows of history compared: %s\n", replay.RoomID(stream), compared, outcome)
	return nil
}

func (c *command) rebuild(ctx context.Context) error {
	in, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer in.close()
	store, err := c.openStore(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	for _, stream := range in.streams {
		c.meter.say("rebuilding " + replay.RoomID(stream))
		built, err := replay.Rebuild(ctx, in.reader, store, stream)
		c.meter.end()
		var damage *replay.DamageError
		if errors.As(err, &damage) {
			c.report(damage.Finding)
			continue
		}
		if err != nil {
			return err
		}
		rows, err := replay.RebuildHistory(ctx, in.reader, in.series, stream, time.Now())
		if err != nil {
			return err
		}
		if built.History = rows; c.json {
			c.line(built)
		} else {
			fmt.Fprintf(c.out, "%s: rebuilt as of seq %d with %d tickets and %d rows of history\n", built.Room, built.Seq, built.Tickets, built.History)
		}
	}
	return nil
}

func (c *command) draw(ctx context.Context) error {
	in, err := c.open(ctx, false)
	if err != nil {
		return err
	}
	defer in.close()
	proofs, findings, report, err := replay.ProveDraws(in.source, c.meter.records)
	if err != nil {
		return err
	}
	for _, p := range proofs {
		if c.json {
			c.line(p)
		} else {
			fmt.Fprint(c.out, p)
		}
	}
	for _, f := range findings {
		c.report(f)
	}
	if err := c.someRecords(report); err != nil {
		return err
	}
	if len(proofs) == 0 {
		fmt.Fprintln(c.notes(), "no draw has been made")
	}
	return nil
}
