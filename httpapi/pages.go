package httpapi

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"qm/engine/room"
	"qm/web"
)

// waitingPage is /w/:roomId (seed 004). It takes a place by cookie, so that the page works without JavaScript (contract.md 9), shows
// what is known of it at the first paint, and moves on when it is the visitor's turn. HEAD takes nothing. While the room cannot be
// asked, the page says so, takes no place, and tries again by itself.
func (s *Server) waitingPage(x *exchange) error {
	id := x.id
	if !validRoomID(id) {
		return refuse("room_not_found")
	}
	page := web.WaitingPage{RoomID: id, Locale: s.locale(x), Mail: s.o.Turns != nil}
	sum, _, err := s.summary(x.r.Context(), id)
	if err != nil {
		return s.retryPage(x, page, err)
	}
	page.RoomName, page.Branding, page.Drawn = nameOf(sum.Settings, id), brandingOf(sum.Settings), sum.Proof != nil
	page.ReturnURL, page.SiteURL = returnURL(sum.Settings, x.wanted()), siteURL(sum.Settings, x.wanted())
	if x.head {
		return s.page(x, http.StatusOK, page)
	}
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	f := &x.frame
	found, dead, err := s.seat(x, f, &page)
	plain, _, _ := x.query(plainParam)
	if err == nil && !found && plain == "" && sum.Settings.Protection.Scores() && sum.Mode != room.Bypass {
		// The page's script asks for the place, and says what it sees; where none runs, the page asks again by itself.
		s.client(x)
		page.Stamp = s.o.Keys.Stamp(id, x.network.Append(nil), x.now)
		page.RefreshURL = withQuery(x.r.URL, plainParam, "1")
		return s.page(x, http.StatusOK, page)
	}
	if err == nil && !found {
		if err := s.allowNetwork(x, s.joins, x.network); err != nil {
			return err
		}
		// The dead token goes along: what is filed against it follows the visitor to the new place (seed 004, Visitor).
		err = s.take(x, id, dead, x.wanted(), knock{plain: plain != ""}, func() error { return nil })
	}
	if err != nil {
		return s.retryPage(x, page, err)
	}
	if f.passed && s.hop(x) {
		x.redirect(f.door)
		return nil
	}
	page.First, page.Ref = firstFrame(f, x.now), f.ref
	if f.told != nil {
		page.MailTo = f.told.EmailMasked
	}
	return s.page(x, http.StatusOK, page)
}

// plainParam marks the second look of a page whose script did not run (contract.md 9).
const plainParam = "plain"

// withQuery is the path and query of u with a parameter set, or without it where value is "". What else the query has stays as it came,
// byte for byte: net/url would drop what it cannot read, as an address to go back to that has a semicolon in it.
func withQuery(u *url.URL, name, value string) string {
	var kept []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		if key, _, _ := strings.Cut(pair, "="); pair != "" && unescape(key) != name {
			kept = append(kept, pair)
		}
	}
	if value != "" {
		kept = append(kept, name+"="+url.QueryEscape(value))
	}
	if len(kept) == 0 {
		return u.EscapedPath()
	}
	return u.EscapedPath() + "?" + strings.Join(kept, "&")
}

// seat finds the place that the browser holds already, and leaves it in f. A place known to have lapsed is none, and the page says why
// (seed 004, Visitor); its token is dead.
func (s *Server) seat(x *exchange, f *frame, page *web.WaitingPage) (found bool, dead string, err error) {
	for t := range cookiesOf(x.r.Header, placeCookie, x.id) {
		v, err := s.o.Keys.VerifyVisitor(t, x.id, x.now)
		if err != nil {
			continue
		}
		if err := s.look(x.r.Context(), f, v, x.now); err != nil {
			continue
		}
		switch f.gone {
		case "":
			owner, session := f.passed && f.bypass && f.place.Ticket == 0, "" // who passes while the queue is off holds nothing to be owned
			if !owner {
				session, err = s.owned(x.r.Context(), f, sessions(x.r.Header, x.id))
				owner = err == nil && session != ""
			}
			if owner {
				page.Lapsed = "" // another cookie's place: nothing was lost
				f.wanted = x.wanted()
				if err := s.tell(x, f); err != nil {
					return false, "", err
				}
				f.ref = s.o.Keys.ShortCode(f.holds())
				s.recall(x, f, t, session, false)
				return true, "", nil
			}
		case "expired":
			page.Lapsed, dead = "expired", t
		case "reset", "room_reset":
			page.Lapsed, dead = "reset", t
		}
	}
	return false, dead, nil
}

// comesBack are the refusals after which the same page may do better in a while: the server is there, and the room is not.
var comesBack = map[string]bool{
	"storage_unavailable": true, "busy": true, "not_owner": true, "room_damaged": true, "draw_under_way": true, "shutting_down": true,
}

