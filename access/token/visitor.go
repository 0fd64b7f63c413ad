package token

import (
	"strconv"
	"time"
)

// Visitor is what a visitor token says: a place in line or a pre-queue entry
// (seed 004, "Visitor token payload"). Whether the place waits or has passed
// is the engine's to say, not the token's.
type Visitor struct {
	// Room is the room id, at most 64 characters.
	Room string
	// Ticket is the place in line; 0 in a token without Handle is a bypass pass.
	Ticket uint32
	// Handle, where it is not 0, is the entry in the pre-queue; Ticket is 0 then.
	Handle uint32
	// Generation of the room, at least 1.
	Generation uint32
	// IssuedAt is the time of signing in milliseconds since 1970.
	IssuedAt int64
}

// PreQueued reports an entry before the draw.
func (v Visitor) PreQueued() bool { return v.Handle != 0 }

// Bypass reports the pass of a room whose queue is off: ticket 0, which holds no slot.
func (v Visitor) Bypass() bool { return v.Ticket == 0 && v.Handle == 0 }

// valid reports whether v can be signed.
func (v Visitor) valid() bool {
	return word(v.Room, 1, 64) && v.Generation != 0 && (v.Ticket == 0 || v.Handle == 0) &&
		v.IssuedAt >= 0 && v.IssuedAt <= maxInstant
}

// SignVisitor is the token of v. It panics when v breaks the rules of its
// fields: the engine's own places are never wrong, and a token that no verifier
// takes would cost a visitor the place in silence.
func (k *Keyring) SignVisitor(v Visitor) string {
	var buf [MaxLen]byte
	return string(k.AppendVisitor(buf[:0], v))
}

// AppendVisitor appends the token of v to dst, and panics as SignVisitor does.
func (k *Keyring) AppendVisitor(dst []byte, v Visitor) []byte {
	if !v.valid() {
		panic("token: sign a visitor without a place: room " + strconv.Quote(v.Room) +
			", generation " + strconv.FormatUint(uint64(v.Generation), 10))
	}
	var buf [maxPayload]byte
	return k.seal(dst, PurposeVisitor, v.payload(buf[:0], k.kidToSign(PurposeVisitor)))
}

// payload appends the JSON of v, its fields in the order of seed 004.
func (v Visitor) payload(b []byte, kid string) []byte {
	b = append(b, `{"r":"`...)
	b = append(b, v.Room...)
	if v.Handle != 0 {
		b = append(b, `","q":`...)
		b = strconv.AppendUint(b, uint64(v.Handle), 10)
	} else {
		b = append(b, `","n":`...)
		b = strconv.AppendUint(b, uint64(v.Ticket), 10)
	}
	b = append(b, `,"g":`...)
	b = strconv.AppendUint(b, uint64(v.Generation), 10)
	b = append(b, `,"iat":`...)
	b = strconv.AppendInt(b, v.IssuedAt, 10)
	return finish(b, kid)
}

// finish appends the kid, where there is one, and closes the object.
func finish(b []byte, kid string) []byte {
	if kid != "" {
		b = append(b, `,"kid":"`...)
		b = append(b, kid...)
		b = append(b, '"')
	}
	return append(b, '}')
}

// VerifyVisitor is the place that a genuine, unexpired token of this room
// names. It allocates nothing unless it fails. Where a route does not say its
// room, use VerifyVisitorAnyRoom.
func (k *Keyring) VerifyVisitor(token, room string, now time.Time) (Visitor, error) {
	var c claims
	if err := k.openVisitor(token, &c, now); err != nil {
		return Visitor{}, err
	}
	if string(c.bytes(c.room)) != room {
		return Visitor{}, ErrOtherRoom
	}
	return c.visitor(room), nil
}

// VerifyVisitorAnyRoom is VerifyVisitor for a route that learns the room from
// the token (seed 004, GET /api/status?token=).
func (k *Keyring) VerifyVisitorAnyRoom(token string, now time.Time) (Visitor, error) {
	var c claims
	if err := k.openVisitor(token, &c, now); err != nil {
		return Visitor{}, err
	}
	return c.visitor(k.rooms.of(c.bytes(c.room))), nil
}

func (k *Keyring) openVisitor(token string, c *claims, now time.Time) error {
	if err := k.open(PurposeVisitor, token, c); err != nil {
		return err
	}
	const always = fieldRoom | fieldGeneration | fieldIssued
	if c.has&always != always {
		return ErrMalformed
	}
	if place := c.has & (fieldTicket | fieldHandle); place != fieldTicket && place != fieldHandle {
		return ErrMalformed
	}
	return aged(c.issued, now, k.options.MaxAge)
}

func (c *claims) visitor(room string) Visitor {
	return Visitor{Room: room, Ticket: c.ticket, Handle: c.handle, Generation: c.generation, IssuedAt: c.issued}
}

// aged judges the time of issue (ms since 1970): at most maxAge ago, and at
// most MaxSkew ahead.
func aged(issued int64, now time.Time, maxAge time.Duration) error {
	age := now.UnixMilli() - issued
	if age > maxAge.Milliseconds() {
		return ErrExpired
	}
	if age < -MaxSkew.Milliseconds() {
		return ErrFuture
	}
	return nil
}
