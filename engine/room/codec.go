package room

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// The bodies as the journal stores them. join and enqueue, which a surge multiplies, are written and read by hand:
//
//	{"n":1,"h":"<holder, 22 base64url>","i":"<identity, 11 base64url>","s":40}
//	{"q":1,"h":"…","i":"…","s":40}
//
// "i" is absent when no identity was recorded, "s" when the score is 0. All others are encoding/json of the structs in
// event.go: fixed field order, integers, no maps.

var b64 = base64.RawURLEncoding.Strict()

// kind is one event kind with its version and an empty body to decode into. (name, version) is never reused.
type kind struct {
	name    string
	version int
	empty   func() Body
}

// kinds are all there are.
var kinds = []kind{
	{"create", 2, func() Body { return new(Create) }},
	{"configure", 2, func() Body { return new(Configure) }},
	{"state", 2, func() Body { return new(StateChange) }},
	{"schedule", 1, func() Body { return new(Schedule) }},
	{"enqueue", 1, func() Body { return new(Enqueue) }},
	{"draw", 1, func() Body { return new(Draw) }},
	{"join", 1, func() Body { return new(Join) }},
	{"pass", 1, func() Body { return new(Pass) }},
	{"unslot", 1, func() Body { return new(Unslot) }},
	{"enter", 1, func() Body { return new(Enter) }},
	{"renew", 1, func() Body { return new(Renew) }},
	{"leave", 1, func() Body { return new(Leave) }},
	{"lapse", 1, func() Body { return new(Lapse) }},
	{"eject", 1, func() Body { return new(Eject) }},
	{"purge", 1, func() Body { return new(Purge) }},
	{"close", 1, func() Body { return new(Close) }},
	{"delete", 1, func() Body { return new(Delete) }},
}

