package access

import "qm/access/org"

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

	session  string // the console session that it came by, if any
	link     string // the monitor link that it came by, if any
	operator string // the operator whose key it is, if any
	stale    bool   // the organisation could not be read lately: it may have been revoked
}

// Require is a Refusal with CodeInsufficientRole unless a's role reaches need. While this process cannot read who was revoked, whoever comes by
// anything but ADMIN_KEY itself may still look, so that an outage does not blind the operators, and may change nothing: CodeStorage.
func (a Actor) Require(need Role) error {
	if a.Role < need || a.Role == NoRole {
		return refuse(CodeInsufficientRole)
	}
	if a.stale && need > Viewer {
		return refuse(CodeStorage)
	}
	return nil
}

// Session is the id of the console session that the actor came by, "" for none.
func (a Actor) Session() string { return a.session }

// IsOperator reports whether the actor is somebody with a key of their own, and not ADMIN_KEY or a link.
func (a Actor) IsOperator() bool { return a.operator != "" }

// roleOf is the role of an operator.
func roleOf(r org.Role) Role {
	switch r {
	case org.Viewer:
		return Viewer
	case org.Manager:
		return Operator
	case org.Owner:
		return Owner
	}
	return NoRole
}
