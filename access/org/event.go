// Package org is the organisation behind the rooms: its operators, their second factors and console sessions, its share links and settings. It is
// a fold over the events of the stream "$org" (architecture.md, "The journal"), like a room's. The stream has no owner: any process appends
// on the expected seq and tries again, and every process follows it, so that what one revokes holds in all of them ([Book]).
//
// What is personal (names, addresses, reasons) is in no event: it lies in [journal.Notes], found by the event's cause (domain.md rule 4).
package org

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"qm/journal"
)

// Stream is the organisation's stream.
const Stream = "$org"

// Admin is the actor that ADMIN_KEY is: an owner who cannot be revoked, so that nobody can lock all out.
const Admin = "admin"

// Body is the content of an event. The set is sealed. A (kind, version) is a contract: never edited and never reused.
type Body interface {
	// Kind is the word for the event, as the journal stores it.
	Kind() string
	// Say is the event in words.
	Say() string
	isBody()
}

// OperatorAdded gives somebody a key. Their name is a note.
type OperatorAdded struct {
	ID       string `json:"id"` // "op_" and a ULID in lower case
	Role     Role   `json:"role"`
	Verifier string `json:"verifier"` // see token.Keyring.Verifier
}

// OperatorRevoked ends a key, and with it the sessions and links that it made.
type OperatorRevoked struct {
	ID string `json:"id"`
}

// Resealed replaces an operator's verifier after a rotation of SECRET.
type Resealed struct {
	ID       string `json:"id"`
	Verifier string `json:"verifier"`
}

// SignedIn begins a console session of the actor.
type SignedIn struct {
	ID   string `json:"id"`
	Ends int64  `json:"ends"`           // epoch ms
	Mark string `json:"mark,omitempty"` // of the admin key that was used: another one ends the session
	Step int64  `json:"step,omitempty"` // the time step of the one-time code that was used
}

// SignedOut ends one.
type SignedOut struct {
	ID string `json:"id"`
}

// LinkMade makes a share link.
type LinkMade struct {
	ID   string `json:"id"`
	Ends int64  `json:"ends"` // epoch ms
	Mark string `json:"mark,omitempty"`
}

// LinksRevoked ends share links.
type LinksRevoked struct {
	IDs []string `json:"ids"`
}

// FactorStarted names the vault entry with the secret of a second factor that waits for its first code.
type FactorStarted struct {
	ID     string `json:"id"`
	Secret string `json:"secret"` // a name, not the secret
}

// FactorOn asks for a one-time code at each sign-in from now on. It ends the operator's sessions but the one that it was confirmed in.
type FactorOn struct {
	ID   string `json:"id"`
	Step int64  `json:"step"`
	Keep string `json:"keep,omitempty"`
}

// FactorOff ends that.
type FactorOff struct {
	ID string `json:"id"`
}

// Set gives a setting of the organisation a value, which is any JSON; null removes it. Was is the value before, null for none.
type Set struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	Was   json.RawMessage `json:"was"`
}

// ShutDown says that somebody had a process stop.
type ShutDown struct{}

// Forgotten says that the notes of acts before an instant were erased.
type Forgotten struct {
	Before int64 `json:"before"` // epoch ms
}

// Kind implements [Body].
func (*OperatorAdded) Kind() string   { return "operator" }
func (*OperatorRevoked) Kind() string { return "revoke" }
func (*Resealed) Kind() string        { return "reseal" }
func (*SignedIn) Kind() string        { return "signin" }
func (*SignedOut) Kind() string       { return "signout" }
func (*LinkMade) Kind() string        { return "link" }
func (*LinksRevoked) Kind() string    { return "unlink" }
func (*FactorStarted) Kind() string   { return "factor" }
func (*FactorOn) Kind() string        { return "factor-on" }
func (*FactorOff) Kind() string       { return "factor-off" }
func (*Set) Kind() string             { return "setting" }
func (*Forgotten) Kind() string       { return "forget" }
func (*ShutDown) Kind() string        { return "shutdown" }

