package httpapi

import (
	"bytes"
	"context"
	"encoding/json"

	"qm/access/org"
	"qm/engine/room"
	"qm/journal"
)

// What an act changed: the members that differ, as they were and as they are.

// ofOrganisation says what an act on the organisation changed. Verifiers and marks are nobody's business.
func (e *entry) ofOrganisation(s *Server, r *journal.Record) {
	event, err := org.Decode(r)
	if err != nil {
		e.after = r.Body // whoever looks should see it
		return
	}
	say := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return text
	}
	type operator struct {
		ID   string   `json:"id"`
		Name string   `json:"name"`
		Role org.Role `json:"role,omitempty"`
		OTP  *bool    `json:"otp,omitempty"`
	}
	is := func(on bool) *bool { return &on }
	name := func(id string) string { return s.nameOf(id) }
	switch b := event.Body.(type) {
	case *org.OperatorAdded:
		given := e.subject
		if given == "" {
			given = b.ID
		}
		e.after = say(operator{ID: b.ID, Name: given, Role: b.Role})
	case *org.OperatorRevoked:
		var o org.Operator
		s.o.Book.Look(func(state *org.State) { o, _ = state.Operator(b.ID) })
		e.before = say(operator{ID: b.ID, Name: name(b.ID), Role: o.Role})
	case *org.Resealed:
		e.after = say(operator{ID: b.ID, Name: name(b.ID)})
	case *org.SignedIn:
		e.after = say(map[string]any{"session": b.ID, "ends": b.Ends, "otp": b.Step != 0})
	case *org.SignedOut:
		e.before = say(map[string]string{"session": b.ID})
	case *org.LinkMade:
		e.after = say(map[string]any{"link": b.ID, "ends": b.Ends})
	case *org.LinksRevoked:
		e.before = say(map[string]any{"links": b.IDs})
	case *org.FactorStarted:
		e.after = say(operator{ID: b.ID, Name: name(b.ID)})
	case *org.FactorOn:
		e.before, e.after = say(operator{ID: b.ID, Name: name(b.ID), OTP: is(false)}), say(operator{ID: b.ID, Name: name(b.ID), OTP: is(true)})
	case *org.FactorOff:
		e.before, e.after = say(operator{ID: b.ID, Name: name(b.ID), OTP: is(true)}), say(operator{ID: b.ID, Name: name(b.ID), OTP: is(false)})
	case *org.Set:
		e.before, e.after = say(map[string]json.RawMessage{b.Name: b.Was}), say(map[string]json.RawMessage{b.Name: b.Value})
	case *org.Silenced:
		e.after = say(map[string]any{"silence": b.ID, "rule": b.Rule, "roomId": b.Room, "until": b.Until})
	case *org.SilenceEnded:
		e.before = say(map[string]string{"silence": b.ID})
	case *org.Forgotten:
		e.after = say(map[string]int64{"before": b.Before})
	}
}

// ofRoom says what an act on a room changed, compared with what the room's own journal said before it.
func (e *entry) ofRoom(ctx context.Context, acts journal.Acts, r *journal.Record) error {
	event, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
	if err != nil {
		e.after = r.Body
		return nil
	}
	former := func(kinds ...string) (room.Body, error) {
		f, ok, err := acts.Former(ctx, r.Stream, r.Seq, kinds...)
		if err != nil || !ok {
			return nil, err
		}
		was, err := room.DecodeBody(f.Kind, f.Version, room.Instant(f.At.UnixMilli()), f.Body)
		if err != nil {
			return nil, nil
		}
		return was.Body, nil
	}
	switch b := event.Body.(type) {
	case *room.Create:
		e.after = withMember(withMember(nil, "state", b.Mode), "settings", b.Settings)
	case *room.Configure:
		was, err := former("create", "configure")
		if err != nil {
			return err
		}
		switch was := was.(type) {
		case *room.Create:
			e.before, e.after = differing(was.Settings, b.Settings)
		case *room.Configure:
			e.before, e.after = differing(was.Settings, b.Settings)
		default:
			e.after = withMember(nil, "settings", b.Settings)
		}
	case *room.StateChange:
		was, err := former("create", "state", "close")
		if err != nil {
			return err
		}
		e.after = withMember(nil, "state", b.Mode)
		switch was := was.(type) {
		case *room.Create:
			e.before = withMember(nil, "state", was.Mode)
		case *room.StateChange:
			e.before = withMember(nil, "state", was.Mode)
		case *room.Close:
			e.before = withMember(nil, "state", room.Idle)
		}
	case *room.Schedule:
		was, err := former("create", "schedule", "draw", "close")
		if err != nil {
			return err
		}
		opens := func(at room.Instant) []byte {
			if at == 0 {
				return withMember(nil, "opensAt", nil)
			}
			return withMember(nil, "opensAt", at)
		}
		e.before, e.after = opens(0), opens(b.OpensAt)
		if was, ok := was.(*room.Schedule); ok {
			e.before = opens(was.OpensAt)
		}
	case *room.Pass:
		n := 0
		for _, span := range b.Spans {
			n += int(span[1]-span[0]) + 1
		}
		e.after = withMember(nil, "passed", n)
	case *room.Eject:
		e.before, e.after = withMember(nil, "ticket", b.Ticket), withMember(nil, "ticket", b.To)
	case *room.Purge:
		e.before = withMember(withMember(nil, "waiting", b.Waiting), "preQueue", b.PreQueue)
	case *room.Close, *room.Delete:
	default:
		e.after = r.Body
	}
	return nil
}

// withMember appends a member to a JSON object, which it begins when b is nil.
func withMember(b []byte, name string, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return b
	}
	if b == nil {
		b = []byte{'{'}
	} else {
		b = append(b[:len(b)-1], ',')
	}
	return append(append(append(appendString(b, name), ':'), text...), '}')
}

// differing is what two settings do not share.
func differing(was, is room.Settings) (before, after []byte) {
	read := func(v room.Settings) object {
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		o, err := parseObject(text)
		if err != nil {
			return nil
		}
		return o
	}
	old, now := read(was), read(is)
	null := []byte("null")
	put := func(b *[]byte, name string, raw []byte) { *b = withMember(*b, name, json.RawMessage(raw)) }
	for _, m := range old {
		raw, ok := now.find(m.name)
		if !ok {
			raw = null
		}
		if !bytes.Equal(raw, m.raw) {
			put(&before, m.name, m.raw)
			put(&after, m.name, raw)
		}
	}
	for _, m := range now {
		if !old.has(m.name) {
			put(&before, m.name, null)
			put(&after, m.name, m.raw)
		}
	}
	return before, after
}
