package room

import "fmt"

// Check verifies what must hold of a state after every event; the invariants that need the journal as well are in
// replay. It walks the whole room, so it is for tests and verification.
func Check(s *State) error {
	if !s.exists {
		if s.line.Len()+s.held.Len()+s.entries.Len()+s.passes.live+s.doors.live+s.slots != 0 {
			return fmt.Errorf("a room that does not exist holds places")
		}
		return nil
	}
	var waiting, held, passes, doors, live int
	for n := Ticket(1); n <= s.last; n++ {
		status := s.status.at(uint32(n))
		inLine, inHeld := s.line.Has(n), s.held.Has(n)
		if inLine && inHeld {
			return fmt.Errorf("ticket %d is both passable and held", n)
		}
		if (inLine || inHeld) != (status == Waiting) {
			return fmt.Errorf("ticket %d has status %d but its place in line says otherwise", n, status)
		}
		if (s.passes.get(n) != nil) != (status == Passed) || (s.doors.get(n) != nil) != (status == Inside) {
			return fmt.Errorf("ticket %d has status %d but the passes and door sessions say otherwise", n, status)
		}
		switch status {
		case Waiting:
			if inHeld != s.settings.Holds(s.score.at(uint32(n))) {
				return fmt.Errorf("ticket %d has score %d at holdScore %d, held: %v", n, s.score.at(uint32(n)), s.settings.HoldScore, inHeld)
			}
			if inHeld {
				held++
			} else {
				if rank := s.line.Rank(n); rank != waiting {
					return fmt.Errorf("ticket %d has %d ahead, not %d", n, rank, waiting)
				}
				waiting++
			}
		case Passed:
			passes++
		case Inside:
			doors++
		case Expired, Reset, Left:
			continue
		default:
			return fmt.Errorf("ticket %d was given but has status %d", n, status)
		}
		live++
		if s.lean {
			continue
		}
		if p, ok := s.PlaceOf(s.holder.at(uint32(n))); !ok || p.Ticket != n {
			return fmt.Errorf("ticket %d is live, but its holder's place is ticket %d, handle %d", n, p.Ticket, p.Handle)
		}
	}
	slots := s.doors.live
	s.passes.each(func(_ Ticket, p *pass) bool {
		if p.slot {
			slots++
		}
		return true
	})
	switch {
	case waiting != s.line.Len() || held != s.held.Len():
		return fmt.Errorf("%d waiting and %d held by status, %d and %d in line", waiting, held, s.line.Len(), s.held.Len())
	case passes != s.passes.live || doors != s.doors.live:
		return fmt.Errorf("%d passed and %d inside by status, %d and %d by rows", passes, doors, s.passes.live, s.doors.live)
	case slots != s.slots:
		return fmt.Errorf("%d slots counted, %d held", s.slots, slots)
	case s.credit < 0:
		return fmt.Errorf("credit is %d", s.credit)
	case !s.lean && s.index.Len() != live+s.entries.Len():
		return fmt.Errorf("%d holders are known, %d places are live", s.index.Len(), live+s.entries.Len())
	}
	for q, ok := s.entries.First(); ok && !s.lean; q, ok = s.entries.Next(q) {
		if p, found := s.PlaceOf(s.entryOf.at(uint32(q))); !found || p.Handle != Handle(q) {
			return fmt.Errorf("handle %d is in the pre-queue, but its holder's place is ticket %d, handle %d", q, p.Ticket, p.Handle)
		}
	}
	return nil
}
