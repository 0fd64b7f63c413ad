package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
)

// What visitors were told is compared with what came of it.
func TestWaitsThatWereToldAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, onMemory())
		ctx := t.Context()
		settings := testSettings(60)
		settings.PresenceSec = nil // nobody polls here
		if _, err := e.Create(ctx, "shop", "admin", settings, room.Active, time.Time{}); err != nil {
			t.Fatal(err)
		}
		for i := range 120 {
			if _, err := e.Join(ctx, "shop", fmt.Sprint("session-", i), network(i), 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(25 * time.Second)
		if r := e.ETARecord("shop"); r.Judged < 20 || r.Within < r.Judged-1 {
			t.Errorf("at a steady rate: %+v", r)
		}
		if _, err := e.Do(ctx, "shop", "admin", room.SetMode{Mode: room.Paused}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if _, err := e.Do(ctx, "shop", "admin", room.SetMode{Mode: room.Active}); err != nil {
			t.Fatal(err)
		}
		before := e.ETARecord("shop")
		time.Sleep(25 * time.Second)
		after := e.ETARecord("shop")
		if after.Judged-before.Judged < 20 || after.Within != before.Within {
			t.Errorf("after a pause of ten minutes nobody was told the truth: %+v, then %+v", before, after)
		}
	})
}
