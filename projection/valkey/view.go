package valkey

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	client "github.com/valkey-io/valkey-go"

	"qm/engine/room"
	"qm/projection"
)

// View implements [projection.Store]. Each of its reads is one round trip.
func (s *Store) View(stream string) projection.View { return view{s, stream} }

type view struct {
	store  *Store
	stream string
}

// summary is a decoded summary and the seq that it is of: most reads find that nothing has changed, and need not have it sent.
type summary struct {
	incarnation string
	seq         string
	room.Summary
}

// What read.lua answers, in this order.
const (
	readIncarnation = iota
	readEpoch
	readSeq
	readSummary
	readWord
	readEntry
	readStatus
	readTicket
	readLive
	readPassable
	readRank
	readCounts
	readFields
)

func (v view) read(ctx context.Context, what string, n uint32) (sum *summary, fields []string, err error) {
	known, _ := v.store.summaries.Load(v.stream)
	sum, _ = known.(*summary)
	if sum == nil {
		sum = &summary{}
	}
	args := []string{what, strconv.FormatUint(uint64(n), 10), sum.incarnation, sum.seq}
	fields, err = v.store.run(ctx, readScript, v.stream, args).AsStrSlice()
	switch {
	case client.IsValkeyNil(err):
		return nil, nil, projection.ErrNoRoom
	case err != nil:
		return nil, nil, fmt.Errorf("read %s: %w", v.stream, err)
	case len(fields) != readFields:
		return nil, nil, fmt.Errorf("read %s: %d fields instead of %d", v.stream, len(fields), readFields)
	case sum.incarnation == fields[readIncarnation] && sum.seq == fields[readSeq]:
		return sum, fields, nil
	}
	sum = &summary{incarnation: fields[readIncarnation], seq: fields[readSeq]}
	if err := json.Unmarshal([]byte(fields[readSummary]), &sum.Summary); err != nil {
		return nil, nil, fmt.Errorf("read %s: the summary is damaged: %w", v.stream, err)
	}
	v.store.summaries.Store(v.stream, sum)
	return sum, fields, nil
}

// Summary implements [projection.View].
func (v view) Summary(ctx context.Context) (room.Summary, projection.Position, error) {
	sum, fields, err := v.read(ctx, "s", 0)
	if err != nil {
		return room.Summary{}, projection.Position{}, err
	}
	at, err := position(fields[readIncarnation], fields[readEpoch], fields[readSeq])
	return sum.Summary, at, err
}

// Ticket implements [projection.View].
func (v view) Ticket(ctx context.Context, n room.Ticket) (room.Summary, room.Place, error) {
	sum, fields, err := v.read(ctx, "t", uint32(n))
	if err != nil {
		return room.Summary{}, room.Place{}, err
	}
	p := room.Place{Ticket: n, Generation: sum.Generation}
	if err := ticketPlace(&p, fields); err != nil {
		return room.Summary{}, room.Place{}, fmt.Errorf("read ticket %d of %s: %w", n, v.stream, err)
	}
	return sum.Summary, p, nil
}

// Handle implements [projection.View].
func (v view) Handle(ctx context.Context, q room.Handle) (room.Summary, room.Place, error) {
	sum, fields, err := v.read(ctx, "h", uint32(q))
	if err != nil {
		return room.Summary{}, room.Place{}, err
	}
	p := room.Place{Handle: q, Generation: sum.Generation}
	if err := handlePlace(&p, fields); err != nil {
		return room.Summary{}, room.Place{}, fmt.Errorf("read handle %d of %s: %w", q, v.stream, err)
	}
	return sum.Summary, p, nil
}

var errDamaged = errors.New("the projection is damaged")

func handlePlace(p *room.Place, fields []string) error {
	word := fields[readWord]
	if len(word) < words.width {
		return nil // beyond the last
	}
	if n := drawnTicket(word); n != 0 {
		p.Ticket = n
		return ticketPlace(p, fields)
	}
	p.Status = room.Status(binary.BigEndian.Uint32([]byte(word)) &^ statusBit)
	if p.Status == room.Enqueued {
		if len(fields[readEntry]) != entries.width {
			return errDamaged
		}
		decodePlace(fields[readEntry], p)
	}
	return nil
}

// drawnTicket is the ticket that a handle became; 0 when it did not.
func drawnTicket(word string) room.Ticket {
	if len(word) != words.width || word[0]&(statusBit>>24) != 0 {
		return 0
	}
	return room.Ticket(binary.BigEndian.Uint32([]byte(word)))
}

func ticketPlace(p *room.Place, fields []string) error {
	if fields[readStatus] == "" {
		return nil // beyond the last
	}
	p.Status = room.Status(fields[readStatus][0])
	if !p.Live() {
		return nil
	}
	if len(fields[readTicket]) != tickets.width {
		return errDamaged
	}
	decodePlace(fields[readTicket], p)
	switch p.Status {
	case room.Passed, room.Inside:
		if len(fields[readLive]) != lives.width {
			return errDamaged
		}
		decodeLive(fields[readLive], p)
	case room.Waiting:
		p.Held = fields[readPassable] != "1"
		if rank := fields[readRank]; rank != "" {
			n, err := strconv.Atoi(rank)
			if err != nil {
				return errDamaged
			}
			p.Ahead = n
		}
		p.Ahead += sumCounts(fields[readCounts])
	}
	return nil
}

// sumCounts adds up the passable tickets of all pages that counts has.
func sumCounts(counts string) (total int) {
	for i := 0; i+1 < len(counts); i += 2 {
		total += int(counts[i])<<8 | int(counts[i+1])
	}
	return total
}
