package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"qm/access/scope"
	"qm/engine/room"
)

// roomScope is a room's rules, and what this process saw them do since they hold. It begins anew when they change or the room is made anew.
type roomScope struct {
	generation uint32
	at         room.Instant // Settings.URLPatternsAt
	patterns   []string     // as stored
	rules      *scope.Rules
	since      int64   // when counting began, in epoch milliseconds
	hits       []tally // by rule
	unmatched  counter // pages that no rule names
	without    counter // checks that did not say their page
	unreadable counter // checks whose page could not be read
}

// tally counts the pages that a rule decided.
type tally struct {
	counter
	last atomic.Int64 // the latest, in epoch milliseconds; 0: none yet
}

// scopeOf is the scope of a room that has rules; nil when it has none.
func (s *Server) scopeOf(x *exchange, id string, sum *room.Summary) *roomScope {
	set := sum.Settings
	if len(set.URLPatterns) == 0 {
		return nil
	}
	if v, ok := s.scopes.Load(id); ok {
		known := v.(*roomScope)
		if known.generation == sum.Generation && known.at == set.URLPatternsAt && slices.Equal(known.patterns, set.URLPatterns) {
			return known
		}
	}
	rules, err := scope.Parse(set.URLPatterns)
	if err != nil {
		// Rules are judged before they are stored, but another version may have judged by other limits. Then all pages queue.
		s.o.Log.Error("read a room's rules; all its pages queue", "room", id, "err", err)
		if rules, err = scope.Parse([]string{"*"}); err != nil {
			panic("httpapi: " + err.Error())
		}
	}
	fresh := &roomScope{
		generation: sum.Generation, at: set.URLPatternsAt, patterns: set.URLPatterns, rules: rules, since: x.ms(),
		hits: make([]tally, rules.Len()),
	}
	s.scopes.Store(id, fresh)
	return fresh
}

// page is what a room's rules say of the page that a check is about.
type page struct {
	rules   *scope.Rules
	verdict scope.Verdict
	full    bool // the answer has all rules (targeting=1)
}

// pageOf decides the scope of the page that a check is about, and counts it; nil when the room has no rules. The page is in url=, else
// in the Referer header; where neither says it, or url= says two things, the scope is unknown, and the visitor queues (seed 004,
// Edge check; contract.md 5 and 6).
func (s *Server) pageOf(x *exchange, id string, sum *room.Summary) *page {
	rs := s.scopeOf(x, id, sum)
	if rs == nil {
		return nil
	}
	p := &page{rules: rs.rules, verdict: scope.Verdict{Scope: scope.Unknown, Rule: -1}}
	full, _, conflict := param(x.r.URL.RawQuery, "targeting")
	p.full = full == "1" && !conflict

	count := &rs.unreadable
	address, _, conflict := param(x.r.URL.RawQuery, "url")
	address = strings.TrimSpace(address)
	trimmed := false
	if address == "" && !conflict {
		address, conflict = refererOf(x.r.Header)
		trimmed = crossOrigin(x.r.Header)
	}
	if u, ok := scope.Normalise(address); ok && !conflict {
		count = &rs.unmatched
		p.verdict = rs.rules.Decide(u)
		if trimmed && p.verdict.Scope == scope.Out && u.Bare() {
			p.verdict = scope.Verdict{Scope: scope.Unknown, Rule: -1}
			address = ""
		}
	}
	if address == "" && !conflict {
		count = &rs.without
	}
	if x.head {
		return p
	}
	if p.verdict.Rule < 0 {
		count.n.Add(1)
		return p
	}
	hit := &rs.hits[p.verdict.Rule]
	hit.n.Add(1)
	hit.last.Store(x.ms())
	return p
}

// refererOf is the Referer header; conflict: there are several that differ.
func refererOf(h http.Header) (address string, conflict bool) {
	for i, v := range h["Referer"] {
		v = strings.TrimSpace(v)
		if i > 0 && v != address {
			return "", true
		}
		address = v
	}
	return address, false
}

// crossOrigin reports whether a browser asks from a page of another origin. By default it then names that origin in Referer and keeps the
// page to itself, so that a bare origin does not mean the home page.
func crossOrigin(h http.Header) bool {
	site := h.Get("Sec-Fetch-Site")
	return site != "same-origin" && site != "none" && (site != "" || h.Get("Origin") != "")
}

// append appends the member targeting of a check's answer (seed 004, Edge check).
func (p *page) append(b []byte) []byte {
	b = append(appendMember(b, "targeting"), `{"rev":"`...)
	b = append(b, p.rules.Rev()...)
	b = append(b, '"')
	b = appendInt(b, "rules", int64(p.rules.Len()))
	b = appendVerdict(b, p.rules, p.verdict)
	if p.full {
		b = appendPatterns(b, p.rules)
	}
	return append(b, '}')
}

// appendVerdict appends the scope, the rule that decided as the operator wrote it, or null, and what becomes of the page.
func appendVerdict(b []byte, rules *scope.Rules, v scope.Verdict) []byte {
	b = appendText(b, "scope", string(v.Scope))
	if v.Rule < 0 {
		b = append(b, `,"rule":null`...)
	} else {
		b = appendText(b, "rule", rules.Pattern(v.Rule))
	}
	return appendText(b, "action", v.Action())
}

