package notify

import (
	"strings"

	"golang.org/x/net/idna"
)

// Lengths of an address in bytes (RFC 5321, 4.5.3.1).
const (
	maxAddress = 254
	maxLocal   = 64
)

// ParseAddress reads one bare e-mail address, as people type it, and gives it in the form in which it is kept: the domain in
// lower case, in letters that DNS has. What a mail server may take beyond that (quotes, comments, literals, names without a dot)
// nobody has for a real address; it is refused, so that nothing in an address can end a header or name a second recipient.
func ParseAddress(s string) (string, bool) {
	s = strings.TrimSpace(s)
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > maxLocal || len(s) > maxAddress {
		return "", false
	}
	local := s[:at]
	if local[0] == '.' || local[at-1] == '.' || strings.Contains(local, "..") {
		return "", false
	}
	for i := range len(local) {
		if !atom(local[i]) {
			return "", false
		}
	}
	domain, err := idna.Lookup.ToASCII(s[at+1:])
	if again, wrong := idna.Lookup.ToASCII(domain); wrong != nil || again != domain {
		return "", false // broken letters, of which idna makes names that it does not read itself
	}
	if err != nil || !host(domain) || at+1+len(domain) > maxAddress {
		return "", false
	}
	return local + "@" + domain, true
}

// atom is RFC 5322's atext, and the dot.
func atom(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-/=?^_`{|}~.", c) >= 0
}

// host reports a name of two labels or more whose last is no number.
func host(name string) bool {
	labels := strings.Split(name, ".")
	if len(labels) < 2 {
		return false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
			return false
		}
		for i := range len(l) {
			if c := l[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return last[0] < '0' || last[0] > '9'
}

// Mask is what an address is shown as, to its owner alone: enough to know it again.
func Mask(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return ""
	}
	return address[:1] + "•••" + address[at:]
}
