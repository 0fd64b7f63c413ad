package connector

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// The rules of README.md that need no network: what to ask about a request, and what an answer means. Numbers are its sections'.

const (
	maxAddress = 4096 // of url= and qm_return, in bytes
	maxValue   = 1024 // of a key, a token or a code, in bytes
	maxAgent   = 512  // of agent=, in bytes
	maxFurther = 3    // keys, and tokens, that travel beside the first
)

// split takes the hand-over codes out of an address (2). The last one is the code, as it stands; had reports whether there was any.
func split(address string) (clean, code string, had bool) {
	before, query, asked := strings.Cut(address, "?")
	if !asked || !strings.Contains(query, "qm_code") {
		return address, "", false
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		name, value, ok := strings.Cut(pair, "=")
		if name == "qm_code" && ok {
			code, had = value, true
			continue
		}
		kept = append(kept, pair)
	}
	switch {
	case !had:
		return address, "", false
	case len(kept) == 0:
		return before, code, true
	}
	return before + "?" + strings.Join(kept, "&"), code, true
}

// counts reports whether a key, a token or a code is well formed (3).
func counts(value string) bool {
	if value == "" || len(value) > maxValue || value == "null" || value == "undefined" {
		return false
	}
	for i := range len(value) {
		c := value[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// shown are the values of a cookie that count, each once, in the browser's order (3).
func shown(h http.Header, name string) (values []string) {
	for _, line := range h["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			key, value, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
			if !ok || key != name {
				continue
			}
			if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
				value = value[1 : n-1]
			}
			if counts(value) && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	return values
}

// visit is a request as the visitor's browser made it.
type visit struct {
	method  string
	address string // scheme, host, path and query, byte for byte
	remote  string // the client's address; a port is let go
	header  http.Header
}

// question is what the queue is asked about a visit (4), and what it takes to act on the answer.
type question struct {
	*visit
	room   string
	clean  string
	had    bool // the address had a hand-over code
	key    string
	token  string
	query  string
	asking http.Header
}

// ask words the question about a visit.
func ask(v *visit, room, publicKey string) *question {
	q := &question{visit: v, room: room, asking: http.Header{}}
	var code string
	q.clean, code, q.had = split(v.address)
	keys, tokens := shown(v.header, keyCookie+room), shown(v.header, tokenCookie+room)
	if v.method == http.MethodHead {
		tokens, code = nil, ""
	}
	form := url.Values{"roomId": {room}}
	if len(q.clean) <= maxAddress {
		form.Set("url", q.clean)
	}
	var further []string
	for _, held := range []struct {
		name   string
		values []string
	}{{keyCookie + room, keys}, {tokenCookie + room, tokens}} {
		for i := 1; i < len(held.values) && i <= maxFurther; i++ {
			further = append(further, held.name+"="+held.values[i])
		}
	}
	if len(keys) > 0 {
		q.key = keys[0]
		q.asking.Set("X-QM-Session", q.key)
	}
	if len(tokens) > 0 {
		q.token = tokens[0]
		form.Set("token", q.token)
	}
	if further != nil {
		q.asking.Set("Cookie", strings.Join(further, "; "))
	}
	if c, err := url.QueryUnescape(code); err == nil && counts(c) {
		form.Set("code", c)
	}
	if addr, ok := addressOf(v.remote); ok && publicKey != "" {
		q.asking.Set("Authorization", "Bearer "+publicKey)
		form.Set("ip", addr)
		if agent := v.header.Get("User-Agent"); agent != "" {
			form.Set("agent", agent[:min(len(agent), maxAgent)])
		}
	}
	q.query = form.Encode()
	return q
}

// addressOf is a client's address as ip= takes it: no port, no zone, IPv4 where it is.
func addressOf(remote string) (string, bool) {
	if ap, err := netip.ParseAddrPort(remote); err == nil {
		return ap.Addr().Unmap().WithZone("").String(), true
	}
	a, err := netip.ParseAddr(remote)
	return a.Unmap().WithZone("").String(), err == nil
}

// answer is what the queue said, as far as it can be used (5, 6).
type answer struct {
	pass, clear   bool
	reason        string
	waiting       string // where the line is; "" when nothing usable was said
	key, newToken string // "" when none, or none that a cookie may hold
}

// understand reads the body of a 200; ok is false for what is no answer.
func understand(body []byte) (a answer, ok bool) {
	// Names are matched exactly, which encoding/json does for maps alone.
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return a, false
	}
	text := func(name string) (s string) {
		if json.Unmarshal(members[name], &s) != nil {
			return ""
		}
		return s
	}
	switch text("action") {
	case "pass":
		a.pass = true
	case "queue":
	default:
		return a, false
	}
	a.clear = string(members["clearToken"]) == "true"
	if a.reason = text("reason"); !reasonable(a.reason) {
		a.reason = "unspecified"
	}
	if w := text("waitingRoomUrl"); followable(w) {
		a.waiting = w
	}
	if v := text("sess"); counts(v) {
		a.key = v
	}
	if v := text("token"); counts(v) {
		a.newToken = v
	}
	return a, true
}

func reasonable(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// followable reports an absolute http or https address that a Location header may hold.
func followable(address string) bool {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") || rest == "" || strings.ContainsAny(rest[:1], "/?#") {
		return false
	}
	return !strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// withReturn is the waiting room's address with the way back in it (7).
func withReturn(waiting, back string) string {
	if len(back) > maxAddress {
		return waiting
	}
	waiting, fragment, has := strings.Cut(waiting, "#")
	glue := "?"
	if strings.Contains(waiting, "?") {
		glue = "&"
	}
	waiting += glue + "qm_return=" + url.QueryEscape(back)
	if has {
		waiting += "#" + fragment
	}
	return waiting
}

// page reports whether the visit is for a page, which a redirect may answer (7).
func (v *visit) page() bool {
	switch v.method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		return false
	}
	if mode := v.header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	accept := v.header["Accept"]
	return len(accept) == 0 || strings.Contains(strings.ToLower(strings.Join(accept, ",")), "text/html")
}

// secure reports whether the visitor's browser came over TLS.
func (v *visit) secure() bool {
	return len(v.address) > 6 && strings.EqualFold(v.address[:6], "https:")
}
