package valkey

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"

	client "github.com/valkey-io/valkey-go"

	"qm/engine/room"
	"qm/projection"
)

// touched is what a batch's events changed. What it was changed to is read from the state after the batch, so nothing is
// folded a second time, and writing more than was changed does no harm.
type touched struct {
	moved   []uint32 // tickets with a new status
	seated  []uint32 // tickets with a new holder
	lived   []uint32 // tickets with a new live record
	handles []uint32
	entered []uint32 // handles with a new holder

	allTickets bool // any status
	allLines   bool // any bit of the line
	allHandles bool // any handle's word
	preQueue   bool // the pre-queue was emptied
	whole      bool // everything
}

func (t *touched) add(body room.Body) {
	switch b := body.(type) {
	case *room.Join:
		t.moved, t.seated = append(t.moved, uint32(b.Ticket)), append(t.seated, uint32(b.Ticket))
	case *room.Eject:
		t.moved, t.seated = append(t.moved, uint32(b.Ticket), uint32(b.To)), append(t.seated, uint32(b.To))
	case *room.Pass:
		for _, span := range b.Spans {
			t.moved, t.lived = appendSpan(t.moved, span), appendSpan(t.lived, span)
		}
	case *room.Enter:
		t.moved, t.lived = append(t.moved, uint32(b.Ticket)), append(t.lived, uint32(b.Ticket))
	case *room.Unslot:
		t.lived = appendAll(t.lived, b.Tickets)
	case *room.Renew:
		t.lived = appendAll(t.lived, b.Tickets)
	case *room.Lapse:
		t.moved = appendAll(t.moved, b.Tickets)
	case *room.Leave:
		t.moved, t.handles = appendAll(t.moved, b.Tickets), appendAll(t.handles, b.Handles)
	case *room.Enqueue:
		t.handles, t.entered = append(t.handles, uint32(b.Handle)), append(t.entered, uint32(b.Handle))
	case *room.Draw:
		if b.Count > 0 {
			span := room.Span{b.First, b.First + room.Ticket(b.Count) - 1}
			t.moved, t.seated = appendSpan(t.moved, span), appendSpan(t.seated, span)
		}
		t.allHandles, t.preQueue = true, true
	case *room.Purge:
		t.allTickets, t.allLines, t.allHandles, t.preQueue = true, true, true, true
	case *room.Configure:
		t.allLines = true // A new holdScore moves tickets into and out of the line.
	case *room.StateChange, *room.Schedule: // The summary has it.
	default: // Create, Close, Delete: a new generation.
		t.whole = true
	}
}

func appendSpan(list []uint32, span room.Span) []uint32 {
	for n := uint32(span[0]); n <= uint32(span[1]); n++ {
		list = append(list, n)
	}
	return list
}

func appendAll[T ~uint32](list []uint32, more []T) []uint32 {
	for _, n := range more {
		list = append(list, uint32(n))
	}
	return list
}

// mergeGap is how far apart two cells may be to be written by one command. The cells between are written as they are.
const mergeGap = 8

// runs cuts a list into ranges first..last within one page each. It sorts the list.
func runs(list []uint32, fn func(page int, first, last uint32)) {
	if !slices.IsSorted(list) {
		slices.Sort(list)
	}
	for i := 0; i < len(list); {
		first, last := list[i], list[i]
		for i++; i < len(list) && list[i]-last <= mergeGap && list[i]/pageSize == first/pageSize; i++ {
			last = list[i]
		}
		fn(int(first/pageSize), first, last)
	}
}

// commands gathers the writes of apply.lua.
type commands struct {
	args  []string
	bytes int
}

func (c *commands) setRange(key string, offset int, data []byte) {
	c.args = append(c.args, "r", key, strconv.Itoa(offset), client.BinaryString(data))
	c.bytes += len(data)
}

// set writes a whole page; one without content has no key.
func (c *commands) set(key string, data []byte) {
	if len(data) == 0 {
		c.drop(key)
		return
	}
	c.args = append(c.args, "s", key, client.BinaryString(data))
	c.bytes += len(data)
}

func (c *commands) drop(key string) { c.args = append(c.args, "d", key) }

// cells writes the cells of a list, whose bytes fill appends.
func (c *commands) cells(col column, list []uint32, fill func(b []byte, i uint32) []byte) {
	grown := 0 // pages from 1 on are allocated whole, by one byte behind the last cell: growing doubles, and wastes up to half
	runs(list, func(page int, first, last uint32) {
		if page != grown {
			grown = page
			c.setRange(col.key(page), pageSize*col.width, []byte{0})
		}
		data := make([]byte, 0, int(last-first+1)*col.width)
		for i := first; i <= last; i++ {
			data = fill(data, i)
		}
		c.setRange(col.key(page), int(first%pageSize)*col.width, data)
	})
}

// line writes a page's bitmap and its count.
func (c *commands) line(s *room.State, page int) {
	bitmap, count := lineBytes(s.PagePassable(page))
	c.set(lines.key(page), bitmap)
	c.setRange(countsKey, 2*page, binary.BigEndian.AppendUint16(nil, uint16(count)))
}

