package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"qm/engine/room"
)

// presence is what this process has observed of a room's holders (domain.md rule 6): when each ticket and each door session was
// last seen. It is marked from many goroutines and read by the actor; it is lost with the process, and started anew with
// each tenure and after each interruption, so that everyone counts as present for a while.
type presence struct {
	clock atomic.Int64 // room.Instant: the room's clock as the actor last read it
	now   atomic.Pointer[observation]
	mu    sync.Mutex // guards the growth of an observation, and doors
	doors map[room.Ticket]room.Instant
}

// observation is an unbroken one. It is replaced as a whole, so that a mark falls into the one whose start it counts from.
type observation struct {
	since room.Instant
	pages atomic.Pointer[[]*seenPage]
}

const (
	seenPageSize = 4096
	// observeGap is how long the actor may not look at the clock before observation counts as broken: the process was stopped,
	// or the clock was set forward, and nobody could be seen meanwhile.
	observeGap room.Instant = 3000
	// observeMax keeps a page's cells from running over: after 45 days observation begins anew.
	observeMax room.Instant = 45 * 24 * 3600 * 1000
)

// seenPage holds milliseconds after observation.since, plus one; 0 is never.
type seenPage [seenPageSize]atomic.Uint32

// restart begins a tenure.
func (p *presence) restart(now room.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(now)
	p.doors = make(map[room.Ticket]room.Instant)
}

func (p *presence) begin(now room.Instant) {
	p.clock.Store(int64(now))
	p.now.Store(&observation{since: now})
}

// watch tells the room's clock, several times in observeGap.
func (p *presence) watch(now room.Instant) {
	was := room.Instant(p.clock.Load())
	if now > was+observeGap || now > p.Since()+observeMax {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.begin(now)
	} else if now > was {
		p.clock.Store(int64(now))
	}
}

// Since implements room.Presence.
func (p *presence) Since() room.Instant {
	if o := p.now.Load(); o != nil {
		return o.since
	}
	return 0
}

// Seen implements room.Presence.
func (p *presence) Seen(n room.Ticket) room.Instant {
	o := p.now.Load()
	if o == nil {
		return 0
	}
	pages := o.pages.Load()
	if pages == nil || int(n/seenPageSize) >= len(*pages) {
		return 0
	}
	v := (*pages)[n/seenPageSize][n%seenPageSize].Load()
	if v == 0 {
		return 0
	}
	return o.since + room.Instant(v) - 1
}

// mark notes that a ticket's holder was here. On a clock that was set back it is the room's that counts, which never runs backwards.
func (p *presence) mark(n room.Ticket, now room.Instant) {
	o := p.now.Load()
	if o == nil {
		return
	}
	v := uint32(max(now, room.Instant(p.clock.Load()), o.since)-o.since) + 1
	pages := o.pages.Load()
	if pages == nil || int(n/seenPageSize) >= len(*pages) {
		pages = p.grow(o, int(n/seenPageSize))
	}
	cell := &(*pages)[n/seenPageSize][n%seenPageSize]
	if cell.Load() < v {
		cell.Store(v)
	}
}

func (p *presence) grow(o *observation, page int) *[]*seenPage {
	p.mu.Lock()
	defer p.mu.Unlock()
	var grown []*seenPage
	if pages := o.pages.Load(); pages != nil {
		grown = slices.Clone(*pages)
	}
	for len(grown) <= page {
		grown = append(grown, new(seenPage))
	}
	o.pages.Store(&grown)
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
