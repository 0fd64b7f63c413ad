package httpapi

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"qm/access/score"
	"qm/engine/room"
	"qm/web"
)

// writable is what POST /api/admin/rooms takes, exactly (seed 004); rate is an alias.
var writable = []string{
	"id", "name", "targetUrl", "proxyOrigin", "ratePerMinute", "rate", "maxConcurrent", "passedTtlSec", "sessionTtlSec", "sessionMaxSec",
	"branding", "returnOrigins", "tagOrigins", "autotune", "protection", "autoActivate", "urlPatterns", "opensAt", "preQueueMaxPerIp",
	"queueMaxPerIp", "presenceSec", "state", "onBackendDown",
	"openings", // an addition to the seed's set: several times at which the room opens
}

// change is what a body asks of a room beside its settings.
type change struct {
	named   bool      // a setting was named
	mode    room.Mode // "" when state was not named
	opensAt time.Time
	opens   bool // opensAt was named; the zero time cancels
}

// readChange applies a body to a room's settings: only what is named changes.
func readChange(o object, set *room.Settings, now time.Time) (change, error) {
	var c change
	r := reader{o: o}
	r.name(&set.Name)
	r.target(&set.TargetURL)
	r.rate(&set.RatePerMinute)
	r.limit("maxConcurrent", "invalid_max_concurrent", &set.MaxConcurrent, 1, 10_000_000)
	r.number("passedTtlSec", "invalid_passed_ttl_sec", &set.PassedTTLSec, 1, 86_400)
	r.number("sessionTtlSec", "invalid_session_ttl_sec", &set.SessionTTLSec, 1, 86_400)
	r.number("sessionMaxSec", "invalid_session_max_sec", &set.SessionMaxSec, 1, 604_800)
	r.limit("preQueueMaxPerIp", "invalid_pre_queue_max_per_ip", &set.PreQueueMaxPerIP, 1, 100_000)
	r.limit("queueMaxPerIp", "invalid_queue_max_per_ip", &set.QueueMaxPerIP, 1, 100_000)
	r.limit("presenceSec", "invalid_presence_sec", &set.PresenceSec, 1, 3_600)
	r.backend(&set.OnBackendDown)
	r.origins("returnOrigins", "invalid_return_origins", &set.ReturnOrigins)
	r.origins("tagOrigins", "invalid_tag_origins", &set.TagOrigins)
	r.patterns(set, now)
	r.branding(&set.Branding, now)
	r.proxyOrigin(&set.ProxyOrigin)
	r.autotune(&set.Autotune)
	r.autoActivate(&set.AutoActivate)
	r.openings(&set.Openings, now)
	r.protection(set)
	c.named = r.named > 0
	r.state(&c.mode)
	c.opens = r.opening(&c.opensAt, now)
	return c, r.err
}

// reader reads the members of a body one by one and keeps the first problem.
type reader struct {
	o     object
	named int // settings that were named
	err   error
}

func (r *reader) fail(code, field string) {
	if r.err == nil {
		r.err = refuseField(code, field, "")
	}
}

// find is a member that was named, unless something is wrong already.
func (r *reader) find(name string) ([]byte, bool) {
	raw, ok := r.o.find(name)
	return raw, ok && r.err == nil
}

func (r *reader) setting(name string) ([]byte, bool) {
	raw, ok := r.find(name)
	if ok {
		r.named++
	}
	return raw, ok
}

func (r *reader) number(name, code string, to *int64, least, most int64) {
	raw, ok := r.setting(name)
	if !ok {
		return
	}
	n, ok := whole(raw)
	if !ok || n < least || n > most {
		r.fail(code, name)
		return
	}
	*to = n
}

// limit is a number that null switches off.
func (r *reader) limit(name, code string, to **int64, least, most int64) {
	raw, ok := r.o.find(name)
	if ok && isNull(raw) && r.err == nil {
		r.named++
		*to = nil
		return
	}
	var n int64
	before := r.named
	if r.number(name, code, &n, least, most); r.err == nil && r.named > before {
		*to = &n
	}
}

// rate reads ratePerMinute or its alias; both may be given if they agree.
func (r *reader) rate(to *int64) {
	before := *to
	r.number("ratePerMinute", "invalid_rate_per_minute", to, 0, 100_000)
	long := *to
	if !r.o.has("rate") {
		return
	}
	r.number("rate", "invalid_rate_per_minute", to, 0, 100_000)
	if r.err == nil && r.o.has("ratePerMinute") && *to != long {
		*to = before
		r.fail("conflicting_field", "rate")
	}
}

