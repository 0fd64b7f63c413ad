package room

// Apply makes an event part of the state. It never fails, never reads a clock and never refuses.
func (s *State) Apply(e Event) {
	s.at = max(s.at, e.At)
	paceChanged := false
	m := s.minute()
	switch b := e.Body.(type) {
	case *Join:
		s.last = b.Ticket
		s.seat(b.Ticket, b.Holder, b.Identity, b.Score, s.sinceCreated(e.At))
		s.flow.joined(e.At, 1)
		m.Joined++
	case *Pass:
		s.applyPass(e.At, b, m)
	case *Enqueue:
		s.applyEnqueue(e.At, b)
		m.Joined++
	case *Draw:
		s.applyDraw(e.At, b)
		paceChanged = true
	case *Enter:
		if s.applyEnter(e.At, b) {
			m.Entered++
		}
	case *Renew:
		for _, n := range b.Tickets {
			if d := s.doors.get(n); d != nil {
				d.seenAt = e.At
			}
		}
	case *Unslot:
		for _, n := range b.Tickets {
			if p := s.passes.get(n); p != nil && p.slot {
				p.slot = false
				s.slots--
			}
		}
	case *Leave:
		for _, n := range b.Tickets {
			s.end(n, Left)
		}
		for _, q := range b.Handles {
			s.endEntry(q, Left)
		}
		m.Left += uint32(len(b.Tickets) + len(b.Handles))
	case *Lapse:
		for _, n := range b.Tickets {
			s.end(n, Expired)
		}
		m.Lapsed += uint32(len(b.Tickets))
	case *Eject:
		h, id, score := s.holder.at(uint32(b.Ticket)), s.identity.at(uint32(b.Ticket)), s.score.at(uint32(b.Ticket))
		s.end(b.Ticket, Reset)
		s.last = b.To
		s.seat(b.To, h, id, score, s.sinceCreated(e.At))
		m.Removed++
	case *Purge:
		m.Removed += uint32(s.depth() + s.entries.Len())
		s.applyPurge()
	case *Create:
		s.renew(b.Generation, e.At)
		s.exists, s.mode = true, b.Mode
		settings := b.Settings
		s.settings = &settings
		s.steering = Steering{ModeAt: e.At, RateAt: e.At}
	case *Configure:
		settings := b.Settings
		paceChanged = settings.RatePerMinute != s.settings.RatePerMinute
		rehold := settings.HoldScore != s.settings.HoldScore || settings.Protection.Monitor() != s.settings.Protection.Monitor()
		s.settings, s.credit = &settings, b.Credit
		if paceChanged {
			s.steering.RateAt, s.steering.RateRule = e.At, b.Reason.rule()
		}
		if rehold {
			s.rehold()
		}
	case *StateChange:
		s.mode, s.credit = b.Mode, b.Credit
		s.steering.ModeAt, s.steering.ModeRule = e.At, b.Reason.rule()
		paceChanged = true
	case *Schedule:
		s.opensAt, s.commitment = b.OpensAt, b.Commitment
		paceChanged = true
	case *Close:
		settings := s.settings
		s.renew(b.Generation, e.At)
		s.exists, s.mode, s.settings = true, Idle, settings
		s.steering = Steering{ModeAt: e.At, RateAt: e.At}
	case *Delete:
		generation := s.generation
		s.renew(generation, e.At)
	}
	s.pace(paceChanged)
	m.settle(s)
}

// renew forgets everything but the clock and the history: a new generation, not yet existing.
func (s *State) renew(generation uint32, at Instant) {
	*s = State{lean: s.lean, generation: generation, at: s.at, createdAt: at, minutes: s.minutes}
}

// pace keeps Flow.Since: since when the line has been moving, or should have been, under the present rate and mode.
func (s *State) pace(changed bool) {
	switch {
	case s.line.Len() == 0 || s.mode != Active || s.opensAt != 0:
		s.flow.Since = 0
	case s.flow.Since == 0 || changed:
		s.flow.Since = s.at
	}
}

func (s *State) sinceCreated(at Instant) uint32 { return uint32((at - s.createdAt) / joinUnit) }

// seat puts a holder in line with a ticket that nobody had.
func (s *State) seat(n Ticket, h Holder, id Identity, score uint8, joined uint32) {
	i := uint32(n)
	s.status.set(i, Waiting)
	s.holder.set(i, h)
	s.joined.set(i, joined)
	if score > 0 {
		s.score.set(i, score)
	}
	page := int(i >> pageBits)
	for len(s.live) <= page {
		s.live = append(s.live, 0)
	}
	s.live[page]++
	if s.settings.Holds(score) {
		s.held.Add(n)
	} else {
		s.line.Add(n)
	}
	if s.lean {
		return
	}
	if id != 0 {
		s.identity.set(i, id)
		s.waitingBy.Add(id, +1)
	}
	s.index.Put(h, i, s.holderOf)
}

// unwait takes a ticket out of line, whatever becomes of it.
func (s *State) unwait(n Ticket) {
	if !s.line.Remove(n) {
		s.held.Remove(n)
	}
	if s.lean {
		return
	}
	if id := s.identity.at(uint32(n)); id != 0 {
		s.waitingBy.Add(id, -1)
	}
}

