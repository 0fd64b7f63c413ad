package httpapi

import (
	"slices"
	"strings"

	"qm/engine/room"
)

// returnParam is where a visitor says which page they wanted: on the waiting page's address (seed 004, GET /w/:roomId), and on whatever
// the page asks, so that each redirectUrl leads there. A site sends /w/<room>?qm_return=<its whole address, percent-encoded>.
const returnParam = "qm_return"

// codeParam is what a redirectUrl carries beside the site's own parameters (contract.md 19).
const codeParam = "qm_code"

// maxReturn is how long a return address may be, in bytes: three times as long when percent-encoded, and a request's head has 32 KiB.
const maxReturn = 4096

// wanted is where the request says that its visitor wanted to go; "" for nowhere, or for two places at once.
func (x *exchange) wanted() string { return single(x.r.URL.RawQuery, returnParam) }

// returnURL is the address that a visitor asked to be brought back to, byte for byte, but for a hand-over code that was left in it;
// "" when the room's return policy refuses it. The policy is an exact origin out of returnOrigins, or the target's (seed 004): nothing
// that two readers could take for two addresses is let through, so that what we judged is where the browser goes.
func returnURL(set *room.Settings, wanted string) string {
	if len(wanted) > maxReturn {
		return ""
	}
	for i := range len(wanted) {
		if wanted[i] <= ' ' || wanted[i] >= 0x7f {
			return "" // a browser writes none of these into an address, drops some, and no header may carry them
		}
	}
	scheme, rest, ok := strings.Cut(wanted, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return ""
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	place := rest[len(authority):]
	path := place
	if i := strings.IndexAny(place, "?#"); i >= 0 {
		path = place[:i]
	}
	if strings.ContainsAny(authority, `@\%`) || strings.Contains(path, `\`) {
		return ""
	}
	origin := originOf(scheme + "://" + authority)
	if origin == "" || origin != originOf(set.TargetURL) && !slices.Contains(set.ReturnOrigins, origin) {
		return ""
	}
	return withoutCode(wanted)
}

// withoutCode takes hand-over codes out of an address, and leaves every other byte as it is. A site that hands on the address at which
// a visitor arrived would otherwise pile them up.
func withoutCode(address string) string {
	head, fragment, hasFragment := strings.Cut(address, "#")
	base, query, asked := strings.Cut(head, "?")
	if !asked || !strings.Contains(query, codeParam) {
		return address
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); name != codeParam {
			kept = append(kept, pair)
		}
	}
	if len(kept) > 0 {
		base += "?" + strings.Join(kept, "&")
	}
	if hasFragment {
		base += "#" + fragment
	}
	return base
}

// withCode adds a hand-over code to an address, before its fragment.
func withCode(address, code string) string {
	address, fragment, hasFragment := strings.Cut(address, "#")
	glue := "?"
	if strings.Contains(address, "?") {
		glue = "&"
	}
	address += glue + codeParam + "=" + code
	if hasFragment {
		address += "#" + fragment
	}
	return address
}
