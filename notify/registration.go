package notify

import (
	"context"
	"errors"
	"time"
)

// Place names a place of a room: a ticket, or a pre-queue handle before the draw; the other of the two is 0. What is keyed
// by a ticket is keyed by its generation, too (domain.md, rule 1).
type Place struct {
	Room       string `json:"room"`
	Generation uint32 `json:"g"`
	Ticket     uint32 `json:"n,omitempty"`
	Handle     uint32 `json:"q,omitempty"`
}

// Digest is a keyed digest of something that is not to be stored as it is.
type Digest [32]byte

// Mail is one of the two that a place may lead to.
type Mail string

// The mails: the turn is near, the turn has come. The second is the last.
const (
	Near Mail = "near"
	Turn Mail = "turn"
)

// Registration is what is held of a visitor who wants a mail. The address is erased as soon as it has served; what stays of
// the row until [Registrations.Sweep] keeps a place from being used for more mails.
type Registration struct {
	Place
	Address string    // "" once erased
	Locale  string    // the language of the mails, as web.MatchLocale has it
	Owner   Digest    // of the ownership session whose place it is
	At      time.Time // of the request, whole milliseconds
	Near    bool      // the mail was sent, or is not worth sending any more
	Turn    bool
}

// Live reports whether somebody still waits for a mail.
func (r *Registration) Live() bool { return r.Address != "" }

// Limits of what a hostile caller can make this server send. A place leads to one mail of each kind at most, whatever its
// address was changed to.
const (
	// ChangesPerPlace is how often the address of a place may be set.
	ChangesPerPlace = 5
	// PlacesPerAddress is at how many places an address may be set within an hour.
	PlacesPerAddress = 5
	// Kept is how long a row stays that nothing has been done to: longer than any event.
	Kept = 30 * 24 * time.Hour
)

// Errors of Registrations. Nothing was written.
var (
	// ErrChanges: the place's address was set ChangesPerPlace times.
	ErrChanges = errors.New("notify: the place's address was changed too often")
	// ErrAddress: the address was set at PlacesPerAddress places within the last hour.
	ErrAddress = errors.New("notify: the address was given too often")
	// ErrServed: the last mail of the place was sent.
	ErrServed = errors.New("notify: the place's mails were sent")
)

// Registrations is the side table of addresses: erasable, and never part of the journal (domain.md, rule 4). All methods are
// safe for concurrent use, by several processes where the store is shared.
type Registrations interface {
	// Set files r under its place, in place of what was filed there. The same address again changes nothing but the
	// language. address is the digest under which places of one address are counted. r.Near is true when that mail is not worth
	// sending; it never makes one possible that was sent. ErrChanges, ErrAddress, ErrServed.
	Set(ctx context.Context, r Registration, address Digest) error
	// Find returns what is filed under a place, ok=false when nothing ever was.
	Find(ctx context.Context, p Place) (r Registration, ok bool, err error)
	// Erase erases the address of a place; erased is false when there was none.
	Erase(ctx context.Context, p Place) (erased bool, err error)
	// Move files under to what is filed under from, when that has an address and nothing is filed under to. Either way
	// nothing is left under from. What was sent to a handle counts for its ticket; fresh says that to is another place, to which the
	// mails are due anew.
	Move(ctx context.Context, from, to Place, fresh bool) error

	// Claim takes the right to send one mail of a place: of any number of callers one gets it, once. It is durable when it is
	// answered. ok=false when the mail was claimed before, or there is no address.
	Claim(ctx context.Context, p Place, m Mail) (r Registration, ok bool, err error)
	// Unclaim gives the right back: for a mail that was certainly not delivered.
	Unclaim(ctx context.Context, p Place, m Mail) error

	// Rooms lists the rooms with a live registration, by name.
	Rooms(ctx context.Context) ([]string, error)
	// Live lists the live registrations of a room beyond after (the zero Place: from the beginning), in the order of generation,
	// handle, ticket; at most limit of them.
	Live(ctx context.Context, room string, after Place, limit int) ([]Registration, error)
	// Sweep removes what was filed before a time, live or not, and the counts of addresses that are older than an hour.
	Sweep(ctx context.Context, before time.Time) error
}

// Statement is what the owner of a place is told of its registration (seed 004, POST /api/join: notify).
type Statement struct {
	EmailMasked string
	RequestedAt time.Time
	Delivery    string // "pending": no mail was sent yet; "near": the first was
}

// WithdrawPath is where the link in a mail leads: a page that asks (GET) and ends the mails of a place (POST). What names the place is
// in the query, as t.
const WithdrawPath = "/notify/withdraw"

// Turns is what HTTP needs of turn notifications. A place is known by its owner's session, which HTTP has verified for Register.
type Turns interface {
	// Register files an address that [ParseAddress] took for a place that waits. Where the turn is near already, its visitor
	// knows: no mail says so. Errors as of [Registrations.Set].
	Register(ctx context.Context, p Place, session, address, locale string) (Statement, error)
	// Withdraw erases the address of a place; erased is false when there was none.
	Withdraw(ctx context.Context, p Place) (erased bool, err error)
	// Told is what is held against a place, nil when nothing is.
	Told(ctx context.Context, p Place) (*Statement, error)
	// Carry files under to what session filed under from, a place that is none any more or the handle that to was drawn from.
	Carry(ctx context.Context, from, to Place, session string) error
	// Discard erases what session filed under a place that its operator has discarded.
	Discard(ctx context.Context, p Place, session string) error
	// Warning is what the operator should know of the mail server; "" when all is well.
	Warning() string
}
