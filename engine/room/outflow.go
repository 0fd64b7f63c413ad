package room

// PassCost is what one pass costs, in ticket-milliseconds: credit is rate (tickets a minute) times milliseconds, so it is
// whole, and nothing is lost to rounding (domain.md rule 5).
const PassCost = 60_000

// maxSlice is the most that one tick earns: time without an owner, or stalled, is never made up.
const maxSlice Instant = 1000

// Meter is the outflow's clock as the room's present owner reads it. It is not state: an owner that dies takes
// its uncounted fraction of a pass along.
//
// It counts each stretch of time under what held during it, so it must hear of every change: After follows each decision.
type Meter struct {
	Credit int64   // ticket-milliseconds earned and not spent
	at     Instant // up to when it was counted
	slice  Instant // how much time was counted since the last Advance, at most maxSlice
	fresh  int64   // the part of Credit earned since the last Advance
	rate   int64   // what each millisecond since at earns; 0 while the clock stands
	limit  int64   // what may be kept while nobody can be passed
	idle   bool    // nobody can be passed since at
}

// NewMeter starts a meter where the room's events left the credit. Nothing is earned for the time before now.
func NewMeter(s *State, now Instant) Meter {
	m := Meter{Credit: s.credit, at: max(now, s.at)} // on a clock that is behind, the room's own has not begun to run yet
	m.look(s)
	return m
}

// Advance counts the time since the last call, at most a second of it, before a tick or an operator's command. What was left over from the
// Advance before is capped first: credit that could have been spent is below PassCost by then, so whatever exceeds the cap
// was earned while only ghosts waited, and is forgiven.
func (m *Meter) Advance(s *State, now Instant) {
	m.Credit = min(m.Credit-m.fresh, m.limit) + m.fresh
	m.count(now)
	m.fresh, m.slice = 0, 0
	m.look(s)
}

// After counts up to the events, under what held before them, and goes on under what holds now. Where they say what credit is
// left, that is it.
func (m *Meter) After(s *State, events []Event) {
	if len(events) == 0 {
		return
	}
	m.count(s.at)
	for _, e := range events {
		switch e.Body.(type) {
		case *Pass, *Configure, *StateChange, *Create, *Close, *Delete:
			m.Credit, m.fresh = s.credit, 0
		}
	}
	m.look(s)
}

// count adds what the time up to now has earned: from one Advance to the next a second's worth at most, however many decisions
// lie between them, or a stall of the clock would be made up by whoever joins meanwhile.
func (m *Meter) count(now Instant) {
	span := min(max(now-m.at, 0), maxSlice-m.slice)
	earned := m.rate * int64(span)
	m.at, m.slice = max(m.at, now), m.slice+span
	m.Credit += earned
	m.fresh += earned
	if m.idle {
		m.Credit = min(m.Credit, m.limit)
		m.fresh = min(m.fresh, m.Credit)
	}
}

// look notes what holds from now on.
func (m *Meter) look(s *State) {
	m.rate, m.limit, m.idle = 0, 0, true
	if !s.exists {
		return
	}
	if s.flowing() {
		m.rate = s.settings.RatePerMinute
	}
	m.limit = s.creditCap()
	m.idle = s.line.Len() == 0 || s.slotsLeft() <= 0
}

// flowing says whether the clock passes anybody now.
func (s *State) flowing() bool {
	return s.exists && s.mode == Active && s.opensAt == 0 && s.settings.RatePerMinute > 0
}

// creditCap is how much credit may be kept while nobody is passable: one pass, or a second's worth of the rate.
func (s *State) creditCap() int64 { return max(PassCost, s.settings.RatePerMinute*1000) }

// Restless says whether ticks matter to the room: somebody waits for the outflow, or something can lapse.
func (s *State) Restless() bool {
	return s.exists && (s.line.Len() > 0 || s.held.Len() > 0 || s.passes.live > 0 || s.doors.live > 0 || s.opensAt != 0)
}

// absent is the ghost rule: unseen for presenceSec of unbroken observation (domain.md rule 6).
func (s *State) absent(p Presence, n Ticket, now Instant) bool {
	if p == nil || s.settings.PresenceSec == nil {
		return false
	}
	return now-max(p.Seen(n), p.Since()) > Instant(*s.settings.PresenceSec)*1000
}

// passer gathers the tickets of one pass event from the front of the line.
type passer struct {
	pass   Pass
	ghosts []Ticket // seen since the last paid ticket, to go along with the next
	paid   int
	count  int
}

func (p *passer) take(n Ticket, ghost bool) {
	p.pass.Spans = extend(p.pass.Spans, n)
	if ghost {
		p.pass.Ghosts = extend(p.pass.Ghosts, n)
	} else {
		p.paid++
	}
	p.count++
}

// extend adds n, greater than all in spans, to them.
func extend(spans []Span, n Ticket) []Span {
	if last := len(spans) - 1; last >= 0 && spans[last][1]+1 == n {
		spans[last][1] = n
		return spans
	}
	return append(spans, Span{n, n})
}

// passByClock decides who passes for the credit: paid tickets in order, each taking the ghosts before it along.
func (s *State) passByClock(c Tick, slots int, now Instant) *Pass {
	budget := int(c.Credit / PassCost)
	if !s.flowing() || budget == 0 || slots <= 0 {
		return nil
	}
	var p passer
	for n, ok := s.line.First(); ok && p.paid < min(budget, slots); n, ok = s.line.Next(n) {
		if s.absent(c.Presence, n, now) {
			p.ghosts = append(p.ghosts, n)
			continue
		}
		for _, g := range p.ghosts {
			p.take(g, true)
		}
		p.ghosts = p.ghosts[:0]
		p.take(n, false)
	}
	if p.paid == 0 {
		return nil
	}
	p.pass.By = "clock"
	p.pass.Credit = min(c.Credit-int64(p.paid)*PassCost, s.creditCap())
	return &p.pass
}

// passByFlush lets so many through: ghosts among the number, and no more paid ones than there are slots.
func (s *State) passByFlush(c Flush, now Instant) *Pass {
	slots := max(s.slotsLeft(), 0)
	var p passer
	for n, ok := s.line.First(); ok && p.count < c.Count; n, ok = s.line.Next(n) {
		ghost := s.absent(c.Presence, n, now)
		if !ghost && p.paid == slots {
			break
		}
		p.take(n, ghost)
	}
	if p.count == 0 {
		return nil
	}
	p.pass.By = "flush"
	p.pass.Credit = c.Credit
	return &p.pass
}
