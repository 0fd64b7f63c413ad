package journal

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// MaxBody is the largest body that a Journal takes, in bytes. The largest event, a draw of a million entries, needs some 5 MB.
const MaxBody = 64 << 20

// Validate tells whether batch is well formed, as far as that can be seen without the stream's head: one stream, seqs without
// a gap, sealed, At in whole microseconds, texts that any storage can hold, bodies that look like JSON objects. The error wraps
// [ErrInvalid] and names the seq. Each Journal calls it first. It does not parse the bodies (see [ValidBody]) nor recompute hashes.
func Validate(batch []Record) error {
	if len(batch) == 0 {
		return fmt.Errorf("%w: it is empty", ErrInvalid)
	}
	stream, next := batch[0].Stream, batch[0].Seq
	if stream == "" || !plain(stream) {
		return fmt.Errorf("%w: stream %q is not a name", ErrInvalid, stream)
	}
	if next < 1 {
		return fmt.Errorf("%w: %s seq %d is not sealed", ErrInvalid, stream, next)
	}
	for i := range batch {
		if what := fault(&batch[i], stream, next); what != "" {
			return fmt.Errorf("%w: %s seq %d: %s", ErrInvalid, stream, batch[i].Seq, what)
		}
		next++
	}
	return nil
}

func fault(r *Record, stream string, seq int64) string {
	switch {
	case r.Stream != stream:
		return "belongs to " + r.Stream
	case r.Seq != seq:
		return fmt.Sprintf("seq %d was due", seq)
	case r.Hash == Hash{}:
		return "is not sealed"
	case r.At.Nanosecond()%1000 != 0:
		return "its time is not in whole microseconds"
	case r.At.Year() < 1970 || r.At.Year() > 9999:
		return "its time is out of range"
	case r.Kind == "" || !plain(r.Kind):
		return "its kind is not a name"
	case r.Version < 1 || r.Version > math.MaxInt16:
		return "its version is out of range"
	case !plain(r.Actor):
		return "its actor is not a plain text"
	case !plain(r.Cause):
		return "its cause is not a plain text"
	case len(r.Body) > MaxBody:
		return "its body is too large"
	case !braced(r.Body):
		return "its body is not a JSON object"
	}
	return ""
}

// ValidBody tells whether body can be stored: a JSON object in UTF-8.
func ValidBody(body []byte) bool {
	return braced(body) && utf8.Valid(body) && json.Valid(body)
}

// braced is the part of ValidBody that costs next to nothing.
func braced(body []byte) bool {
	first, last := 0, len(body)-1
	for first < last && blank(body[first]) {
		first++
	}
	for first < last && blank(body[last]) {
		last--
	}
	return first < last && body[first] == '{' && body[last] == '}'
}

func blank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '\n'
}

// plain tells whether every storage can hold s as a text: PostgreSQL refuses NUL and what is not UTF-8.
func plain(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
