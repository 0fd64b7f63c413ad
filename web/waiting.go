package web

import (
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"time"
)

// WaitingPage is what /w/:roomId shows. Only RoomID is needed.
type WaitingPage struct {
	// BasePath precedes every address on the page: "" on the queue host,
	// "/__qm" on an inline host.
	BasePath string
	// RoomID is the room's id; RoomName its name, or else the id is shown.
	RoomID, RoomName string
	Branding         Branding
	// Locale is a language tag ("en", "en-GB"), as MatchLocale returns it; one
	// that is near none with sentences is English.
	Locale string
	// Lapsed says why the place that the visitor arrived with is none any more:
	// "expired" (their own entry window ran out), "reset" (our doing), or ""
	// when nothing was lost (seed 004, Visitor).
	Lapsed string
	// First is what the server knows when it answers: the whole page for a
	// visitor without JavaScript, the first paint for everyone else. With
	// First.State empty the page says that a place is being taken.
	First Frame
	// Ref is the short code that support resolves to this place, or "".
	Ref string
	// ReturnURL is a qm_return that the room's return policy let pass. The page
	// hands it to status and events as qm_return.
	ReturnURL string
	// SiteURL is where somebody goes for whom there is no line any more: the
	// site itself. "" when nobody knows.
	SiteURL string
	// RefreshURL is where a browser without JavaScript looks next; "" is the
	// same address. Every script-free look comes from such a refresh, so a
	// server may use it to tell those visitors apart (contract.md 9).
	RefreshURL string
	// PollSeconds is the polling cadence, 5 when zero.
	PollSeconds int
	// Stamp is what the page shows when it asks for a place in a room with
	// protection (package access/token), "" where nobody is judged. Its script
	// then adds what waiting-door.js says of the browser.
	Stamp string
	// Mail: the server mails visitors whose turn comes, so there is a box for an
	// address. It can be used when join has stated what is held; MailTo is what is
	// known of that at the first paint, an address as its owner may see it.
	Mail   bool
	MailTo string
	// Drawn says that this line began with a draw, so that the page explains
	// fairness by it and links its proof.
	Drawn bool
	// Retry: the server cannot take a place now (seed 004, onBackendDown). The
	// page says so, takes no place at once, and tries after PollSeconds.
	Retry bool
	// Still: the page is only looked at. It has no script and never looks again by itself.
	Still bool
}

// Frame is one answer about a place, with the names of /api/v1/status.
type Frame struct {
	// State is the room's state on the visitor's wire: "active" or "waiting",
	// "paused", "scheduled", "bypass"; also "held", "full", "drawing", "drawn"
	// (the place has just been drawn), or "".
	State string
	// Position is 1 for whoever is next; Ahead the people before. nil: none yet.
	Position, Ahead *int64
	// EtaSec is the wait in seconds; nil while nobody is let in.
	EtaSec *int64
	// Scheduled: the doors are shut until OpensAt. PreCount: who is here.
	Scheduled bool
	PreCount  int64
	// OpensAt and Now are instants of the server's clock.
	OpensAt, Now time.Time
	// Passed: it is this visitor's turn, RedirectURL is the door, and
	// ExpiresInSec what is left of the entry window (0: not said).
	Passed       bool
	RedirectURL  string
	ExpiresInSec int
}

// near is the place from which on a visitor is told to stay at hand.
const near = 10

// pageState is the state that the page draws; the same rule is in waiting.js.
func (p WaitingPage) pageState() string {
	f := p.First
	switch {
	case f.State == "bypass":
		return "bypass"
	case f.Passed:
		return "turn"
	case p.Retry:
		return "backend"
	case p.Lapsed == "expired", p.Lapsed == "reset":
		return p.Lapsed
	case f.State == "":
		return "joining"
	case f.Scheduled && f.Position != nil:
		return "shut"
	case f.Scheduled && f.OpensAt.After(f.Now):
		return "scheduled"
	case f.Scheduled:
		return "drawing"
	case f.State == "drawing", f.State == "drawn", f.State == "paused", f.State == "held":
		return f.State
	case f.Position != nil && *f.Position <= near:
		return "near"
	case f.State == "full":
		return "full"
	}
	return "waiting"
}

