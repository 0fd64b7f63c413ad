// Package scope says which pages of a site belong to a room (seed 004, Edge check and urlPatterns). It is pure: rules and an address
// in, a verdict out.
package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on the rules of a room (seed 004, urlPatterns).
const (
	MaxRules     = 25
	MaxLength    = 300 // characters of a rule, its exclamation mark included
	MaxWildcards = 10  // of a rule
)

// Scope is whether a page belongs to a room.
type Scope string

// A page is in, out, or it cannot be told; what cannot be told queues, so that no page is unprotected in silence.
const (
	In      Scope = "in"
	Out     Scope = "out"
	Unknown Scope = "unknown"
)

// What becomes of a page, in the words of GET /api/check.
const (
	Queue = "queue"
	Pass  = "pass"
)

// Verdict is what the rules say of a page.
type Verdict struct {
	Scope Scope
	Rule  int // the number of the rule that decided, from 0; -1 when none did
}

// Action is what becomes of the page: [Pass] when it is out of scope, else [Queue].
func (v Verdict) Action() string {
	if v.Scope == Out {
		return Pass
	}
	return Queue
}

// Rules are a room's rules. The zero Rules are none: the room is unscoped, and every page is in.
type Rules struct {
	list  []rule
	texts []string
	rev   string
	some  bool // there are rules that are no exceptions
}

// rule is one rule, in the spelling of [Normalise].
type rule struct {
	except bool
	origin string // "" for any
	query  bool   // matched against the path and the query; else against the path
	parts  []string
}

// Error says what is wrong with a room's rules, in a sentence for the operator.
type Error struct {
	Rule int // its number, from 0; -1 when it is about the list
	Why  string
}

func (e *Error) Error() string {
	if e.Rule < 0 {
		return e.Why
	}
	return fmt.Sprintf("Rule %d %s", e.Rule+1, e.Why)
}

// Parse reads rules (seed 004, urlPatterns). A rule begins with / (a path on any origin), * (anywhere in the path), or
// http:// or https:// with a host and a path (on that origin alone); an exclamation mark before it makes it an exception. The rule
// stands for the whole path, a * in it for any characters, slashes too; with a question mark in it, for the path and the query.
// Case and spelling do not matter. The error is an [*Error].
func Parse(patterns []string) (*Rules, error) {
	if len(patterns) > MaxRules {
		return nil, &Error{-1, fmt.Sprintf("There are %d rules, more than %d.", len(patterns), MaxRules)}
	}
	rules := &Rules{}
	digest := sha256.New()
	for i, pattern := range patterns {
		text := strings.TrimSpace(pattern)
		r, why := parse(text)
		if why != "" {
			return nil, &Error{i, why}
		}
		rules.list = append(rules.list, r)
		rules.texts = append(rules.texts, text)
		rules.some = rules.some || !r.except
		digest.Write([]byte(text + "\n")) // no rule has a line break in it
	}
	rules.rev = hex.EncodeToString(digest.Sum(nil)[:8])
	return rules, nil
}

// parse reads one rule; why is what is wrong with it.
func parse(text string) (r rule, why string) {
	if n := utf8.RuneCountInString(text); n > MaxLength {
		return r, fmt.Sprintf("has %d characters, more than %d.", n, MaxLength)
	}
	if n := strings.Count(text, "*"); n > MaxWildcards {
		return r, fmt.Sprintf("has %d wildcards (*), more than %d.", n, MaxWildcards)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, `\`) {
		return r, `has a control character or a backslash in it.`
	}
	if strings.Contains(text, "#") {
		return r, "has a # in it: what follows one in an address never reaches a server."
	}
	text, r.except = strings.CutPrefix(text, "!")
	switch {
	case strings.HasPrefix(text, "/"), strings.HasPrefix(text, "*"):
	default:
		scheme, rest, found := strings.Cut(text, "://")
		at := strings.IndexByte(rest, '/')
		scheme = strings.ToLower(scheme)
		switch {
		case !found || scheme != "http" && scheme != "https":
			return r, "begins with none of /, *, http:// and https:// (after a ! where it is an exception)."
		case at < 0:
			return r, "names an origin and no path; https://host/* stands for all of it."
		case strings.ContainsAny(rest[:at], "*?@"):
			return r, "needs a host without *, ? and @: a full address pins one origin."
		}
		if r.origin, found = originOf(scheme, rest[:at]); !found {
			return r, "has a host that is none."
		}
		text = rest[at:]
	}
	path, query, asked := strings.Cut(text, "?")
	path, ok := spell(path, false)
	if !ok {
		return r, "has a % in its path that no two hex digits follow; a percent sign itself is %25."
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return r, "has a segment . or .. in its path, which no page's path has."
		}
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if r.query = asked; asked {
		query, _ = spell(query, true)
		path += "?" + query
	}
	r.parts = strings.Split(path, "*")
	return r, ""
}

// Len is how many rules there are; none means that the room is unscoped.
func (r *Rules) Len() int { return len(r.list) }

// Pattern is rule i as the operator wrote it.
func (r *Rules) Pattern(i int) string { return r.texts[i] }

// Patterns are all of them. The caller must not write to the list.
func (r *Rules) Patterns() []string { return r.texts }

// Action is what becomes of a page that rule i decides.
func (r *Rules) Action(i int) string {
	if r.list[i].except {
		return Pass
	}
	return Queue
}

// Rev is a digest of the rules: 16 hex digits, the same for the same rules in the same order.
func (r *Rules) Rev() string { return r.rev }

// Decide says whether a page is in scope. An exception wins over all rules that are none, wherever it stands; among those of a kind
// the first wins. A page that no rule names is out of scope, but in it when all rules are exceptions: a room that says only what it
// leaves out means the rest. A page whose origin is not known is of unknown scope when that would decide.
//
// The time is in proportion to the address's length, whatever the rules.
func (r *Rules) Decide(u URL) Verdict {
	first, unsure := -1, false
	for i := range r.list {
		rule := &r.list[i]
		if !rule.except && first >= 0 || !rule.matches(u) {
			continue
		}
		switch {
		case rule.origin != "" && u.origin == "":
			unsure = unsure || !rule.except // an exception must be certain
		case rule.origin != "" && rule.origin != u.origin:
		case rule.except:
			return Verdict{Out, i}
		default:
			first = i
		}
	}
	switch {
	case first >= 0:
		return Verdict{In, first}
	case unsure:
		return Verdict{Unknown, -1}
	case !r.some:
		return Verdict{In, -1}
	}
	return Verdict{Out, -1}
}

// matches reports whether the rule's path is the page's.
func (r *rule) matches(u URL) bool {
	if r.query {
		return glob(r.parts, u.whole)
	}
	return glob(r.parts, u.whole[:u.path])
}

// glob reports whether s is the parts with anything between each two of them. The leftmost place of each part is as good as any:
// what it leaves is the longest rest. So nothing is tried twice.
func glob(parts []string, s string) bool {
	last := len(parts) - 1
	if last == 0 {
		return s == parts[0]
	}
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	if s, ok = strings.CutSuffix(s, parts[last]); !ok {
		return false
	}
	for _, part := range parts[1:last] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}