// commands says what to write for what was touched, given the state afterwards.
func (t *touched) commands(s *room.State, sum *room.Summary) *commands {
	c := &commands{}
	lastPage, lastHandlePage := int(sum.LastTicket/pageSize), int(sum.LastHandle/pageSize)

	if t.allTickets {
		for page := range lastPage + 1 {
			c.set(statuses.key(page), pageOf(statuses, s, sum, page))
		}
	} else {
		c.cells(statuses, t.moved, func(b []byte, n uint32) []byte {
			return append(b, byte(statusOf(s, n)))
		})
	}
	gone := func(page int) bool { return page < lastPage && s.PageLive(page) == 0 }
	without := func(list []uint32) []uint32 {
		return slices.DeleteFunc(list, func(n uint32) bool { return gone(int(n / pageSize)) })
	}
	changed := pagesOf(t.moved, t.allTickets, lastPage) // before the lists lose what is over
	for _, n := range t.seated {
		if n%pageSize == 0 && n > 0 { // The page before may have been over already; only the last page is kept empty.
			changed = append(changed, int(n/pageSize)-1)
		}
	}
	c.cells(tickets, without(t.seated), func(b []byte, n uint32) []byte { return appendTicket(b, s, n) })
	var p room.Place // one for all, so that none escapes to the heap
	c.cells(lives, without(t.lived), func(b []byte, n uint32) []byte {
		p = s.Ticket(room.Ticket(n))
		return appendLive(b, &p)
	})
	for _, page := range changed {
		if gone(page) {
			c.drop(tickets.key(page))
			c.drop(lives.key(page))
		}
	}

	linePages := changed
	if t.allLines {
		first := 0
		if n, ok := s.FirstWaiting(); ok && !t.allTickets {
			first = int(n / pageSize)
		} else if !t.allTickets {
			first = lastPage + 1
		}
		for page := first; page <= lastPage; page++ {
			linePages = append(linePages, page)
		}
	}
	slices.Sort(linePages)
	for _, page := range slices.Compact(linePages) {
		c.line(s, page)
	}

	if t.allHandles {
		for page := range lastHandlePage + 1 {
			c.set(words.key(page), pageOf(words, s, sum, page))
		}
	} else {
		c.cells(words, t.handles, func(b []byte, q uint32) []byte {
			p = s.Handle(room.Handle(q))
			return binary.BigEndian.AppendUint32(b, handleWord(&p))
		})
	}
	if t.preQueue && sum.PreQueue == 0 {
		for page := range lastHandlePage + 1 {
			c.drop(entries.key(page))
		}
	} else {
		c.cells(entries, t.entered, func(b []byte, q uint32) []byte {
			p = s.Handle(room.Handle(q))
			return appendEntry(b, &p)
		})
	}
	return c
}

// appendTicket appends what page t holds of a ticket: all zero when it is over. It reads the columns, because a surge brings thousands.
func appendTicket(b []byte, s *room.State, n uint32) []byte {
	holders := s.PageHolders(int(n / pageSize))
	if place := (room.Place{Status: statusOf(s, n)}); !place.Live() || int(n%pageSize) >= len(holders) {
		return append(b, make([]byte, tickets.width)...)
	}
	b = append48(b, uint64(s.JoinedAt(room.Ticket(n))))
	return append(b, holders[n%pageSize][:]...)
}

func statusOf(s *room.State, n uint32) room.Status {
	if page := s.PageStatuses(int(n / pageSize)); int(n%pageSize) < len(page) {
		return page[n%pageSize]
	}
	return room.None
}

// pagesOf lists the pages of a list of tickets, or all.
func pagesOf(list []uint32, all bool, lastPage int) (pages []int) {
	if all {
		for page := range lastPage + 1 {
			pages = append(pages, page)
		}
		return pages
	}
	for _, n := range list {
		if page := int(n / pageSize); len(pages) == 0 || pages[len(pages)-1] != page {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	return slices.Compact(pages)
}

// maxScript is how many bytes one script may write: some milliseconds of the server's time. What is more goes under a new
// incarnation, page by page, and becomes visible by one switch.
const maxScript = 4 << 20

// Prepare implements [projection.Preparer].
func (s *Store) Prepare(b projection.Batch) projection.Write {
	w := &write{store: s, mode: "apply", stream: b.Room, epoch: b.Epoch, after: b.After, last: b.Last()}
	if len(b.Events) == 0 {
		return w // Nothing will be written, but the position is compared.
	}
	t := touched{moved: make([]uint32, 0, len(b.Events)), seated: make([]uint32, 0, len(b.Events))}
	for _, e := range b.Events {
		t.add(e.Body)
	}
	w.summarize(b.State)
	estimate := len(t.seated)*tickets.width + len(t.lived)*lives.width
	if t.allHandles {
		estimate += int(w.sum.LastHandle) * words.width
	}
	if t.allTickets {
		estimate += int(w.sum.LastTicket) * statuses.width
	}
	if t.whole || estimate > maxScript {
		w.pages = pagesOfRoom(b.State, &w.sum)
	} else {
		w.commands = t.commands(b.State, &w.sum)
	}
	return w
}

// write is a prepared Apply or Reset: commands or pages, whichever is not nil.
type write struct {
	store    *Store
	mode     string // "apply" or "reset"
	stream   string
	epoch    int64
	after    int64
	last     int64
	sum      room.Summary
	summary  string // of which this is the JSON form
	commands *commands
	pages    []page
}

func (w *write) summarize(s *room.State) {
	w.sum = s.Summary()
	b, err := json.Marshal(&w.sum)
	if err != nil {
		panic("valkey: a summary has no JSON form: " + err.Error()) // It has neither functions nor floats.
	}
	w.summary = client.BinaryString(b)
}
