package web

import (
	"errors"
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// schemes are the colours of a brand's two rules, light and dark, over the page's own.
func schemes(t interface{ Fatalf(string, ...any) }, b Branding) [2]map[string]rgb {
	own := [2]map[string]rgb{
		{"ground": lightGround, "card": lightCard, "ink": darkInk, "soft": {0x59, 0x60, 0x6a}, "wash": {0xf6, 0xf6, 0xf3}},
		{"ground": darkGround, "card": darkCard, "ink": lightInk, "soft": {0xa3, 0xab, 0xb5}, "wash": {0x1c, 0x20, 0x23}},
	}
	rules := regexp.MustCompile(`:root\{(.*?)\}`).FindAllStringSubmatch(b.colours(), -1)
	if len(rules) != 2 {
		t.Fatalf("%+v gives %s", b, b.colours())
	}
	for i, rule := range rules {
		for _, m := range regexp.MustCompile(`--(\w+):(#\w+)`).FindAllStringSubmatch(rule[1], -1) {
			own[i][m[1]], _ = parseColour(m[2])
		}
	}
	return own
}

// Whatever colours a brand brings, all that is written in them and on them can be read, in both schemes; and what is legible as it
// was given is shown as it was given.
func TestBrandsAreLegible(t *testing.T) {
	colour := rapid.StringMatching(`#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})`)
	rapid.Check(t, func(t *rapid.T) {
		b := Branding{Accent: rapid.OneOf(colour, rapid.Just("")).Draw(t, "accent"), Background: rapid.OneOf(colour, rapid.Just("")).Draw(t, "background")}
		if b.Accent == "" && b.Background == "" {
			b.Accent = "#777"
		}
		for i, c := range schemes(t, b) {
			for _, pair := range [][2]string{
				{"on", "accent"}, {"accent", "ground"}, {"accent", "card"}, {"ink", "ground"}, {"ink", "card"}, {"ink", "wash"},
				{"soft", "ground"}, {"soft", "card"}, {"soft", "wash"},
			} {
				if pair == [2]string{"accent", "ground"} && i == 1 && b.Background == "" {
					continue // the darker ground of the page's own: brighter than on its card by nature
				}
				if r := contrast(c[pair[0]], c[pair[1]]); r < 4.5 {
					t.Fatalf("%+v, scheme %d: %s %s on %s %s is %.2f", b, i, pair[0], c[pair[0]], pair[1], c[pair[1]], r)
				}
			}
		}
		if b.Legible() != nil {
			return
		}
		light := schemes(t, b)[0]
		if accent, ok := parseColour(b.Accent); ok && light["accent"] != accent {
			t.Fatalf("%+v is legible, and shown as %s", b, light["accent"])
		}
		if ground, ok := parseColour(b.Background); ok && light["ground"] != ground {
			t.Fatalf("%+v is legible, and stands on %s", b, light["ground"])
		}
	})
}

func TestAPairThatCannotBeReadIsNamed(t *testing.T) {
	for _, c := range []struct {
		accent, background, field, says string
	}{
		{"#ffcc00", "", "color", "color #ffcc00 on background #f3f3ef has a contrast of 1.35 to 1; it takes 4.5 to 1 to be read"},
		{"#777777", "#777777", "background", "the page's text #1a1d20 on background #777777 has a contrast of 3.78 to 1; it takes 4.5 to 1 to be read"},
		{"#fafafa", "#ffffff", "color", "color #fafafa on background #ffffff has a contrast of 1.04 to 1; it takes 4.5 to 1 to be read"},
		{"", "#7f7f7f", "background", "the page's text #1a1d20 on background #7f7f7f has a contrast of 4.22 to 1; it takes 4.5 to 1 to be read"},
		{"#123456", "#202020", "color", "color #123456 on background #202020 has a contrast of 1.28 to 1; it takes 4.5 to 1 to be read"},
		{"#ffcc00", "#202020", "", ""}, {"#123456", "", "", ""}, {"", "#003366", "", ""}, {"red", "nonsense", "", ""}, {"", "", "", ""},
	} {
		err := Branding{Accent: c.accent, Background: c.background}.Legible()
		var pair *IllegibleError
		if !errors.As(err, &pair) {
			if c.field != "" || err != nil {
				t.Errorf("%q on %q: %v", c.accent, c.background, err)
			}
			continue
		}
		if pair.Field != c.field || err.Error() != c.says {
			t.Errorf("%q on %q blames %s: %v", c.accent, c.background, pair.Field, err)
		}
	}
}

func TestWhatIsNoColourIsIgnored(t *testing.T) {
	for _, colour := range []string{"", "red", "#12", "#12345", "#1234567", "#ggg", "123456", "#fff;}", "#+12345", "# 1234", "</style><script>", "#fff}*{display:none"} {
		if css := (Branding{Accent: colour, Background: colour}).colours(); css != "" {
			t.Errorf("%q gives %s", colour, css)
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
	for _, name := range []string{"waiting.css", "console/console.css"} {
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