// waitingConfig becomes window.QM_CONFIG.
type waitingConfig struct {
	BasePath    string         `json:"basePath"`
	RoomID      string         `json:"roomId"`
	RoomName    string         `json:"roomName"`
	Branding    configBranding `json:"branding"`
	State       string         `json:"state"`
	Lapsed      string         `json:"lapsed,omitempty"`
	First       *configFrame   `json:"first,omitempty"`
	Ref         string         `json:"ref,omitempty"`
	ReturnURL   string         `json:"returnUrl,omitempty"`
	SiteURL     string         `json:"siteUrl,omitempty"`
	PollSeconds int            `json:"pollSeconds"`
	Drawn       bool           `json:"drawn,omitempty"`
	Retry       bool           `json:"retry,omitempty"`
	Stamp       string         `json:"stamp,omitempty"`
	WorkURL     string         `json:"workUrl"`
	Words       words          `json:"words"`
}

type configBranding struct {
	Name      string `json:"name,omitempty"`
	LogoURL   string `json:"logoUrl,omitempty"`
	Accent    string `json:"accent,omitempty"`
	Message   string `json:"message,omitempty"`
	MessageAt int64  `json:"messageAt,omitempty"`
}

type configFrame struct {
	State        string `json:"state"`
	Position     *int64 `json:"position"`
	Ahead        *int64 `json:"ahead"`
	EtaSec       *int64 `json:"etaSec"`
	Scheduled    bool   `json:"scheduled,omitempty"`
	PreCount     int64  `json:"preCount,omitempty"`
	OpensAt      int64  `json:"opensAt,omitempty"`
	Now          int64  `json:"now,omitempty"`
	Passed       bool   `json:"passed,omitempty"`
	RedirectURL  string `json:"redirectUrl,omitempty"`
	ExpiresInSec int    `json:"expiresInSec,omitempty"`
}

// Waiting writes the waiting page of p. Send it as text/html, no-store, with
// Policy(p.Branding). The module on it joins by itself.
//
// It asks POST join (whose notify it shows in the box for mails), POST notify, GET events (status and refresh), GET status and POST leave
// under /api/v1, and reads from a frame: state, position, ahead, etaSec, passed,
// redirectUrl, expiresInSec, scheduled, preCount, opensAt, now, held, full,
// message, messageAt, ref, token, expired, reason. What is missing is not known.
func Waiting(w io.Writer, p WaitingPage) error {
	if p.RoomName == "" {
		p.RoomName = p.RoomID
	}
	if p.PollSeconds <= 0 {
		p.PollSeconds = 5
	}
	return pages.ExecuteTemplate(w, "waiting.html", newWaitingView(p))
}

// view is what every template has.
type view struct {
	words
	BasePath string
	State    string
	Brand    string
	Title    string
	Colours  template.CSS
	// Languages is the switch, on the pages that have one.
	Languages []languageLink
}

func newView(locale, base, state, room string, b Branding) view {
	brand := b.Name
	if brand == "" {
		brand = room
	}
	return view{
		words: wordsOf(locale), BasePath: base, State: state, Brand: brand,
		Colours: template.CSS(b.colours()), // made of parsed colours only
	}
}

// Asset returns the address of an embedded file.
func (v view) Asset(name string) string { return v.BasePath + AssetPath(name) }

// HeadKey and LeadKey name the sentences of the state.
func (v view) HeadKey() string { return v.State + ".h" }

// LeadKey names the sentence under the head.
func (v view) LeadKey() string { return v.State + ".p" }

type waitingView struct {
	view
	Page   WaitingPage
	Config waitingConfig

	Big, BigLabel, BigSize string
	When, WhenLabel, Ahead string
	MailHead               string
	NextKey, Fair          string
	NoScript, Refresh      string
	ProofURL               string
	Draw                   bool // the line is, or will be, dealt by a draw
}

