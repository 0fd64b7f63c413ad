package projectiontest

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"qm/engine/room"
	"qm/projection"
)

// House is a room at work without an engine: commands are decided and applied at once, and the events gather until they are
// published as a batch. Everything it does follows from its seed.
type House struct {
	Stream string
	State  *room.State
	Epoch  int64
	Seq    int64        // of the last event
	Events []room.Event // since the last batch

	now     room.Instant
	rnd     *rand.Rand
	visitor uint64
}

// firstInstant is when every House begins; not a multiple of the unit in which the core keeps times of joining.
const firstInstant room.Instant = 1_790_000_000_037

// NewHouse returns a room that has just been created, with Seq 1 and its event unpublished.
func NewHouse(t testing.TB, stream string, seed uint64) *House {
	h := &House{Stream: stream, State: room.New(), Epoch: 1, now: firstInstant, rnd: rand.New(rand.NewPCG(seed, 1))}
	h.Must(t, room.NewRoom{Settings: h.settings(), Mode: room.Active})
	return h
}

func (h *House) settings() room.Settings {
	s := room.DefaultSettings()
	s.Name, s.TargetURL, s.RatePerMinute = "Sale", "https://shop.example/", int64(h.rnd.IntN(2000))
	s.PreQueueMaxPerIP, s.QueueMaxPerIP = nil, nil
	s.HoldScore = int64(50 + h.rnd.IntN(50))
	if h.rnd.IntN(2) == 0 {
		limit := int64(h.rnd.IntN(2000))
		s.MaxConcurrent = &limit
	}
	if h.rnd.IntN(2) == 0 {
		s.ReturnOrigins, s.Branding.Message = []string{"https://shop.example"}, "Wir öffnen gleich <b>\"bald\"</b>"
	}
	switch h.rnd.IntN(3) {
	case 0:
		s.TagOrigins = []string{} // another policy than none
	case 1:
		s.TagOrigins = []string{"https://tags.example"}
	}
	return s
}

// Do decides a command and applies what it leads to. A refusal leads to nothing.
func (h *House) Do(c room.Command) error {
	events, err := room.Decide(h.State, c, h.now)
	for _, e := range events {
		h.State.Apply(e)
	}
	h.Seq += int64(len(events))
	h.Events = append(h.Events, events...)
	return err
}

// Must is Do for a command that is not refused.
func (h *House) Must(t testing.TB, c room.Command) {
	t.Helper()
	if err := h.Do(c); err != nil {
		t.Fatalf("%T: %v", c, err)
	}
}

// Pass lets time go by, in milliseconds.
func (h *House) Pass(ms int64) { h.now += room.Instant(ms) }

// Join lets n new visitors come. Some of them look like robots if odd is true.
func (h *House) Join(t testing.TB, n int, odd bool) {
	t.Helper()
	for range n {
		c := room.TakePlace{Generation: h.State.Generation(), Holder: h.holder(), Identity: room.Identity(h.rnd.IntN(1000))}
		if odd && h.rnd.IntN(4) == 0 {
			c.Score = uint8(h.rnd.IntN(101))
		}
		h.Must(t, c)
	}
}

func (h *House) holder() (d room.Holder) {
	h.visitor++
	binary.LittleEndian.PutUint64(d[:], h.rnd.Uint64())
	binary.LittleEndian.PutUint64(d[8:], h.visitor)
	return d
}

func (h *House) digest() (d room.Digest) {
	for i := range d {
		d[i] = byte(h.rnd.Uint32())
	}
	return d
}

// Drop schedules the doors, lets entries come, and draws them.
func (h *House) Drop(t testing.TB, entries int, between func()) {
	t.Helper()
	secret := h.digest()
	h.Must(t, room.Reschedule{OpensAt: h.now + 1000, Commitment: room.Commitment(secret)})
	h.Join(t, entries, true)
	between()
	h.Pass(1000)
	h.Must(t, room.DrawNow{Secret: secret, Head: h.digest()})
}

// Batch takes the gathered events.
func (h *House) Batch() projection.Batch {
	b := projection.Batch{Room: h.Stream, Epoch: h.Epoch, After: h.Seq - int64(len(h.Events)), Events: h.Events, State: h.State}
	h.Events = nil
	return b
}

// Publish applies the gathered events to a store.
func (h *House) Publish(t testing.TB, s projection.Store) {
	t.Helper()
	if err := s.Apply(context.Background(), h.Batch()); err != nil {
		t.Fatalf("apply a batch: %v", err)
	}
}

