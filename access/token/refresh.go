package token

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"
)

// RefreshAfter is TOKEN_REFRESH_AFTER_MS: a visitor token is due to be signed
// anew once it is half the shorter of the two ages old (seed 004, "Token
// refresh"). Both are ages as configured, in whole seconds.
func RefreshAfter(maxAge, cookieMaxAge time.Duration) time.Duration {
	return (min(maxAge, cookieMaxAge) / 2).Truncate(time.Millisecond)
}

// RefreshDue reports whether v is at least after old. A bypass pass is never
// refreshed (contract.md, answer 18). Whether the refresh is granted is for
// others to say: the place must still wait, and its owner must have proved it.
func (v Visitor) RefreshDue(after time.Duration, now time.Time) bool {
	return !v.Bypass() && now.UnixMilli()-v.IssuedAt >= after.Milliseconds()
}

// RefreshJitter is by how much the end of a stream is put off past the due
// time, so that a burst of joins does not reconnect at one instant: fixed for
// a place, at most a tenth of after, in whole milliseconds (seed 004, QM-469).
//
//	uint32_be(sha256("r|n|q|g|iat")[0..4]) % (floor(after_ms / 10) + 1)
//
// A field that the token does not carry is the word undefined.
func (v Visitor) RefreshJitter(after time.Duration) time.Duration {
	var buf [160]byte
	b := append(buf[:0], v.Room...)
	b = append(b, '|')
	if v.Handle != 0 {
		b = append(b, "undefined|"...)
		b = strconv.AppendUint(b, uint64(v.Handle), 10)
	} else {
		b = strconv.AppendUint(b, uint64(v.Ticket), 10)
		b = append(b, "|undefined"...)
	}
	b = append(b, '|')
	b = strconv.AppendUint(b, uint64(v.Generation), 10)
	b = append(b, '|')
	b = strconv.AppendInt(b, v.IssuedAt, 10)
	sum := sha256.Sum256(b)
	window := uint64(max(after, 0).Milliseconds()/10) + 1
	return time.Duration(uint64(binary.BigEndian.Uint32(sum[:4]))%window) * time.Millisecond
}

// RefreshAt is when an open stream with this token sends its refresh frame and
// ends: the due time and the jitter.
func (v Visitor) RefreshAt(after time.Duration) time.Time {
	return time.UnixMilli(v.IssuedAt).Add(after + v.RefreshJitter(after))
}