func kindOf(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// Kinds returns every kind with its version.
func Kinds() map[string]int {
	all := make(map[string]int, len(kinds))
	for _, k := range kinds {
		all[k.name] = k.version
	}
	return all
}

// UnknownEventError is an event that this build does not know: a hard error, never skipped.
type UnknownEventError struct {
	Kind    string
	Version int
}

func (e *UnknownEventError) Error() string {
	return fmt.Sprintf("room: unknown event %q version %d", e.Kind, e.Version)
}

// EncodeBody appends the JSON form of a body as the journal stores it, and returns the version of its kind.
func EncodeBody(dst []byte, b Body) (body []byte, version int) {
	switch b := b.(type) {
	case *Join:
		return appendPlace(dst, 'n', uint32(b.Ticket), b.Holder, b.Identity, b.Score), 1
	case *Enqueue:
		return appendPlace(dst, 'q', uint32(b.Handle), b.Holder, b.Identity, b.Score), 1
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic(fmt.Sprintf("room: encode %s: %v", b.Kind(), err)) // integers and strings: it cannot fail
	}
	k, _ := kindOf(b.Kind())
	return append(dst, text...), k.version
}

// DecodeBody reads what the journal stores. An unknown kind or version (*UnknownEventError), or a damaged body, is an error.
func DecodeBody(name string, version int, at Instant, body []byte) (Event, error) {
	if version == 1 {
		switch name {
		case "join":
			b := new(Join)
			n, err := parsePlace(body, 'n', &b.Holder, &b.Identity, &b.Score)
			b.Ticket = Ticket(n)
			return Event{At: at, Body: b}, err
		case "enqueue":
			b := new(Enqueue)
			q, err := parsePlace(body, 'q', &b.Holder, &b.Identity, &b.Score)
			b.Handle = Handle(q)
			return Event{At: at, Body: b}, err
		}
	}
	k, ok := kindOf(name)
	upcast := upcasts[[2]any{name, version}]
	if !ok || k.version != version && upcast == nil {
		return Event{}, &UnknownEventError{name, version}
	}
	b := k.empty()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(b); err != nil {
		return Event{}, fmt.Errorf("room: decode %s: %w", name, err)
	}
	if d.More() {
		return Event{}, fmt.Errorf("room: decode %s: more than one value", name)
	}
	if upcast != nil {
		if err := upcast(b); err != nil {
			return Event{}, fmt.Errorf("room: decode %s version %d: %w", name, version, err)
		}
	}
	if err := plausible(b); err != nil {
		return Event{}, fmt.Errorf("room: decode %s: %w", name, err)
	}
	return Event{At: at, Body: b}, nil
}

// upcasts make of an older version, decoded, what it means today. Version 1 of these three knew fewer fields, and meant what their
// absence means now: all there is to do is to refuse what it could not say.
var upcasts = map[[2]any]func(Body) error{
	{"create", 1}: func(b Body) error { return settingsOf1(&b.(*Create).Settings) },
	{"configure", 1}: func(b Body) error {
		c := b.(*Configure)
		return errors.Join(settingsOf1(&c.Settings), reasonOf1(c.Reason))
	},
	{"state", 1}: func(b Body) error { return reasonOf1(b.(*StateChange).Reason) },
}

func settingsOf1(s *Settings) error {
	if s.Protection != (Protection{}) || s.Autotune != nil || s.AutoActivate != nil || s.Openings != nil {
		return errors.New("a setting that came later")
	}
	return nil
}

func reasonOf1(r *Reason) error {
	if r != nil {
		return errors.New("a reason, which came later")
	}
	return nil
}

// plausible refuses bodies that Apply could not take whatever the state.
func plausible(b Body) error {
	switch b := b.(type) {
	case *Pass:
		last := Ticket(0)
		for _, span := range b.Spans {
			if span[0] <= last || span[1] < span[0] || span[1] > MaxTicket {
				return fmt.Errorf("span %d to %d does not ascend", span[0], span[1])
			}
			last = span[1]
		}
	case *Draw:
		order, err := UnpackOrder(b.Order)
		if err != nil {
			return err
		}
		if len(order) != b.Count || b.Count > MaxEntries || b.First == 0 {
			return fmt.Errorf("%d entries in the order, %d counted, first ticket %d", len(order), b.Count, b.First)
		}
	}
	return nil
}

func appendPlace(dst []byte, key byte, n uint32, h Holder, id Identity, score uint8) []byte {
	dst = append(dst, '{', '"', key, '"', ':')
	dst = strconv.AppendUint(dst, uint64(n), 10)
	dst = append(dst, `,"h":"`...)
	dst = b64.AppendEncode(dst, h[:])
	dst = append(dst, '"')
	if id != 0 {
		var raw [8]byte
		binary.BigEndian.PutUint64(raw[:], uint64(id))
		dst = append(dst, `,"i":"`...)
		dst = b64.AppendEncode(dst, raw[:])
		dst = append(dst, '"')
	}
	if score > 0 {
		dst = append(dst, `,"s":`...)
		dst = strconv.AppendUint(dst, uint64(score), 10)
	}
	return append(dst, '}')
}

var errPlace = errors.New("room: a join or enqueue that is not in the stored form")

// parsePlace reads exactly the form that appendPlace writes.
func parsePlace(b []byte, key byte, h *Holder, id *Identity, score *uint8) (uint32, error) {
	if len(b) < 7 || b[0] != '{' || b[1] != '"' || b[2] != key || b[3] != '"' || b[4] != ':' {
		return 0, errPlace
	}
	n, b, ok := parseNumber(b[5:], uint64(MaxTicket))
	if !ok || n == 0 {
		return 0, errPlace
	}
	b, ok = bytes.CutPrefix(b, []byte(`,"h":"`))
	if !ok || len(b) < 24 || b[22] != '"' {
		return 0, errPlace
	}
	if _, err := b64.Decode(h[:], b[:22]); err != nil {
		return 0, errPlace
	}
	b = b[23:]
	if rest, found := bytes.CutPrefix(b, []byte(`,"i":"`)); found {
		var raw [8]byte
		if len(rest) < 13 || rest[11] != '"' {
			return 0, errPlace
		}
		if _, err := b64.Decode(raw[:], rest[:11]); err != nil {
			return 0, errPlace
		}
		*id = Identity(binary.BigEndian.Uint64(raw[:]))
		if *id == 0 {
			return 0, errPlace
		}
		b = rest[12:]
	}
	if rest, found := bytes.CutPrefix(b, []byte(`,"s":`)); found {
		var v uint64
		if v, b, ok = parseNumber(rest, maxScore); !ok || v == 0 {
			return 0, errPlace
		}
		*score = uint8(v)
	}
	if len(b) != 1 || b[0] != '}' {
		return 0, errPlace
	}
	return uint32(n), nil
}

// parseNumber reads a decimal without leading zeros, at most limit.
func parseNumber(b []byte, limit uint64) (v uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		if v = v*10 + uint64(b[i]-'0'); v > limit {
			return 0, nil, false
		}
		i++
	}
	if i == 0 || i > 1 && b[0] == '0' {
		return 0, nil, false
	}
	return v, b[i:], true
}

// MarshalText implements encoding.TextMarshaler: base64url without padding.
func (h Holder) MarshalText() ([]byte, error) { return b64.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Holder) UnmarshalText(b []byte) error {
	if b64.DecodedLen(len(b)) != len(h) {
		return fmt.Errorf("room: a digest of %d characters", len(b))
	}
	_, err := b64.Decode(h[:], b)
	return err
}
