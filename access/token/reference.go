package token

import (
	"strconv"
	"time"
)

// Reference names something that the server keeps: a console session, a
// monitor link, an operator's credential. It never contains what it stands
// for, and whoever verifies it still has to look whether it is alive.
type Reference struct {
	// ID has 1 to 128 characters of A-Z a-z 0-9 _ -.
	ID string
	// IssuedAt and ExpiresAt are milliseconds since 1970. The reference is good
	// before ExpiresAt, not at it.
	IssuedAt, ExpiresAt int64
}

// referenceField names the id in the payload, by purpose: a legacy token is
// signed alike for all of them and is told apart by its fields.
var referenceField = [purposes]struct {
	field field
	name  string
}{
	PurposeMonitor:  {fieldMonitor, "m"},
	PurposeSession:  {fieldSession, "s"},
	PurposeOperator: {fieldOperator, "o"},
}

// SignReference is the token of ref for p, which is PurposeMonitor,
// PurposeSession or PurposeOperator. It panics on any other purpose and on a
// reference that breaks the rules of its fields.
func (k *Keyring) SignReference(p Purpose, ref Reference) string {
	if p >= purposes || referenceField[p].field == 0 || !word(ref.ID, 1, 128) ||
		ref.IssuedAt < 0 || ref.ExpiresAt < 0 || ref.IssuedAt > maxInstant || ref.ExpiresAt > maxInstant {
		panic("token: sign a reference that cannot be one for purpose " + p.String())
	}
	var buf [maxPayload]byte
	b := append(buf[:0], `{"`...)
	b = append(b, referenceField[p].name...)
	b = append(b, `":"`...)
	b = append(b, ref.ID...)
	b = append(b, `","iat":`...)
	b = strconv.AppendInt(b, ref.IssuedAt, 10)
	b = append(b, `,"exp":`...)
	b = strconv.AppendInt(b, ref.ExpiresAt, 10)
	b = finish(b, k.kidToSign(p))
	var out [MaxLen]byte
	return string(k.seal(out[:0], p, b))
}

// VerifyReference is the reference that a genuine, unexpired token of purpose
// p carries. A purpose that has no references is ErrPurpose.
func (k *Keyring) VerifyReference(p Purpose, token string, now time.Time) (Reference, error) {
	if p >= purposes || referenceField[p].field == 0 {
		return Reference{}, ErrPurpose
	}
	var c claims
	if err := k.open(p, token, &c); err != nil {
		return Reference{}, err
	}
	if c.has|fieldKid != fieldsOf[p] {
		return Reference{}, ErrMalformed
	}
	if now.UnixMilli() >= c.expires {
		return Reference{}, ErrExpired
	}
	if c.issued-now.UnixMilli() > MaxSkew.Milliseconds() {
		return Reference{}, ErrFuture
	}
	return Reference{ID: string(c.bytes(c.id)), IssuedAt: c.issued, ExpiresAt: c.expires}, nil
}