// appendPatterns appends the rules, as the operator wrote them, and what becomes of a page that each decides.
func appendPatterns(b []byte, rules *scope.Rules) []byte {
	b = append(appendMember(b, "patterns"), '[')
	for i := range rules.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"pattern":`...), rules.Pattern(i))
		b = append(appendText(b, "action", rules.Action(i)), '}')
	}
	return append(b, ']')
}

// targeting is a room's rules, for connectors that decide on their own (seed 004, GET /api/targeting). To ask again costs little: the
// answer has an ETag, and is 304 to who knows it.
func (s *Server) targeting(x *exchange) error {
	if err := s.allow(x, s.checks); err != nil {
		return err
	}
	id, ok, err := x.query("roomId")
	if err != nil {
		return err
	}
	if !ok || !validRoomID(id) {
		return refuseField("invalid_room_id", "roomId", "")
	}
	sum, _, err := s.summary(x.r.Context(), id)
	if err != nil {
		return err
	}
	rules := s.rulesOf(x, id, &sum)
	tag := `"` + rules.Rev() + "-" + strconv.FormatInt(int64(rulesSince(&sum)), 36) + `"`
	x.w.Header().Set("Etag", tag)
	if known(x.r.Header["If-None-Match"], tag) {
		x.buf = x.buf[:0]
		x.send(http.StatusNotModified)
		return nil
	}
	b := appendRules(x.buf[:0], id, rules, &sum)
	x.buf = append(appendPatterns(b, rules), '}')
	x.json(http.StatusOK)
	return nil
}

// known reports whether an If-None-Match header names the tag.
func known(header []string, tag string) bool {
	for _, line := range header {
		for each := range strings.SplitSeq(line, ",") {
			each = strings.TrimSpace(each)
			if each == "*" || strings.TrimPrefix(each, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// rulesOf are a room's rules, which may be none.
func (s *Server) rulesOf(x *exchange, id string, sum *room.Summary) *scope.Rules {
	if rs := s.scopeOf(x, id, sum); rs != nil {
		return rs.rules
	}
	return noRules
}

var noRules, _ = scope.Parse(nil)

// rulesSince is when the rules last changed; the room's creation when they never did.
func rulesSince(sum *room.Summary) room.Instant {
	return max(sum.Settings.URLPatternsAt, sum.CreatedAt)
}

func appendRules(b []byte, id string, rules *scope.Rules, sum *room.Summary) []byte {
	b = append(b, `{"roomId":"`...)
	b = append(b, id...)
	b = append(b, '"')
	b = appendText(b, "rev", rules.Rev())
	b = appendBool(b, "scoped", rules.Len() > 0)
	return appendInstant(b, "updatedAt", rulesSince(sum))
}

// adminTargeting shows what each rule of a room has decided, as this process saw it, and with url= which one would decide for a page,
// without counting it (seed 004, GET /api/admin/rooms/:id/targeting).
func (s *Server) adminTargeting(x *exchange) error {
	if err := s.named(x); err != nil {
		return err
	}
	address, asked, err := x.query("url")
	if err != nil {
		return err
	}
	sum, _, err := s.summary(x.r.Context(), x.id)
	if err != nil {
		return err
	}
	rs := s.scopeOf(x, x.id, &sum)
	if rs == nil {
		rs = &roomScope{rules: noRules}
	}
	b := appendRules(x.buf[:0], x.id, rs.rules, &sum)
	b = append(appendMember(b, "rules"), '[')
	for i := range rs.hits {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"pattern":`...), rs.rules.Pattern(i))
		b = appendText(b, "action", rs.rules.Action(i))
		b = appendInt(b, "matchCount", rs.hits[i].n.Load())
		b = append(appendInstant(b, "lastMatchedAt", room.Instant(rs.hits[i].last.Load())), '}')
	}
	b = append(b, ']')
	b = appendInt(b, "unmatchedCount", rs.unmatched.n.Load())
	b = appendInt(b, "noUrlCount", rs.without.n.Load())
	b = appendInt(b, "unreadableUrlCount", rs.unreadable.n.Load())
	b = appendInstant(b, "countedSince", room.Instant(rs.since))
	if address = strings.TrimSpace(address); asked && address != "" {
		b = append(appendMember(b, "dryRun"), `{"url":`...)
		b = appendString(b, address)
		v := scope.Verdict{Scope: scope.Unknown, Rule: -1}
		if u, ok := scope.Normalise(address); ok {
			b = appendText(b, "normalised", u.String())
			v = rs.rules.Decide(u)
		} else {
			b = append(b, `,"normalised":null`...)
		}
		b = append(appendVerdict(b, rs.rules, v), '}')
	}
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// patterns reads urlPatterns: a list of rules, empty or null for none (seed 004, urlPatterns).
func (r *reader) patterns(set *room.Settings, now time.Time) {
	const name, code = "urlPatterns", "invalid_url_patterns"
	raw, ok := r.setting(name)
	if !ok {
		return
	}
	var given []string
	if !isNull(raw) && (raw[0] != '[' || json.Unmarshal(raw, &given) != nil) {
		r.fail(code, name)
		return
	}
	rules, err := scope.Parse(given)
	if err != nil {
		r.err = refuseField(code, name, err.Error())
		return
	}
	list := rules.Patterns()
	if slices.Equal(list, set.URLPatterns) {
		return
	}
	set.URLPatterns, set.URLPatternsAt = list, room.Instant(now.UnixMilli())
}
