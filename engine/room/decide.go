package room

import "slices"

// Decide says which events a command leads to now. It does not write to s. The error is a Refusal; with no events and no
// error, what the command asks for is so already.
func Decide(s *State, c Command, now Instant) ([]Event, error) {
	now = max(now, s.at) // time never runs backwards in a room
	if c, ok := c.(NewRoom); ok {
		return s.decideNewRoom(c, now)
	}
	if !s.exists {
		return nil, ErrRoomNotFound
	}
	if c, ok := c.(DrawNow); ok {
		return s.decideDraw(c, now)
	}
	if s.DrawDue(now) {
		return nil, ErrDrawDue
	}
	switch c := c.(type) {
	case TakePlace:
		return s.decideTakePlace(c, now)
	case Tick:
		return s.decideTick(c, now), nil
	case Flush:
		if p := s.passByFlush(c, now); p != nil {
			return one(now, p)
		}
		return nil, nil
	case SetMode:
		return s.decideEdit(Edit{Mode: c.Mode, Credit: c.Credit}, now)
	case Reconfigure:
		return s.decideEdit(Edit{Settings: &c.Settings, Credit: c.Credit}, now)
	case Reschedule:
		return s.decideSchedule(c, now)
	case Edit:
		return s.decideEdit(c, now)
	case EjectTicket:
		if p := s.Ticket(c.Ticket); !p.Live() || p.Expired(s.settings, now) {
			return nil, ErrTicketNotFound
		}
		if s.last == MaxTicket {
			return nil, ErrRoomFull
		}
		return one(now, &Eject{Ticket: c.Ticket, To: s.last + 1})
	case PurgeLine:
		if waiting := s.line.Len() + s.held.Len(); waiting+s.entries.Len() > 0 {
			return one(now, &Purge{Waiting: waiting, PreQueue: s.entries.Len()})
		}
		return nil, nil
	case EnterDoor:
		return s.decideEnter(c, now)
	case GiveBack:
		return s.decideGiveBack(c, now)
	case CloseRoom:
		return one(now, &Close{Generation: s.generation + 1})
	case DeleteRoom:
		return one(now, &Delete{})
	}
	panic("room: a command that Decide does not know")
}

func one(now Instant, b Body) ([]Event, error) { return []Event{{At: now, Body: b}}, nil }

// maxScore is the end of the scale (domain.md rule 10). The codec takes none beyond it.
const maxScore = 100

func (s *State) decideTakePlace(c TakePlace, now Instant) ([]Event, error) {
	if c.Generation != s.generation {
		return nil, ErrGeneration
	}
	c.Score = min(c.Score, maxScore)
	if s.mode == Bypass {
		return nil, nil // there is no line: everybody passes, and nobody has a place
	}
	var events []Event
	if p, ok := s.PlaceOf(c.Holder); ok {
		if !p.Expired(s.settings, now) {
			return nil, nil
		}
		// The clock has not recorded it yet, but by time this place is over; the holder starts anew.
		why := lapsePass
		if p.Status == Inside {
			why = lapseDoor
		}
		events = append(events, Event{At: now, Body: &Lapse{Why: why, Tickets: []Ticket{p.Ticket}}})
	}
	switch {
	case s.mode == Idle:
		return nil, ErrRoomIdle
	case s.settings.Protection.Refuses(c.Score):
		return nil, ErrBlocked
	case s.opensAt != 0:
		if s.entries.Len() >= MaxEntries || Ticket(s.lastHandle) == MaxTicket {
			return nil, ErrPrequeueFull
		}
		if over(s.settings.PreQueueMaxPerIP, &s.enteredBy, c.Identity) {
			return nil, ErrPrequeueIdentityLimit
		}
		return append(events, Event{At: now, Body: &Enqueue{Handle: s.lastHandle + 1, Holder: c.Holder, Identity: c.Identity, Score: c.Score}}), nil
	case s.last == MaxTicket:
		return nil, ErrRoomFull
	case over(s.settings.QueueMaxPerIP, &s.waitingBy, c.Identity):
		return nil, ErrQueueIdentityLimit
	}
	return append(events, Event{At: now, Body: &Join{Ticket: s.last + 1, Holder: c.Holder, Identity: c.Identity, Score: c.Score}}), nil
}