func newWaitingView(p WaitingPage) waitingView {
	f := p.First
	v := waitingView{view: newView(p.Locale, p.BasePath, p.pageState(), p.RoomName, p.Branding), Page: p}
	v.Config = waitingConfig{
		BasePath: p.BasePath, RoomID: p.RoomID, RoomName: p.RoomName, State: v.State,
		Branding: configBranding{
			Name: p.Branding.Name, LogoURL: p.Branding.LogoURL, Accent: p.Branding.Accent,
			Message: p.Branding.Message, MessageAt: millis(p.Branding.MessageAt),
		},
		Lapsed: p.Lapsed, Ref: p.Ref, ReturnURL: p.ReturnURL, SiteURL: p.SiteURL, PollSeconds: p.PollSeconds,
		Drawn: p.Drawn, Retry: p.Retry, Stamp: p.Stamp, WorkURL: v.Asset("waiting-work.js"), Words: v.words.page(),
	}
	if v.MailHead = v.Say("mailme"); p.MailTo != "" {
		v.MailHead = v.Say("mailme.on", "email", p.MailTo)
	}
	if f.State != "" || f.Passed || !f.Now.IsZero() {
		v.Config.First = &configFrame{
			State: f.State, Position: f.Position, Ahead: f.Ahead, EtaSec: f.EtaSec,
			Scheduled: f.Scheduled, PreCount: f.PreCount, OpensAt: millis(f.OpensAt), Now: millis(f.Now),
			Passed: f.Passed, RedirectURL: f.RedirectURL, ExpiresInSec: f.ExpiresInSec,
		}
	}
	v.figures(f)
	v.NextKey, v.Fair = "next.close", v.Say("fair.fifo")
	switch {
	case f.Passed:
		v.NextKey = "next.turn"
	case v.State == "drawn":
		v.NextKey = "next.drawn"
	case f.Scheduled:
		v.NextKey = "next.scheduled"
	}
	if v.Draw = f.Scheduled || p.Drawn; v.Draw {
		v.Fair = v.Say("fair.draw")
	}
	v.Languages = v.languageLinks(p.ReturnURL)
	v.ProofURL = p.BasePath + "/w/" + url.PathEscape(p.RoomID) + "/draw"

	// Without JavaScript the page looks again by itself; the first look, which
	// takes the place, follows at once.
	seconds := p.PollSeconds
	if v.State == "joining" {
		seconds = 1
	}
	v.NoScript = v.count("nojs", int64(p.PollSeconds))
	v.Refresh = strconv.Itoa(seconds)
	if p.RefreshURL != "" {
		v.Refresh += "; url=" + p.RefreshURL
	}
	return v
}

// figures fills the place and the time, as render in waiting.js does.
func (v *waitingView) figures(f Frame) {
	switch {
	case v.State == "turn" || v.State == "bypass":
		if f.ExpiresInSec > 0 {
			v.BigLabel, v.Big = v.Say("window"), clock(time.Duration(f.ExpiresInSec)*time.Second)
		}
		v.Title = v.Say(v.HeadKey())
	case f.Scheduled && f.Position == nil:
		left := f.OpensAt.Sub(f.Now)
		v.BigLabel, v.Big = v.Say("opens"), clock(left)
		// The server does not know the visitor's zone: it names its own.
		v.WhenLabel, v.When = v.Say("opensAt"), f.OpensAt.UTC().Format("2006-01-02 15:04 UTC")
		if f.PreCount > 0 {
			v.Ahead = v.count("here", f.PreCount)
		}
		v.Title = v.Big
	default:
		v.BigLabel, v.Big = v.Say("place"), "–"
		v.WhenLabel, v.When = v.Say("wait"), "–"
		v.Title = v.Say(v.HeadKey())
		if v.Config.First != nil {
			v.When = v.eta(f.EtaSec, f.State == "paused")
		}
		if f.Position != nil {
			v.Big = v.number(*f.Position)
			v.Title = v.Big
			ahead := *f.Position - 1
			if f.Ahead != nil {
				ahead = *f.Ahead
			}
			v.Ahead = v.count("ahead", ahead)
		}
	}
	v.Title += " · " + v.Page.RoomName
	switch n := len([]rune(v.Big)); {
	case n <= 5:
		v.BigSize = "l"
	case n <= 7:
		v.BigSize = "m"
	default:
		v.BigSize = "s"
	}
}

// clock writes a countdown: 9:58, 2:14:07, or 3 days as hours.
func clock(d time.Duration) string {
	s := max(0, int64((d+time.Second-1)/time.Second))
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// millis is an instant in epoch milliseconds; 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
