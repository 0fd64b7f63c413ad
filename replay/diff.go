package replay

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"sync"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// The findings of [Diff]; their invariant is "P1": a projection equals the fold of the journal in every field (domain.md rule 2).
const (
	ProjectionMissing Code = "projection_missing" // the store has no projection of the room
	ProjectionAhead   Code = "projection_ahead"   // it stands at a seq that the journal does not have
	ProjectionRoom    Code = "projection_room"    // a field of the room's summary
	ProjectionTicket  Code = "projection_ticket"  // a field of a ticket's place
	ProjectionHandle  Code = "projection_handle"  // a field of a pre-queue entry's place
)

// Compared is what a comparison looked at.
type Compared struct {
	Stream      string `json:"stream"`
	Room        string `json:"room"`
	Incarnation string `json:"incarnation"`
	Seq         int64  `json:"seq"` // where the projection stands
	Lag         int64  `json:"lag"` // records that the journal has beyond it; no finding, an owner at work is always a little ahead
	Tickets     int    `json:"tickets"`
	Handles     int    `json:"handles"`
}

// DiffOptions of [Diff].
type DiffOptions struct {
	MaxFindings int // 0: the constant [MaxFindings]
	// Readers is how many reads of the store run at once; 0 means 64.
	Readers int
	// Progress, if set, is called now and then with the number of places compared so far and to be compared.
	Progress func(done, total int)
}

// diffRounds is how often a comparison follows a projection that moves while it is read.
const diffRounds = 20

// Diff compares what the store holds of a room, field by field and ticket by ticket, with the fold of its journal up to the same seq. A
// projection that moves meanwhile is followed: what differed is compared again at the newer seq. The error is a *[DamageError] when the
// journal does not make a room.
func Diff(ctx context.Context, j journal.Journal, store projection.Store, stream string, o DiffOptions) (Compared, []Finding, error) {
	if o.MaxFindings == 0 {
		o.MaxFindings = MaxFindings
	}
	if o.Readers == 0 {
		o.Readers = 64
	}
	d := &differ{ctx: ctx, store: store, view: store.View(stream), stream: stream, o: o, folder: newFolder(stream)}
	d.report = Compared{Stream: stream, Room: RoomID(stream)}
	findings, err := d.run(j)
	if err != nil {
		err = fmt.Errorf("diff %s: %w", stream, err)
	}
	return d.report, findings, err
}

type differ struct {
	ctx    context.Context
	store  projection.Store
	view   projection.View
	stream string
	o      DiffOptions
	folder *folder
	report Compared
}

// placeKey is a ticket, or a handle.
type placeKey struct {
	handle bool
	number uint32
}

func (d *differ) run(j journal.Journal) ([]Finding, error) {
	var suspects map[placeKey]bool // nil: everything
	for round := 1; ; round++ {
		before, err := d.store.Position(d.ctx, d.stream)
		if err != nil {
			return nil, err
		}
		head, err := j.Head(d.ctx, d.stream)
		if err != nil {
			return nil, err
		}
		d.report.Incarnation, d.report.Seq, d.report.Lag = before.Incarnation, before.Seq, max(head.Seq-before.Seq, 0)
		if before.Seq > head.Seq {
			return []Finding{d.found(before.Seq, ProjectionAhead, "the projection stands at seq %d, the journal at %d", before.Seq, head.Seq)}, nil
		}
		if before.Incarnation == "" {
			if f, err := Fold(Stream(d.ctx, j, d.stream), d.stream, 0); err != nil || head.Seq == 0 || !f.State.Summary().Exists {
				return nil, err
			}
			return []Finding{d.found(head.Seq, ProjectionMissing, "there is no projection of the room")}, nil
		}
		if err := d.fold(j, before.Seq); err != nil {
			return nil, err
		}
		findings, differing, err := d.compare(suspects)
		if err != nil && !errors.Is(err, projection.ErrNoRoom) {
			return nil, err
		}
		after, posErr := d.store.Position(d.ctx, d.stream)
		if posErr != nil {
			return nil, posErr
		}
		if after == before {
			if err != nil {
				return nil, err
			}
			return findings, nil
		}
		if round == diffRounds {
			return nil, fmt.Errorf("the projection moved %d times while it was read", diffRounds)
		}
		if suspects = differing; after.Incarnation != before.Incarnation || after.Seq < before.Seq {
			suspects = nil // made anew meanwhile
		}
	}
}