// Say implements [Body].
func (b *OperatorAdded) Say() string   { return fmt.Sprintf("operator %s added as %s", b.ID, b.Role) }
func (b *OperatorRevoked) Say() string { return fmt.Sprintf("operator %s revoked", b.ID) }
func (b *Resealed) Say() string {
	return fmt.Sprintf("the verifier of operator %s made anew under the present secret", b.ID)
}
func (b *SignedIn) Say() string {
	if b.Step != 0 {
		return fmt.Sprintf("session %s begun, with a one-time code", b.ID)
	}
	return fmt.Sprintf("session %s begun", b.ID)
}
func (b *SignedOut) Say() string { return fmt.Sprintf("session %s ended", b.ID) }
func (b *LinkMade) Say() string {
	return fmt.Sprintf("share link %s made, good until %s", b.ID, time.UnixMilli(b.Ends).UTC().Format(time.DateTime))
}
func (b *LinksRevoked) Say() string {
	if len(b.IDs) == 1 {
		return fmt.Sprintf("share link %s revoked", b.IDs[0])
	}
	return fmt.Sprintf("%d share links revoked", len(b.IDs))
}
func (b *FactorStarted) Say() string {
	return fmt.Sprintf("operator %s begins to add a second factor", b.ID)
}
func (b *FactorOn) Say() string {
	return fmt.Sprintf("operator %s signs in with a one-time code from now on", b.ID)
}
func (b *FactorOff) Say() string {
	return fmt.Sprintf("the second factor of operator %s removed", b.ID)
}
func (b *Set) Say() string { return fmt.Sprintf("setting %s is %s", b.Name, b.Value) }
func (b *Forgotten) Say() string {
	return fmt.Sprintf("notes of acts before %s erased", time.UnixMilli(b.Before).UTC().Format(time.DateTime))
}
func (*ShutDown) Say() string { return "a process was told to stop" }

func (*OperatorAdded) isBody()   {}
func (*OperatorRevoked) isBody() {}
func (*Resealed) isBody()        {}
func (*SignedIn) isBody()        {}
func (*SignedOut) isBody()       {}
func (*LinkMade) isBody()        {}
func (*LinksRevoked) isBody()    {}
func (*FactorStarted) isBody()   {}
func (*FactorOn) isBody()        {}
func (*FactorOff) isBody()       {}
func (*Set) isBody()             {}
func (*Forgotten) isBody()       {}
func (*ShutDown) isBody()        {}

// version is that of every kind so far.
const version = 1

var kinds = []func() Body{
	func() Body { return new(OperatorAdded) }, func() Body { return new(OperatorRevoked) }, func() Body { return new(Resealed) },
	func() Body { return new(SignedIn) }, func() Body { return new(SignedOut) },
	func() Body { return new(LinkMade) }, func() Body { return new(LinksRevoked) },
	func() Body { return new(FactorStarted) }, func() Body { return new(FactorOn) }, func() Body { return new(FactorOff) },
	func() Body { return new(Set) }, func() Body { return new(Forgotten) },
	func() Body { return new(ShutDown) },
	func() Body { return new(AlertFired) }, func() Body { return new(AlertEnded) }, func() Body { return new(AlertTold) },
	func() Body { return new(Silenced) }, func() Body { return new(SilenceEnded) },
}

// Kinds lists the kinds that there are.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, empty := range kinds {
		names[i] = empty().Kind()
	}
	return names
}

// Event is a record of the stream, read.
type Event struct {
	Seq   int64
	At    time.Time
	Actor string
	Cause string
	Body  Body
}

// UnknownEventError is an event that this build does not know: a hard error, never skipped.
type UnknownEventError struct {
	Kind    string
	Version int
}

func (e *UnknownEventError) Error() string {
	return fmt.Sprintf("org: unknown event %q version %d", e.Kind, e.Version)
}

// Decode reads a record. It keeps nothing of it. An unknown kind or version (*UnknownEventError), or a damaged body, is an error.
func Decode(r *journal.Record) (Event, error) {
	for _, empty := range kinds {
		b := empty()
		if b.Kind() != r.Kind || r.Version != version {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(r.Body))
		d.DisallowUnknownFields()
		if err := d.Decode(b); err != nil {
			return Event{}, fmt.Errorf("org: decode %s: %w", r.Kind, err)
		}
		return Event{Seq: r.Seq, At: r.At.UTC(), Actor: string([]byte(r.Actor)), Cause: string([]byte(r.Cause)), Body: b}, nil
	}
	return Event{}, &UnknownEventError{r.Kind, r.Version}
}

// Record is the record of an event, still to be sealed. At is cut to whole milliseconds.
func Record(e Event) journal.Record {
	body, err := json.Marshal(e.Body)
	if err != nil {
		panic(fmt.Sprintf("org: encode %s: %v", e.Body.Kind(), err)) // texts and numbers, and settings that were valid JSON
	}
	return journal.Record{
		Stream: Stream, At: e.At.UTC().Truncate(time.Millisecond), Kind: e.Body.Kind(), Version: version, Actor: e.Actor, Cause: e.Cause, Body: body,
	}
}
