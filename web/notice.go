package web

import (
	"io"
	"net/http"
)

// Notice is why there is no line to show.
type Notice string

// The notices, each with its page.
const (
	NoticeMissing Notice = "missing"  // there never was such a room, as far as anyone knows
	NoticeGone    Notice = "gone"     // the room was closed or deleted
	NoticeRefused Notice = "refused"  // blocked_by_protection
	NoticeTooMany Notice = "toomany"  // queue_identity_limit, prequeue_identity_limit
	NoticeBusy    Notice = "busy"     // rate_limited
	NoticeFull    Notice = "linefull" // prequeue_full
	NoticeBackend Notice = "backend"  // storage_unavailable
	NoticeFault   Notice = "fault"    // anything else that is our fault
)

// Status is the HTTP status that belongs to a notice.
func (n Notice) Status() int {
	switch n {
	case NoticeMissing:
		return http.StatusNotFound
	case NoticeGone:
		return http.StatusGone
	case NoticeRefused:
		return http.StatusForbidden
	case NoticeTooMany, NoticeBusy:
		return http.StatusTooManyRequests
	case NoticeFull, NoticeBackend:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// NoticePage is a page that explains why there is no line here. It needs no
// JavaScript.
type NoticePage struct {
	Notice   Notice // anything unknown reads as NoticeFault
	BasePath string
	RoomName string // may be empty
	Branding Branding
	Locale   string
	Ref      string // a reference for support, may be empty
	// ScriptsOff: the page's script did not run, and with it the answer may be another.
	ScriptsOff bool
	// RetryURL is where "try again" leads; "" is the same address.
	RetryURL string
	// ReturnURL is the qm_return of the page's address, whatever it is worth:
	// it only leads to this page again, in another language.
	ReturnURL string
	// SiteURL is where the site itself is, for whom it is open now; "" for none.
	SiteURL string
	// RetryAfterSec > 0: the page looks again by itself after so many seconds.
	RetryAfterSec int
}

// NotFoundPage is what an address without a room shows.
func NotFoundPage(locale string) NoticePage {
	return NoticePage{Notice: NoticeMissing, Locale: locale}
}

// RenderNotice writes the page of p. Send it with p.Notice.Status(), as
// text/html, no-store, with Policy(p.Branding).
func RenderNotice(w io.Writer, p NoticePage) error {
	if p.Notice.Status() == http.StatusInternalServerError {
		p.Notice = NoticeFault
	}
	v := struct {
		view
		Page  NoticePage
		Retry int
		Offer bool
	}{
		view:  newView(p.Locale, p.BasePath, string(p.Notice), p.RoomName, p.Branding),
		Page:  p,
		Retry: p.RetryAfterSec,
		// No use in asking again where the answer stays the same.
		Offer: p.ScriptsOff || p.Notice != NoticeGone && p.Notice != NoticeRefused && p.Notice != NoticeMissing,
	}
	if v.Brand == "" {
		v.Brand = "Queue Manager"
	}
	v.Title = v.Say(v.HeadKey())
	v.Languages = v.languageLinks(p.ReturnURL)
	return pages.ExecuteTemplate(w, "notice.html", v)
}

// DemoPage is the page behind the demo room (QM_DEMO): where a shop would be.
type DemoPage struct {
	BasePath         string
	RoomID, RoomName string
	Branding         Branding
	Locale           string
	// WaitURL is the room's line; "" is /w/<RoomID>.
	WaitURL string
}

// DemoTarget writes the page of p. It takes qm_ parameters out of the address
// bar, and "wait again" gives the pass back by POST /api/v1/leave {roomId}
// before it goes to WaitURL.
func DemoTarget(w io.Writer, p DemoPage) error {
	if p.RoomName == "" {
		p.RoomName = p.RoomID
	}
	if p.WaitURL == "" {
		p.WaitURL = p.BasePath + "/w/" + p.RoomID
	}
	v := struct {
		view
		Page struct {
			DemoPage
			LeaveURL string
		}
		Lead string
	}{view: newView(p.Locale, p.BasePath, "in", p.RoomName, p.Branding)}
	v.Page.DemoPage, v.Page.LeaveURL = p, p.BasePath+"/api/v1/leave"
	v.Lead = v.Say("demo.p", "room", p.RoomName)
	return pages.ExecuteTemplate(w, "target.html", v)
}

// Console writes the operators' console. It is the same for everyone: what an
// operator may see comes from /api/admin after signing in. Send it as
// text/html, no-store, with ConsolePolicy().
func Console(w io.Writer) error {
	return pages.ExecuteTemplate(w, "console.html", newView("en", "", "", "", Branding{}))
}
