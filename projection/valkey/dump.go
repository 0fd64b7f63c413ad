package valkey

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"

	client "github.com/valkey-io/valkey-go"

	"qm/engine/room"
	"qm/projection"
)

//go:embed scripts/freeze.lua
var freezeLua string

var freezeScript = client.NewLuaScript(freezeLua)

var _ projection.Dumper = (*Store)(nil)

// Dump implements [projection.Dumper]. The room takes twice its memory meanwhile, and a big one stops the server for a moment
// (some 20 ms a million tickets), so that what is read is of one seq.
func (s *Store) Dump(ctx context.Context, stream string) (projection.Image, error) {
	copied := "dump-" + projection.NewIncarnation()
	head, err := s.run(ctx, freezeScript, stream, []string{copied, "600"}).AsStrSlice()
	switch {
	case client.IsValkeyNil(err):
		return projection.Image{}, projection.ErrNoRoom
	case err != nil:
		return projection.Image{}, fmt.Errorf("copy the pages of %s: %w", stream, err)
	case len(head) != 6:
		return projection.Image{}, fmt.Errorf("copy the pages of %s: %d fields instead of 6", stream, len(head))
	}
	var image projection.Image
	if image.Position, err = position(head[0], head[1], head[2]); err != nil {
		return image, fmt.Errorf("read the position of %s: %w", stream, err)
	}
	if err := json.Unmarshal([]byte(head[3]), &image.Summary); err != nil {
		return image, fmt.Errorf("read the summary of %s: %w", stream, err)
	}
	lastTicket, errT := strconv.ParseUint(head[4], 10, 32)
	lastHandle, errQ := strconv.ParseUint(head[5], 10, 32)
	if errT != nil || errQ != nil {
		return image, fmt.Errorf("read the size of %s: %q tickets, %q handles", stream, head[4], head[5])
	}
	d := dump{store: s, ctx: ctx, base: s.base(stream) + copied + ":", image: &image}
	if err := d.read(uint32(lastTicket), uint32(lastHandle)); err != nil {
		return image, fmt.Errorf("read the pages of %s: %w", stream, err)
	}
	s.unlink(ctx, d.base, d.keys)
	return image, nil
}

type dump struct {
	store  *Store
	ctx    context.Context
	base   string
	image  *projection.Image
	keys   []string
	counts string
	before int // passable tickets in the pages before
}

func (d *dump) read(lastTicket, lastHandle uint32) error {
	fields, err := d.get(countsKey)
	if err != nil {
		return err
	}
	d.counts = fields[0]
	for i := 0; i+1 < len(d.counts); i += 2 {
		d.image.Counts = append(d.image.Counts, sumCounts(d.counts[i:i+2]))
	}
	if len(d.image.Counts) == 0 {
		d.image.Counts = []int{0} // An empty room has one page, of nobody.
	}
	d.image.Tickets = make([]room.Place, 0, lastTicket)
	d.image.Handles = make([]room.Place, 0, lastHandle)
	for page := range int(lastTicket/pageSize) + 1 {
		if err := d.tickets(page, lastTicket); err != nil {
			return err
		}
	}
	for page := range int(lastHandle/pageSize) + 1 {
		if err := d.handles(page, lastHandle); err != nil {
			return err
		}
	}
	return nil
}

// get reads keys; "" for those that do not exist.
func (d *dump) get(keys ...string) ([]string, error) {
	d.keys = append(d.keys, keys...)
	full := make([]string, len(keys))
	for i, key := range keys {
		full[i] = d.base + key
	}
	return d.store.do(d.ctx, d.store.client.B().Mget().Key(full...).Build()).AsStrSlice()
}

func (d *dump) tickets(page int, last uint32) error {
	p, err := d.get(statuses.key(page), tickets.key(page), lives.key(page), lines.key(page))
	if err != nil {
		return err
	}
	bitmap := []byte(p[3])
	rank := 0
	for n := uint32(page) * pageSize; n < uint32(page+1)*pageSize; n++ {
		i := int(n % pageSize)
		passable := i/8 < len(bitmap) && bitmap[i/8]&(0x80>>(i%8)) != 0
		if n >= 1 && n <= last {
			place := room.Place{Ticket: room.Ticket(n), Generation: d.image.Summary.Generation}
			fields := [readFields]string{
				readStatus: cell(p[0], i, statuses), readTicket: cell(p[1], i, tickets), readLive: cell(p[2], i, lives),
				readPassable: "0", readRank: strconv.Itoa(d.before + rank),
			}
			if passable {
				fields[readPassable] = "1"
			}
			if err := ticketPlace(&place, fields[:]); err != nil {
				return fmt.Errorf("ticket %d: %w", n, err)
			}
			d.image.Tickets = append(d.image.Tickets, place)
		}
		if passable {
			d.image.Passable = append(d.image.Passable, room.Ticket(n))
			rank++
		}
	}
	// Ranks count on the counts, as a reader's do, not on the bitmaps before.
	d.before = sumCounts(d.counts[:min(2*(page+1), len(d.counts))])
	return nil
}

func (d *dump) handles(page int, last uint32) error {
	p, err := d.get(words.key(page), entries.key(page))
	if err != nil {
		return err
	}
	for q := max(uint32(page)*pageSize, 1); q < uint32(page+1)*pageSize && q <= last; q++ {
		i := int(q % pageSize)
		word := cell(p[0], i, words)
		var place room.Place
		if w := drawnTicket(word); w != 0 && int(w) <= len(d.image.Tickets) {
			place = d.image.Tickets[w-1]
		} else {
			place.Generation = d.image.Summary.Generation
			fields := [readFields]string{readWord: word, readEntry: cell(p[1], i, entries)}
			if err := handlePlace(&place, fields[:]); err != nil {
				return fmt.Errorf("handle %d: %w", q, err)
			}
		}
		place.Handle = room.Handle(q)
		d.image.Handles = append(d.image.Handles, place)
	}
	return nil
}

// cell cuts a ticket's or handle's bytes out of a page; shorter, as GETRANGE gives them, where the page ends.
func cell(page string, i int, col column) string {
	return page[min(i*col.width, len(page)):min((i+1)*col.width, len(page))]
}
