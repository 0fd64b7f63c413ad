package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"qm/engine/room"
)

// presence is what this process has observed of a room's holders (domain.md rule 6): when each ticket and each door session was
// last seen. It is marked from many goroutines and read by the actor; it is lost with the process, and started anew with
// each tenure, so that everyone counts as present for a while.
type presence struct {
	since atomic.Int64 // room.Instant: start of unbroken observation
	pages atomic.Pointer[[]*seenPage]
	mu    sync.Mutex // guards the growth of pages, and doors
	doors map[room.Ticket]room.Instant
}

const seenPageSize = 4096

// seenPage holds seconds after presence.since, plus one; 0 is never.
type seenPage [seenPageSize]atomic.Uint32

func (p *presence) restart(now room.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since.Store(int64(now))
	p.pages.Store(&[]*seenPage{})
	p.doors = make(map[room.Ticket]room.Instant)
}

// Since implements room.Presence.
func (p *presence) Since() room.Instant { return room.Instant(p.since.Load()) }

// Seen implements room.Presence, to the second.
func (p *presence) Seen(n room.Ticket) room.Instant {
	pages := p.pages.Load()
	if pages == nil || int(n/seenPageSize) >= len(*pages) {
		return 0
	}
	v := (*pages)[n/seenPageSize][n%seenPageSize].Load()
	if v == 0 {
		return 0
	}
	// The end of the second: a mark counts for all of it.
	return p.Since() + room.Instant(v)*1000 - 1
}

// mark notes that a ticket's holder was here.
func (p *presence) mark(n room.Ticket, now room.Instant) {
	v := uint32(max(now-p.Since(), 0)/1000) + 1
	pages := p.pages.Load()
	if pages == nil || int(n/seenPageSize) >= len(*pages) {
		pages = p.grow(int(n / seenPageSize))
	}
	cell := &(*pages)[n/seenPageSize][n%seenPageSize]
	if cell.Load() < v {
		cell.Store(v)
	}
}

func (p *presence) grow(page int) *[]*seenPage {
	p.mu.Lock()
	defer p.mu.Unlock()
	var grown []*seenPage
	if pages := p.pages.Load(); pages != nil {
		grown = slices.Clone(*pages)
	}
	for len(grown) <= page {
		grown = append(grown, new(seenPage))
	}
	p.pages.Store(&grown)
	return &grown
}

func (p *presence) markDoor(n room.Ticket, now room.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doors != nil {
		p.doors[n] = now
	}
}

func (p *presence) doorSeen(n room.Ticket) room.Instant {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doors[n]
}

// doorsSeen lists the door sessions seen and not yet recorded by a renew, ascending.
func (p *presence) doorsSeen() []room.Ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]room.Ticket, 0, len(p.doors))
	for n := range p.doors {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

func (p *presence) forgetDoors(list []room.Ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range list {
		delete(p.doors, n)
	}
}