func over(limit *int64, counts *identityCounts, id Identity) bool {
	return limit != nil && id != 0 && int64(counts.Get(id)) >= *limit
}

func (s *State) decideNewRoom(c NewRoom, now Instant) ([]Event, error) {
	if s.exists {
		return nil, ErrRoomExists
	}
	events := []Event{{At: now, Body: &Create{Generation: s.generation + 1, Mode: c.Mode, Settings: c.Settings}}}
	if c.OpensAt != 0 {
		if c.OpensAt <= now {
			return nil, ErrInvalidOpensAt
		}
		events = append(events, Event{At: now, Body: &Schedule{OpensAt: c.OpensAt, Commitment: c.Commitment}})
	}
	return events, nil
}

func (s *State) decideEdit(c Edit, now Instant) (events []Event, err error) {
	if c.Settings != nil {
		events = append(events, Event{At: now, Body: &Configure{Settings: *c.Settings, Credit: c.Credit, Reason: c.Reason}})
	}
	if c.OpensAt != nil {
		doors, err := s.decideSchedule(Reschedule{OpensAt: *c.OpensAt, Commitment: c.Commitment}, now)
		if err != nil {
			return nil, err
		}
		events = append(events, doors...)
	}
	if c.Mode != "" && c.Mode != s.mode {
		events = append(events, Event{At: now, Body: &StateChange{Mode: c.Mode, Credit: c.Credit, Reason: c.Reason}})
	}
	return events, nil
}

func (s *State) decideSchedule(c Reschedule, now Instant) ([]Event, error) {
	switch {
	case c.OpensAt == s.opensAt:
		return nil, nil
	case c.OpensAt == 0 && s.entries.Len() > 0:
		// Cancelling after entries exist draws at once: the doors open now.
		return one(now, &Schedule{OpensAt: now, Commitment: s.commitment})
	case c.OpensAt == 0:
		return one(now, &Schedule{})
	case c.OpensAt <= now:
		return nil, ErrInvalidOpensAt
	}
	return one(now, &Schedule{OpensAt: c.OpensAt, Commitment: c.Commitment})
}

func (s *State) decideDraw(c DrawNow, now Instant) ([]Event, error) {
	if !s.DrawDue(now) {
		return nil, ErrDrawNotDue
	}
	if Digest(Commitment(c.Secret)) != s.commitment {
		return nil, ErrCommitment
	}
	ids := make([]Identity, 0, s.entries.Len())
	for q, ok := s.entries.First(); ok; q, ok = s.entries.Next(q) {
		ids = append(ids, s.entryIdentity.at(uint32(q)))
	}
	seed := DrawSeed(c.Secret, c.Head)
	order := DrawOrder(seed, ids)
	return one(now, &Draw{
		Version: DrawVersion, Secret: c.Secret, Head: c.Head, Seed: seed,
		First: s.last + 1, Count: len(order), Order: PackOrder(order), Digest: OrderDigest(order),
	})
}

func (s *State) decideEnter(c EnterDoor, now Instant) ([]Event, error) {
	if c.Generation != s.generation {
		return nil, ErrGeneration
	}
	p := s.Ticket(c.Ticket)
	if p.Status != Passed && p.Status != Inside || p.Expired(s.settings, now) {
		return nil, ErrNotPassed
	}
	switch {
	case c.Holder != Holder{} && c.Holder == p.Holder:
	case c.CodeAt == 0:
		return nil, ErrNotOwner
	case p.Status == Inside && c.CodeAt <= p.CodeAt:
		return nil, ErrCodeSpent
	}
	return one(now, &Enter{Ticket: c.Ticket, Door: c.Door, CodeAt: c.CodeAt})
}