func (r *reader) text(name, code string, least, most int, multiline bool, to *string) bool {
	raw, ok := r.setting(name)
	if !ok {
		return false
	}
	s, ok := textOf(raw, least, most, multiline)
	if !ok {
		r.fail(code, name)
		return false
	}
	*to = s
	return true
}

// textOf is a string of least to most characters without control characters (line breaks aside, where lines are meant).
func textOf(raw []byte, least, most int, multiline bool) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	s := strings.TrimSpace(strings.ToValidUTF8(plainString(raw), "\ufffd"))
	if n := utf8.RuneCountInString(s); n < least || n > most {
		return "", false
	}
	for _, c := range s {
		if unicode.IsControl(c) && !(multiline && (c == '\n' || c == '\t' || c == '\r')) {
			return "", false
		}
	}
	return s, true
}

func (r *reader) name(to *string) { r.text("name", "invalid_name", 1, 200, false, to) }

func (r *reader) target(to *string) {
	var s string
	if !r.text("targetUrl", "invalid_target_url", 1, 2048, false, &s) {
		return
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsAny(s, `\ <>"`) {
		r.fail("invalid_target_url", "targetUrl")
		return
	}
	*to = s
}

func (r *reader) backend(to *string) {
	raw, ok := r.setting("onBackendDown")
	if !ok {
		return
	}
	s, _ := textOf(raw, 0, 16, false)
	if s != "closed" && s != "open" {
		r.fail("invalid_on_backend_down", "onBackendDown")
		return
	}
	*to = s
}

// maxOrigins bounds each list of origins.
const maxOrigins = 50

// origins is a list of origins; null stands for none given (for tagOrigins: as returnOrigins).
func (r *reader) origins(name, code string, to *[]string) {
	raw, ok := r.setting(name)
	if !ok {
		return
	}
	if isNull(raw) {
		*to = nil
		return
	}
	var given []string
	if raw[0] != '[' || json.Unmarshal(raw, &given) != nil || len(given) > maxOrigins {
		r.fail(code, name)
		return
	}
	list := make([]string, 0, len(given))
	for _, g := range given {
		o, ok := bareOrigin(g)
		if !ok {
			r.fail(code, name)
			return
		}
		if !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	*to = list
}

// bareOrigin is the origin of an address that has nothing more than one.
func bareOrigin(address string) (origin string, ok bool) {
	origin = originOf(address)
	u, err := url.Parse(address)
	return origin, origin != "" && err == nil && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == ""
}

// originOf is the origin of an address as browsers write it: scheme and host in lower case, a host of other letters in punycode, no
// default port. "" when it has none.
func originOf(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if strings.ContainsFunc(host, func(c rune) bool { return c >= utf8.RuneSelf }) {
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return ""
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p := u.Port(); p != "" && !(u.Scheme == "http" && p == "80" || u.Scheme == "https" && p == "443") {
		host += ":" + p
	}
	return u.Scheme + "://" + host
}

// branding replaces what is named of it; the server stamps messageAt when the text changes (seed 004, branding.message).
func (r *reader) branding(to *room.Branding, now time.Time) {
	raw, ok := r.setting("branding")
	if !ok {
		return
	}
	next := *to
	var o object
	if isNull(raw) {
		next.Name, next.LogoURL, next.Color, next.Background, next.Message = "", "", "", "", ""
	} else {
		var err error
		if o, err = parseObject(raw); err != nil {
			r.fail("invalid_branding", "branding")
			return
		}
		// messageAt comes with a room that was read and is posted back; it is ours to set.
		if err := o.only("name", "logoUrl", "color", "background", "message", "messageAt"); err != nil {
			if p := new(Problem); errors.As(err, &p) {
				r.fail(p.Code, "branding."+p.Field)
			}
			return
		}
	}
	for _, m := range o {
		field := "branding." + m.name
		s, ok := "", isNull(m.raw)
		switch m.name {
		case "messageAt":
			continue
		case "message":
			if !ok {
				s, ok = textOf(m.raw, 0, 500, true)
			}
			next.Message = s
		case "name":
			if !ok {
				s, ok = textOf(m.raw, 0, 100, false)
			}
			next.Name = s
		case "logoUrl":
			if !ok {
				s, ok = textOf(m.raw, 0, 2048, false)
				ok = ok && (s == "" || strings.HasPrefix(s, "https://") && originOf(s) != "" || strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//") && !strings.Contains(s, `\`))
			}
			next.LogoURL = s
		case "color", "background":
			if !ok {
				s, ok = textOf(m.raw, 0, 7, false)
				ok = ok && (s == "" || isColour(s))
			}
			if m.name == "color" {
				next.Color = s
			} else {
				next.Background = s
			}
		}
		if !ok {
			r.fail("invalid_branding", field)
			return
		}
	}
	if next.Color != to.Color || next.Background != to.Background {
		var pair *web.IllegibleError
		if err := (web.Branding{Accent: next.Color, Background: next.Background}).Legible(); errors.As(err, &pair) {
			r.err = refuseField("invalid_branding", "branding."+pair.Field, pair.Error()+".")
			return
		}
	}
	if next.Message != to.Message {
		next.MessageAt = room.Instant(now.UnixMilli())
	}
	*to = next
}

func isColour(s string) bool {
	if len(s) != 7 || s[0] != '#' {
		return false
	}
	for _, c := range s[1:] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// protection reads what a room does with scores at its door (seed 004). threshold, holdScore and work are additions to the seed's mode.
// A proof of work halves a score, so a threshold above 50 is what keeps its promise.
func (r *reader) protection(set *room.Settings) {
	const name, code = "protection", "invalid_protection"
	raw, ok := r.setting(name)
	if !ok {
		return
	}
	o, err := parseObject(raw)
	if err != nil {
		r.fail(code, name)
		return
	}
	if err := o.only("mode", "threshold", "holdScore", "work"); err != nil {
		r.fail("unknown_field", name)
		return
	}
	next, hold := set.Protection, set.HoldScore // what is not named stays
	next.Threshold = next.RefusesFrom()
	inner := reader{o: o}
	inner.number("threshold", code, &next.Threshold, 51, score.Max)
	inner.number("holdScore", code, &hold, 1, score.Max)
	inner.flag("work", code, &next.Work)
	mode, _, err := o.text("mode", code)
	switch {
	case inner.err != nil || err != nil:
		r.fail(code, name)
	case mode == "off":
		set.Protection, set.HoldScore = room.Protection{}, hold
	case mode == "monitor" || mode == "enforce":
		next.Mode = mode
		set.Protection, set.HoldScore = next, hold
	default:
		r.fail(code, name)
	}
}

func (r *reader) flag(name, code string, to *bool) {
	raw, ok := r.setting(name)
	switch {
	case !ok:
	case string(raw) == "true" || string(raw) == "false":
		*to = raw[0] == 't'
	default:
		r.fail(code, name)
	}
}

// appendProtection appends it as it is taken.
func appendProtection(b []byte, set *room.Settings) []byte {
	p := set.Protection
	b = appendString(append(appendMember(b, "protection"), `{"mode":`...), modeOf(p))
	if p.Scores() {
		b = appendInt(b, "threshold", p.RefusesFrom())
		b = appendInt(b, "holdScore", set.HoldScore)
		b = appendBool(b, "work", p.Work)
	}
	return append(b, '}')
}

func (r *reader) state(to *room.Mode) {
	raw, ok := r.find("state")
	if !ok {
		return
	}
	s, _ := textOf(raw, 0, 16, false)
	switch m := room.Mode(s); m {
	case room.Active, room.Paused, room.Bypass:
		*to = m
	default:
		r.fail("invalid_state", "state")
	}
}

// instantIn reads an instant: epoch milliseconds or RFC 3339.
func instantIn(raw []byte) (time.Time, bool) {
	if n, ok := whole(raw); ok {
		return time.UnixMilli(n), true
	}
	s, ok := textOf(raw, 1, 64, false)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, s)
	return at, err == nil
}

// maxOpensIn is how far ahead a drop may be scheduled.
const maxOpensIn = 366 * 24 * time.Hour

// opening reads opensAt: epoch milliseconds, RFC 3339, or null to cancel.
func (r *reader) opening(to *time.Time, now time.Time) bool {
	raw, ok := r.find("opensAt")
	if !ok {
		return false
	}
	if isNull(raw) {
		*to = time.Time{}
		return true
	}
	at, ok := instantIn(raw)
	if !ok || !at.After(now) || at.After(now.Add(maxOpensIn)) {
		r.fail("invalid_opens_at", "opensAt")
		return false
	}
	*to = at
	return true
}
