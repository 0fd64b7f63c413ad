package httpapi

import "qm/access"

// blanked are the members of a room that a shared link does not show, with what stands in their place: an internal address, origin
// allowlists and URL rules (seed 004, redacted_shape).
var blanked = map[string]string{"proxyOrigin": "null", "returnOrigins": "[]", "tagOrigins": "null", "urlPatterns": "[]"}

// shownTo is a room's JSON as an actor may see it.
func shownTo(a access.Actor, room []byte) []byte {
	if a.Role > access.Monitor {
		return room
	}
	o, err := parseObject(room)
	if err != nil {
		return []byte("{}") // rather nothing than too much
	}
	b := append(make([]byte, 0, len(room)+32), `{"redacted":true`...)
	for _, m := range o {
		b = appendMember(b, m.name)
		if blank, ok := blanked[m.name]; ok {
			b = append(b, blank...)
		} else {
			b = append(b, m.raw...)
		}
	}
	return append(b, '}')
}

// redactFor is shownTo for a listing.
func redactFor(a access.Actor, list []roomStats) {
	if a.Role > access.Monitor {
		return
	}
	for i := range list {
		list[i].json = shownTo(a, list[i].json)
	}
}