func (s *State) decideGiveBack(c GiveBack, now Instant) ([]Event, error) {
	if c.Generation != s.generation {
		return nil, ErrGeneration
	}
	p, ok := s.PlaceOf(c.Holder)
	switch {
	case !ok:
		return nil, nil
	case p.Status == Enqueued:
		return one(now, &Leave{Handles: []Handle{p.Handle}})
	}
	return one(now, &Leave{Tickets: []Ticket{p.Ticket}})
}

// The reasons of a lapse.
const (
	lapsePass = "pass"
	lapseDoor = "door"
	lapseWait = "wait"
)

// abandonedAfter: a waiting ticket that nobody polls for a day lapses (domain.md rule 6).
const abandonedAfter Instant = 24 * 3600 * 1000

func (s *State) decideTick(c Tick, now Instant) (events []Event) {
	slots := s.slotsLeft()
	emit := func(b Body) { events = append(events, Event{At: now, Body: b}) }

	var lapsed, unslotted []Ticket
	s.passes.each(func(n Ticket, p *pass) bool {
		switch {
		case s.settings.passExpired(p.at, now):
			lapsed = append(lapsed, n)
			if p.slot {
				slots++
			}
		case c.Presence == nil || s.settings.PresenceSec == nil:
			return false // none after this one is older
		case !p.slot:
		case now-p.at <= Instant(*s.settings.PresenceSec)*1000:
			return false // this pass and all after it are too young for either
		case c.Presence.Seen(n) <= p.at && s.absent(c.Presence, n, now):
			unslotted = append(unslotted, n)
			slots++
		}
		return true
	})
	if len(lapsed) > 0 {
		emit(&Lapse{Why: lapsePass, Tickets: lapsed})
	}
	if len(unslotted) > 0 {
		emit(&Unslot{Tickets: unslotted})
	}
	if ended, renew := s.doorsAt(c, now); len(ended)+len(renew) > 0 {
		if len(renew) > 0 {
			emit(&Renew{Tickets: renew})
		}
		if len(ended) > 0 {
			emit(&Lapse{Why: lapseDoor, Tickets: ended})
			slots += len(ended)
		}
	}
	if c.Sweep && c.Presence != nil {
		if gone := s.abandoned(c.Presence, now); len(gone) > 0 {
			emit(&Lapse{Why: lapseWait, Tickets: gone})
			return events // who passes is decided on the line without them, at the next tick
		}
	}
	if p := s.passByClock(c, slots, now); p != nil {
		emit(p)
	}
	return events
}

// doorsAt says which door sessions time has ended, and which of those seen to renew: all of them, once a third of
// sessionTtlSec, or as soon as one of them would lapse otherwise.
func (s *State) doorsAt(c Tick, now Instant) (ended, renew []Ticket) {
	ttl, oldest := Instant(s.settings.SessionTTLSec)*1000, Instant(s.settings.SessionMaxSec)*1000
	since := Instant(0) // after a recovery no session lapses for one sessionTtlSec
	if c.Presence != nil {
		since = c.Presence.Since()
	}
	due := false
	for _, n := range c.Doors {
		if d := s.doors.get(n); d != nil && now-d.enteredAt <= oldest {
			renew = append(renew, n)
			due = due || now-d.seenAt >= ttl/3
		}
	}
	s.doors.each(func(n Ticket, d *door) bool {
		switch {
		case now-d.enteredAt > oldest:
			ended = append(ended, n)
		case now-max(d.seenAt, since) > ttl && !contains(c.Doors, n):
			ended = append(ended, n)
		}
		return true
	})
	if !due {
		renew = nil
	}
	return ended, renew
}

// contains looks n up in an ascending list.
func contains(list []Ticket, n Ticket) bool {
	_, found := slices.BinarySearch(list, n)
	return found
}

// abandoned lists the waiting tickets that nobody polled for a day of unbroken observation.
func (s *State) abandoned(p Presence, now Instant) (gone []Ticket) {
	if now-p.Since() <= abandonedAfter {
		return nil
	}
	for _, l := range []*Line{&s.line, &s.held} {
		for n, ok := l.First(); ok; n, ok = l.Next(n) {
			if now-max(p.Seen(n), p.Since()) > abandonedAfter {
				gone = append(gone, n)
			}
		}
	}
	return gone
}
