package org

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Role is how far an operator's key reaches, in the words of the contract (seed 004, "Admin auth").
type Role string

// The roles of operators.
const (
	Viewer   Role = "viewer"
	Manager  Role = "operator" // changes queue state and room settings
	Owner    Role = "owner"
	stranger Role = ""
)

var reach = map[Role]int{Viewer: 1, Manager: 2, Owner: 3}

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return reach[r] > 0 }

// Operator is somebody with a key of their own.
type Operator struct {
	ID       string
	Role     Role
	Verifier string
	AddedAt  time.Time
	AddedBy  string
	Cause    string // of the event that added them: where their name is noted
	Revoked  bool
	Factor   Factor
}

// Factor is an operator's second factor.
type Factor struct {
	Pending string // vault entry of a secret that waits for its first code
	Secret  string // vault entry of the secret in force; "" when there is none
	Step    int64  // the last time step whose code was used: no code is taken twice
}

// Session is a console that is signed in.
type Session struct {
	ID     string
	By     string // the actor who signed in
	Mark   string // of the admin key, when By is [Admin]
	At     time.Time
	Ends   time.Time
	Factor bool // with a one-time code
}

// Link is a share link that only reads.
type Link struct {
	ID   string
	By   string
	Mark string
	At   time.Time
	Ends time.Time
}

// most is how many sessions, and how many links, live at once; beyond that the one that ends soonest gives way.
const most = 1024

// State is the organisation as its events made it.
type State struct {
	operators map[string]*Operator
	sessions  map[string]Session
	links     map[string]Link
	settings  map[string]json.RawMessage
	alerts    map[string]Alert // active
	past      []Alert          // over, oldest end first
	silences  map[string]Silence
	at        time.Time // of the last event
}

// New is the organisation before its first event.
func New() *State {
	return &State{
		operators: map[string]*Operator{}, sessions: map[string]Session{}, links: map[string]Link{}, settings: map[string]json.RawMessage{},
		alerts: map[string]Alert{}, silences: map[string]Silence{},
	}
}

// Operator is the operator of an id, revoked ones included.
func (s *State) Operator(id string) (Operator, bool) {
	if o := s.operators[id]; o != nil {
		return *o, true
	}
	return Operator{}, false
}

// Operators lists those who are not revoked, oldest first.
func (s *State) Operators() []Operator {
	var list []Operator
	for _, o := range s.operators {
		if !o.Revoked {
			list = append(list, *o)
		}
	}
	slices.SortFunc(list, func(a, b Operator) int { return cmp.Or(a.AddedAt.Compare(b.AddedAt), strings.Compare(a.ID, b.ID)) })
	return list
}

// RoleOf is the role of an actor at present, "" for one who may do nothing here.
func (s *State) RoleOf(actor string) Role {
	if actor == Admin {
		return Owner
	}
	if o := s.operators[actor]; o != nil && !o.Revoked {
		return o.Role
	}
	return stranger
}

// Session is a session that has not ended by now; its credential has not been revoked.
func (s *State) Session(id string, now time.Time) (Session, bool) {
	v, ok := s.sessions[id]
	return v, ok && now.Before(v.Ends)
}

// Link is a share link that has not ended by now.
func (s *State) Link(id string, now time.Time) (Link, bool) {
	v, ok := s.links[id]
	return v, ok && now.Before(v.Ends)
}

// Links lists the live links, oldest first.
func (s *State) Links(now time.Time) []Link {
	var list []Link
	for _, l := range s.links {
		if now.Before(l.Ends) {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b Link) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) })
	return list
}

// Setting is the value of a setting, nil when it has none. It is not to be written to.
func (s *State) Setting(name string) json.RawMessage { return s.settings[name] }

