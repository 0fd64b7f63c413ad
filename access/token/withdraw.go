package token

import (
	"strconv"
	"time"
)

// WithdrawLife is how long the link in a mail may end the mails of a place: as long as anything is kept of it.
const WithdrawLife = 30 * 24 * time.Hour

// SignWithdraw is what a mail about the place of v carries to end all mails about it, always v2. It opens nothing else. It
// panics like SignVisitor when v names no place.
func (k *Keyring) SignWithdraw(v Visitor) string {
	if !v.valid() || v.Bypass() {
		panic("token: sign a withdrawal without a place: room " + strconv.Quote(v.Room))
	}
	var buf [maxPayload]byte
	var out [MaxLen]byte
	return string(k.seal(out[:0], PurposeWithdraw, v.payload(buf[:0], k.kidToSign(PurposeWithdraw))))
}

// VerifyWithdraw is the place whose mails a genuine token, at most WithdrawLife old, ends.
func (k *Keyring) VerifyWithdraw(token string, now time.Time) (Visitor, error) {
	var c claims
	if err := k.open(PurposeWithdraw, token, &c); err != nil {
		return Visitor{}, err
	}
	const always = fieldRoom | fieldGeneration | fieldIssued | fieldKid
	if place := c.has & (fieldTicket | fieldHandle); c.has&always != always || place != fieldTicket && place != fieldHandle || c.ticket == 0 && c.handle == 0 {
		return Visitor{}, ErrMalformed
	}
	if err := aged(c.issued, now, WithdrawLife); err != nil {
		return Visitor{}, err
	}
	return c.visitor(k.rooms.of(c.bytes(c.room))), nil
}
