package replay

import (
	"context"
	"errors"
	"testing"

	"qm/engine/room"
	"qm/projection"
)

// TestDiff: a projection made by Rebuild equals the journal; one that lacks an event, or has one too many, does not.
//
// Proves: journal.replay
func TestDiff(t *testing.T) {
	for name, record := range recordings {
		t.Run(name, func(t *testing.T) {
			ctx, r, store := t.Context(), record(t), projection.NewMemory()
			stream := r.lease.Stream
			if _, findings, err := Diff(ctx, r.journal, store, stream, 0); err != nil || len(findings) != 1 || findings[0].Code != ProjectionMissing {
				t.Errorf("without a projection: %v, %v", findings, err)
			}
			built, err := Rebuild(ctx, r.journal, store, stream)
			if err != nil || built.Seq != r.head.Seq || built.Incarnation == "" {
				t.Fatalf("rebuild: %+v, %v", built, err)
			}
			report, findings, err := Diff(ctx, r.journal, store, stream, 0)
			if err != nil || len(findings) != 0 || report.Seq != r.head.Seq || report.Lag != 0 {
				t.Errorf("%+v, %v, %v", report, findings, err)
			}
			r.join("one more", "", 0)
			report, findings, err = Diff(ctx, r.journal, store, stream, 0)
			if err != nil || len(findings) != 0 || report.Lag != 1 {
				t.Errorf("one event behind: %+v, %v, %v", report, findings, err)
			}
			wrong := projection.Batch{Room: stream, Epoch: r.lease.Epoch, After: r.head.Seq - 1, Events: []room.Event{
				{At: r.now, Body: &room.Join{Ticket: r.state.Summary().LastTicket, Holder: holder("somebody else"), Score: 90}},
			}}
			if err := store.Apply(ctx, wrong); err != nil {
				t.Fatal(err)
			}
			_, findings, err = Diff(ctx, r.journal, store, stream, 0)
			codes := map[Code]bool{}
			for _, f := range findings {
				codes[f.Code] = true
				if f.Invariant != "P1" || f.Seq != r.head.Seq {
					t.Errorf("finding %v", f)
				}
			}
			if err != nil || !codes[ProjectionTicket] || !codes[ProjectionRoom] {
				t.Errorf("another event: %v, %v", findings, err)
			}
			wrong.After, wrong.Events = r.head.Seq, []room.Event{{At: r.now, Body: &room.Purge{}}}
			if err := store.Apply(ctx, wrong); err != nil {
				t.Fatal(err)
			}
			if _, findings, err = Diff(ctx, r.journal, store, stream, 0); err != nil || len(findings) != 1 || findings[0].Code != ProjectionAhead {
				t.Errorf("ahead of the journal: %v, %v", findings, err)
			}
		})
	}
}

// moving is a store whose rooms move on each look at their position.
type moving struct {
	projection.Store
	seq int64
}

func (m *moving) Position(ctx context.Context, stream string) (projection.Position, error) {
	m.seq++
	return projection.Position{Incarnation: "x", Seq: m.seq}, nil
}

func TestDiffGivesUpOnAProjectionThatKeepsMoving(t *testing.T) {
	r, store := recordSmall(t), projection.NewMemory()
	if _, err := Rebuild(t.Context(), r.journal, store, r.lease.Stream); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Diff(t.Context(), r.journal, &moving{Store: store}, r.lease.Stream, 0); err == nil {
		t.Error("it compared what moved")
	}
}

// TestFoldNamesDamage: folding stops at the first record that does not fit, and says which; the store is left alone.
func TestFoldNamesDamage(t *testing.T) {
	r := recordSmall(t)
	records := r.records()
	records[4].Body = []byte(`{"n":4,"h":"AAAAAAAAAAAAAAAAAAAAAA"}`)
	_, err := Fold(Records(records), r.lease.Stream, 0)
	var damage *DamageError
	if !errors.As(err, &damage) || damage.Finding.Code != Hash || damage.Finding.Seq != 5 || damage.Finding.Room != "small" {
		t.Errorf("%v", err)
	}
	if f, err := Fold(Records(records), r.lease.Stream, 4); err != nil || f.Head.Seq != 4 {
		t.Errorf("up to the damage: %v, %v", f.Head, err)
	}
}