// Apply takes an event. It never fails and reads no clock; of an event that makes no sense it takes nothing.
func (s *State) Apply(e Event) {
	s.at = e.At
	switch b := e.Body.(type) {
	case *OperatorAdded:
		s.operators[b.ID] = &Operator{ID: b.ID, Role: b.Role, Verifier: b.Verifier, AddedAt: e.At, AddedBy: e.Actor, Cause: e.Cause}
	case *OperatorRevoked:
		if o := s.operators[b.ID]; o != nil {
			o.Revoked, o.Factor = true, Factor{}
		}
		s.endSessions(b.ID, "")
		maps.DeleteFunc(s.links, func(_ string, l Link) bool { return l.By == b.ID })
	case *Resealed:
		if o := s.operators[b.ID]; o != nil {
			o.Verifier = b.Verifier
		}
	case *SignedIn:
		maps.DeleteFunc(s.sessions, func(_ string, v Session) bool { return !e.At.Before(v.Ends) })
		if len(s.sessions) >= most {
			delete(s.sessions, soonest(s.sessions, func(v Session) time.Time { return v.Ends }))
		}
		s.sessions[b.ID] = Session{ID: b.ID, By: e.Actor, Mark: b.Mark, At: e.At, Ends: time.UnixMilli(b.Ends), Factor: b.Step != 0}
		if o := s.operators[e.Actor]; o != nil && b.Step != 0 {
			o.Factor.Step = b.Step
		}
	case *SignedOut:
		delete(s.sessions, b.ID)
	case *LinkMade:
		maps.DeleteFunc(s.links, func(_ string, l Link) bool { return !e.At.Before(l.Ends) })
		if len(s.links) >= most {
			delete(s.links, soonest(s.links, func(l Link) time.Time { return l.Ends }))
		}
		s.links[b.ID] = Link{ID: b.ID, By: e.Actor, Mark: b.Mark, At: e.At, Ends: time.UnixMilli(b.Ends)}
	case *LinksRevoked:
		for _, id := range b.IDs {
			delete(s.links, id)
		}
	case *FactorStarted:
		if o := s.operators[b.ID]; o != nil {
			o.Factor.Pending = b.Secret
		}
	case *FactorOn:
		if o := s.operators[b.ID]; o != nil {
			o.Factor = Factor{Secret: o.Factor.Pending, Step: b.Step}
		}
		s.endSessions(b.ID, b.Keep)
	case *FactorOff:
		if o := s.operators[b.ID]; o != nil {
			o.Factor = Factor{}
		}
	case *Set:
		if string(b.Value) == "null" {
			delete(s.settings, b.Name)
		} else {
			s.settings[b.Name] = b.Value
		}
	default:
		s.applyAlert(e)
	}
}

func (s *State) endSessions(by, keep string) {
	maps.DeleteFunc(s.sessions, func(id string, v Session) bool { return v.By == by && id != keep })
}

// soonest is the id of what ends first; of several, the least id.
func soonest[V any](m map[string]V, ends func(V) time.Time) string {
	return slices.MinFunc(slices.Collect(maps.Keys(m)), func(a, b string) int {
		return cmp.Or(ends(m[a]).Compare(ends(m[b])), strings.Compare(a, b))
	})
}

// What [State.Judge] may find.
var (
	// ErrActor: whoever did it could not do that.
	ErrActor = errors.New("the actor may not do that")
	// ErrReference: it is about something that is not there, or makes what is there already.
	ErrReference = errors.New("it is about something that is not there, or is there already")
)

// Judge reports by nil that an event may follow: its actor's key reached so far at that time, and what it names exists. Both who writes and who
// verifies asks.
func (s *State) Judge(e Event) error {
	if ours, err := s.judgeAlert(e); ours {
		return err
	}
	if _, ok := e.Body.(*Forgotten); ok && e.Actor == Clock {
		return nil // by the age of the notes
	}
	need, own := Owner, ""
	good := true
	exists := func(id string) bool { return s.operators[id] != nil && !s.operators[id].Revoked }
	switch b := e.Body.(type) {
	case *OperatorAdded:
		good = s.operators[b.ID] == nil && b.ID != "" && b.ID != Admin && b.Role.Valid()
	case *OperatorRevoked:
		good = exists(b.ID)
	case *Resealed:
		own, good = b.ID, exists(b.ID)
	case *SignedIn:
		_, double := s.sessions[b.ID]
		need, good = Viewer, !double
		if o := s.operators[e.Actor]; o != nil && o.Factor.Secret != "" {
			good = good && b.Step > o.Factor.Step
		}
	case *SignedOut:
		session, ok := s.sessions[b.ID]
		own, good = session.By, ok
	case *LinkMade:
		_, double := s.links[b.ID]
		need, good = Manager, !double
	case *LinksRevoked:
		need = Manager
		for _, id := range b.IDs {
			if _, ok := s.links[id]; !ok {
				good = false
			}
		}
	case *FactorStarted:
		own, good = b.ID, exists(b.ID) && s.operators[b.ID].Factor.Secret == ""
	case *FactorOn:
		own, good = b.ID, exists(b.ID) && s.operators[b.ID].Factor.Pending != ""
	case *FactorOff:
		if e.Actor == b.ID {
			own = b.ID
		}
		good = exists(b.ID)
	case *Set:
		need = Manager
	}
	if !good {
		return fmt.Errorf("org: %s: %w", e.Body.Kind(), ErrReference)
	}
	role := s.RoleOf(e.Actor)
	if own != "" && own != e.Actor || own == "" && reach[role] < reach[need] || role == stranger {
		return fmt.Errorf("org: %s by %s: %w", e.Body.Kind(), e.Actor, ErrActor)
	}
	return nil
}
