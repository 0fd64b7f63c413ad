package room

// Command is what somebody or the clock wants of a room. The set is sealed. Everything that a decision depends on enters
// here (domain.md rule 3): time as an argument of [Decide]; presence, randomness and secrets as fields.
type Command interface{ isCommand() }

// NewRoom creates the room, or its next generation after a delete; with OpensAt its drop is scheduled before anybody can join.
type NewRoom struct {
	Settings   Settings
	Mode       Mode
	OpensAt    Instant // 0: open at once
	Commitment Digest  // as in Reschedule
}

// Edit changes what it names, in one decision: the settings, then the doors, then the state.
type Edit struct {
	Settings   *Settings // nil: as they are
	OpensAt    *Instant  // nil: as it is; otherwise as in Reschedule
	Commitment Digest
	Mode       Mode    // "": as it is
	Credit     int64   // as in Tick
	Reason     *Reason // nil: an operator's wish
}

// Reconfigure replaces the settings; Credit as in Tick.
type Reconfigure struct {
	Settings Settings
	Credit   int64
}

// SetMode sets the configured state; Credit as in Tick.
type SetMode struct {
	Mode   Mode
	Credit int64
}

// Reschedule sets the doors-open instant; 0 cancels it (with entries in the pre-queue that means: draw at once).
// Commitment is that of the drop's sealed secret.
type Reschedule struct {
	OpensAt    Instant
	Commitment Digest
}

// DrawNow decides the draw. It must be decided alone, on the durable head of the journal whose hash is Head.
type DrawNow struct {
	Secret Digest
	Head   Digest
}

// TakePlace joins: the line, or the pre-queue before the doors open. A holder who has a place keeps it.
type TakePlace struct {
	Generation uint32 // the generation whose key made the digests; a decision under another is ErrGeneration
	Holder     Holder
	Identity   Identity // 0: no recorded holder address; exempt from the caps
	Score      uint8
}

// Tick is the clock: it passes, unslots and lapses.
type Tick struct {
	Credit   int64    // earned by the present owner, see Meter
	Presence Presence // nil: everyone counts as present
	Doors    []Ticket // door sessions seen since the last renew, ascending
	Sweep    bool     // look for waiting tickets that nobody polled for a day, too
}

// Presence is what the room's present owner has observed (domain.md rule 6).
type Presence interface {
	// Since is the start of the owner's unbroken observation.
	Since() Instant
	// Seen is when the ticket's holder was last seen; 0 if never.
	Seen(n Ticket) Instant
}

// Flush lets Count tickets through now: it ignores rate and pause, counts ghosts among its number, and never exceeds the slots.
type Flush struct {
	Count    int
	Credit   int64
	Presence Presence
}

// EjectTicket puts a ticket's holder at the back of the line.
type EjectTicket struct{ Ticket Ticket }

// PurgeLine discards the waiting backlog and the pre-queue.
type PurgeLine struct{}

// EnterDoor opens a door session on a pass, or reclaims one. Exactly one proof is given: Holder (the browser's own) or CodeAt (the
// issue time of a verified hand-over code, contract.md 19).
type EnterDoor struct {
	Generation uint32 // as in TakePlace
	Ticket     Ticket
	Holder     Holder  // zero: not proved
	CodeAt     Instant // 0: none
	Door       Holder  // digest of the fresh door-session key
}

// GiveBack leaves: the holder's waiting place, pass, door session or pre-queue entry ends at once.
type GiveBack struct {
	Generation uint32 // as in TakePlace
	Holder     Holder
}

// CloseRoom ends everything live and starts a new, idle generation.
type CloseRoom struct{}

// DeleteRoom ends everything live and the room.
type DeleteRoom struct{}

func (NewRoom) isCommand()     {}
func (Edit) isCommand()        {}
func (Reconfigure) isCommand() {}
func (SetMode) isCommand()     {}
func (Reschedule) isCommand()  {}
func (DrawNow) isCommand()     {}
func (TakePlace) isCommand()   {}
func (Tick) isCommand()        {}
func (Flush) isCommand()       {}
func (EjectTicket) isCommand() {}
func (PurgeLine) isCommand()   {}
func (EnterDoor) isCommand()   {}
func (GiveBack) isCommand()    {}
func (CloseRoom) isCommand()   {}
func (DeleteRoom) isCommand()  {}

// Refusal is a decision not to do what a command asks. Nothing has happened. Its text is the stable code of the contract.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// The refusals of the core.
const (
	ErrRoomNotFound          Refusal = "room_not_found"
	ErrRoomExists            Refusal = "room_exists"
	ErrQueueIdentityLimit    Refusal = "queue_identity_limit"
	ErrPrequeueIdentityLimit Refusal = "prequeue_identity_limit"
	ErrPrequeueFull          Refusal = "prequeue_full"
	ErrTicketNotFound        Refusal = "ticket_not_found" // eject of a ticket that is not live
	ErrNotPassed             Refusal = "not_passed"       // enter without a live pass or door session
	ErrNotOwner              Refusal = "not_owner"        // enter without proof that the place is theirs
	ErrCodeSpent             Refusal = "code_spent"       // enter with a hand-over code that was used
	ErrBlocked               Refusal = "blocked_by_protection"
	ErrRoomIdle              Refusal = "room_idle"         // a closed room takes no joins (seed 000)
	ErrRoomFull              Refusal = "room_full"         // the generation has run out of ticket numbers
	ErrInvalidOpensAt        Refusal = "invalid_opens_at"  // not in the future
	ErrGeneration            Refusal = "room_reset"        // the command speaks of another generation
	ErrDrawDue               Refusal = "draw_due"          // the open instant has come: DrawNow first (never leaves the engine)
	ErrDrawNotDue            Refusal = "draw_not_due"      // never leaves the engine
	ErrCommitment            Refusal = "commitment_broken" // the secret is not the one that the drop committed to
)
