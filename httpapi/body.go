package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"
)

// Limits on input (contract.md 16).
const (
	visitorBody = 64 << 10
	adminBody   = 1 << 20
	maxDepth    = 32
)

// fewMembers is up to how many names a look at each of them finds one faster than a map does.
const fewMembers = 32

// member is one member of the request's JSON object.
type member struct {
	name string
	raw  []byte // valid JSON; good while the exchange is
}

// object is the request's body: one JSON object, each name once.
type object []member

// object reads the body as one JSON object of at most limit bytes. An empty body is an empty object when optional.
func (x *exchange) object(limit int64, optional bool) (object, error) {
	if err := x.read(limit); err != nil {
		return nil, err
	}
	if len(x.in) == 0 && optional {
		return nil, nil
	}
	return parseObject(x.in)
}

// keep gives the request's body away: somebody may still read it after the handler has returned.
func (x *exchange) keep() { x.in = nil }

func (x *exchange) read(limit int64) error {
	if x.r.ContentLength > limit {
		// Not read any further: the connection cannot be used again.
		x.w.Header().Set("Connection", "close")
		return refuse("body_too_large")
	}
	body := http.MaxBytesReader(x.w, x.r.Body, limit)
	b := x.in[:0]
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		x.in = b
		var tooLarge *http.MaxBytesError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &tooLarge):
			return refuse("body_too_large")
		case errors.Is(err, os.ErrDeadlineExceeded):
			x.w.Header().Set("Connection", "close")
			return refuse("body_timeout")
		default:
			return refuse("body_incomplete")
		}
	}
}

// parseObject splits a JSON object into its members.
func parseObject(b []byte) (object, error) {
	if !shallow(b) || !json.Valid(b) {
		return nil, refuse("invalid_json")
	}
	// From here on the text is known to be valid.
	i := blank(b, 0)
	if b[i] != '{' {
		return nil, refuse("invalid_json")
	}
	var o object
	var many map[string]bool // the names of a large object, so that the time stays in proportion to the text
	for i = blank(b, i+1); b[i] != '}'; {
		end := stringEnd(b, i)
		name := plainString(b[i:end])
		if many[name] || many == nil && o.has(name) {
			return nil, refuseField("duplicate_field", clip(name), "")
		}
		if many == nil && len(o) == fewMembers {
			many = make(map[string]bool)
			for j := range o {
				many[o[j].name] = true
			}
		}
		if many != nil {
			many[name] = true
		}
		i = blank(b, end)    // the colon
		i = blank(b, i+1)    // the value
		end = valueEnd(b, i) // behind it
		o = append(o, member{name, b[i:end]})
		if i = blank(b, end); b[i] == ',' {
			i = blank(b, i+1)
		}
	}
	return o, nil
}

// shallow reports whether nothing nests deeper than maxDepth. It need not understand more of JSON than strings and brackets.
func shallow(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return true
}

func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is the index behind the string that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd is the index behind the value that begins at i.
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// plainString is the content of a JSON string.
func plainString(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	for _, c := range inner {
		if c == '\\' || c >= utf8.RuneSelf {
			var s string
			_ = json.Unmarshal(raw, &s) // valid, as its caller knows
			return s
		}
	}
	return string(inner)
}

func (o object) find(name string) ([]byte, bool) {
	for i := range o {
		if o[i].name == name {
			return o[i].raw, true
		}
	}
	return nil, false
}

func (o object) has(name string) bool {
	_, ok := o.find(name)
	return ok
}

// text is a string member; absent: it is not there or null. code is what a member of another type is refused with.
func (o object) text(name, code string) (s string, present bool, err error) {
	raw, ok := o.find(name)
	if !ok || isNull(raw) {
		return "", false, nil
	}
	if raw[0] != '"' {
		return "", false, refuseField(code, name, "")
	}
	return plainString(raw), true, nil
}

func isNull(raw []byte) bool { return len(raw) == 4 && raw[0] == 'n' }

// whole reads a whole number, which JSON may also spell 1e3 or 5.0.
func whole(raw []byte) (int64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		return n, true
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil || f != float64(int64(f)) || f > 1<<53 || f < -(1<<53) {
		return 0, false
	}
	return int64(f), true
}

// only refuses members outside a set of names (contract.md 16: on admin routes).
func (o object) only(names ...string) error {
next:
	for i := range o {
		for _, n := range names {
			if o[i].name == n {
				continue next
			}
		}
		return refuseField("unknown_field", clip(o[i].name), "")
	}
	return nil
}

// clip shortens what a caller sent us before it is sent back.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) <= 64 {
		return s
	}
	return strings.ToValidUTF8(s[:64], "")
}
