package replay

import (
	"errors"
	"fmt"
	"testing"

	"qm/engine/room"
)

// recordings are the good journals of testdata/journals, by name. Each is recorded by driving the real core.
var recordings = map[string]func(t testing.TB) *recorder{
	"small":          recordSmall,
	"surge":          recordSurge,
	"drop":           recordDrop,
	"drop-killed":    recordDropKilled,
	"drop-cancelled": recordDropCancelled,
	"eject-purge":    recordEjectPurge,
	"ghosts":         recordGhosts,
	"pause-rate":     recordPauseRate,
	"doors":          recordDoors,
	"generations":    recordGenerations,
	"held-caps":      recordHeldCaps,
	"flush":          recordFlush,
}

// recordSurge: 200 join within seconds at 600 a minute, among them re-joins and a few who leave.
func recordSurge(t testing.TB) *recorder {
	r := newRecorder(t, "production/surge")
	r.operate(room.NewRoom{Settings: settings("Surge", 600), Mode: room.Active})
	r.wait(2000)
	for i := range 200 {
		name := fmt.Sprintf("visitor %d", i)
		r.join(name, fmt.Sprintf("192.0.2.%d", i), 0)
		if i%20 == 7 {
			r.join(name, fmt.Sprintf("192.0.2.%d", i), 0) // a refresh keeps the place
		}
		if i%10 == 9 {
			r.wait(tickMs)
		}
	}
	for _, name := range []string{"visitor 150", "visitor 199"} {
		r.leave(name)
	}
	r.wait(20_000, r.all()...)
	return r
}

// all are the tickets of those who wait.
func (r *recorder) all() (list []room.Ticket) {
	for n := room.Ticket(1); n <= r.state.Summary().LastTicket; n++ {
		if r.state.Ticket(n).Live() {
			list = append(list, n)
		}
	}
	return list
}

// preQueue: 12 identities with one to four entries each; two leave again.
func (r *recorder) preQueue() {
	for i := range 12 {
		for k := range i%4 + 1 {
			r.join(fmt.Sprintf("entrant %d-%d", i, k), fmt.Sprintf("198.51.100.%d", i), uint8(i))
			r.wait(100)
		}
	}
	r.join("entrant without an address", "", 0)
	r.leave("entrant 3-1")
	r.leave("entrant 7-0")
}

// recordDrop: scheduled, moved once, drawn on time; later arrivals follow; the drawn pass.
func recordDrop(t testing.TB) *recorder {
	r := newRecorder(t, "production/drop")
	r.operate(room.NewRoom{Settings: settings("Drop", 600), Mode: room.Active})
	r.schedule(60_000)
	r.wait(1000)
	r.preQueue()
	r.schedule(20_000)
	r.wait(20_000)
	for i := range 5 {
		r.join(fmt.Sprintf("late %d", i), fmt.Sprintf("203.0.113.%d", i), 0)
	}
	r.wait(3000, r.all()...)
	return r
}

// recordDropKilled: the server is killed at the open instant and is back 40 s later: the draw is late, on the head as it was.
func recordDropKilled(t testing.TB) *recorder {
	r := newRecorder(t, "production/drop-killed")
	r.operate(room.NewRoom{Settings: settings("Drop", 60), Mode: room.Active})
	r.schedule(10_000)
	r.wait(1000)
	r.preQueue()
	r.now = r.state.Summary().OpensAt
	r.restart(40_000)
	r.tick(false)
	r.join("first after the restart", "203.0.113.9", 0)
	r.wait(5000, r.all()...)
	return r
}

// recordDropCancelled: one drop is cancelled while it is empty; a second with entries, which draws at once.
func recordDropCancelled(t testing.TB) *recorder {
	r := newRecorder(t, "production/drop-cancelled")
	r.operate(room.NewRoom{Settings: settings("Drop", 60), Mode: room.Active})
	r.schedule(60_000)
	r.wait(1000)
	r.operate(room.Reschedule{})
	r.join("between", "203.0.113.1", 0)
	r.wait(2000, 1)
	r.schedule(60_000)
	r.preQueue()
	r.operate(room.Reschedule{})
	r.wait(2000, r.all()...)
	r.schedule(5000)
	r.wait(6000, r.all()...) // nobody entered: an empty draw
	return r
}

