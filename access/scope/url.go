package scope

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// URL is a page's address in the one spelling in which rules see it. The zero URL is none.
type URL struct {
	origin string // "https://shop.example:8443"; "" when only a path was given
	whole  string // the path, which begins with a slash, and the query, if any, with its question mark
	path   int    // how long the path is
}

// String is the address in that spelling; without an origin when none was given.
func (u URL) String() string { return u.origin + u.whole }

// Origin is the address's origin as browsers write it; "" when only a path was given.
func (u URL) Origin() string { return u.origin }

// Bare reports whether the address is an origin and nothing more.
func (u URL) Bare() bool { return u.origin != "" && u.whole == "/" }

// Normalise brings a page's address into the spelling in which rules see it (contract.md 5): scheme and host lower-cased, the host in
// punycode and without a dot at its end, no default port, percent-escapes of unreserved characters decoded, repeated slashes
// collapsed, dot segments resolved, no fragment, no user. As case never matters (seed 004, urlPatterns), all of it is lower-cased,
// letters beyond ASCII too, however they are escaped.
//
// An address that begins with a slash is a path on an origin that is not known. ok is false for what is neither that nor an http or
// https address: such a page's scope is unknown, and it queues.
func Normalise(raw string) (u URL, ok bool) {
	raw = strings.Trim(raw, " ")
	raw, _, _ = strings.Cut(raw, "#")
	if !strings.HasPrefix(raw, "/") {
		scheme, rest, found := strings.Cut(raw, "://")
		if !found {
			return URL{}, false
		}
		authority, path := rest, ""
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			authority, path = rest[:i], rest[i:]
		}
		if u.origin, ok = originOf(strings.ToLower(scheme), authority); !ok {
			return URL{}, false
		}
		raw = path
	}
	path, query, asked := strings.Cut(raw, "?")
	if path, ok = spell(path, false); !ok {
		return URL{}, false
	}
	u.whole = resolve(path)
	u.path = len(u.whole)
	if asked {
		if query, ok = spell(query, true); !ok {
			return URL{}, false
		}
		u.whole += "?" + query
	}
	return u, true
}

// hosts brings host names into punycode as browsers do. Underscores are no part of a host name and live in some all the same.
var hosts = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

// maxHost is how long a host name can be (RFC 1035, 2.3.4).
const maxHost = 253

// originOf is the origin of a scheme in lower case and an authority.
func originOf(scheme, authority string) (string, bool) {
	if scheme != "http" && scheme != "https" || !utf8.ValidString(authority) || strings.ContainsFunc(authority, unicode.IsControl) || strings.Contains(authority, `\`) {
		return "", false // of a backslash, too, readers disagree what it ends
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:] // the user: no server is sent it by a browser
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	host, ok := hostOf(host)
	if !ok {
		return "", false
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return "", false
		}
		if n == 80 && scheme == "http" || n == 443 && scheme == "https" {
			return scheme + "://" + host, true
		}
		host += ":" + strconv.FormatUint(n, 10)
	}
	return scheme + "://" + host, true
}

func hostOf(host string) (string, bool) {
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		inner, closed := strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", false
		}
		return "[" + addr.String() + "]", true
	}
	if len(host) > maxHost*utf8.UTFMax {
		return "", false // before punycode, whose time is quadratic
	}
	for i := range len(host) {
		if host[i] >= utf8.RuneSelf {
			var err error
			if host, err = hosts.ToASCII(host); err != nil {
				return "", false
			}
			break
		}
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || len(host) > maxHost {
		return "", false
	}
	for i := range len(host) {
		if c := host[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return "", false
		}
	}
	return host, true
}

// spell writes a path or a query in the one spelling: letters in lower case and as they are, whether they came escaped or not; what
// must be escaped, escaped in lower-case hex. Control characters and backslashes make it unreadable: a browser never sends them, and servers
// differ in what they take them for. So does a broken escape in a path; in a query, where people type a bare percent sign, it stands
// for one.
func spell(s string, query bool) (string, bool) {
	if plain(s) {
		return s, true
	}
	b := make([]byte, 0, len(s)+16)
	var letter [utf8.UTFMax]byte // one character, as bytes
	for i := 0; i < len(s); {
		c, size, escaped := byteAt(s, i)
		switch {
		case c == '%' && !escaped:
			if !query {
				return "", false
			}
			b = append(b, "%25"...)
		case c < utf8.RuneSelf && (escaped && !unreserved(c) || c == ' '):
			b = escape(b, c)
		case c < ' ' || c == 0x7f || c == '\\':
			return "", false
		case c < utf8.RuneSelf:
			b = append(b, lower(c))
		default:
			n, width := 0, 0
			for at := i; n < len(letter) && at < len(s); n++ {
				next, step, _ := byteAt(s, at)
				letter[n] = next
				if at += step; utf8.FullRune(letter[:n+1]) {
					n++
					width = at - i
					break
				}
			}
			r, bytes := utf8.DecodeRune(letter[:n])
			if width == 0 || bytes != n || r == utf8.RuneError && bytes == 1 {
				b = escape(b, c) // a byte that is part of no character
				break
			}
			b = utf8.AppendRune(b, unicode.ToLower(r))
			size = width
		}
		i += size
	}
	return string(b), true
}

// plain reports whether s is in its spelling already, as most paths are.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '%' || c == '\\' || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

// byteAt is the byte that stands at s[i], with how many bytes of s say so. An escape that is broken is a percent sign.
func byteAt(s string, i int) (c byte, size int, escaped bool) {
	if s[i] == '%' && i+2 < len(s) {
		if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
			return byte(n), 3, true
		}
	}
	return s[i], 1, false
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func escape(b []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	return append(b, '%', digits[c>>4], digits[c&15])
}

// resolve collapses slashes and resolves dot segments, in that order, as servers do that merge slashes. It begins with a slash, and
// ends with one where the path leads to a directory.
func resolve(path string) string {
	if path == "" {
		return "/"
	}
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") {
		return path
	}
	b := make([]byte, 0, len(path))
	open := true // the path ends at a directory
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "", ".":
			open = true
		case "..":
			b = b[:max(lastSlash(b), 0)]
			open = true
		default:
			b = append(b, '/')
			b = append(b, segment...)
			open = false
		}
	}
	if open {
		b = append(b, '/')
	}
	return string(b)
}

func lastSlash(b []byte) int {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] == '/' {
			return i
		}
	}
	return -1
}
