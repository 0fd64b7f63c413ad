package replay

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"qm/engine/room"
	"qm/projection"
)

// TestAnyHistoryVerifies: whatever is asked of the core, in whatever order, with restarts in between, the journal verifies, folds
// to the room as it is, is told without a gap, and its projection equals it.
//
// Proves: journal.replay
func TestAnyHistoryVerifies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRecorder(t, "production/any")
		r.operate(room.NewRoom{Settings: anySettings(rt), Mode: anyMode(rt)})
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			r.step(rt)
		}
		records := r.records()
		_, findings, err := Verify(Records(records), Options{})
		if err != nil || len(findings) > 0 {
			for i := range records {
				rt.Logf("%d %s %s %s", records[i].Seq, records[i].At.Format("15:04:05.000"), records[i].Kind, records[i].Body)
			}
			rt.Fatalf("%v %v", findings, err)
		}
		told := 0
		if _, _, err := Tell(Records(records), StoryOptions{}, func(s Told) error {
			if s.Text == "" {
				return fmt.Errorf("no words for %s", s.Kind)
			}
			told++
			return nil
		}); err != nil || told != len(records) {
			rt.Fatalf("%d of %d events told, %v", told, len(records), err)
		}
		store := projection.NewMemory()
		if _, err := Rebuild(t.Context(), r.journal, store, r.lease.Stream); err != nil {
			rt.Fatal(err)
		}
		if _, findings, err := Diff(t.Context(), r.journal, store, r.lease.Stream, 0); err != nil || len(findings) > 0 {
			rt.Fatalf("%v %v", findings, err)
		}
	})
}

func anyMode(rt *rapid.T) room.Mode {
	return rapid.SampledFrom([]room.Mode{room.Active, room.Active, room.Active, room.Paused, room.Bypass, room.Idle}).Draw(rt, "mode")
}

func anySettings(rt *rapid.T) room.Settings {
	s := settings("Any", rapid.SampledFrom([]int64{0, 1, 59, 60, 600, 7919, 100_000}).Draw(rt, "rate"))
	limit := func(name string, of ...int64) *int64 {
		if n := rapid.SampledFrom(of).Draw(rt, name); n >= 0 {
			return &n
		}
		return nil
	}
	s.MaxConcurrent = limit("slots", -1, 0, 1, 3, 10)
	s.QueueMaxPerIP, s.PreQueueMaxPerIP = limit("cap", -1, 1, 3), limit("entries", -1, 1, 3)
	s.PresenceSec = limit("presence", -1, 5, 30)
	s.PassedTTLSec = rapid.SampledFrom([]int64{10, 60, 600}).Draw(rt, "passedTtl")
	s.SessionTTLSec, s.SessionMaxSec = 15, rapid.SampledFrom([]int64{40, 14_400}).Draw(rt, "sessionMax")
	s.HoldScore = rapid.Int64Range(1, 100).Draw(rt, "hold")
	return s
}

// step does one thing that may be refused.
func (r *recorder) step(rt *rapid.T) {
	exists := r.state.Summary().Exists
	if !exists {
		r.now += room.Instant(rapid.IntRange(0, 3000).Draw(rt, "later"))
		r.operate(room.NewRoom{Settings: anySettings(rt), Mode: anyMode(rt)})
		return
	}
	if r.state.DrawDue(r.now) {
		r.tick(false) // the owner draws first
	}
	name := func() string { return fmt.Sprintf("visitor %d", rapid.IntRange(1, 25).Draw(rt, "who")) }
	refusable := func(actor string, c room.Command) {
		if _, err := r.try(actor, c); err != nil {
			if refused := room.Refusal(""); !errors.As(err, &refused) {
				rt.Fatalf("%T: %v", c, err)
			}
		}
	}
	last := max(int(r.state.Summary().LastTicket), 1)
	ticket := func() room.Ticket { return room.Ticket(rapid.IntRange(1, last).Draw(rt, "ticket")) }
	switch what := rapid.IntRange(0, 99).Draw(rt, "what"); {
	case what < 35:
		for range rapid.IntRange(1, 8).Draw(rt, "joins") {
			who := name()
			address := fmt.Sprintf("192.0.2.%d", rapid.IntRange(0, 4).Draw(rt, "address"))
			if rapid.IntRange(0, 5).Draw(rt, "unknown") == 0 {
				address = ""
			}
			refusable("visitor", room.TakePlace{
				Generation: r.state.Generation(), Holder: holder(who), Identity: identity(address), Score: uint8(rapid.IntRange(0, 100).Draw(rt, "score")),
			})
			if p, ok := r.state.PlaceOf(holder(who)); ok && p.Ticket != 0 {
				r.presence.see(p.Ticket, r.now)
			}
		}
	case what < 65:
		var poll []room.Ticket
		for _, n := range r.all() {
			if rapid.Bool().Draw(rt, "polls") {
				poll = append(poll, n)
				if r.state.Ticket(n).Status == room.Inside {
					r.doors = append(r.doors, n)
				}
			}
		}
		r.wait(room.Instant(rapid.SampledFrom([]int{1, 250, 990, 3000, 12_000, 31_000, 65_000}).Draw(rt, "wait")), poll...)
	case what < 75:
		c := room.EnterDoor{Generation: r.state.Generation(), Ticket: ticket(), Door: holder(fmt.Sprint("door ", r.commands))}
		if rapid.Bool().Draw(rt, "code") {
			c.CodeAt = r.now - room.Instant(rapid.IntRange(0, 2000).Draw(rt, "age"))
		} else {
			c.Holder = r.state.Ticket(c.Ticket).Holder
		}
		refusable("visitor", c)
	case what < 80:
		refusable("visitor", room.GiveBack{Generation: r.state.Generation(), Holder: holder(name())})
	case what < 84:
		r.operateRefusable(rt, room.Flush{Count: rapid.IntRange(1, 10).Draw(rt, "count")}, refusable)
	case what < 88:
		r.operateRefusable(rt, room.SetMode{Mode: anyMode(rt)}, refusable)
	case what < 91:
		r.operateRefusable(rt, room.Reconfigure{Settings: anySettings(rt)}, refusable)
	case what < 94:
		opens := r.now + room.Instant(rapid.IntRange(-1, 20).Draw(rt, "opens"))*1000
		if rapid.IntRange(0, 3).Draw(rt, "cancel") == 0 {
			opens = 0
		}
		refusable("op", room.Reschedule{OpensAt: opens, Commitment: room.Commitment(r.secret)})
	case what < 96:
		refusable("op", room.EjectTicket{Ticket: ticket()})
	case what < 97:
		refusable("op", room.PurgeLine{})
	case what < 98:
		r.restart(room.Instant(rapid.IntRange(0, 90_000).Draw(rt, "gap")))
	case what < 99:
		refusable("op", room.CloseRoom{})
	default:
		refusable("op", room.DeleteRoom{})
	}
}

// operateRefusable is operate for a command that may be refused.
func (r *recorder) operateRefusable(rt *rapid.T, c room.Command, refusable func(string, room.Command)) {
	r.meter.Advance(r.state, r.now)
	switch o := c.(type) {
	case room.SetMode:
		o.Credit = r.meter.Credit
		c = o
	case room.Reconfigure:
		o.Credit = r.meter.Credit
		c = o
	case room.Flush:
		o.Credit, o.Presence = r.meter.Credit, r.presence
		c = o
	}
	refusable("op", c)
}