// recordEjectPurge: a waiting, a passed and an entered ticket are ejected, then the line is purged.
func recordEjectPurge(t testing.TB) *recorder {
	r := newRecorder(t, "production/eject-purge")
	r.operate(room.NewRoom{Settings: settings("Eject", 120), Mode: room.Active})
	for i := range 10 {
		r.join(fmt.Sprintf("visitor %d", i), fmt.Sprintf("192.0.2.%d", i), 0)
	}
	r.wait(1500, r.all()...)
	r.enter("visitor 0", 0)
	r.operate(room.EjectTicket{Ticket: 1})
	r.operate(room.EjectTicket{Ticket: 2})
	r.operate(room.EjectTicket{Ticket: 9})
	r.join("visitor 8", "192.0.2.8", 0) // a re-join finds the new ticket
	r.wait(1000, r.all()...)
	r.operate(room.PurgeLine{})
	r.wait(1000)
	r.join("visitor 20", "192.0.2.20", 0)
	r.wait(1000, r.all()...)
	r.schedule(60_000)
	r.join("entrant", "192.0.2.30", 0)
	r.operate(room.PurgeLine{})
	r.operate(room.Reschedule{})
	return r
}

// recordGhosts: four slots, some holders gone: ghosts pass without a slot, slots are given back, a ghost returns and enters the full room.
func recordGhosts(t testing.TB) *recorder {
	r := newRecorder(t, "production/ghosts")
	s := settings("Ghosts", 60)
	s.MaxConcurrent, s.PassedTTLSec = num(4), 90
	r.operate(room.NewRoom{Settings: s, Mode: room.Active})
	for i := range 12 {
		r.join(fmt.Sprintf("visitor %d", i), fmt.Sprintf("192.0.2.%d", i), 0)
	}
	here := []room.Ticket{1, 3, 4, 6, 9, 11, 12}
	r.wait(1000, here...)
	r.operate(room.SetMode{Mode: room.Paused})
	r.wait(35_000, here...)
	r.operate(room.SetMode{Mode: room.Active})
	r.wait(6000, 1, 3, 4, 9, 11, 12) // the holder of ticket 6 is never told that it passed
	r.enter("visitor 1", 0)          // a ghost at the door of a full room
	r.wait(40_000, 1, 9, 11, 12)
	r.wait(60_000, 9, 11, 12)
	return r
}

// recordPauseRate: the clock stands while paused and at rate 0, and follows the rate at once.
func recordPauseRate(t testing.TB) *recorder {
	r := newRecorder(t, "production/pause-rate")
	r.operate(room.NewRoom{Settings: settings("Pace", 60), Mode: room.Active})
	r.configure(func(s *room.Settings) { s.QueueMaxPerIP = nil })
	for i := range 120 {
		r.join(fmt.Sprintf("visitor %d", i), "192.0.2.1", 0)
	}
	all := r.all()
	r.wait(3000, all...)
	r.configure(func(s *room.Settings) { s.RatePerMinute = 600 })
	r.wait(2000, all...)
	r.operate(room.SetMode{Mode: room.Paused})
	r.wait(30_000, all...)
	r.operate(room.SetMode{Mode: room.Active})
	r.wait(2000, all...)
	r.configure(func(s *room.Settings) { s.RatePerMinute = 0 })
	r.wait(5000, all...)
	r.configure(func(s *room.Settings) { s.RatePerMinute, s.Name = 30, "Slower" })
	r.wait(10_000, all...)
	r.operate(room.SetMode{Mode: room.Bypass})
	r.wait(2000, all...)
	r.operate(room.SetMode{Mode: room.Active})
	r.wait(5000, all...)
	return r
}

