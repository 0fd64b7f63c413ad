package httpapi

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"qm/access"
	"qm/access/scope"
	"qm/engine/room"
)

// inspect makes the report of the installation that a request describes, and remembers that it was asked for.
//
// A public report says nothing that the room's other public answers do not say: whether one origin is allowed shows in the CORS headers of
// a check, the rules are in /api/targeting, the state in /api/rooms/:id. Lists of origins, the target and this server's own configuration are
// for who shows the Public API key.
func (s *Server) inspect(x *exchange) (*report, error) {
	if err := s.allow(x, s.checks); err != nil {
		return nil, err
	}
	in, err := installOf(x)
	if err != nil {
		return nil, err
	}
	r := &report{install: in}
	if err := s.inspectKey(x, r); err != nil {
		return nil, err
	}
	sum, _, err := s.summary(x.r.Context(), in.roomID)
	exists := !isNoRoom(err)
	if err != nil && exists {
		return nil, err
	}
	if exists {
		r.add("room", good, "The room exists.", "", "")
		r.inspectState(&sum)
		r.inspectTarget(&sum)
		r.inspectOrigin(&sum)
		r.inspectPage(s.rulesOf(x, in.roomID, &sum))
	} else {
		r.add("room", bad, "There is no such room.", "Until there is one, the door lets everybody pass.",
			"Create the room in the console, or correct the room id in the connector's configuration.")
	}
	r.inspectTransport(s.base(x.r))
	r.inspectServer(s)
	r.inspectConnector(s.base(x.r))
	switch {
	case x.head:
	case !exists:
		s.checkins.forget(in.roomID)
	default:
		s.checkins.note(r, sum.Generation, room.Instant(x.ms()))
	}
	return r, nil
}

// inspectKey checks the credential that came along, and makes the report privileged by a good one. A wrong key counts as one anywhere
// else does, and who has shown too many of them is refused before this one is read.
func (s *Server) inspectKey(x *exchange, r *report) error {
	if _, inQuery, _ := param(x.r.URL.RawQuery, "key"); inQuery {
		r.add("key_in_url", bad, "A key was sent in the address.",
			"Addresses end up in logs, histories and Referer headers. The key counted for nothing.",
			"Send it as Authorization: Bearer, and replace the key: take it for known.")
	}
	if len(x.r.Header["Authorization"]) == 0 {
		r.add("key", note, "No key was shown: this is the report that everybody may read.", "",
			"With Authorization: Bearer and the Public API key the key is checked, too, and the report says more.")
		return nil
	}
	err := s.o.Gate.Vouch(x.r, x.network, x.now)
	if denied := new(access.Refusal); errors.As(err, &denied) && denied.Code == access.CodeUnauthorized {
		r.add("key", bad, "The key is not the Public API key of this server.",
			"Checks that name a visitor's address with it are refused, and the visitors count as one.",
			"Compare the connector's key with PUBLIC_API_KEY of the server.")
		return nil
	}
	if err != nil {
		return err
	}
	r.install.keyed = true
	if s.o.Gate.VouchedByAdmin(x.r) {
		r.add("key", warning, "The key is the admin key.", "It may delete rooms. A site needs none but the Public API key.",
			"Set PUBLIC_API_KEY on the server and give the connector that one.")
		return nil
	}
	r.add("key", good, "The key is the Public API key of this server.", "", "")
	return nil
}

// inspectState says what visitors meet now.
func (r *report) inspectState(sum *room.Summary) {
	switch {
	case sum.Mode == room.Bypass:
		r.add("state", warning, "The room is in bypass: everybody passes.", "", "Set the room active before the event.")
	case sum.Mode == room.Idle:
		r.add("state", warning, "The room is closed: everybody passes.", "", "Set the room active before the event.")
	case sum.Mode == room.Paused:
		r.add("state", warning, "The room is paused: visitors wait, and nobody is let in.", "", "Set the room active when the site is ready.")
	case sum.Scheduled():
		r.add("state", note, "The room opens at a set time: until then visitors wait for the draw.",
			time.UnixMilli(int64(sum.OpensAt)).UTC().Format(time.RFC3339), "")
	default:
		r.add("state", good, "The room is active.", "", "")
	}
}