// retryPage answers an error with the waiting page in retry mode (seed 004, onBackendDown: 503 and Retry-After, no place taken) when
// the room will be back. Any other error is returned.
func (s *Server) retryPage(x *exchange, page web.WaitingPage, err error) error {
	p, ok := problemOf(err)
	if !ok || !comesBack[p.Code] {
		return err
	}
	page.Retry, page.Lapsed = true, ""
	page.PollSeconds = max(5, Codes[p.Code].Retry, p.After)
	x.code = p.Code
	x.w.Header().Set("Retry-After", itoa(page.PollSeconds))
	return s.page(x, http.StatusServiceUnavailable, page)
}

// Of a browser that is sent on by redirect more than maxHops times in hopSec seconds, somebody sends it back each time: it is shown the
// page, which says that it is its turn and has a button.
const (
	hopCookie = "qmhops"
	maxHops   = 3
	hopSec    = 60
)

// hop counts the redirects of a browser, and reports whether one more may follow.
func (s *Server) hop(x *exchange) bool {
	hops := 0
	if c, err := x.r.Cookie(hopCookie); err == nil {
		hops, _ = strconv.Atoi(c.Value)
	}
	if hops >= maxHops {
		return false
	}
	s.setCookie(x, hopCookie, itoa(max(hops, 0)+1), hopSec, true, s.secure(x.r))
	return true
}

// siteURL is where somebody goes for whom there is no line: the page that they wanted, or the room's target.
func siteURL(set *room.Settings, wanted string) string {
	if back := returnURL(set, wanted); back != "" {
		return back
	}
	return set.TargetURL
}

// firstFrame is what the page shows before its script has asked for anything.
func firstFrame(f *frame, now time.Time) web.Frame {
	sum := &f.sum
	first := web.Frame{State: stateOf(sum), Now: now, Scheduled: sum.Scheduled(), PreCount: int64(sum.PreQueue)}
	if f.passed {
		first.Passed, first.RedirectURL, first.ExpiresInSec = true, f.door, int(f.leftSec)
		return first
	}
	if sum.OpensAt != 0 {
		first.OpensAt = time.UnixMilli(int64(sum.OpensAt))
	}
	if f.place.Status == room.Enqueued || f.unseen && f.visitor.PreQueued() {
		return first
	}
	ahead := int64(f.place.Ahead)
	if f.unseen {
		ahead = int64(sum.Waiting)
	}
	position := ahead + 1
	first.Position, first.Ahead = &position, &ahead
	if eta, ok := sum.ETA(int(ahead), room.Instant(now.UnixMilli())); ok && !f.place.Held {
		first.EtaSec = &eta
	}
	switch {
	case first.State != string(room.Active):
	case f.place.Held:
		first.State = "held"
	case full(sum):
		first.State = "full"
	case f.visitor.PreQueued():
		first.State = "drawn" // the token that was shown names an entry, and the place is a ticket
	}
	return first
}

func brandingOf(set *room.Settings) web.Branding {
	b := web.Branding{Name: set.Branding.Name, LogoURL: set.Branding.LogoURL, Accent: set.Branding.Color, Background: set.Branding.Background, Message: set.Branding.Message}
	if set.Branding.MessageAt != 0 {
		b.MessageAt = time.UnixMilli(int64(set.Branding.MessageAt))
	}
	return b
}

func (s *Server) page(x *exchange, status int, p web.WaitingPage) error {
	var out bytes.Buffer
	if err := web.Waiting(&out, p); err != nil {
		return err
	}
	x.html(status, web.Policy(p.Branding), out.Bytes())
	return nil
}

func (x *exchange) html(status int, policy string, body []byte) {
	h := x.w.Header()
	h["Content-Type"] = valueHTML
	h["Referrer-Policy"] = valueNoRefer
	h.Set("Content-Security-Policy", policy)
	x.buf = append(x.buf[:0], body...)
	x.send(status)
}

// noticeOf is the page of a refusal.
var noticeOf = map[string]web.Notice{
	"room_not_found": web.NoticeMissing, "not_found": web.NoticeMissing, "room_idle": web.NoticeGone,
	"blocked_by_protection": web.NoticeRefused, "queue_identity_limit": web.NoticeTooMany, "prequeue_identity_limit": web.NoticeTooMany,
	"rate_limited": web.NoticeBusy, "busy": web.NoticeBusy, "over_capacity": web.NoticeBusy, "prequeue_full": web.NoticeFull, "room_full": web.NoticeFull,
	"storage_unavailable": web.NoticeBackend, "not_owner": web.NoticeBackend, "room_damaged": web.NoticeBackend,
	"draw_under_way": web.NoticeBackend, "shutting_down": web.NoticeBackend,
}