// recordDoors: hand-over codes, reclaimed sessions, renewals, lapses of passes and sessions, leaves.
func recordDoors(t testing.TB) *recorder {
	r := newRecorder(t, "production/doors")
	s := settings("Doors", 600)
	s.PassedTTLSec, s.SessionTTLSec, s.SessionMaxSec = 20, 30, 120
	r.operate(room.NewRoom{Settings: s, Mode: room.Active})
	for i := range 10 {
		r.join(fmt.Sprintf("visitor %d", i), fmt.Sprintf("192.0.2.%d", i), 0)
	}
	all := r.all()
	r.wait(3000, all...)
	r.enter("visitor 0", r.now-500)
	r.enter("visitor 1", 0)
	r.enter("visitor 2", r.now-400)
	r.wait(1000, all...)
	r.enter("visitor 0", r.now-100) // reclaimed with a newer code
	r.enter("visitor 1", 0)
	r.leave("visitor 3") // gives back a pass
	for range 13 {
		r.doors = []room.Ticket{1, 2}
		r.wait(10_000, all...)
	}
	r.join("visitor 5", "192.0.2.5", 0) // whose pass has lapsed: a new place
	r.wait(1000, all...)
	r.enter("visitor 5", 0)
	r.leave("visitor 5") // leaves the target site
	return r
}

// recordGenerations: deleted and made again, then closed; whoever was in line is not any more.
func recordGenerations(t testing.TB) *recorder {
	r := newRecorder(t, "production/generations")
	r.operate(room.NewRoom{Settings: settings("Again", 60), Mode: room.Active})
	r.join("visitor", "192.0.2.1", 0)
	r.join("another", "192.0.2.2", 0)
	r.wait(1500, 1, 2)
	r.operate(room.DeleteRoom{})
	r.now += 5000
	r.operate(room.NewRoom{Settings: settings("Again", 60), Mode: room.Active})
	r.join("visitor", "192.0.2.1", 0)
	r.wait(2500, 1)
	r.enter("visitor", 0)
	r.wait(1000, 1)
	r.operate(room.CloseRoom{})
	r.wait(1000)
	r.operate(room.SetMode{Mode: room.Active})
	r.join("visitor", "192.0.2.1", 0)
	r.wait(1500, 1)
	return r
}

// recordHeldCaps: held tickets are stepped over, released and held again; caps refuse; a forgotten ticket lapses after a day.
func recordHeldCaps(t testing.TB) *recorder {
	r := newRecorder(t, "production/held-caps")
	s := settings("Held", 120)
	s.QueueMaxPerIP, s.PresenceSec = num(3), nil
	r.operate(room.NewRoom{Settings: s, Mode: room.Active})
	for i := range 8 {
		r.join(fmt.Sprintf("visitor %d", i), fmt.Sprintf("192.0.2.%d", i/3), uint8(i*12))
	}
	if _, err := r.try("visitor", room.TakePlace{Generation: 1, Holder: holder("one too many"), Identity: identity("192.0.2.0")}); !errors.Is(err, room.ErrQueueIdentityLimit) {
		t.Fatalf("the fourth of an address: %v", err)
	}
	r.wait(6000, r.all()...)
	r.configure(func(s *room.Settings) { s.HoldScore = 80 })
	r.wait(2000, r.all()...)
	r.configure(func(s *room.Settings) { s.HoldScore, s.PresenceSec, s.RatePerMinute = 60, num(30), 0 })
	r.join("forgotten", "192.0.2.9", 0)
	r.now += 26 * 3600 * 1000
	r.presence.see(8, r.now)
	r.tick(true)
	return r
}

// recordFlush: flushes past rate and pause, ghosts among the number, never beyond the slots.
func recordFlush(t testing.TB) *recorder {
	r := newRecorder(t, "production/flush")
	s := settings("Flush", 60)
	s.MaxConcurrent = num(6)
	r.operate(room.NewRoom{Settings: s, Mode: room.Paused})
	for i := range 14 {
		r.join(fmt.Sprintf("visitor %d", i), fmt.Sprintf("192.0.2.%d", i), 0)
	}
	r.wait(31_000, 1, 2, 4, 5, 6, 7, 8, 9, 10)
	r.operate(room.Flush{Count: 3})
	r.wait(1000, 1, 2, 4, 5, 6, 7, 8, 9, 10)
	r.operate(room.SetMode{Mode: room.Active})
	r.wait(1000, 1, 2, 4, 5, 6, 7, 8, 9, 10)
	r.operate(room.Flush{Count: 100})
	r.leave("visitor 1")
	r.wait(2500, 1, 2, 4, 5, 6, 7, 8, 9, 10)
	return r
}
