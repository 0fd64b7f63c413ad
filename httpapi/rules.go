package httpapi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"qm/engine/room"
)

// What a room may do by itself: the settings autotune and autoActivate of seed 004, and openings.

// rule is a member that is an object of whole numbers, or null for none. Each number has bounds, and a default where it may be absent.
func (r *reader) rule(name, code string, numbers ...ruleNumber) (set, off bool) {
	raw, ok := r.setting(name)
	if !ok {
		return false, false
	}
	if isNull(raw) {
		return false, true
	}
	o, err := parseObject(raw)
	if err != nil {
		r.fail(code, name)
		return false, false
	}
	inner := reader{o: o}
	names := make([]string, 0, len(numbers))
	for _, n := range numbers {
		names = append(names, n.name)
	}
	for _, m := range o {
		if !slices.Contains(names, m.name) {
			r.fail("unknown_field", name+"."+m.name)
			return false, false
		}
	}
	for _, n := range numbers {
		if !o.has(n.name) && !n.optional {
			r.fail(code, name+"."+n.name)
			return false, false
		}
		if inner.number(n.name, code, n.to, n.least, n.most); inner.err != nil {
			r.fail(code, name+"."+n.name)
			return false, false
		}
	}
	return true, false
}

type ruleNumber struct {
	name        string
	to          *int64 // holds the default
	least, most int64
	optional    bool
}

func (r *reader) autotune(to **room.Autotune) {
	t := room.Autotune{LatencyMs: 800, ErrorPct: 5}
	set, off := r.rule("autotune", "invalid_autotune",
		ruleNumber{"floor", &t.Floor, 1, 100_000, false}, ruleNumber{"ceiling", &t.Ceiling, 1, 100_000, false}, ruleNumber{"step", &t.Step, 1, 100_000, true},
		ruleNumber{"latencyMs", &t.LatencyMs, 1, 5_000, true}, ruleNumber{"errorPct", &t.ErrorPct, 0, 99, true})
	switch {
	case off:
		*to = nil
	case set && t.Ceiling < t.Floor:
		r.fail("invalid_autotune", "autotune.ceiling")
	case set:
		if t.Step == 0 {
			t.Step = max(1, (t.Ceiling-t.Floor)/20)
		}
		*to = &t
	}
}

func (r *reader) autoActivate(to **room.AutoActivate) {
	a := room.AutoActivate{CalmMinutes: 10}
	switch set, off := r.rule("autoActivate", "invalid_auto_activate",
		ruleNumber{"arrivalsPerMinute", &a.ArrivalsPerMinute, 1, 1_000_000, false}, ruleNumber{"calmMinutes", &a.CalmMinutes, 1, 1_440, true}); {
	case off:
		*to = nil
	case set:
		*to = &a
	}
}

// maxOpenings is how many openings a room may have before it, or behind it, in its list.
const maxOpenings = 50

// openings reads the list: each ends before the next begins, and lies ahead unless the room has it already.
func (r *reader) openings(to *[]room.Opening, now time.Time) {
	raw, ok := r.setting("openings")
	if !ok {
		return
	}
	if isNull(raw) {
		*to = nil
		return
	}
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil || len(items) > maxOpenings {
		r.fail("invalid_openings", "openings")
		return
	}
	var list []room.Opening
	for _, item := range items {
		o, err := parseObject(item)
		if err != nil || o.only("opensAt", "closesAt") != nil {
			r.fail("invalid_openings", "openings")
			return
		}
		var next room.Opening
		for name, at := range map[string]*room.Instant{"opensAt": &next.OpensAt, "closesAt": &next.ClosesAt} {
			raw, ok := o.find(name)
			if !ok || isNull(raw) && name == "closesAt" {
				continue
			}
			t, ok := instantIn(raw)
			if !ok || t.UnixMilli() <= 0 {
				r.fail("invalid_openings", "openings")
				return
			}
			*at = room.Instant(t.UnixMilli())
		}
		list = append(list, next)
	}
	slices.SortFunc(list, func(a, b room.Opening) int { return cmp.Compare(a.OpensAt, b.OpensAt) })
	for i, o := range list {
		at := room.Instant(now.UnixMilli())
		known := slices.Contains(*to, o)
		switch {
		case o.OpensAt == 0, o.ClosesAt != 0 && o.ClosesAt <= o.OpensAt,
			i+1 < len(list) && (o.ClosesAt == 0 || o.ClosesAt >= list[i+1].OpensAt),
			!known && (o.OpensAt <= at || o.OpensAt > at+room.Instant(maxOpensIn.Milliseconds())):
			r.fail("invalid_openings", "openings")
			return
		}
	}
	*to = list
}

// rescheduled keeps the list true when the doors of an opening are moved, or their drop is cancelled, by opensAt: it is moved, or goes.
func rescheduled(list []room.Opening, from, to room.Instant) ([]room.Opening, error) {
	i := slices.IndexFunc(list, func(o room.Opening) bool { return o.OpensAt == from })
	if i < 0 || from == to {
		return list, nil
	}
	list = slices.Clone(list)
	if to == 0 {
		return slices.Delete(list, i, i+1), nil
	}
	if c := list[i].ClosesAt; c != 0 && c <= to || i > 0 && list[i-1].ClosesAt >= to {
		return nil, refuseField("invalid_opens_at", "opensAt", "An opening cannot begin after its own end, or before the end of the one before it.")
	}
	list[i].OpensAt = to
	return list, nil
}

// proxyOrigin is the internal address that an inline room forwards to: scheme, host and port alone.
func (r *reader) proxyOrigin(to *string) {
	raw, ok := r.setting("proxyOrigin")
	if !ok {
		return
	}
	if isNull(raw) || string(raw) == `""` {
		*to = ""
		return
	}
	text, ok := textOf(raw, 1, 300, false)
	origin, bare := bareOrigin(text)
	if !ok || !bare {
		r.fail("invalid_proxy_origin", "proxyOrigin")
		return
	}
	*to = origin
}

// appendOwnRules appends what a room may do by itself, as its settings take it.
func appendOwnRules(b []byte, set *room.Settings) []byte {
	if t := set.Autotune; t != nil {
		b = appendFirst(append(appendMember(b, "autotune"), '{'), "floor", t.Floor)
		b = appendInt(b, "ceiling", t.Ceiling)
		b = appendInt(b, "step", t.Step)
		b = appendInt(b, "latencyMs", t.LatencyMs)
		b = append(appendInt(b, "errorPct", t.ErrorPct), '}')
	} else {
		b = append(appendMember(b, "autotune"), "null"...)
	}
	if a := set.AutoActivate; a != nil {
		b = appendFirst(append(appendMember(b, "autoActivate"), '{'), "arrivalsPerMinute", a.ArrivalsPerMinute)
		b = append(appendInt(b, "calmMinutes", a.CalmMinutes), '}')
	} else {
		b = append(appendMember(b, "autoActivate"), "null"...)
	}
	b = append(appendMember(b, "openings"), '[')
	for i, o := range set.Openings {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFirst(append(b, '{'), "opensAt", int64(o.OpensAt))
		b = append(appendIntOr(b, "closesAt", int64(o.ClosesAt), o.ClosesAt != 0), '}')
	}
	return append(b, ']')
}

// appendFirst is appendInt for an object's first member.
func appendFirst(b []byte, name string, n int64) []byte {
	b = append(append(append(b, '"'), name...), '"', ':')
	return strconv.AppendInt(b, n, 10)
}
