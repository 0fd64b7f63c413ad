package valkey

import (
	"context"
	"encoding/binary"
	"fmt"

	client "github.com/valkey-io/valkey-go"

	"qm/engine/room"
	"qm/projection"
)

// page is a key of an incarnation and its value.
type page struct {
	key  string
	data []byte
}

// pagesOfRoom is the whole room in the layout of layout.go.
func pagesOfRoom(s *room.State, sum *room.Summary) []page {
	pages := []page{}
	add := func(key string, data []byte) {
		if len(data) > 0 {
			pages = append(pages, page{key, data})
		}
	}
	var counts []byte
	lastPage := int(sum.LastTicket / pageSize)
	for p := range lastPage + 1 {
		add(statuses.key(p), pageOf(statuses, s, sum, p))
		if s.PageLive(p) > 0 {
			add(tickets.key(p), pageOf(tickets, s, sum, p))
			add(lives.key(p), pageOf(lives, s, sum, p))
		}
		bitmap, count := lineBytes(s.PagePassable(p))
		add(lines.key(p), bitmap)
		counts = binary.BigEndian.AppendUint16(counts, uint16(count))
	}
	add(countsKey, counts)
	for p := range int(sum.LastHandle/pageSize) + 1 {
		add(words.key(p), pageOf(words, s, sum, p))
		if sum.PreQueue > 0 {
			add(entries.key(p), pageOf(entries, s, sum, p))
		}
	}
	return pages
}

// pageOf is a whole page, without the zeros at its end.
func pageOf(col column, s *room.State, sum *room.Summary, p int) []byte {
	last := uint32(sum.LastTicket)
	if col == words || col == entries {
		last = uint32(sum.LastHandle)
	}
	first := uint32(p) * pageSize
	data := make([]byte, 0, int(min(last-first+1, pageSize))*col.width)
	filled := 0
	var place room.Place
	for i := first; i <= last && i < first+pageSize; i++ {
		var some bool
		switch col {
		case statuses:
			status := statusOf(s, i)
			data, some = append(data, byte(status)), status != room.None
		case tickets:
			place = room.Place{Status: statusOf(s, i)}
			data, some = appendTicket(data, s, i), place.Live()
		case lives:
			place = room.Place{}
			if status := statusOf(s, i); status == room.Passed || status == room.Inside {
				place, some = s.Ticket(room.Ticket(i)), true
			}
			data = appendLive(data, &place)
		case words, entries:
			place = s.Handle(room.Handle(i))
			if col == words {
				data, some = binary.BigEndian.AppendUint32(data, handleWord(&place)), handleWord(&place) != 0
			} else {
				data, some = appendEntry(data, &place), place.Status == room.Enqueued
			}
		}
		if some {
			filled = len(data)
		}
	}
	return data[:filled]
}

// appendEntry appends what page e holds of a handle: all zero unless it waits for the draw.
func appendEntry(b []byte, p *room.Place) []byte {
	if p.Status != room.Enqueued {
		return append(b, make([]byte, entries.width)...)
	}
	return appendPlace(b, p)
}

// PrepareReset implements [projection.Preparer].
func (s *Store) PrepareReset(stream string, epoch, seq int64, state *room.State) projection.Write {
	w := &write{store: s, mode: "reset", stream: stream, epoch: epoch, last: seq}
	w.summarize(state)
	w.pages = pagesOfRoom(state, &w.sum)
	return w
}

const (
	// chunkBytes is how much of a rewrite is sent at once: a millisecond of the server's time or two.
	chunkBytes = 1 << 20
	// unfinishedSec is how long pages live that nobody has switched to.
	unfinishedSec = 600
)

// rewrite writes the pages under an incarnation of their own, then switches to it. Readers see the old one until then.
func (w *write) rewrite(ctx context.Context) error {
	s := w.store
	if verdict, err := w.check(ctx); verdict != "ok" || err != nil {
		return outcome(verdict, err)
	}
	// Each attempt has a new name: an attempt before may have been switched to without our knowing.
	incarnation := projection.NewIncarnation()
	base := s.base(w.stream)
	var batch client.Commands
	size := 0
	for i, p := range w.pages {
		cmd := s.client.B().Set().Key(base + incarnation + ":" + p.key).Value(client.BinaryString(p.data)).ExSeconds(unfinishedSec).Build()
		batch, size = append(batch, cmd), size+len(p.data)
		if size >= chunkBytes || len(batch) == 500 || i == len(w.pages)-1 {
			if err := s.multi(ctx, batch); err != nil {
				return fmt.Errorf("write pages of %s: %w", w.stream, err)
			}
			batch, size = nil, 0
		}
	}

	args := []string{w.mode, itoa(w.epoch), itoa(w.after), itoa(w.last), incarnation, w.summary,
		itoa(int64(w.sum.LastTicket)), itoa(int64(w.sum.LastHandle)), s.channel(w.stream)}
	for _, p := range w.pages {
		args = append(args, p.key)
	}
	answer, err := s.run(ctx, switchScript, w.stream, args).AsStrSlice()
	if err != nil {
		return fmt.Errorf("switch %s to its new pages: %w", w.stream, err)
	}
	if len(answer) == 0 {
		return fmt.Errorf("switch %s to its new pages: no answer", w.stream)
	}
	old := answer[1:]
	if answer[0] != "ok" {
		for _, p := range w.pages {
			old = append(old, incarnation+":"+p.key)
		}
	}
	s.unlink(ctx, base, old)
	return outcome(answer[0], nil)
}

// check says whether a rewrite would be in vain, before it starts.
func (w *write) check(ctx context.Context) (verdict string, err error) {
	at, err := w.store.Position(ctx, w.stream)
	switch {
	case err != nil:
		return "", err
	case w.epoch < at.Epoch:
		return "stale", nil
	case w.mode == "reset":
	case at.Incarnation == "", w.after > at.Seq:
		return "gap", nil
	case w.last <= at.Seq:
		return "seen", nil
	}
	return "ok", nil
}

// unlink deletes keys that nobody reads any more. A failure does no harm: they expire.
func (s *Store) unlink(ctx context.Context, base string, keys []string) {
	for len(keys) > 0 {
		n := min(len(keys), 200)
		batch := make([]string, n)
		for i := range batch {
			batch[i] = base + keys[i]
		}
		if err := s.multi(ctx, client.Commands{s.client.B().Unlink().Key(batch...).Build()}); err != nil {
			s.log.Warn("projection: delete old pages", "err", err)
			return
		}
		keys = keys[n:]
	}
}
