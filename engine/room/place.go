package room

// Status is what has become of a ticket or a handle.
type Status uint8

// The statuses. The numbers are stored in snapshots and projections.
const (
	None     Status = 0 // never given in this generation
	Waiting  Status = 1 // in line; Held tells whether the outflow steps over it
	Passed   Status = 2 // let through, not yet at the door
	Inside   Status = 3 // has a door session
	Expired  Status = 4 // time ended it
	Reset    Status = 5 // an operator ended it (eject, purge)
	Left     Status = 6 // the holder gave it back
	Enqueued Status = 7 // a handle in the pre-queue
)

// Place is where a ticket or handle stands, as of one seq of the room.
type Place struct {
	Status     Status
	Held       bool // waiting with a score at or above holdScore
	Slot       bool // a pass that holds a slot
	Ticket     Ticket
	Handle     Handle // for a place that came out of the pre-queue and was asked for by handle
	Generation uint32
	Ahead      int // passable tickets before it; meaningful while Waiting
	Holder     Holder
	JoinedAt   Instant
	PassedAt   Instant // Passed and Inside
	EnteredAt  Instant // Inside
	SeenAt     Instant // Inside: entered or last renewed
	Door       Holder  // Inside: digest of the door-session key
	CodeAt     Instant // Inside: issue time of the newest spent hand-over code
}

// Live says whether the place is still somebody's: waiting, passed, inside or in the pre-queue.
func (p Place) Live() bool {
	return p.Status == Waiting || p.Status == Passed || p.Status == Inside || p.Status == Enqueued
}

// Summary is a room at a glance, as of one seq.
type Summary struct {
	Exists     bool // created and not deleted
	Generation uint32
	Mode       Mode
	Settings   *Settings // never nil when Exists; not to be written to
	OpensAt    Instant   // 0: nothing is scheduled
	Commitment Digest    // of the scheduled or the last drawn drop; zero: none
	Draws      int       // of this generation
	Proof      *Proof    // of the last draw of this generation; nil before
	At         Instant   // of the last event
	CreatedAt  Instant   // of this generation
	Waiting    int       // passable tickets in line
	Held       int
	PreQueue   int
	Passes     int // passed, not yet at the door
	Doors      int // door sessions
	Slots      int // slots in use
	LastTicket Ticket
	LastHandle Handle
	Credit     int64
	FrontSince Instant // when the front of the line joined; 0: nobody waits
	Flow       Flow
	Steering   Steering
}

// Steering is who set state and rate last, and when: what a room does by itself gives way to an operator's hand.
type Steering struct {
	ModeAt   Instant `json:"modeAt"`
	ModeRule string  `json:"modeRule,omitempty"` // the rule of the event's reason; "": an operator
	RateAt   Instant `json:"rateAt"`
	RateRule string  `json:"rateRule,omitempty"`
}

// Scheduled says whether the doors are still shut at now.
func (s *Summary) Scheduled() bool { return s.OpensAt != 0 }

// Proof is what an outsider needs to check a draw (contract.md 13).
type Proof struct {
	Version int
	Secret  Digest
	Head    Digest
	Seed    Digest
	First   Ticket
	Count   int
	Digest  Digest
	DrawnAt Instant
}