// locale is the language of a page: ?lang=, or what was chosen before, or what the browser prefers. A choice is kept for a year
// in a cookie that holds the language alone.
func (s *Server) locale(x *exchange) string {
	lang, _, _ := param(x.r.URL.RawQuery, "lang")
	remembered := ""
	if c, err := x.r.Cookie(web.LocaleCookie); err == nil {
		remembered = c.Value
	}
	l := web.MatchLocale(x.r.Header.Get("Accept-Language"), lang, remembered)
	h := x.w.Header()
	h.Set("Content-Language", l)
	if lang != "" && lang == l && l != remembered && !x.head {
		s.setCookie(x, web.LocaleCookie, l, 365*24*3600, false, s.secure(x.r))
	}
	return l
}

// notice words a refusal as a page.
func (s *Server) notice(x *exchange, p *Problem) {
	n, ok := noticeOf[p.Code]
	if !ok || x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		p.write(x)
		return
	}
	page := web.NoticePage{Notice: n, Locale: s.locale(x), ReturnURL: x.wanted()}
	v := Codes[p.Code]
	if v.Retry > 0 {
		page.RetryAfterSec = max(v.Retry, p.After)
		x.w.Header().Set("Retry-After", itoa(page.RetryAfterSec))
	}
	if x.route != nil && (x.route.name == "waiting" || x.route.name == "draw") {
		s.roomNotice(x, &page)
	}
	var out bytes.Buffer
	if err := web.RenderNotice(&out, page); err != nil {
		s.o.Log.Error("render a notice", "code", p.Code, "err", err)
		p.write(x)
		return
	}
	x.code = p.Code
	x.html(v.Status, web.Policy(page.Branding), out.Bytes())
}

// goneAgainSec is how often a page looks whether a line that has ended is there again, in seconds.
const goneAgainSec = 30

// roomNotice adds what is known of the room that a notice is about, and which way is left.
func (s *Server) roomNotice(x *exchange, page *web.NoticePage) {
	sum, _, err := s.summary(x.r.Context(), x.id)
	if err == nil {
		page.RoomName, page.Branding = nameOf(sum.Settings, x.id), brandingOf(sum.Settings)
	}
	if page.Notice == web.NoticeRefused { // only the second look takes a place where somebody may be refused
		page.ScriptsOff, page.RetryURL = true, withQuery(x.r.URL, plainParam, "")
	}
	if page.Notice == web.NoticeMissing {
		for range cookiesOf(x.r.Header, placeCookie, x.id) {
			page.Notice = web.NoticeGone // this browser held a place: there was such a line
		}
	}
	if page.Notice == web.NoticeGone {
		page.RetryAfterSec = goneAgainSec // it may be made again
		if err == nil {
			page.SiteURL = siteURL(sum.Settings, page.ReturnURL) // closed: the site is open
		}
	}
}

// notFoundPage is what an address outside the API says when nothing is there.
func (s *Server) notFoundPage(x *exchange) error {
	x.head = x.r.Method == http.MethodHead
	s.notice(x, refuse("not_found"))
	return nil
}

// console is the operators' page.
func (s *Server) console(x *exchange) error {
	var out bytes.Buffer
	if err := web.Console(&out); err != nil {
		return err
	}
	x.html(http.StatusOK, web.ConsolePolicy(), out.Bytes())
	return nil
}

// demoRoom is the room that QM_DEMO sets up.
const demoRoom = "demo"

// demoTarget is the page behind the demo room: it lets in whoever has a hand-over code, as a connector on a shop would, and sends
// everybody else to the line.
func (s *Server) demoTarget(x *exchange) error {
	sum, _, err := s.summary(x.r.Context(), demoRoom)
	if err != nil {
		return err
	}
	v, err := s.doorman(x, demoRoom, &sum, single(x.r.URL.RawQuery, "qm_code"))
	if err != nil {
		return err
	}
	if !v.pass {
		x.redirect("/w/" + demoRoom)
		return nil
	}
	if v.sess != "" && !x.head {
		s.setCookie(x, doorCookie+demoRoom, v.sess, s.o.CookieMaxAgeSec, true, s.secure(x.r))
	}
	var out bytes.Buffer
	page := web.DemoPage{RoomID: demoRoom, RoomName: nameOf(sum.Settings, demoRoom), Branding: brandingOf(sum.Settings), Locale: s.locale(x)}
	if err := web.DemoTarget(&out, page); err != nil {
		return err
	}
	x.html(http.StatusOK, web.Policy(page.Branding), out.Bytes())
	return nil
}
