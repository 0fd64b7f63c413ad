package engine

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"qm/engine/room"
	"qm/projection"
)

// Visitors may poll a process that does not own their room. It gathers whom it has seen and tells the owner through the
// shared presence, so that nobody is taken for a ghost because of where a load balancer sent them (domain.md rule 6). None
// of it is durable: what is lost is told again at the next poll.

const shareEvery = 2 * time.Second

// doorsOf names the presence of a room's door sessions, beside that of its tickets.
func doorsOf(stream string) string { return stream + "#doors" }

// away is whom this process has seen while another owns the room.
type away struct {
	mu      sync.Mutex
	tickets map[room.Ticket]struct{}
	doors   map[room.Ticket]struct{}
}

func (a *away) add(set *map[room.Ticket]struct{}, n room.Ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *set == nil {
		*set = make(map[room.Ticket]struct{})
	}
	(*set)[n] = struct{}{}
}

func (a *away) take() (tickets, doors []room.Ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := range a.tickets {
		tickets = append(tickets, n)
	}
	for n := range a.doors {
		doors = append(doors, n)
	}
	a.tickets, a.doors = nil, nil
	return tickets, doors
}

// sharePresence tells owners whom this process has seen, and asks others whom they have, until ctx ends.
func (e *Engine) sharePresence(ctx context.Context) {
	shared, ok := e.o.Shared.(projection.Presence)
	if !ok {
		return
	}
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		window := e.o.Now().UnixMilli() / shareEvery.Milliseconds()
		for _, r := range e.runners() {
			var err error
			switch r.current() {
			case elsewhere:
				err = r.tellOwner(ctx, shared, window)
			case owned:
				err = r.askOthers(ctx, shared, window)
			}
			if err != nil && ctx.Err() == nil {
				e.metrics.shareFailures.Inc()
				break // the store is out of reach: no use in trying it for every room
			}
		}
	}
}

func (r *runner) tellOwner(ctx context.Context, shared projection.Presence, window int64) error {
	tickets, doors := r.away.take()
	if len(tickets)+len(doors) == 0 {
		return nil
	}
	s, _, err := r.e.o.Shared.View(r.stream).Summary(ctx)
	if err != nil {
		return err
	}
	if err := shared.MarkSeen(ctx, r.stream, s.Generation, window, tickets); err != nil {
		return err
	}
	return shared.MarkSeen(ctx, doorsOf(r.stream), s.Generation, window, doors)
}

func (r *runner) askOthers(ctx context.Context, shared projection.Presence, window int64) error {
	var generation uint32
	var restless bool
	if err := r.e.live.With(r.stream, func(_, _ int64, s *room.State) error {
		generation, restless = s.Generation(), s.Restless()
		return nil
	}); err != nil || !restless {
		return nil
	}
	now := room.Instant(r.e.o.Now().UnixMilli())
	for _, presence := range []struct {
		stream string
		mark   func(room.Ticket, room.Instant)
	}{{r.stream, r.presence.mark}, {doorsOf(r.stream), r.presence.markDoor}} {
		pages, err := shared.SeenSince(ctx, presence.stream, generation, window-1, window)
		if err != nil {
			return err
		}
		for number, page := range pages {
			for i, word := range page {
				for ; word != 0; word &= word - 1 {
					presence.mark(room.Ticket(number*room.LinePageTickets+64*i+bits.TrailingZeros64(word)), now)
				}
			}
		}
	}
	return nil
}