// end ends a live ticket.
func (s *State) end(n Ticket, as Status) {
	i := uint32(n)
	switch s.status.at(i) {
	case Waiting:
		s.unwait(n)
	case Passed:
		if p := s.passes.get(n); p.slot {
			s.slots--
		}
		s.passes.remove(n)
	case Inside:
		s.slots--
		s.doors.remove(n)
	default:
		return
	}
	s.status.set(i, as)
	if !s.lean {
		h := s.holder.at(i)
		if ref, ok := s.index.Get(h, s.holderOf); ok && ref == i {
			s.index.Delete(h, s.holderOf)
		}
	}
	page := int(i >> pageBits)
	if s.live[page]--; s.live[page] == 0 && int(s.last>>pageBits) > page {
		s.holder.drop(page)
		s.joined.drop(page)
		s.score.drop(page)
		s.identity.drop(page)
	}
}

func (s *State) applyPass(at Instant, b *Pass, m *Minute) {
	ghosts := b.Ghosts
	total := 0
	for _, span := range b.Spans {
		for n := span[0]; n <= span[1]; n++ {
			s.unwait(n)
			s.status.set(uint32(n), Passed)
			for len(ghosts) > 0 && ghosts[0][1] < n {
				ghosts = ghosts[1:]
			}
			slot := len(ghosts) == 0 || n < ghosts[0][0]
			if slot {
				s.slots++
			}
			s.passes.put(n, pass{at: at, slot: slot})
			m.waited(at - s.createdAt - Instant(s.joined.at(uint32(n)))*joinUnit)
			total++
		}
	}
	s.credit = b.Credit
	s.flow.passed(at, total)
}

// applyEnter opens a door session, or takes one up again: then opened is false.
func (s *State) applyEnter(at Instant, b *Enter) (opened bool) {
	if d := s.doors.get(b.Ticket); d != nil {
		d.seenAt, d.key = at, b.Door
		d.codeAt = max(d.codeAt, b.CodeAt)
		return false
	}
	p := s.passes.get(b.Ticket)
	if p == nil {
		return false
	}
	passedAt := p.at
	if !p.slot {
		s.slots++ // a slotless pass enters even when the room is full; it is counted, and paid passes wait
	}
	s.passes.remove(b.Ticket)
	s.doors.put(b.Ticket, door{passedAt: passedAt, enteredAt: at, seenAt: at, codeAt: b.CodeAt, key: b.Door})
	s.status.set(uint32(b.Ticket), Inside)
	return true
}

func (s *State) applyEnqueue(at Instant, b *Enqueue) {
	q := uint32(b.Handle)
	s.lastHandle = b.Handle
	s.entries.Add(Ticket(b.Handle))
	s.entryOf.set(q, b.Holder)
	s.entryAt.set(q, s.sinceCreated(at))
	if b.Score > 0 {
		s.entryScore.set(q, b.Score)
	}
	s.flow.joined(at, 1)
	if s.lean {
		return
	}
	if b.Identity != 0 {
		s.entryIdentity.set(q, b.Identity)
		s.enteredBy.Add(b.Identity, +1)
	}
	s.index.Put(b.Holder, q|entryRef, s.holderOf)
}

func (s *State) endEntry(q Handle, as Status) {
	if !s.entries.Remove(Ticket(q)) {
		return
	}
	s.ended.set(uint32(q), as)
	if s.lean {
		return
	}
	s.index.Delete(s.entryOf.at(uint32(q)), s.holderOf)
	if id := s.entryIdentity.at(uint32(q)); id != 0 {
		s.enteredBy.Add(id, -1)
	}
}

func (s *State) applyDraw(at Instant, b *Draw) {
	order, err := UnpackOrder(b.Order)
	if err != nil || len(order) != s.entries.Len() {
		panic("room: a draw event that DecodeBody should have refused") // our own data is wrong: stop loudly
	}
	handles := make([]uint32, 0, len(order))
	for q, ok := s.entries.First(); ok; q, ok = s.entries.Next(q) {
		handles = append(handles, uint32(q))
	}
	for i, entry := range order {
		n, q := b.First+Ticket(i), handles[entry]
		h, id := s.entryOf.at(q), s.entryIdentity.at(q)
		s.last = n
		s.drawn.set(q, uint32(n))
		s.seat(n, h, id, s.entryScore.at(q), s.entryAt.at(q))
	}
	s.entries.Clear()
	s.entryOf.clear()
	s.entryScore.clear()
	s.entryAt.clear()
	s.entryIdentity.clear()
	s.enteredBy.Clear()
	s.opensAt = 0
	s.draws++
	s.proof = &Proof{Version: b.Version, Secret: b.Secret, Head: b.Head, Seed: b.Seed, First: b.First, Count: b.Count, Digest: b.Digest, DrawnAt: at}
}

func (s *State) applyPurge() {
	for _, l := range []*Line{&s.line, &s.held} {
		for n, ok := l.First(); ok; n, ok = l.First() {
			s.end(n, Reset)
		}
	}
	for q, ok := s.entries.First(); ok; q, ok = s.entries.First() {
		s.endEntry(Handle(q), Reset)
	}
}

// rehold sorts the waiting tickets anew into passable and held, after what decides that has changed.
func (s *State) rehold() {
	var move []Ticket
	for n, ok := s.held.First(); ok; n, ok = s.held.Next(n) {
		if !s.settings.Holds(s.score.at(uint32(n))) {
			move = append(move, n)
		}
	}
	hold := len(move)
	for n, ok := s.line.First(); ok; n, ok = s.line.Next(n) {
		if s.settings.Holds(s.score.at(uint32(n))) {
			move = append(move, n)
		}
	}
	for i, n := range move {
		from, to := &s.held, &s.line
		if i >= hold {
			from, to = to, from
		}
		from.Remove(n)
		to.Add(n)
	}
}
