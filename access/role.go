package access

// Role is how far a credential reaches (seed 004, Admin, "Grants"). Each role
// may do all that the ones before it may.
type Role uint8

const (
	// NoRole may do nothing.
	NoRole Role = iota
	// Monitor reads, through a shared link: not the audit trail, the visitors or the targeting.
	Monitor
	// Viewer reads.
	Viewer
	// Operator also changes queue state and room settings.
	Operator
	// Owner also manages operators, deletes rooms and shuts down. ADMIN_KEY is one.
	Owner
)

var roleNames = [...]string{"none", "monitor", "viewer", "operator", "owner"}

func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return roleNames[NoRole]
}

// Actor is whoever a credential belongs to.
type Actor struct {
	// ID stands in the journal as the event's actor: an id, never a name or address.
	ID string
	// Name is for people.
	Name string
	Role Role

	session string // the console session that it came by, if any
	link    string // the monitor link that it came by, if any
}

// Require is a Refusal with CodeInsufficientRole unless a's role reaches need.
func (a Actor) Require(need Role) error {
	if a.Role < need || a.Role == NoRole {
		return refuse(CodeInsufficientRole)
	}
	return nil
}
