package httpapi

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"qm/access"
	"qm/engine/room"
)

// boardEvery is the tick of the console's stream (seed 004, GET /api/admin/events).
const boardEvery = 2 * time.Second

// board is what a console has been told so far.
type board struct {
	ids   []string
	rooms map[string][]byte
	fulls int // full frames sent without a break: one on connect, one on the next tick (QM-468)
}

// adminEvents streams all rooms: full frames at first, then what changed.
func (s *Server) adminEvents(x *exchange) error {
	actor, err := s.watcher(x)
	if err != nil {
		return err
	}
	if err := actor.Require(access.Monitor); err != nil {
		return err
	}
	if x.head {
		x.w.Header().Set("Content-Type", "text/event-stream")
		x.buf = x.buf[:0]
		x.send(http.StatusOK)
		return nil
	}
	if err := s.streams.enter(x.network); err != nil {
		return err
	}
	defer s.streams.leave(x.network)
	var known board
	list, err := s.allStats(x.r.Context(), room.Instant(x.ms()))
	if err != nil {
		return err
	}
	redactFor(actor, list)
	out, err := x.begin(nil)
	if err != nil {
		if x.wrote {
			return nil // the console has gone
		}
		return err
	}
	tick := time.NewTicker(boardEvery)
	defer tick.Stop()
	for {
		x.buf = known.append(x.buf[:0], list, room.Instant(x.ms()))
		if out.send("stats", x.buf) != nil {
			return nil
		}
		for ready := false; !ready; {
			select {
			case <-x.r.Context().Done():
				return nil
			case <-s.quit:
				return nil
			case <-tick.C:
			}
			x.now = s.o.Now()
			if !s.o.Gate.Alive(actor, x.now) {
				return nil
			}
			list, err = s.allStats(x.r.Context(), room.Instant(x.ms()))
			// Out of reach for now: the console shows how old its figures are.
			ready = err == nil
			redactFor(actor, list)
		}
	}
}

// watcher is whose stream this is: a ticket from the URL, spent by this, or a header or cookie as anywhere.
func (s *Server) watcher(x *exchange) (access.Actor, error) {
	ticket, ok, err := x.query("ticket")
	if err != nil {
		return access.Actor{}, err
	}
	if ok && !x.head { // HEAD spends nothing (contract.md 2)
		return s.o.Gate.RedeemTicket(ticket, x.network, x.now)
	}
	return s.o.Gate.Authenticate(x.r, x.network, x.now)
}

// append appends the frame that brings the console up to date.
func (k *board) append(b []byte, list []roomStats, at room.Instant) []byte {
	now := board{ids: make([]string, len(list)), rooms: make(map[string][]byte, len(list)), fulls: k.fulls + 1}
	for i := range list {
		now.ids[i], now.rooms[list[i].id] = list[i].id, list[i].json
	}
	delta := k.fulls >= 2 && !k.reordered(&now) // QM-480
	b = append(b, `{"rooms":[`...)
	first := true
	for i := range list {
		r := &list[i]
		if delta && bytes.Equal(k.rooms[r.id], r.json) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, r.json...)
	}
	b = append(b, ']')
	if delta {
		b = append(b, `,"delta":true`...)
		var removed []string
		for _, id := range k.ids {
			if !now.has(id) {
				removed = append(removed, id)
			}
		}
		b = appendStrings(b, "removed", removed)
	}
	b = appendTotals(b, list, at)
	b = appendInt(b, "now", int64(at))
	*k = now
	return append(b, '}')
}

func (k *board) has(id string) bool { _, ok := k.rooms[id]; return ok }

// reordered reports whether a delta would leave the console with another order: the rooms it keeps, and behind them the new ones.
func (k *board) reordered(now *board) bool {
	after := make([]string, 0, len(now.ids))
	for _, id := range k.ids {
		if now.has(id) {
			after = append(after, id)
		}
	}
	for _, id := range now.ids {
		if !k.has(id) {
			after = append(after, id)
		}
	}
	return !slices.Equal(after, now.ids)
}
