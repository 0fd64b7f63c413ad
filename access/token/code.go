package token

import (
	"strconv"
	"time"
)

// CodeLife is how long a hand-over code may be presented (contract.md, answer 19).
const CodeLife = 60 * time.Second

// Code is what qm_code carries to another origin: proof that the browser with
// this place was sent there. It is good once, which the engine judges: the
// check that presents it writes an enter event, and a code issued at or before
// the one spent last is spent too. IssuedAt is therefore part of its identity.
type Code struct {
	Room       string
	Ticket     uint32
	Generation uint32
	// IssuedAt is the time of signing in milliseconds since 1970.
	IssuedAt int64
}

// SignCode is the hand-over code of c, always v2. It panics like SignVisitor
// when c names no place.
func (k *Keyring) SignCode(c Code) string {
	v := Visitor{Room: c.Room, Ticket: c.Ticket, Generation: c.Generation, IssuedAt: c.IssuedAt}
	if !v.valid() {
		panic("token: sign a code without a place: room " + strconv.Quote(c.Room))
	}
	var buf [maxPayload]byte
	var out [MaxLen]byte
	return string(k.seal(out[:0], PurposeCode, v.payload(buf[:0], k.kidToSign(PurposeCode))))
}

// VerifyCode is the place that a genuine code of this room, at most CodeLife
// old, hands over. That it was not presented before is the engine's to check.
func (k *Keyring) VerifyCode(token, room string, now time.Time) (Code, error) {
	var c claims
	if err := k.open(PurposeCode, token, &c); err != nil {
		return Code{}, err
	}
	if c.has != fieldsOf[PurposeCode] {
		return Code{}, ErrMalformed
	}
	if err := aged(c.issued, now, CodeLife); err != nil {
		return Code{}, err
	}
	if string(c.bytes(c.room)) != room {
		return Code{}, ErrOtherRoom
	}
	return Code{Room: room, Ticket: c.ticket, Generation: c.generation, IssuedAt: c.issued}, nil
}
