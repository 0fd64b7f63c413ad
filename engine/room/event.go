package room

// Instant is a time on the room's clock, in Unix milliseconds. Time never runs backwards in a room.
type Instant int64

// Event is one thing that happened in a room: what the journal holds, and all that [State.Apply] needs.
type Event struct {
	At   Instant
	Body Body
}

// Body is the content of an event. The set is sealed: the kinds below are all there are. A (kind, version) is a contract:
// never edited and never reused; a new meaning is a new version with a pure upcaster in codec.go and a golden file.
type Body interface {
	// Kind is the field's word for the event, as the journal stores it.
	Kind() string
	isBody()
}

// Span is an inclusive range of tickets, [from, to]; its JSON form is a pair.
type Span [2]Ticket

// Create opens a new generation of the room: its line, tickets and handles start at 1.
type Create struct {
	Generation uint32   `json:"g"`
	Mode       Mode     `json:"state"`
	Settings   Settings `json:"settings"`
}

// Configure replaces the room's settings. Credit is what the outflow had earned, at the old rate, when they changed.
type Configure struct {
	Settings Settings `json:"settings"`
	Credit   int64    `json:"credit"`
	Reason   *Reason  `json:"reason,omitempty"` // since version 2; nil: an operator's wish
}

// Reason is why a room changed by itself: which of its rules, what it saw, and what it compared that with.
type Reason struct {
	Rule  string `json:"rule"` // "autotune", "autoActivate" or "openings"
	Sign  string `json:"sign"` // what was seen: "well", "slow", "failing", "surge", "calm", "opens", …
	Value int64  `json:"value"`
	Limit int64  `json:"limit"`
}

// rule names the rule; "" without a reason.
func (r *Reason) rule() string {
	if r == nil {
		return ""
	}
	return r.Rule
}

// StateChange sets the configured state. (Its kind is "state".)
type StateChange struct {
	Mode   Mode    `json:"state"`
	Credit int64   `json:"credit"`
	Reason *Reason `json:"reason,omitempty"` // as in Configure
}

// Schedule sets the doors-open instant, or cancels it with OpensAt 0. Commitment is the hash of the sealed secret that
// the draw will reveal (domain.md rule 7).
type Schedule struct {
	OpensAt    Instant `json:"opensAt"`
	Commitment Digest  `json:"commitment"`
}

// Enqueue holds a joiner in the pre-queue, before the draw. A handle is not a position.
type Enqueue struct {
	Handle   Handle
	Holder   Holder
	Identity Identity
	Score    uint8
}

// Draw turns the pre-queue into tickets First, First+1, … in the recorded Order, and reveals what proves it fair.
type Draw struct {
	Version int    `json:"v"`      // DrawVersion of the algorithm
	Secret  Digest `json:"secret"` // revealed; its hash is the commitment
	Head    Digest `json:"head"`   // hash of the record before this one
	Seed    Digest `json:"seed"`   // HMAC-SHA256(secret, head)
	First   Ticket `json:"first"`
	Count   int    `json:"count"`
	Order   []byte `json:"order"`  // PackOrder: for each ticket from First on, which entry (0-based, by handle) it went to
	Digest  Digest `json:"digest"` // OrderDigest of Order
}

// Join gives a ticket at the back of the line.
type Join struct {
	Ticket   Ticket
	Holder   Holder
	Identity Identity
	Score    uint8 // 0 to 100; at or above Settings.HoldScore the ticket is held
}

// Pass lets waiting tickets through. Ghosts (of the same spans) pass without a slot and cost no outflow.
type Pass struct {
	By     string `json:"by"`           // "clock" or "flush"
	Spans  []Span `json:"p"`            // every ticket passed, ascending
	Ghosts []Span `json:"ns,omitempty"` // those of them that got no slot, ascending
	Credit int64  `json:"credit"`       // ticket-milliseconds left after the pass; 60,000 make one pass
}

// Unslot takes the slot back from passes whose holder was never told and is unseen; they stay good at the door.
type Unslot struct {
	Tickets []Ticket `json:"ns"`
}

// Enter opens a door session on a pass, or reclaims one with a fresh key.
type Enter struct {
	Ticket Ticket  `json:"n"`
	Door   Holder  `json:"d"`           // digest of the door-session key
	CodeAt Instant `json:"c,omitempty"` // issue time of the hand-over code it spends; 0 when none was presented
}

// Renew records which door sessions were seen since the last renew.
type Renew struct {
	Tickets []Ticket `json:"ns"`
}

// Leave gives places back at the holder's wish.
type Leave struct {
	Tickets []Ticket `json:"ns,omitempty"`
	Handles []Handle `json:"qs,omitempty"`
}

// Lapse records places that time has ended: Why is "pass" (not used within passedTtlSec), "door" (a session unseen or too
// old) or "wait" (a waiting ticket nobody polled for a day).
type Lapse struct {
	Why     string   `json:"why"`
	Tickets []Ticket `json:"ns"`
}

// Eject revokes a ticket and puts its holder at the back of the line with a new one.
type Eject struct {
	Ticket Ticket `json:"n"`
	To     Ticket `json:"to"`
}

// Purge discards the waiting backlog and the pre-queue; passes and door sessions are spared.
type Purge struct {
	Waiting  int `json:"waiting"` // how many waiting and held tickets it took
	PreQueue int `json:"preQueue"`
}

// Close ends everything live and starts generation Generation, idle (seed 000).
type Close struct {
	Generation uint32 `json:"g"`
}

// Delete ends everything live and the room; a later Create brings the next generation.
type Delete struct{}

func (*Create) Kind() string      { return "create" }
func (*Configure) Kind() string   { return "configure" }
func (*StateChange) Kind() string { return "state" }
func (*Schedule) Kind() string    { return "schedule" }
func (*Enqueue) Kind() string     { return "enqueue" }
func (*Draw) Kind() string        { return "draw" }
func (*Join) Kind() string        { return "join" }
func (*Pass) Kind() string        { return "pass" }
func (*Unslot) Kind() string      { return "unslot" }
func (*Enter) Kind() string       { return "enter" }
func (*Renew) Kind() string       { return "renew" }
func (*Leave) Kind() string       { return "leave" }
func (*Lapse) Kind() string       { return "lapse" }
func (*Eject) Kind() string       { return "eject" }
func (*Purge) Kind() string       { return "purge" }
func (*Close) Kind() string       { return "close" }
func (*Delete) Kind() string      { return "delete" }

func (*Create) isBody()      {}
func (*Configure) isBody()   {}
func (*StateChange) isBody() {}
func (*Schedule) isBody()    {}
func (*Enqueue) isBody()     {}
func (*Draw) isBody()        {}
func (*Join) isBody()        {}
func (*Pass) isBody()        {}
func (*Unslot) isBody()      {}
func (*Enter) isBody()       {}
func (*Renew) isBody()       {}
func (*Leave) isBody()       {}
func (*Lapse) isBody()       {}
func (*Eject) isBody()       {}
func (*Purge) isBody()       {}
func (*Close) isBody()       {}
func (*Delete) isBody()      {}