// Reset puts the room as it is into a store.
func (h *House) Reset(t testing.TB, s projection.Store) {
	t.Helper()
	h.Events = nil
	if err := s.Reset(context.Background(), h.Stream, h.Epoch, h.Seq, h.State); err != nil {
		t.Fatalf("reset: %v", err)
	}
}

// presence has seen each ticket at an instant that depends on its number, or never.
type presence struct{ now room.Instant }

func (p presence) Since() room.Instant { return p.now - 60_000 }
func (p presence) Seen(n room.Ticket) room.Instant {
	if n%3 == 0 {
		return 0
	}
	return p.now - room.Instant(n%7)*1000
}

// Stir does something at random: any command, with time going by now and then.
func (h *House) Stir(t testing.TB) {
	sum := h.State.Summary()
	ticket := func() room.Ticket { return room.Ticket(h.rnd.IntN(int(sum.LastTicket) + 2)) }
	holder := func() room.Holder {
		if h.rnd.IntN(3) == 0 && sum.LastHandle > 0 {
			return h.State.Handle(room.Handle(h.rnd.IntN(int(sum.LastHandle)) + 1)).Holder
		}
		return h.State.Ticket(ticket()).Holder
	}
	if !sum.Exists {
		h.Must(t, room.NewRoom{Settings: h.settings(), Mode: room.Active})
		return
	}
	if h.State.DrawDue(h.now) {
		t.Fatal("the draw is due and nobody knows its secret")
	}
	var refused error
	switch action := h.rnd.IntN(100); {
	case action < 30 && sum.Mode != room.Idle && sum.Mode != room.Bypass:
		h.Join(t, 1+h.rnd.IntN(40), true)
	case action < 38:
		refused = h.Do(room.Flush{Count: h.rnd.IntN(20), Credit: 7, Presence: presence{h.now}})
	case action < 50:
		h.Pass(int64(h.rnd.IntN(2000)))
		doors := []room.Ticket{}
		for n := room.Ticket(1); n <= sum.LastTicket; n++ {
			if h.State.Ticket(n).Status == room.Inside && h.rnd.IntN(2) == 0 {
				doors = append(doors, n)
			}
		}
		refused = h.Do(room.Tick{Credit: int64(h.rnd.IntN(10)) * room.PassCost, Presence: presence{h.now}, Doors: doors})
	case action < 65:
		n := ticket()
		refused = h.Do(room.EnterDoor{Generation: sum.Generation, Ticket: n, Holder: h.State.Ticket(n).Holder, CodeAt: h.now, Door: h.holder()})
	case action < 75:
		refused = h.Do(room.GiveBack{Generation: sum.Generation, Holder: holder()})
	case action < 80:
		refused = h.Do(room.EjectTicket{Ticket: ticket()})
	case action < 84:
		h.Pass(int64(h.rnd.IntN(1_500_000))) // passes and door sessions run out
	case action < 87:
		refused = h.Do(room.Reconfigure{Settings: h.settings(), Credit: int64(h.rnd.IntN(60_000))})
	case action < 91:
		mode := []room.Mode{room.Active, room.Active, room.Paused, room.Bypass}[h.rnd.IntN(4)]
		refused = h.Do(room.SetMode{Mode: mode, Credit: 3})
	case action < 93:
		refused = h.Do(room.Reschedule{OpensAt: h.now + 5000, Commitment: h.digest()})
		h.Do(room.Reschedule{}) //nolint:errcheck // Nobody has entered: it is cancelled.
	case action < 95 && sum.Mode != room.Idle && sum.Mode != room.Bypass:
		h.Drop(t, h.rnd.IntN(60), func() {
			for range h.rnd.IntN(5) {
				q := room.Handle(int(h.State.Summary().LastHandle) - h.rnd.IntN(8))
				h.Do(room.GiveBack{Generation: sum.Generation, Holder: h.State.Handle(q).Holder}) //nolint:errcheck // They may be gone.
			}
			if h.rnd.IntN(5) == 0 {
				h.Do(room.PurgeLine{}) //nolint:errcheck // There may be nothing to purge.
			}
		})
	case action < 97:
		refused = h.Do(room.PurgeLine{})
	case action < 98:
		refused = h.Do(room.CloseRoom{})
	case action < 99:
		refused = h.Do(room.DeleteRoom{})
	}
	_ = refused // Refusals are the core's business; a refused command has done nothing.
}
