package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
	"qm/projection"
)

// After the journal was restored from a backup, the projection is of a history that never was: the owner writes it anew.
func TestAProjectionOfAnotherHistoryIsWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := projection.NewMemory()
		if err := shared.Reset(t.Context(), "production/shop", 99, 1234, room.New()); err != nil {
			t.Fatal(err)
		}
		o := onMemory()
		o.Shared = shared
		e := start(t, o)
		if _, err := e.Create(t.Context(), "shop", "admin", testSettings(60), room.Active, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Join(t.Context(), "shop", "session", network(1), 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		there, _ := shared.Position(t.Context(), "production/shop")
		here, _ := e.live.Position(t.Context(), "production/shop")
		if there.Seq != here.Seq || there.Epoch != here.Epoch {
			t.Errorf("the shared projection stands at %+v, the live view at %+v", there, here)
		}
	})
}

// An orderly stop leaves the shared projection where the journal ends.
func TestAStopPublishesTheLastBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := projection.NewMemory()
		o := onMemory()
		o.Shared = shared
		e := New(o)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		if _, err := e.Create(ctx, "shop", "admin", testSettings(60), room.Active, time.Time{}); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			go func() { _, _ = e.Join(ctx, "shop", fmt.Sprint("session-", i), network(i), 0) }()
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		head, _ := o.Journal.Head(t.Context(), "production/shop")
		if at, _ := shared.Position(t.Context(), "production/shop"); at.Seq != head.Seq || at.Seq == 0 {
			t.Errorf("the journal ends at seq %d, the shared projection at %d", head.Seq, at.Seq)
		}
	})
}
