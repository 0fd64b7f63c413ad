package engine

import (
	"testing"
	"time"

	"qm/engine/room"
	"qm/journal"
)

// TestAJournalThatCannotBeWritten: it can be read, the lease can be held, and no join can be made durable (seed 004, Health).
//
// Proves: journal.append
func TestAJournalThatCannotBeWritten(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		h.joins(p, 1, 3, 1)
		fails := func(who int) {
			t.Helper()
			shot := p.faults.Arm(journal.OpAppend, journal.FailBefore, 1)
			_, err := h.join(p, who)
			h.expect("the join", err, ErrStorage)
			<-shot.Fired
			h.within(3*time.Second, "the room is taken again", func() bool { return h.owns(p) })
			if got := p.Health(); got.Ready || got.JournalErr == "" {
				t.Errorf("after a failed append health says %+v", got)
			}
		}
		fails(4)
		h.joins(p, 4, 5, 4)
		if got := p.Health(); !got.Ready {
			t.Errorf("after the next join health says %+v", got)
		}
		fails(6)
		nap(unwrittenFor) // a load balancer that stays away must come back some time
		if got := p.Health(); !got.Ready {
			t.Errorf("a while later health says %+v", got)
		}
	})
}