// fold moves the folder on to seq, from the start when it is beyond.
func (d *differ) fold(j journal.Journal, seq int64) error {
	if d.folder.chain.Head().Seq > seq {
		d.folder = newFolder(d.stream)
	}
	if d.folder.chain.Head().Seq == seq {
		return nil
	}
	err := j.Read(d.ctx, d.stream, d.folder.chain.Head().Seq, func(r *journal.Record) error {
		if err := d.folder.record(r); err != nil {
			return err
		}
		if r.Seq >= seq {
			return errEnough
		}
		return nil
	})
	if err != nil && err != errEnough {
		return err
	}
	return nil
}

// compare compares the summary and the suspects (nil: all places), and returns the places that differ beside the findings.
func (d *differ) compare(suspects map[placeKey]bool) (findings []Finding, differing map[placeKey]bool, err error) {
	want := d.folder.state.Summary()
	got, at, err := d.view.Summary(d.ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, text := range fieldDiffs(reflect.ValueOf(got), reflect.ValueOf(want)) {
		findings = append(findings, d.found(at.Seq, ProjectionRoom, "the room's %s", text))
	}
	var keys []placeKey
	if suspects == nil {
		for n := room.Ticket(1); n <= max(want.LastTicket, got.LastTicket); n++ {
			keys = append(keys, placeKey{false, uint32(n)})
		}
		for q := room.Handle(1); q <= max(want.LastHandle, got.LastHandle); q++ {
			keys = append(keys, placeKey{true, uint32(q)})
		}
		d.report.Tickets, d.report.Handles = int(want.LastTicket), int(want.LastHandle)
	} else {
		for k := range suspects {
			keys = append(keys, k)
		}
	}
	differs, err := d.places(keys)
	if err != nil {
		return nil, nil, err
	}
	sort.Slice(differs, func(a, b int) bool {
		x, y := differs[a].key, differs[b].key
		return !x.handle && y.handle || x.handle == y.handle && x.number < y.number
	})
	differing = map[placeKey]bool{}
	for _, f := range differs {
		differing[f.key] = true
		for _, text := range f.texts {
			if len(findings) < d.o.MaxFindings {
				code, what := ProjectionTicket, "ticket"
				if f.key.handle {
					code, what = ProjectionHandle, "handle"
				}
				findings = append(findings, d.found(at.Seq, code, "%s %d: its %s", what, f.key.number, text))
			}
		}
	}
	return findings, differing, nil
}

type placeDiff struct {
	key   placeKey
	texts []string
}

// places compares places, many reads at a time: a store across a network answers them together.
func (d *differ) places(keys []placeKey) ([]placeDiff, error) {
	var (
		mu      sync.Mutex
		next    int
		differs []placeDiff
		failed  error
		group   sync.WaitGroup
	)
	const share = 256 // keys that a reader takes at once
	take := func() []placeKey {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil || next == len(keys) {
			return nil
		}
		from := next
		next = min(next+share, len(keys))
		if d.o.Progress != nil {
			d.o.Progress(next, len(keys))
		}
		return keys[from:next]
	}
	for range min(d.o.Readers, (len(keys)+share-1)/share) {
		group.Go(func() {
			for part := take(); part != nil; part = take() {
				for _, k := range part {
					texts, err := d.place(k)
					if err == nil && texts == nil {
						continue
					}
					mu.Lock()
					if err != nil && failed == nil {
						failed = err
					} else if err == nil {
						differs = append(differs, placeDiff{k, texts})
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			}
		})
	}
	group.Wait()
	return differs, failed
}

func (d *differ) place(k placeKey) ([]string, error) {
	var (
		got, want room.Place
		err       error
	)
	if k.handle {
		want = d.folder.state.Handle(room.Handle(k.number))
		_, got, err = d.view.Handle(d.ctx, room.Handle(k.number))
	} else {
		want = d.folder.state.Ticket(room.Ticket(k.number))
		_, got, err = d.view.Ticket(d.ctx, room.Ticket(k.number))
	}
	if err != nil || got == want {
		return nil, err
	}
	return fieldDiffs(reflect.ValueOf(got), reflect.ValueOf(want)), nil
}

func (d *differ) found(seq int64, c Code, format string, args ...any) Finding {
	f := finding(d.stream, seq, c, format, args...)
	f.Invariant = "P1"
	return f
}

// fieldDiffs names the fields in which two structs of one type differ.
func fieldDiffs(got, want reflect.Value) (texts []string) {
	for i := range got.NumField() {
		a, b := got.Field(i), want.Field(i)
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			texts = append(texts, fmt.Sprintf("%s is %s in the projection, %s in the journal", got.Type().Field(i).Name, shown(a), shown(b)))
		}
	}
	return texts
}

func shown(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "none"
		}
		v = v.Elem()
	}
	return fmt.Sprintf("%+v", v.Interface())
}
