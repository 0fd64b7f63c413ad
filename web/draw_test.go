package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"qm/internal/testenv"
	"qm/web"
)

// The page of a draw is legible on a phone and a desk, in both schemes and both directions, and says only what is known.
func TestTheDrawPageOnEveryScreen(t *testing.T) {
	t.Parallel()
	commitment, secret := strings.Repeat("9f", 32), strings.Repeat("0a", 32)
	states := map[string]web.DrawPage{
		"none": {},
		"soon": {OpensAt: time.UnixMilli(1_800_000_000_000), Commitment: commitment, Secret: secret, Place: 3, Count: 9},
		"done": {Commitment: commitment, Secret: secret, Place: 1524, Count: 128_402},
	}
	l := newLine(t, at(40, 900))
	rest := l.Config.Handler
	mux := http.NewServeMux()
	mux.Handle("/", rest)
	mux.HandleFunc("GET /w/{state}/draw", func(w http.ResponseWriter, r *http.Request) {
		p := states[r.PathValue("state")]
		p.RoomID, p.RoomName, p.Locale = "demo", "Spring drop", r.URL.Query().Get("lang")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", web.Policy(p.Branding))
		if err := web.Draw(w, p); err != nil {
			t.Error(err)
		}
	})
	l.Config.Handler = mux
	b := newTab(t)
	b.before(testenv.Axe(t))
	for _, lang := range []string{"en", "ar"} {
		said := sentences(t, lang)
		for state := range states {
			b.open(l.URL + "/w/" + state + "/draw?lang=" + lang)
			if got := b.text(`document.querySelector("h1").textContent`); got != said["draw."+state+".h"] {
				t.Errorf("%s in %s says %q", state, lang, got)
			}
			shown := b.text(`["commitment", "secret"].map((id) => document.getElementById(id)?.textContent ?? "").join(" ") + " " + (document.querySelector(".mine")?.textContent ?? "")`)
			want := map[string]string{
				"none": "  ", "soon": commitment + "  ",
				"done": commitment + " " + secret + " " + strings.NewReplacer("{n}", "1,524", "{all}", "128,402").Replace(said["draw.mine"]),
			}[state]
			if shown != want {
				t.Errorf("%s in %s shows %q, not %q", state, lang, shown, want)
			}
			for i, width := range []int64{320, 1440} {
				b.size(width, 900)
				b.media(feature("prefers-color-scheme", []string{"light", "dark"}[i]))
				where := fmt.Sprintf("%s in %s at %d", state, lang, width)
				b.axe(where)
				b.fits(where)
			}
		}
	}
	b.clean()
}
