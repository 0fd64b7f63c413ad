package httpapi

import (
	"net/url"
	"strings"
)

// param finds a query parameter without making a map of all of them. conflict: it is given more than once, with different values
// (contract.md 6). A value whose escapes are broken comes out as it stands: no rule takes it for a good one.
func param(raw, name string) (value string, ok, conflict bool) {
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		key, v, _ := strings.Cut(pair, "=")
		if key != name && (!escaped(key) || unescape(key) != name) {
			continue
		}
		v = unescape(v)
		if ok && v != value {
			return value, true, true
		}
		value, ok = v, true
	}
	return value, ok, false
}

// single is a parameter that counts as absent, "", when it contradicts itself (contract.md 6): of two credentials neither is believed.
func single(raw, name string) string {
	value, _, conflict := param(raw, name)
	if conflict {
		return ""
	}
	return value
}

// escaped looks for two bytes one after the other, which is many times faster than strings.ContainsAny on a token.
func escaped(s string) bool { return strings.IndexByte(s, '%') >= 0 || strings.IndexByte(s, '+') >= 0 }

func unescape(s string) string {
	if !escaped(s) {
		return s
	}
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// query is a parameter of a route that refuses conflicting ones.
func (x *exchange) query(name string) (value string, ok bool, err error) {
	value, ok, conflict := param(x.r.URL.RawQuery, name)
	if conflict {
		return "", false, refuseField("duplicate_parameter", name, "")
	}
	return value, ok, nil
}
