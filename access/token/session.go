package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// NewSession mints the ownership session id of a qms_ cookie: opaque, 128
// random bits or more, 26 characters (seed 004, "Ownership cookie").
func NewSession() string { return rand.Text() }

// ValidSession reports whether s can be an ownership session id: 16 to 128
// characters of A-Z a-z 0-9 _ -. Ids that another server minted are as good.
func ValidSession(s string) bool { return word(s, 16, 128) }

const (
	doorPrefix = "ds1."
	doorRandom = 22 // characters of base64url: 128 bits
)

// NewDoorKey mints the key of a door session (seed 004, "Door-session key
// sess"): ds1.<generation>.<ticket>.<128 random bits>. It is no signed token;
// it is good because the engine holds its digest. The two numbers only save
// the engine a search. Both are at least 1.
func NewDoorKey(generation, ticket uint32) string {
	var secret [16]byte
	rand.Read(secret[:])
	var buf [64]byte
	b := append(buf[:0], doorPrefix...)
	b = strconv.AppendUint(b, uint64(generation), 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(ticket), 10)
	b = append(b, '.')
	return string(base64.RawURLEncoding.AppendEncode(b, secret[:]))
}

// ParseDoorKey takes the numbers out of a door-session key; ok is false for
// anything that NewDoorKey cannot have made. That it parses proves nothing.
func ParseDoorKey(key string) (generation, ticket uint32, ok bool) {
	rest, ok := strings.CutPrefix(key, doorPrefix)
	if !ok {
		return 0, 0, false
	}
	g, rest, _ := strings.Cut(rest, ".")
	n, secret, _ := strings.Cut(rest, ".")
	generation, gok := place(g)
	ticket, nok := place(n)
	// Of the last character only the upper two of six bits carry anything: any
	// other spelling would be a second key for the same bits.
	if !gok || !nok || !word(secret, doorRandom, doorRandom) || !strings.Contains("AQgw", secret[doorRandom-1:]) {
		return 0, 0, false
	}
	return generation, ticket, true
}

// place reads a whole number from 1 to 2^32-1 in its shortest form.
func place(s string) (uint32, bool) {
	if s == "" || len(s) > 10 || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil
}

// DoorDigest stands for a door-session key in the journal and in memory.
type DoorDigest [16]byte

// DigestDoorKey is the first half of the key's SHA-256. The key is random, so
// its digest needs no secret.
func DigestDoorKey(key string) DoorDigest {
	var buf [64]byte
	sum := sha256.Sum256(append(buf[:0], key...))
	return DoorDigest(sum[:16])
}
