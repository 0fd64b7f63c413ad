package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// The findings of [Diff]. Their invariant is P1: a projection equals the fold of the journal in every field (domain.md rule 2).
const (
	ProjectionMissing Code = "projection_missing" // the store has no projection of the room
	ProjectionAhead   Code = "projection_ahead"   // it stands at a seq that the journal does not have
	ProjectionRoom    Code = "projection_room"    // a field of the room's summary
	ProjectionTicket  Code = "projection_ticket"  // a field of a ticket's place
	ProjectionHandle  Code = "projection_handle"  // a field of a pre-queue entry's place
	ProjectionLine    Code = "projection_line"    // the order in which tickets wait, or a count of them
)

// Reader is the part of a journal.Journal that comparing and rebuilding need.
type Reader interface {
	Read(ctx context.Context, stream string, after int64, fn func(*journal.Record) error) error
	Head(ctx context.Context, stream string) (journal.Head, error)
}

// Compared is what a comparison looked at.
type Compared struct {
	Stream      string `json:"stream"`
	Room        string `json:"room"`
	Incarnation string `json:"incarnation"`
	Seq         int64  `json:"seq"` // where the projection stands
	Lag         int64  `json:"lag"` // records that the journal has beyond it; no finding: an owner at work is always a little ahead
	Tickets     int    `json:"tickets"`
	Handles     int    `json:"handles"`
}

// Diff compares what the store holds of a room, field by field and ticket by ticket, with the fold of its journal up to the same seq.
// limit bounds the findings; 0 means the constant [MaxFindings]. The error is a *[DamageError] when the journal does not make a room.
func Diff(ctx context.Context, j Reader, store projection.Store, stream string, limit int) (Compared, []Finding, error) {
	if limit == 0 {
		limit = MaxFindings
	}
	report := Compared{Stream: stream, Room: RoomID(stream)}
	fail := func(err error) (Compared, []Finding, error) {
		return report, nil, fmt.Errorf("diff %s: %w", stream, err)
	}
	one := func(seq int64, c Code, format string, args ...any) (Compared, []Finding, error) {
		return report, []Finding{projectionFinding(stream, seq, c, format, args...)}, nil
	}
	held, whole, err := look(ctx, store, stream)
	missing := errors.Is(err, projection.ErrNoRoom)
	if err != nil && !missing {
		return fail(err)
	}
	head, err := j.Head(ctx, stream) // after the look: the projection is never ahead of what is durable
	if err != nil {
		return fail(err)
	}
	at := held.Position
	report.Incarnation, report.Seq, report.Lag = at.Incarnation, at.Seq, max(head.Seq-at.Seq, 0)
	if at.Seq > head.Seq {
		return one(at.Seq, ProjectionAhead, "the projection stands at seq %d, the journal at %d", at.Seq, head.Seq)
	}
	source := Stream(ctx, j, stream)
	if missing {
		f, err := Fold(source, stream, 0)
		if err != nil {
			return fail(err)
		}
		if !f.State.Summary().Exists {
			return report, nil, nil
		}
		return one(head.Seq, ProjectionMissing, "there is no projection of the room")
	}
	f, err := Fold(source, stream, at.Seq)
	if err != nil {
		return fail(err)
	}
	want := projection.ImageOf(f.State)
	if !whole {
		want.Passable, want.Counts = nil, nil
	}
	report.Tickets, report.Handles = len(want.Tickets), len(want.Handles)
	var findings []Finding
	for _, d := range projection.Diff(want, held, limit) {
		code := ProjectionLine
		switch {
		case strings.HasPrefix(d.Where, "summary"):
			code = ProjectionRoom
		case strings.HasPrefix(d.Where, "ticket"):
			code = ProjectionTicket
		case strings.HasPrefix(d.Where, "handle"):
			code = ProjectionHandle
		}
		findings = append(findings, projectionFinding(stream, at.Seq, code, "%s is %s in the projection, %s in the journal", d.Where, d.Got, d.Want))
	}
	return report, findings, nil
}

func projectionFinding(stream string, seq int64, c Code, format string, args ...any) Finding {
	f := finding(stream, seq, c, format, args...)
	f.Invariant = "P1"
	return f
}

// lookRounds is how often a projection is read anew because it moved meanwhile.
const lookRounds = 20

// look reads all that a store holds of a room, as of one seq. whole is false when the store does not show its line, only places.
func look(ctx context.Context, store projection.Store, stream string) (image projection.Image, whole bool, err error) {
	if d, ok := store.(projection.Dumper); ok {
		image, err = d.Dump(ctx, stream)
		return image, true, err
	}
	for range lookRounds {
		if image, err = read(ctx, store.View(stream)); err != nil {
			return image, false, err
		}
		at, err := store.Position(ctx, stream)
		if err != nil {
			return image, false, err
		}
		if at == image.Position {
			return image, false, nil
		}
	}
	return image, false, fmt.Errorf("the projection moved each of the %d times that it was read", lookRounds)
}

// read asks a view for every place.
func read(ctx context.Context, view projection.View) (image projection.Image, err error) {
	if image.Summary, image.Position, err = view.Summary(ctx); err != nil {
		return image, err
	}
	for n := room.Ticket(1); n <= image.Summary.LastTicket; n++ {
		_, p, err := view.Ticket(ctx, n)
		if err != nil {
			return image, err
		}
		image.Tickets = append(image.Tickets, p)
	}
	for q := room.Handle(1); q <= image.Summary.LastHandle; q++ {
		_, p, err := view.Handle(ctx, q)
		if err != nil {
			return image, err
		}
		image.Handles = append(image.Handles, p)
	}
	return image, nil
}