// inspectTarget checks where a visitor is sent whose turn has come.
func (r *report) inspectTarget(sum *room.Summary) {
	target := originOf(sum.Settings.TargetURL)
	told := ""
	if r.install.keyed {
		told = sum.Settings.TargetURL
	}
	switch {
	case target == "":
		r.add("target", bad, "The room has no address to send visitors to.", told, "Set the room's targetUrl.")
	case strings.HasPrefix(target, "http:") && !loopback(target):
		r.add("target", warning, "The room sends visitors to an address without TLS.", told, "Set the room's targetUrl to https.")
	default:
		r.add("target", good, "The room has an address to send visitors to.", told, "")
	}
}

// serverSide reports a connector that asks from the site's own server, where no browser's origin policy holds.
func (in *install) serverSide() bool {
	return in.connector != "" && in.connector != "snippet" && in.connector != "gtm"
}

// inspectOrigin checks the two lists of origins: who may read a door check, and where visitors may be sent back to.
func (r *report) inspectOrigin(sum *room.Summary) {
	in := &r.install
	switch {
	case !in.given:
		r.add("origin", note, "No site was named.", "", "Ask with url= or origin= to have the site checked.")
		return
	case in.origin == "":
		r.add("origin", bad, "The site's address is no http or https address.", "", "Give it as https://shop.example.")
		return
	}
	set := sum.Settings
	tags, returns := "", ""
	if in.keyed {
		list := set.TagOrigins
		if list == nil {
			list = set.ReturnOrigins
		}
		tags = "Allowed: " + strings.Join(withTarget(list, set), ", ")
		returns = "Allowed: " + strings.Join(withTarget(set.ReturnOrigins, set), ", ")
	}
	switch {
	case tagOrigin(set, in.origin):
		r.add("origin", good, "Pages of this site may ask at the door.", tags, "")
	case in.serverSide():
		r.add("origin", note, "Scripts on pages of this site may not ask at the door; a connector on its server does not need them to.", tags, "")
	default:
		r.add("origin", bad, "Pages of this site may not ask at the door: its visitors are not queued.", tags,
			"Add the site's origin to the room's tagOrigins.")
	}
	if slices.Contains(withTarget(set.ReturnOrigins, set), in.origin) {
		r.add("return", good, "Visitors may be sent back to this site.", returns, "")
	} else {
		r.add("return", warning, "Visitors who come from this site are sent to the room's own target, not back to the page they wanted.", returns,
			"Add the site's origin to the room's returnOrigins.")
	}
}

// withTarget is a list of origins with the target's, which is always on it (seed 004, returnOrigins).
func withTarget(list []string, set *room.Settings) []string {
	target := originOf(set.TargetURL)
	if target == "" || slices.Contains(list, target) {
		return list
	}
	return append([]string{target}, list...)
}

// inspectPage checks whether the page belongs to the room, and says by which rule.
func (r *report) inspectPage(rules *scope.Rules) {
	u, readable := scope.Normalise(r.install.page)
	switch {
	case r.install.page == "" && rules.Len() == 0:
		r.add("scope", good, "The room has no rules: every page that asks is queued.", "", "")
		return
	case r.install.page == "":
		r.add("scope", note, "The room has rules, and no page was named.", "", "Ask with url= to have a page checked.")
		return
	case !readable:
		r.add("scope", bad, "The page's address cannot be read: such a page queues, whatever the rules say.", "",
			"Give the whole address, as https://shop.example/sale.")
		return
	case rules.Len() == 0:
		r.add("scope", good, "The room has no rules: the page is queued.", "", "")
		return
	}
	v := rules.Decide(u)
	why := "No rule names it."
	if v.Rule >= 0 {
		why = "Decided by the rule " + rules.Pattern(v.Rule)
	}
	switch v.Scope {
	case scope.In:
		r.add("scope", good, "The page is queued.", why, "")
	case scope.Out:
		r.add("scope", warning, "The page is outside the room: its visitors are not queued.", why, "If it should be, add a rule to the room's urlPatterns.")
	default:
		r.add("scope", warning, "Whether the page belongs to the room cannot be told: it queues.", why, "Give the page's address with its origin.")
	}
}

