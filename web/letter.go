package web

import (
	"io"
	"net/url"
	"strings"
)

// TurnLetter is a mail to a visitor in line: the turn is near, or has come.
type TurnLetter struct {
	Near   bool
	Locale string
	// Brand stands at the head, as on the pages; empty: the room's name.
	Brand, RoomName string
	// PlaceURL leads back to the waiting page, WithdrawURL to the end of the mails. Both are absolute.
	PlaceURL, WithdrawURL string
}

// Compose puts a letter into the words of its locale: the subject, the plain text, and the same as HTML.
func (l TurnLetter) Compose() (subject, text, html string, err error) {
	state := "turn"
	if l.Near {
		state = "near"
	}
	if l.Brand == "" {
		l.Brand = l.RoomName
	}
	v := struct {
		view
		Letter              TurnLetter
		Subject, Body, More string
	}{view: newView(l.Locale, "", state, l.RoomName, Branding{Name: l.Brand}), Letter: l}
	if l.Near {
		v.Subject, v.Body = v.Say("letter.near.s", "room", l.RoomName), v.Say("letter.near.t", "room", l.RoomName)
	} else {
		v.Subject, v.Body = v.Say("letter.turn.s", "room", l.RoomName), v.Say("letter.turn.t", "room", l.RoomName)
		v.More = v.Say("next.turn")
	}
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, "letter.html", v); err != nil {
		return "", "", "", err
	}
	parts := []string{v.Say(v.HeadKey()), v.Body, v.Say("letter.go") + ":\n" + l.PlaceURL, v.Say("letter.browser")}
	if v.More != "" {
		parts = append(parts, v.More)
	}
	parts = append(parts, "-- \n"+l.Brand, v.Say("letter.why"), v.Say("letter.stop")+":\n"+l.WithdrawURL)
	return v.Subject, strings.Join(parts, "\n\n") + "\n", b.String(), nil
}

// MailBox writes the box for an address, which the waiting page fetches when its visitor opens it: most never do. Send it as text/html,
// no-store.
func MailBox(w io.Writer, locale string) error {
	return pages.ExecuteTemplate(w, "mailbox.html", newView(locale, "", "", "", Branding{}))
}

// Withdrawal is where the page behind a mail's link stands.
type Withdrawal string

// The states of the page.
const (
	WithdrawAsk  Withdrawal = "withdraw"  // asks
	WithdrawDone Withdrawal = "withdrawn" // the address is erased
	WithdrawBad  Withdrawal = "nolink"    // the link is none
)

// WithdrawPage ends the mails about a place. It needs no JavaScript, and names neither room nor visitor.
type WithdrawPage struct {
	State  Withdrawal
	Locale string
	Token  string // what names the place: the address's t
}

// Withdraw writes the page of p. Send it as text/html, no-store, with Policy(Branding{}).
func Withdraw(w io.Writer, p WithdrawPage) error {
	v := struct {
		view
		Page WithdrawPage
		Ask  bool
	}{view: newView(p.Locale, "", string(p.State), "", Branding{}), Page: p, Ask: p.State == WithdrawAsk}
	v.Title = v.Say(v.HeadKey())
	v.Languages = v.languageLinks("&t=" + url.QueryEscape(p.Token))
	return pages.ExecuteTemplate(w, "withdraw.html", v)
}
