package httpapi

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"qm/access/token"
)

// The three cookies of a room (seed 004, Queue cookie scope).
const (
	placeCookie = "qm_"    // the visitor token
	ownerCookie = "qms_"   // the ownership session
	doorCookie  = "qm_dk_" // the door-session key, on an inline host
)

// cookies are the name and value of each cookie that the browser sent, in its order. A name may come more than once.
func cookies(h http.Header) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, line := range h["Cookie"] {
			for line != "" {
				var pair string
				pair, line, _ = strings.Cut(line, ";")
				name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
				if !ok {
					continue
				}
				if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
					value = value[1 : n-1]
				}
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

// cookiesOf are the values of prefix+roomID, in the browser's order.
func cookiesOf(h http.Header, prefix, roomID string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, value := range cookies(h) {
			if len(name) == len(prefix)+len(roomID) && name[:len(prefix)] == prefix && name[len(prefix):] == roomID && !yield(value) {
				return
			}
		}
	}
}

// sessions are the well-formed ownership sessions that the browser shows for a room. Usually there is one or none; there are
// several when a site above this one has set cookies of the same name, and then the one that owns the place counts (contract.md 6).
func sessions(h http.Header, roomID string) []string {
	var found []string
	for s := range cookiesOf(h, ownerCookie, roomID) {
		if token.ValidSession(s) && !slices.Contains(found, s) && len(found) < 4 {
			found = append(found, s)
		}
	}
	return found
}

// setPlace sets the token and the ownership session of a room, and keeps the number of rooms with cookies in this browser at
// the cap (seed 004, QM-504). An empty visitor token sets the session alone: the place may be known by it on a retry.
func (s *Server) setPlace(x *exchange, roomID, visitor, session string) {
	if x.head || x.wrote {
		return
	}
	secure := s.secure(x.r)
	if visitor != "" {
		s.setCookie(x, placeCookie+roomID, visitor, s.o.CookieMaxAgeSec, false, secure)
	}
	if session != "" {
		s.setCookie(x, ownerCookie+roomID, session, s.o.CookieMaxAgeSec, true, secure)
	}
	for _, name := range s.tooMany(x, roomID) {
		s.setCookie(x, name, "", -1, strings.HasPrefix(name, ownerCookie) || strings.HasPrefix(name, doorCookie), secure)
	}
}

// setCookie sets a cookie; a negative age expires it.
func (s *Server) setCookie(x *exchange, name, value string, ageSec int, hidden, secure bool) {
	b := make([]byte, 0, 96+len(name)+len(value))
	b = append(b, name...)
	b = append(b, '=')
	b = append(b, value...)
	b = append(b, "; Path=/; Max-Age="...)
	b = strconv.AppendInt(b, int64(max(ageSec, 0)), 10)
	if hidden {
		b = append(b, "; HttpOnly"...)
	}
	if secure {
		b = append(b, "; Secure"...)
	}
	b = append(b, "; SameSite=Lax"...)
	h := x.w.Header()
	h["Set-Cookie"] = append(h["Set-Cookie"], string(b))
}

// maxExpired is how many cookies one answer expires at most. No browser that only we have given cookies holds so many too many; the
// rest of what somebody planted goes with the next answers, because proxies refuse an answer whose head is larger than a page or two.
const maxExpired = 32

// tooMany lists the cookies that have to go so that setting roomID's stays within the cap: those of the rooms whose tokens are
// the oldest. A room without a genuine token counts as the oldest of all.
func (s *Server) tooMany(x *exchange, roomID string) []string {
	type held struct {
		room   string
		issued int64
		names  []string
	}
	var rooms []held
	known := make(map[string]int) // where a room is in rooms
	for name, value := range cookies(x.r.Header) {
		var id string
		switch {
		case strings.HasPrefix(name, doorCookie):
			id = name[len(doorCookie):]
		case strings.HasPrefix(name, placeCookie):
			id = name[len(placeCookie):]
		case strings.HasPrefix(name, ownerCookie):
			id = name[len(ownerCookie):]
		default:
			continue
		}
		if !validRoomID(id) || id == roomID {
			continue
		}
		i, ok := known[id]
		if !ok {
			i = len(rooms)
			known[id] = i
			rooms = append(rooms, held{room: id})
		}
		if !slices.Contains(rooms[i].names, name) {
			rooms[i].names = append(rooms[i].names, name)
		}
		if strings.HasPrefix(name, placeCookie) {
			if v, err := s.o.Keys.VerifyVisitor(value, id, x.now); err == nil {
				rooms[i].issued = max(rooms[i].issued, v.IssuedAt)
			}
		}
	}
	over := len(rooms) + 1 - s.o.RoomCookieCap
	if over <= 0 {
		return nil
	}
	slices.SortStableFunc(rooms, func(a, b held) int { return cmp.Compare(a.issued, b.issued) })
	var gone []string
	for _, r := range rooms[:min(over, len(rooms))] {
		if len(gone)+len(r.names) > maxExpired {
			break
		}
		gone = append(gone, r.names...)
	}
	return gone
}

// validRoomID is contract.md, answer 1.
func validRoomID(id string) bool {
	if len(id) < 3 || len(id) > 64 || id[0] == '-' || id[len(id)-1] == '-' {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
