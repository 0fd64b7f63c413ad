package web

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// Whatever accent a brand brings, its text can be read on both grounds.
func TestAccentIsLegible(t *testing.T) {
	rule := regexp.MustCompile(`--accent:(#\w+);--on:(#\w+)`)
	rapid.Check(t, func(t *rapid.T) {
		accent := rapid.StringMatching(`#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})`).Draw(t, "accent")
		found := rule.FindAllStringSubmatch(Branding{Accent: accent}.colours(), -1)
		if len(found) != 2 {
			t.Fatalf("%s gives %v", accent, found)
		}
		for i, card := range []rgb{lightCard, darkCard} {
			c, _ := parseColour(found[i][1])
			on, _ := parseColour(found[i][2])
			if contrast(c, card) < 4.5 || contrast(c, on) < 4.5 {
				t.Fatalf("%s on card %d: %v", accent, i, found[i])
			}
		}
	})
}

func TestWhatIsNoColourIsIgnored(t *testing.T) {
	for _, accent := range []string{"", "red", "#12", "#12345", "#1234567", "#ggg", "123456", "#fff;}", "#+12345", "# 1234"} {
		if css := (Branding{Accent: accent}).colours(); css != "" {
			t.Errorf("%q gives %s", accent, css)
		}
	}
}

func TestWaitInWords(t *testing.T) {
	w := wordsOf("en-GB")
	for sec, want := range map[int64]string{
		0: "less than a minute", 59: "less than a minute", 60: "about a minute", 89: "about a minute", 90: "about 2 minutes",
		300: "about 5 minutes", 569: "about 9 minutes", 570: "about 10 minutes", 1049: "about 15 minutes", 1080: "15 to 25 minutes", 1500: "20 to 30 minutes", 3599: "about an hour",
		4300: "more than an hour", 7200: "more than 2 hours", 90_000: "more than a day",
	} {
		if got := w.eta(&sec, false); got != want {
			t.Errorf("%d s: %q, want %q", sec, got, want)
		}
	}
	if got := w.eta(nil, true); got != "unknown while paused" {
		t.Error(got)
	}
	if got := w.number(1234567); got != "1,234,567" {
		t.Error(got)
	}
}

// All text of the pages can be read on what it stands on, in both schemes.
func TestTheProductsOwnColoursAreLegible(t *testing.T) {
	block := regexp.MustCompile(`(?s):root \{(.*?)\}`)
	variable := regexp.MustCompile(`--(\w+): (#\w+);`)
	for _, name := range []string{"waiting.css", "console.css"} {
		css, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		schemes := block.FindAllSubmatch(css, -1)
		if len(schemes) != 2 {
			t.Fatalf("%s: %d schemes", name, len(schemes))
		}
		for i, scheme := range schemes {
			colour := map[string]rgb{}
			for _, m := range variable.FindAllSubmatch(scheme[1], -1) {
				colour[string(m[1])], _ = parseColour(string(m[2]))
			}
			pairs := [][2]string{{"on", "accent"}, {"accent", "card"}, {"ink", "edge"}}
			for _, ground := range []string{"ground", "card", "wash"} {
				pairs = append(pairs, [2]string{"ink", ground}, [2]string{"soft", ground})
			}
			if _, console := colour["bad"]; console {
				pairs = append(pairs, [][2]string{{"warn", "ground"}, {"bad", "card"}, {"bad", "badwash"}, {"ink", "badwash"}, {"bad", "wash"}, {"accent", "ground"}}...)
			}
			for _, p := range pairs {
				if c := contrast(colour[p[0]], colour[p[1]]); c < 4.5 {
					t.Errorf("%s, scheme %d: %s on %s is %.2f", name, i, p[0], p[1], c)
				}
			}
		}
	}
}
