package token

// A payload is one flat JSON object of short strings and whole numbers. It is
// read by hand: encoding/json would cost four times the MAC and accepts what a
// signed payload never holds (escapes, duplicates, fractions, other types).

// field is a set of payload fields.
type field uint16

const (
	fieldRoom field = 1 << iota
	fieldTicket
	fieldHandle
	fieldGeneration
	fieldIssued
	fieldKid
	fieldMonitor
	fieldSession
	fieldOperator
	fieldExpires
)

// fieldsOf says which fields a payload of each purpose may have.
var fieldsOf = [purposes]field{
	PurposeVisitor:  fieldRoom | fieldTicket | fieldHandle | fieldGeneration | fieldIssued | fieldKid,
	PurposeMonitor:  fieldMonitor | fieldIssued | fieldExpires | fieldKid,
	PurposeSession:  fieldSession | fieldIssued | fieldExpires | fieldKid,
	PurposeOperator: fieldOperator | fieldIssued | fieldExpires | fieldKid,
	PurposeCode:     fieldRoom | fieldTicket | fieldGeneration | fieldIssued | fieldKid,
	PurposeWithdraw: fieldRoom | fieldTicket | fieldHandle | fieldGeneration | fieldIssued | fieldKid,
}

// span is a part of claims.buf.
type span struct{ from, to uint16 }

func (c *claims) bytes(s span) []byte { return c.buf[s.from:s.to] }

// maxInstant is the largest whole number that JavaScript holds exactly.
const maxInstant = 1<<53 - 1

// claims is a payload and what was read from it. It holds spans, not slices:
// a slice into buf, kept behind a pointer, would drag the whole to the heap.
type claims struct {
	buf             [maxPayload]byte
	has             field
	room, id, kid   span
	ticket, handle  uint32
	generation      uint32
	issued, expires int64 // ms since 1970
}

// parse reads buf[:n]: an object of known fields, each at most once, in any order. A
// number is digits without a leading zero, within the range of its field; a
// string has 1 to 128 characters of A-Z a-z 0-9 _ - and no escapes.
func (c *claims) parse(n int) error {
	b := c.buf[:n]
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return ErrMalformed
	}
	for i = space(b, i+1); ; i = space(b, i+1) {
		name, next := text(b, i)
		if next < 0 {
			return ErrMalformed
		}
		i = space(b, next)
		if i >= len(b) || b[i] != ':' {
			return ErrMalformed
		}
		i = space(b, i+1)
		f := fieldNamed(c.bytes(name))
		if f == 0 || c.has&f != 0 {
			return ErrMalformed
		}
		c.has |= f
		if i = c.value(f, b, i); i < 0 {
			return ErrMalformed
		}
		i = space(b, i)
		if i >= len(b) {
			return ErrMalformed
		}
		if b[i] == '}' {
			if space(b, i+1) != len(b) {
				return ErrMalformed
			}
			return nil
		}
		if b[i] != ',' {
			return ErrMalformed
		}
	}
}

// value reads the value of f at b[i:] and says where it ends; -1 if it is not one.
func (c *claims) value(f field, b []byte, i int) (next int) {
	var n int64
	switch f {
	case fieldRoom:
		c.room, next = text(b, i)
		if c.room.to-c.room.from > 64 {
			return -1
		}
	case fieldKid:
		c.kid, next = text(b, i)
	case fieldMonitor, fieldSession, fieldOperator:
		c.id, next = text(b, i)
	case fieldTicket:
		n, next = number(b, i, 1<<32-1)
		c.ticket = uint32(n)
	case fieldHandle:
		n, next = number(b, i, 1<<32-1)
		c.handle = uint32(n)
		if n == 0 {
			return -1
		}
	case fieldGeneration:
		n, next = number(b, i, 1<<32-1)
		c.generation = uint32(n)
		if n == 0 {
			return -1
		}
	case fieldIssued:
		c.issued, next = number(b, i, maxInstant)
	case fieldExpires:
		c.expires, next = number(b, i, maxInstant)
	}
	return next
}

func fieldNamed(name []byte) field {
	switch string(name) {
	case "r":
		return fieldRoom
	case "n":
		return fieldTicket
	case "q":
		return fieldHandle
	case "g":
		return fieldGeneration
	case "iat":
		return fieldIssued
	case "kid":
		return fieldKid
	case "m":
		return fieldMonitor
	case "s":
		return fieldSession
	case "o":
		return fieldOperator
	case "exp":
		return fieldExpires
	}
	return 0
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// text reads a JSON string of 1 to 128 word characters; next is -1 if it is not one.
func text(b []byte, i int) (s span, next int) {
	if i >= len(b) || b[i] != '"' {
		return span{}, -1
	}
	start := i + 1
	for i = start; i < len(b) && wordChar[b[i]]; i++ {
	}
	if i == start || i-start > 128 || i >= len(b) || b[i] != '"' {
		return span{}, -1
	}
	return span{uint16(start), uint16(i)}, i + 1
}

// number reads digits without a leading zero, at most most; next is -1 if it cannot.
func number(b []byte, i int, most int64) (n int64, next int) {
	start := i
	// 16 digits hold maxInstant; one more is read, to see that it is too many.
	for end := min(len(b), i+17); i < end && b[i]-'0' <= 9; i++ {
		n = n*10 + int64(b[i]-'0')
	}
	if i == start || i > start+16 || n > most || b[start] == '0' && i-start > 1 {
		return 0, -1
	}
	return n, i
}

// wordChar holds A-Z a-z 0-9 _ -, the alphabet of room ids, key ids and references.
var wordChar = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	return t
}()

// word reports whether s has at least least and at most most word characters, and nothing else.
func word(s string, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for i := range len(s) {
		if !wordChar[s[i]] {
			return false
		}
	}
	return true
}
