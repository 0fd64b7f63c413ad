package httpapi

import (
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"qm/engine/room"
)

// The hot answers are appended by hand: architecture.md, HTTP, has the measurement.

// appendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[start:i]...)
				b = append(b, "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// appendMember appends ,"name": and nothing more.
func appendMember(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(appendMember(b, name), n, 10)
}

// appendIntOr appends a number, or null when ok is false.
func appendIntOr(b []byte, name string, n int64, ok bool) []byte {
	if !ok {
		return append(appendMember(b, name), "null"...)
	}
	return appendInt(b, name, n)
}

// appendIntPtr appends a number, or null for nil.
func appendIntPtr(b []byte, name string, n *int64) []byte {
	if n == nil {
		return appendIntOr(b, name, 0, false)
	}
	return appendInt(b, name, *n)
}

// appendInstant appends epoch milliseconds, or null for none.
func appendInstant(b []byte, name string, at room.Instant) []byte {
	return appendIntOr(b, name, int64(at), at != 0)
}

func appendText(b []byte, name, s string) []byte {
	return appendString(appendMember(b, name), s)
}

// appendTextOr appends a string, or null for "".
func appendTextOr(b []byte, name, s string) []byte {
	if s == "" {
		return append(appendMember(b, name), "null"...)
	}
	return appendText(b, name, s)
}

func appendBool(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(appendMember(b, name), v)
}

// appendHex appends a digest in lower-case hex.
func appendHex(b []byte, name string, d room.Digest) []byte {
	b = append(appendMember(b, name), '"')
	b = hex.AppendEncode(b, d[:])
	return append(b, '"')
}

// appendStrings appends a list of strings.
func appendStrings(b []byte, name string, list []string) []byte {
	b = append(appendMember(b, name), '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

func itoa(n int) string { return strconv.Itoa(n) }
