// Package room is the core: what a room is, which events a command leads to, and what they make of it. It is pure: the
// standard library only, no clock, no goroutine, no randomness of its own (architecture.md, "The core").
package room

// State is a room: what Apply made of its events, and nothing else. It is not safe for concurrent use.
//
// A state is full (made by New or Restore) or lean (made by Lean): a lean one answers reads by ticket or handle, but keeps
// neither the index from holders nor the identities, which only decisions need.
type State struct {
	lean bool

	// The room.
	exists     bool
	generation uint32
	mode       Mode
	settings   *Settings // replaced whole, never written to
	createdAt  Instant
	at         Instant // of the last event
	credit     int64   // ticket-milliseconds left at the last event that carries it
	flow       Flow
	minutes    []Minute
	steering   Steering

	// The drop.
	opensAt    Instant // 0: nothing scheduled
	commitment Digest
	draws      int // of this generation
	proof      *Proof

	// The tickets. status stays for as long as the generation lives; the other columns go with a page's last live ticket.
	last   Ticket
	line   Line // waiting and passable
	held   Line // waiting with a score at or above holdScore
	status column[Status]
	holder column[Holder]
	joined column[uint32] // joinUnit milliseconds after createdAt
	score  column[uint8]
	live   []uint16 // live tickets by page

	passes roster[pass]
	doors  roster[door]
	slots  int

	// The pre-queue. drawn and ended stay; the other columns go at the draw.
	lastHandle Handle
	entries    Line           // the handles that wait for the draw
	entryOf    column[Holder] // by handle
	entryScore column[uint8]  // by handle
	entryAt    column[uint32] // by handle, as joined
	drawn      column[uint32] // by handle: the ticket it became
	ended      column[Status] // by handle: Left or Reset

	// For decisions only.
	identity      column[Identity] // by ticket
	entryIdentity column[Identity] // by handle
	index         holderIndex      // live places: a ticket, or a handle with entryRef set
	waitingBy     identityCounts   // waiting and held tickets
	enteredBy     identityCounts   // pre-queue entries
}

type pass struct {
	at   Instant
	slot bool
}

type door struct {
	passedAt, enteredAt, seenAt Instant
	codeAt                      Instant
	key                         Holder
}

const (
	pageBits = 12
	pageSize = 1 << pageBits // tickets a page
	joinUnit = 100           // ms; a uint32 of them is 13 years
	entryRef = 1 << 31       // in the index: a handle, not a ticket
	// MaxTicket is the last ticket number of a generation.
	MaxTicket Ticket = entryRef - 1
	// MaxEntries is a pre-queue's hard ceiling (contract.md 20).
	MaxEntries = 1_000_000
)

// New returns the state before the first event.
func New() *State { return &State{} }

// Lean returns a lean copy.
func (s *State) Lean() *State {
	c := *s
	c.lean = true
	c.line, c.held, c.entries = s.line.Clone(), s.held.Clone(), s.entries.Clone()
	c.status, c.holder, c.joined, c.score = s.status.clone(), s.holder.clone(), s.joined.clone(), s.score.clone()
	c.entryOf, c.entryScore, c.entryAt = s.entryOf.clone(), s.entryScore.clone(), s.entryAt.clone()
	c.drawn, c.ended = s.drawn.clone(), s.ended.clone()
	c.live = append([]uint16(nil), s.live...)
	c.minutes = s.Minutes()
	c.passes, c.doors = s.passes.clone(), s.doors.clone()
	c.identity, c.entryIdentity = column[Identity]{}, column[Identity]{}
	c.index, c.waitingBy, c.enteredBy = holderIndex{}, identityCounts{}, identityCounts{}
	return &c
}

// Generation is the room's generation; 0 before the first create.
func (s *State) Generation() uint32 { return s.generation }

// Exists says whether the room is there: created and not deleted.
func (s *State) Exists() bool { return s.exists }

// At is the time of the last event: the room's clock does not run before it.
func (s *State) At() Instant { return s.at }

// Draws counts the draws of this generation: it names the secret of the next drop.
func (s *State) Draws() int { return s.draws }

// DrawDue says whether the open instant has come and the draw has not been decided.
func (s *State) DrawDue(now Instant) bool {
	return s.exists && s.opensAt != 0 && max(now, s.at) >= s.opensAt
}

