package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"qm/internal/testenv"
	"qm/web"
)

// The box for an address: fetched when it is opened, says what the server holds and what it refuses, and takes an address back. Nothing moves
// that was not asked to.
func TestTheBoxForAnAddress(t *testing.T) {
	first := at(40, 900)
	first["notify"] = nil
	l := newLine(t, first)
	l.with(func(l *line) { l.page.Mail = true })
	held := make(chan string, 10)
	mux := http.NewServeMux()
	mux.Handle("/", l.Config.Handler)
	mux.HandleFunc("GET /notify/box", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := web.MailBox(w, r.URL.Query().Get("lang")); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("POST /api/v1/notify", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Email string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		held <- body.Email
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(body.Email, "often"):
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"error":"x","code":"notify_change_limit"}`))
		case body.Email == "":
			_, _ = w.Write([]byte(`{"notify":null,"now":1}`))
		default:
			_, _ = w.Write([]byte(`{"notify":{"emailMasked":"a•••@example.com","requestedAt":1,"delivery":"pending"},"now":1}`))
		}
	})
	l.Config.Handler = mux
	b := newTab(t)
	b.before(testenv.Axe(t))
	screens := func(what string) {
		t.Helper()
		for _, width := range []int64{320, 1440} {
			b.size(width, 900)
			b.axe(what)
			b.fits(what)
		}
	}
	b.open(l.URL + "/w/demo")
	b.awaitState("waiting")
	b.await(`!document.getElementById("mailme").classList.contains("none")`)
	b.still()
	put := func(address string) {
		t.Helper()
		b.text(`(mailTo.value = "` + address + `", mailForm.requestSubmit(), 1)`)
	}
	b.click("#mailHead")
	b.await(`document.getElementById("mailForm") && document.activeElement`)
	screens("the open box")
	put("nonsense")
	b.awaitText("mailNote", sentences(t, "en")["mailme.invalid"])
	b.await(`mailTo.getAttribute("aria-invalid") === "true" && document.activeElement === mailTo`)
	screens("a refused address")
	put("often@example.com")
	b.awaitText("mailNote", sentences(t, "en")["mailme.limit"])
	put("anna@example.com")
	b.awaitText("mailHead", "We will write to a•••@example.com.")
	b.await(`mailAsk.hidden && document.activeElement === mailStop`)
	screens("an address that is held")
	b.click("#mailStop")
	b.awaitText("mailNote", sentences(t, "en")["mailme.off"])
	b.awaitText("mailHead", sentences(t, "en")["mailme"])
	for _, want := range []string{"often@example.com", "anna@example.com", ""} {
		if got := <-held; got != want {
			t.Errorf("the page sent %q, want %q", got, want)
		}
	}
	b.clean("429")
}
