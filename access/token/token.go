// Package token signs and verifies what qm hands out of the building: the
// visitor's place in line, the hand-over code, and the references to things
// that the server keeps (console sessions, monitor links, operator keys). It
// also mints the opaque credentials that need no signature: ownership session
// ids and door-session keys.
//
// Every signed token reads
//
//	base64url(JSON) "." base64url(HMAC-SHA256(key, base64url(JSON)))
//
// without padding (seed 004, "Tokens"). The MAC covers the encoded text, so
// that nothing needs to be decoded to know what was signed. There are two
// forms, both always verified:
//
//   - legacy: the key is SECRET itself and the payload has no kid. It is good
//     for every purpose whose payload checks pass, which is why each purpose
//     has fields of its own and a payload with a foreign field is refused.
//   - v2: one key a purpose, HKDF-SHA256(SECRET, no salt, "qm:"+purpose, 32),
//     and a kid in the payload. An unknown kid is refused, and a token is never
//     good for another purpose.
//
// The package is pure: it takes the time from its caller, and reads only
// randomness for what it mints.
package token

import "errors"

// What can be wrong with a token. Every error that this package returns about
// a token wraps exactly one of these; none of them carries any part of the
// token, so they may be logged as they are.
var (
	// ErrMalformed: not a token, or a payload that breaks the rules of its purpose.
	ErrMalformed = errors.New("token: malformed")
	// ErrKey: signed with a key that is not in the keyring (an unknown kid).
	ErrKey = errors.New("token: signed with an unknown key")
	// ErrSignature: the signature is not that of this text.
	ErrSignature = errors.New("token: wrong signature")
	// ErrPurpose: a payload that belongs to another purpose.
	ErrPurpose = errors.New("token: made for another purpose")
	// ErrExpired: genuine, and too old.
	ErrExpired = errors.New("token: expired")
	// ErrFuture: genuine, and issued more than MaxSkew ahead of the present.
	ErrFuture = errors.New("token: issued in the future")
	// ErrOtherRoom: genuine, and of another room than the one asked for.
	ErrOtherRoom = errors.New("token: of another room")
)

// Purpose says what a token is for. Under v2 it picks the key.
type Purpose uint8

const (
	// PurposeVisitor: a place in line or a pre-queue entry.
	PurposeVisitor Purpose = iota
	// PurposeMonitor: a shared link that may only read.
	PurposeMonitor
	// PurposeSession: a console that is signed in.
	PurposeSession
	// PurposeOperator: a named operator's credential.
	PurposeOperator
	// PurposeCode: the hand-over to another origin (contract.md, answer 19). Its
	// payload looks like a visitor's, so it exists only as v2.
	PurposeCode
	// PurposeWithdraw: the link in a mail that ends the mails of a place. Only v2, too.
	PurposeWithdraw
	purposes
)

var purposeNames = [purposes]string{"visitor", "monitor", "session", "operator", "code", "withdraw"}

// onlyV2 reports a purpose that the legacy form does not have.
func (p Purpose) onlyV2() bool { return p == PurposeCode || p == PurposeWithdraw }

// String is the purpose's name as it stands in the HKDF info.
func (p Purpose) String() string {
	if p < purposes {
		return purposeNames[p]
	}
	return "unknown"
}
