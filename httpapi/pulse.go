package httpapi

import (
	"context"
	"time"

	"qm/engine/room"
)

// pulse tells the streams of one room that places may have moved. It looks at the room's durable view a few times a second while
// anybody listens, once for all of them.
type pulse struct {
	room  string
	users int
	stop  context.CancelFunc
	ended chan struct{}

	beat chan struct{} // closed at the next change; guarded by streams.mu
}

// pulseEvery is how often a room is looked at. The outflow moves in slices of a second at most (seed 004, Outflow), so this is
// what a visitor's news may lag behind the event.
const pulseEvery = 200 * time.Millisecond

// listen joins the room's pulse; call the returned function once at the end.
func (s *Server) listen(id string) (p *pulse, done func()) {
	t := s.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	p = t.pulses[id]
	if p == nil {
		ctx, stop := context.WithCancel(context.Background())
		p = &pulse{room: id, stop: stop, ended: make(chan struct{}), beat: make(chan struct{})}
		t.pulses[id] = p
		go s.watch(ctx, p)
	}
	p.users++
	return p, func() {
		t.mu.Lock()
		p.users--
		last := p.users == 0
		if last {
			delete(t.pulses, id)
		}
		t.mu.Unlock()
		if last {
			p.stop()
			<-p.ended
		}
	}
}

// next is closed at the next change.
func (t *streams) next(p *pulse) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return p.beat
}

func (s *Server) watch(ctx context.Context, p *pulse) {
	defer close(p.ended)
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	var last mark
	for {
		m := s.markOf(ctx, p.room)
		if m != last {
			last = m
			s.streams.mu.Lock()
			close(p.beat)
			p.beat = make(chan struct{})
			s.streams.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// mark is what frames depend on, arrivals aside: somebody joining behind moves nobody's place.
type mark struct {
	ok         bool
	generation uint32
	mode       room.Mode
	opensAt    room.Instant
	rate       int64
	hold       int64
	message    room.Instant
	drawn      room.Instant
	full       bool
	departed   int // tickets that have left the line one way or another
	doors      int
}

func (s *Server) markOf(ctx context.Context, id string) mark {
	sum, _, err := s.summary(ctx, id)
	if err != nil {
		return mark{}
	}
	m := mark{
		ok: true, generation: sum.Generation, mode: sum.Mode, opensAt: sum.OpensAt, rate: sum.Settings.RatePerMinute,
		hold: sum.Settings.HoldScore, message: sum.Settings.Branding.MessageAt, full: full(&sum),
		departed: int(sum.LastTicket) - sum.Waiting - sum.Held, doors: sum.Doors,
	}
	if sum.Proof != nil {
		m.drawn = sum.Proof.DrawnAt
	}
	return m
}
