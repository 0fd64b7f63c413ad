package valkey

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"qm/engine/room"
)

// A room's keys all carry its stream in a hash tag, so that they live on one node of a cluster and scripts may use them together:
//
//	qm:{<stream>}:head              hash: incarnation, epoch, seq, summary (JSON), t and q (last ticket and handle)
//	qm:{<stream>}:hint              channel: something has changed
//	qm:{<stream>}:<incarnation>:s:0 …  a page of 4,096 tickets: the status of each, 1 byte
//	                           …:t:0 …  when it joined (6) and its holder (16); dropped with the page's last live ticket
//	                           …:l:0 …  a live pass or door session (40); dropped likewise
//	                           …:w:0 …  bitmap of the waiting tickets that are passable (the others are held); absent when empty
//	                           …:c      how many are passable, by page, 2 bytes each
//	                           …:q:0 …  a page of 4,096 handles: what has become of each, 4 bytes
//	                           …:e:0 …  when it was entered (6) and its holder (16); dropped when the pre-queue empties
//	qm:{<stream>}:seen:…            presence, see presence.go
//
// Another layout needs other names, so that processes of two versions do not read each other's pages; the owner writes the new ones at
// its first Reset.
//
// Integers are big-endian, because that is how Valkey numbers the bits of a string. That is 25 to 26 bytes a waiting ticket,
// and 5 more if it came out of the pre-queue.

const (
	pageSize = room.LinePageTickets

	statusBit = 1 << 31 // in a handle's word: set for a status, clear for the ticket that it became
	slotBit   = 1 << 47 // in a live record's passedAt
)

// column is one kind of page.
type column struct {
	name  string
	width int // bytes a ticket or handle
}

var (
	statuses = column{"s", 1}
	tickets  = column{"t", 22}
	lives    = column{"l", 40}
	lines    = column{"w", 0}
	words    = column{"q", 4}
	entries  = column{"e", 22}
)

const countsKey = "c"

// key is the page's key within its incarnation.
func (c column) key(page int) string { return c.name + ":" + strconv.Itoa(page) }

func append48(b []byte, v uint64) []byte {
	return append(b, byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func read48(b string) uint64 {
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

// appendPlace appends what pages t and e hold of a place: all zero when it is over.
func appendPlace(b []byte, p *room.Place) []byte {
	b = append48(b, uint64(p.JoinedAt))
	return append(b, p.Holder[:]...)
}

func decodePlace(b string, p *room.Place) {
	p.JoinedAt = room.Instant(read48(b))
	copy(p.Holder[:], b[6:])
}

// appendLive appends what page l holds of a place: all zero unless it is a live pass or door session.
func appendLive(b []byte, p *room.Place) []byte {
	passed := uint64(p.PassedAt)
	if p.Slot {
		passed |= slotBit
	}
	b = append48(b, passed)
	b = append48(b, uint64(p.EnteredAt))
	b = append48(b, uint64(p.SeenAt))
	b = append48(b, uint64(p.CodeAt))
	return append(b, p.Door[:]...)
}

func decodeLive(b string, p *room.Place) {
	passed := read48(b)
	p.Slot, p.PassedAt = passed&slotBit != 0, room.Instant(passed&^slotBit)
	p.EnteredAt, p.SeenAt, p.CodeAt = room.Instant(read48(b[6:])), room.Instant(read48(b[12:])), room.Instant(read48(b[18:]))
	copy(p.Door[:], b[24:])
}

// handleWord is what page q holds of a handle.
func handleWord(p *room.Place) uint32 {
	switch {
	case p.Ticket != 0:
		return uint32(p.Ticket)
	case p.Status != room.None:
		return statusBit | uint32(p.Status)
	}
	return 0
}

// lineBytes is the bitmap of page w, and how many are in it; nil when nobody is.
func lineBytes(words []uint64) (bitmap []byte, count int) {
	for _, w := range words {
		count += bits.OnesCount64(w)
		bitmap = binary.BigEndian.AppendUint64(bitmap, bits.Reverse64(w))
	}
	if count == 0 {
		return nil, 0
	}
	return bitmap, count
}