// Ticket returns where a ticket of the present generation stands.
func (s *State) Ticket(n Ticket) Place {
	p := Place{Ticket: n, Generation: s.generation}
	if n == 0 || n > s.last {
		return p
	}
	p.Status = s.status.at(uint32(n))
	if !p.Live() {
		return p
	}
	p.Holder = s.holder.at(uint32(n))
	p.JoinedAt = s.createdAt + Instant(s.joined.at(uint32(n)))*joinUnit
	switch p.Status {
	case Waiting:
		p.Held = s.held.Len() > 0 && s.held.Has(n)
		p.Ahead = s.line.Rank(n)
	case Passed:
		row := s.passes.get(n)
		p.Slot, p.PassedAt = row.slot, row.at
	case Inside:
		row := s.doors.get(n)
		p.Slot, p.PassedAt, p.EnteredAt, p.SeenAt = true, row.passedAt, row.enteredAt, row.seenAt
		p.Door, p.CodeAt = row.key, row.codeAt
	}
	return p
}

// Handle returns where a pre-queue entry of the present generation stands: enqueued, or (after the draw) its ticket's place with
// Handle set.
func (s *State) Handle(q Handle) Place {
	if n := Ticket(s.drawn.at(uint32(q))); n != 0 {
		p := s.Ticket(n)
		p.Handle = q
		return p
	}
	p := Place{Handle: q, Generation: s.generation}
	switch {
	case q == 0 || q > s.lastHandle:
	case s.entries.Has(Ticket(q)):
		p.Status = Enqueued
		p.Holder = s.entryOf.at(uint32(q))
		p.JoinedAt = s.createdAt + Instant(s.entryAt.at(uint32(q)))*joinUnit
	default:
		p.Status = s.ended.at(uint32(q))
	}
	return p
}

// PlaceOf returns the live place of a holder. Full states only.
func (s *State) PlaceOf(h Holder) (Place, bool) {
	ref, ok := s.index.Get(h, s.holderOf)
	switch {
	case !ok:
		return Place{}, false
	case ref&entryRef != 0:
		return s.Handle(Handle(ref &^ entryRef)), true
	default:
		return s.Ticket(Ticket(ref)), true
	}
}

// PlaceGiven is PlaceOf for the holder whom e, the last event applied, gave a place: it need not look for it. The zero Place when e
// gave none.
func (s *State) PlaceGiven(e Event) Place {
	switch b := e.Body.(type) {
	case *Join:
		return s.Ticket(b.Ticket)
	case *Enqueue:
		return s.Handle(b.Handle)
	}
	return Place{}
}

func (s *State) holderOf(ref uint32) Holder {
	if ref&entryRef != 0 {
		return s.entryOf.at(ref &^ entryRef)
	}
	return s.holder.at(ref)
}

// Summary returns the room at a glance.
func (s *State) Summary() Summary {
	sum := Summary{
		Exists: s.exists, Generation: s.generation, Mode: s.mode, Settings: s.settings,
		OpensAt: s.opensAt, Commitment: s.commitment, Draws: s.draws, Proof: s.proof, At: s.at, CreatedAt: s.createdAt,
		Waiting: s.line.Len(), Held: s.held.Len(), PreQueue: s.entries.Len(),
		Passes: s.passes.live, Doors: s.doors.live, Slots: s.slots,
		LastTicket: s.last, LastHandle: s.lastHandle, Credit: s.credit, Flow: s.flow, Steering: s.steering,
	}
	if n, ok := s.line.First(); ok {
		sum.FrontSince = s.createdAt + Instant(s.joined.at(uint32(n)))*joinUnit
	}
	return sum
}

// slotsLeft is how many paid passes may be made; a large number when the room has no limit, and below zero when slotless
// passes have entered a full room.
func (s *State) slotsLeft() int {
	if s.settings.MaxConcurrent == nil {
		return int(MaxTicket)
	}
	return int(*s.settings.MaxConcurrent) - s.slots
}

// expired judges a pass by time (domain.md: expiry is judged by time when deciding and when reading; lapse records it).
func (s *Settings) passExpired(passedAt, now Instant) bool {
	return now > passedAt+Instant(s.PassedTTLSec)*1000
}

// Expired judges a live place by time: a pass past passedTtlSec, a door session past sessionMaxSec. Whether a younger door session
// has lapsed is the engine's to say, which knows when it was last seen.
func (p Place) Expired(s *Settings, now Instant) bool {
	switch p.Status {
	case Passed:
		return s.passExpired(p.PassedAt, now)
	case Inside:
		return now > p.EnteredAt+Instant(s.SessionMaxSec)*1000
	}
	return false
}
