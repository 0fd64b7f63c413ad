package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// A stamp is what a waiting page gets on its way, and shows when it asks for a place: that this server made the page, when, for which
// room, and for whom. It is also the text that a proof of work is about. A stamp is 40 bytes in base64url: the instant, a random
// number, and a MAC under a key of its own.
const (
	// StampLife is how long a stamp may be shown. A page that lies about for longer asks for a place without.
	StampLife = 10 * time.Minute

	stampHead  = 16 // 8 bytes of time, 8 of chance
	stampBytes = stampHead + 24
)

// WorkParts and WorkBits say what a proof of work takes: for each of so many parts a number with which the digest of the stamp begins
// with so many zero bits. Many small parts take an even time, where one big one would take one visitor ten times another's.
const (
	WorkParts = 16
	WorkBits  = 11
)

// Stamp is a new stamp for a page of a room. client says for whom, in whichever bytes the caller tells clients apart by.
func (k *Keyring) Stamp(room string, client []byte, now time.Time) string {
	var b [stampBytes]byte
	binary.BigEndian.PutUint64(b[:], uint64(now.UnixMilli()))
	_, _ = rand.Read(b[8:stampHead]) // never fails
	copy(b[stampHead:], k.current.stampMAC(b[:stampHead], room, client))
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// VerifyStamp is how old a genuine stamp of this room and client is, 0 to StampLife. Errors are those of tokens.
func (k *Keyring) VerifyStamp(stamp, room string, client []byte, now time.Time) (age time.Duration, err error) {
	b, err := base64.RawURLEncoding.DecodeString(stamp)
	if err != nil || len(b) != stampBytes || base64.RawURLEncoding.EncodeToString(b) != stamp {
		return 0, ErrMalformed
	}
	genuine := hmac.Equal(b[stampHead:], k.current.stampMAC(b[:stampHead], room, client))
	if !genuine && k.previous != nil {
		genuine = hmac.Equal(b[stampHead:], k.previous.stampMAC(b[:stampHead], room, client))
	}
	if !genuine {
		return 0, ErrSignature
	}
	at := int64(binary.BigEndian.Uint64(b))
	if err := aged(at, now, StampLife); err != nil {
		return 0, err
	}
	return max(0, now.Sub(time.UnixMilli(at))), nil
}

func (ks *keys) stampMAC(head []byte, room string, client []byte) []byte {
	of := hmac.New(sha256.New, ks.stamp)
	of.Write(head)
	of.Write(binary.AppendUvarint(nil, uint64(len(room))))
	of.Write([]byte(room))
	of.Write(client)
	return of.Sum(nil)[:stampBytes-stampHead]
}

// Worked reports whether work is a proof of work about a stamp: WorkParts numbers in base 36, with dots between. For the i-th, n,
// the SHA-256 of "stamp.i.n" begins with WorkBits zero bits. That the stamp is genuine is not looked at.
func Worked(stamp, work string) bool {
	parts := strings.Split(work, ".")
	if len(parts) != WorkParts {
		return false
	}
	for i, n := range parts {
		if n == "" || len(n) > 8 || !WorkedPart(stamp, i, n) {
			return false
		}
	}
	return true
}

// WorkedPart reports whether n is the number of one part of it.
func WorkedPart(stamp string, part int, n string) bool {
	sum := sha256.Sum256([]byte(stamp + "." + strconv.Itoa(part) + "." + n))
	return bits.LeadingZeros32(binary.BigEndian.Uint32(sum[:])) >= WorkBits
}
