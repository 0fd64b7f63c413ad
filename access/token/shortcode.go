package token

import (
	"crypto/aes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// A short code is what a visitor reads to the help desk ("K7Q2-M9TX"; seed 004, GET /api/admin/rooms/:id/visitors?ref=). It is the
// place itself, ticket or pre-queue entry, sent through a permutation of 40 bits that only this keyring knows, for each generation of
// a room another one: nobody can tell from it how long the line is, no two places of a line share one, and it is read back without a
// search. Of the 40 bits 33 carry the place and 7 have to be zero, so a code that was misheard names hardly ever somebody else's place.
const (
	shortChars  = 8
	shortHalf   = 20 // bits of each half of the permutation, a Feistel network
	shortRounds = 4
	shortHandle = 1 << 32 // marks a pre-queue entry
	shortPlaces = 1 << 33
)

// shortAlphabet is Crockford's base 32: no I, L, O and U, which are read as 1, 1, 0, or misread.
const shortAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// ShortCode is the short code of the place that v names, and "" when it names none, as a bypass pass does. Whoever has it can do nothing
// with it but ask an operator. IssuedAt does not matter.
func (k *Keyring) ShortCode(v Visitor) string {
	n := uint64(v.Ticket)
	if v.PreQueued() {
		n = shortHandle | uint64(v.Handle)
	}
	if n == 0 {
		return ""
	}
	n = k.current.permute(n, v.Room, v.Generation, false)
	var code [shortChars + 1]byte
	for i := range shortChars {
		at := i
		if i >= shortChars/2 {
			at++
		}
		code[at] = shortAlphabet[n>>(5*(shortChars-1-i))&31]
	}
	code[shortChars/2] = '-'
	return string(code[:])
}

// ShortCodePlaces are the places of a room's generation that a code may name, with IssuedAt zero: none when it names none, two at most,
// one for each secret, while SECRET_PREVIOUS is in use. Whether such a place exists is for the caller to look up. The code may be in
// small letters, with spaces or without its dash, and with O, I and L for 0 and 1.
func (k *Keyring) ShortCodePlaces(code, room string, generation uint32) []Visitor {
	n, ok := parseShort(code)
	if !ok {
		return nil
	}
	var found []Visitor
	for _, ks := range []*keys{k.current, k.previous} {
		if ks == nil {
			continue
		}
		place := ks.permute(n, room, generation, true)
		v := Visitor{Room: room, Generation: generation}
		switch number := uint32(place); {
		case place >= shortPlaces || number == 0:
			continue
		case place&shortHandle != 0:
			v.Handle = number
		default:
			v.Ticket = number
		}
		found = append(found, v)
	}
	return found
}

func parseShort(code string) (n uint64, ok bool) {
	if len(code) > 4*shortChars {
		return 0, false
	}
	chars := 0
	for _, c := range strings.ToUpper(code) {
		switch c {
		case ' ', '-', '\u00a0', '\u2010', '\u2011', '\u2013':
			continue
		case 'O':
			c = '0'
		case 'I', 'L':
			c = '1'
		}
		i := strings.IndexRune(shortAlphabet, c)
		if i < 0 || chars == shortChars {
			return 0, false
		}
		n = n<<5 | uint64(i)
		chars++
	}
	return n, chars == shortChars
}

// permute maps 40 bits to 40 bits, one to one, or back.
func (ks *keys) permute(n uint64, room string, generation uint32, back bool) uint64 {
	of := hmac.New(sha256.New, ks.short)
	of.Write(binary.BigEndian.AppendUint32(nil, generation))
	of.Write([]byte(room))
	block, err := aes.NewCipher(of.Sum(nil)[:16])
	if err != nil {
		panic("token: " + err.Error()) // 16 bytes are a key
	}
	const mask = 1<<shortHalf - 1
	left, right := uint32(n>>shortHalf)&mask, uint32(n)&mask
	if back {
		left, right = right, left
	}
	var in, out [aes.BlockSize]byte
	for i := range uint32(shortRounds) {
		if back {
			i = shortRounds - 1 - i
		}
		binary.BigEndian.PutUint32(in[:], i)
		binary.BigEndian.PutUint32(in[4:], right)
		block.Encrypt(out[:], in[:])
		left, right = right, left^binary.BigEndian.Uint32(out[:])&mask
	}
	if back {
		left, right = right, left
	}
	return uint64(left)<<shortHalf | uint64(right)
}
