package web

import (
	"io"
	"net/url"
	"time"
)

// DrawPage says how the places of a line were dealt, and how anybody can check it (contract.md 13). It needs no JavaScript.
type DrawPage struct {
	BasePath string
	// RoomID is the room's id; RoomName its name, or else the id is shown.
	RoomID, RoomName string
	Branding         Branding
	Locale           string
	// OpensAt is when the doors open that are still shut, and the draw comes; zero when none is to come.
	OpensAt time.Time
	// Commitment was published before the opening, Secret at it; both in hexadecimal, "" for none. Without a Secret and without
	// OpensAt the line is by arrival.
	Commitment, Secret string
	// Place, 1 or more, is what the draw dealt to this visitor, of Count in all; 0 when that is not known.
	Place, Count int64
}

// Draw writes the page of p. Send it as text/html, no-store, with Policy(p.Branding).
func Draw(w io.Writer, p DrawPage) error {
	if p.RoomName == "" {
		p.RoomName = p.RoomID
	}
	state := "draw.none"
	switch {
	case !p.OpensAt.IsZero():
		state = "draw.soon"
		p.Secret = "" // one of a draw before the coming one, which the commitment is not of
	case p.Secret != "":
		state = "draw.done"
	}
	v := struct {
		view
		Page       DrawPage
		Lead, Mine string
		FactsURL   string
	}{view: newView(p.Locale, p.BasePath, state, p.RoomName, p.Branding), Page: p}
	v.Title = v.Say(v.HeadKey()) + " · " + p.RoomName
	// The server does not know the visitor's zone: it names its own.
	v.Lead = v.Say(v.LeadKey(), "time", p.OpensAt.UTC().Format("2006-01-02 15:04 UTC"))
	if p.Secret != "" && p.Place > 0 {
		v.Mine = v.Say("draw.mine", "n", v.number(p.Place), "all", v.number(p.Count))
	}
	v.FactsURL = p.BasePath + "/api/v1/rooms/" + url.PathEscape(p.RoomID)
	v.Languages = v.languageLinks("")
	return pages.ExecuteTemplate(w, "draw.html", v)
}
