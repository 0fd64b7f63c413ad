package httpapi

import (
	"bytes"
	"net/http"
	"time"

	"qm/engine/room"
	"qm/web"
)

// waitingPage is /w/:roomId (seed 004). It takes a place by cookie, so that the page works without JavaScript (contract.md 9), shows
// what is known of it at the first paint, and moves on when it is the visitor's turn. HEAD takes nothing.
func (s *Server) waitingPage(x *exchange) error {
	id := x.id
	if !validRoomID(id) {
		return refuse("room_not_found")
	}
	ctx := x.r.Context()
	sum, _, err := s.summary(ctx, id)
	if err != nil {
		return err
	}
	page := web.WaitingPage{
		RoomID: id, RoomName: nameOf(sum.Settings, id), Branding: brandingOf(sum.Settings), Drawn: sum.Proof != nil,
		Locale: s.locale(x),
	}
	if x.head {
		return s.page(x, page)
	}
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	f := &x.frame
	found := false
	for t := range cookiesOf(x.r.Header, placeCookie, id) {
		v, err := s.o.Keys.VerifyVisitor(t, id, x.now)
		if err != nil {
			continue
		}
		if err := s.look(ctx, f, v, x.now); err != nil {
			continue
		}
		if f.gone != "" {
			// A place known to have lapsed is treated as no token, and the page says why (seed 004, Visitor).
			switch f.gone {
			case "expired":
				page.Lapsed = "expired"
			case "reset", "room_reset":
				page.Lapsed = "reset"
			}
			continue
		}
		session := ""
		if f.passed && f.bypass && f.place.Ticket == 0 {
			found = true
			break
		}
		if session, err = s.owned(ctx, f, sessions(x.r.Header, id)); err == nil && session != "" {
			found = true
			break
		}
	}
	if found {
		page.Lapsed = "" // another cookie's place: nothing was lost
		if err := s.tell(x, f); err != nil {
			return err
		}
	} else {
		if err := s.allowNetwork(x, s.joins, x.network); err != nil {
			return err
		}
		if err := s.take(x, id, "", func() error { return nil }); err != nil {
			return err
		}
	}
	if f.passed {
		x.redirect(f.door)
		return nil
	}
	page.First = firstFrame(f, x.now)
	return s.page(x, page)
}

// firstFrame is what the page shows before its script has asked for anything.
func firstFrame(f *frame, now time.Time) web.Frame {
	sum := &f.sum
	first := web.Frame{State: stateOf(sum), Now: now, Scheduled: sum.Scheduled(), PreCount: int64(sum.PreQueue)}
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
	}
	return first
}

func brandingOf(set *room.Settings) web.Branding {
	b := web.Branding{Name: set.Branding.Name, LogoURL: set.Branding.LogoURL, Accent: set.Branding.Color, Message: set.Branding.Message}
	if set.Branding.MessageAt != 0 {
		b.MessageAt = time.UnixMilli(int64(set.Branding.MessageAt))
	}
	return b
}

func (s *Server) page(x *exchange, p web.WaitingPage) error {
	var out bytes.Buffer
	if err := web.Waiting(&out, p); err != nil {
		return err
	}
	x.html(http.StatusOK, web.Policy(p.Branding), out.Bytes())
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
	"rate_limited": web.NoticeBusy, "busy": web.NoticeBusy, "prequeue_full": web.NoticeFull, "room_full": web.NoticeFull,
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
	page := web.NoticePage{Notice: n, Locale: s.locale(x)}
	v := Codes[p.Code]
	if v.Retry > 0 {
		page.RetryAfterSec = max(v.Retry, p.After)
		x.w.Header().Set("Retry-After", itoa(page.RetryAfterSec))
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
	x.html(http.StatusOK, web.Policy(web.Branding{}), out.Bytes())
	return nil
}

// asset serves a file of this build, which its name identifies by its content (seed 004, QM-467).
func (s *Server) asset(x *exchange) error {
	body, kind, ok := web.Asset(x.r.URL.Path)
	if !ok {
		return refuse("not_found")
	}
	h := x.w.Header()
	h.Set("Cache-Control", web.AssetCacheControl)
	h.Set("Content-Type", kind)
	h.Set("Content-Length", itoa(len(body)))
	x.status, x.wrote = http.StatusOK, true
	x.w.WriteHeader(http.StatusOK)
	if !x.head {
		_, _ = x.w.Write(body)
	}
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
	code, _, _ := param(x.r.URL.RawQuery, "qm_code")
	v, err := s.doorman(x, demoRoom, &sum, code)
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
