package room

// What this file adds lets a projection copy a room a page of 4,096 tickets at a time, instead of asking for each ticket.
// Page p has the tickets from p*LinePageTickets on. The slices are the state's own memory: read them, do not keep them.

// PageStatuses are the statuses of a page's tickets. The slice may be shorter than a page, or nil: what is missing is None.
func (s *State) PageStatuses(page int) []Status {
	if page < 0 || page >= len(s.status.pages) {
		return nil
	}
	return s.status.pages[page]
}

// PagePassable is the bitmap of a page's passable waiting tickets, as [Line.Words] has it: nil where nobody waits.
func (s *State) PagePassable(page int) []uint64 { return s.line.Words(page) }

// PageLive is how many of a page's tickets are still somebody's.
func (s *State) PageLive(page int) int {
	if page < 0 || page >= len(s.live) {
		return 0
	}
	return int(s.live[page])
}

// PageHolders are the holders of a page's tickets, as long as the slice goes. Only those of live tickets mean anything.
func (s *State) PageHolders(page int) []Holder {
	if page < 0 || page >= len(s.holder.pages) {
		return nil
	}
	return s.holder.pages[page]
}

// JoinedAt is when a live ticket was given, or its entry in the pre-queue.
func (s *State) JoinedAt(n Ticket) Instant {
	return s.createdAt + Instant(s.joined.at(uint32(n)))*joinUnit
}

// FirstWaiting is the first ticket in line, held or not; false when there is none.
func (s *State) FirstWaiting() (Ticket, bool) {
	n, waits := s.line.First()
	if h, held := s.held.First(); held && (!waits || h < n) {
		return h, true
	}
	return n, waits
}