// inspectTransport checks what lies between page, waiting room and browser: encryption, and whose cookies are whose.
func (r *report) inspectTransport(base string) {
	in := &r.install
	server := originOf(base)
	plainServer := strings.HasPrefix(server, "http:") && !loopback(server)
	plainPage := strings.HasPrefix(in.origin, "http:") && !loopback(in.origin)
	const mend = "Serve the waiting room over https, and set PUBLIC_URL, or TRUSTED_PROXIES where a proxy ends TLS."
	switch {
	case plainServer && strings.HasPrefix(in.origin, "https:"):
		as := bad
		if in.serverSide() {
			as = warning // no browser stands between them, and visitors' cookies still travel in the clear
		}
		r.add("https", as, "The site is encrypted and the waiting room is not: browsers refuse to let the one ask the other.", "", mend)
	case plainServer:
		r.add("https", warning, "The waiting room is not encrypted: places can be read on the way.", "", mend)
	case plainPage:
		r.add("https", warning, "The site is not encrypted: what a visitor holds can be read on the way.", "", "Serve the site over https.")
	default:
		r.add("https", good, "Nothing travels unencrypted.", "", "")
	}
	if in.origin == "" {
		return
	}
	if site := siteOf(in.origin); site != "" && site == siteOf(server) {
		r.add("cookies", good, "Site and waiting room are one site to a browser: their cookies are first-party.", "", "")
		return
	}
	r.add("cookies", note, "Site and waiting room are two sites to a browser.",
		"A pass crosses over as a code that works once, so that nothing rests on third-party cookies.", "")
}

// loopback reports an origin on the browser's own machine, which browsers trust without TLS.
func loopback(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	host := u.Hostname()
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// siteOf is what browsers take for one site: the scheme and the registrable domain; "" for none.
func siteOf(origin string) string {
	u, err := url.Parse(origin)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	host := u.Hostname()
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		host = domain
	}
	return u.Scheme + "://" + host
}

// inspectServer checks this server: whether it can take places now, and whether it knows its own address.
func (r *report) inspectServer(s *Server) {
	if s.o.Engine.Health().Ready && !s.stopping() {
		r.add("server", good, "The server can take places.", "", "")
	} else {
		r.add("server", warning, "The server cannot take places at the moment.", "", "See /api/health, and try again.")
	}
	if !r.install.keyed {
		return
	}
	if s.o.PublicURL == "" {
		r.add("public_url", warning, "The server does not know its own address: it takes the one that each request names.", "",
			"Set PUBLIC_URL to the address that visitors reach.")
		return
	}
	r.add("public_url", good, "The server knows its own address.", s.o.PublicURL, "")
}

// inspectConnector checks whether the connector is one that this server hands out, and as new.
func (r *report) inspectConnector(base string) {
	in := &r.install
	if in.connector == "" {
		return
	}
	c, known := handoutOf(in.connector)
	if !known {
		r.add("connector", note, "This server hands out no connector of that name.", "", "")
		return
	}
	newest := "The newest is " + c.version + "."
	order, ok := compareVersions(in.version, c.version)
	switch {
	case !ok:
		r.add("connector", note, "The connector does not say which version it is.", newest, "")
	case order < 0:
		r.add("connector", warning, "There is a newer version of the connector.", newest, c.fill(c.upgrade, base, in.roomID))
	case order > 0:
		r.add("connector", note, "The connector is newer than this server.", newest, "")
	default:
		r.add("connector", good, "The connector is the newest.", "", "")
	}
}

// compareVersions says which of two versions MAJOR.MINOR.PATCH is the older one, as slices.Compare does; ok is false when one is none.
func compareVersions(a, b string) (order int, ok bool) {
	x, xok := parseVersion(a)
	y, yok := parseVersion(b)
	return slices.Compare(x, y), xok && yok
}

func parseVersion(s string) (parts []uint64, ok bool) {
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return nil, false
		}
		parts = append(parts, n)
	}
	return parts, len(parts) == 3
}
