package web_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"qm/web"
)

// The languages of issue 3.
var wanted = []string{"ar", "de", "en", "es", "fr", "hi", "id", "it", "ja", "ko", "nl", "pl", "pt", "th", "vi", "zh-Hans"}

// tags are the locales that are there.
func tags(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("locales")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".json"))
	}
	return out
}

func sentences(t *testing.T, tag string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("locales/" + tag + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", tag, err)
	}
	return out
}

// counted are the sentences about a number, with the numbers that they meet.
var counted = map[string][]int{
	"ahead":     span(1, 2_000), // ahead.0 has a sentence of its own
	"here":      span(1, 2_000),
	"eta.min":   {2, 3, 4, 5, 6, 7, 8, 9, 10, 15},
	"eta.hours": span(2, 23),
	"days":      span(2, 400),
	"nojs":      span(1, 60),
}

func span(from, to int) []int {
	var out []int
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

var categories = map[plural.Form]string{
	plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many",
}

// cutForm cuts a plural category, or a number of its own, off the key of a
// sentence about a number.
func cutForm(key string) (stem, form string, ok bool) {
	if _, ok := counted[key]; ok {
		return key, "", true
	}
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return key, "", false
	}
	_, ok = counted[key[:i]]
	return key[:i], key[i+1:], ok
}

var placeholder = regexp.MustCompile(`\{\w*\}`)

func placeholders(s string) []string {
	found := placeholder.FindAllString(s, -1)
	slices.Sort(found)
	return found
}

func TestEveryLanguageIsThere(t *testing.T) {
	if got := tags(t); !slices.Equal(got, wanted) {
		t.Errorf("%v, want %v", got, wanted)
	}
}

// Proves: waiting.page
func TestEveryLocaleHasEverySentence(t *testing.T) {
	english := sentences(t, "en")
	for _, tag := range tags(t) {
		said := sentences(t, tag)
		for key, want := range english {
			if _, form, ok := cutForm(key); ok && form != "" && form != "0" {
				continue // a plural form of English
			}
			got, ok := said[key]
			if !ok || strings.TrimSpace(got) == "" {
				t.Errorf("%s has no sentence %s", tag, key)
				continue
			}
			if !slices.Equal(placeholders(got), placeholders(want)) {
				t.Errorf("%s, %s: placeholders %v, want %v", tag, key, placeholders(got), placeholders(want))
			}
			if tag != "en" && got == want {
				t.Errorf("%s, %s: %q is English", tag, key, got)
			}
			if strings.Contains(got, "'") || got != strings.TrimSpace(got) || strings.Contains(got, "  ") {
				t.Errorf("%s, %s: %q is badly set", tag, key, got)
			}
		}
		for key, got := range said {
			stem, form, ok := cutForm(key)
			_, known := english[key]
			switch {
			case known && !ok, key == "dir":
			case !ok:
				t.Errorf("%s has a sentence %s that English has not", tag, key)
			case form != "":
				// One that stands for a single number may leave it out.
				if p := placeholders(got); len(p) > 0 && !slices.Equal(p, placeholders(english[stem])) {
					t.Errorf("%s, %s: placeholders %v", tag, key, p)
				}
			}
		}
		if rtl := said["dir"] == "rtl"; rtl != (tag == "ar") {
			t.Errorf("%s is written %q", tag, said["dir"])
		}
	}
}

// Each sentence about a number has the forms that CLDR tells apart among the
// numbers that it meets, and no others; one that leaves the number out stands
// for one number only.
func TestEveryLocaleHasItsPluralForms(t *testing.T) {
	for _, tag := range tags(t) {
		said := sentences(t, tag)
		for key, numbers := range counted {
			meets := map[string][]int{}
			for _, n := range numbers {
				form := plural.Cardinal.MatchPlural(language.MustParse(tag), n, 0, 0, 0, 0)
				meets[categories[form]] = append(meets[categories[form]], n)
			}
			for form, which := range meets {
				if form == "" {
					continue // other: the bare key
				}
				got, ok := said[key+"."+form]
				if !ok {
					t.Errorf("%s has no %s.%s, as for %d", tag, key, form, which[0])
				}
				if len(which) > 1 && !strings.Contains(got, "{n}") {
					t.Errorf("%s, %s.%s: %q says no number, and stands for %d and %d", tag, key, form, got, which[0], which[1])
				}
			}
			for _, form := range categories {
				if _, ok := said[key+"."+form]; ok && meets[form] == nil {
					t.Errorf("%s, %s.%s is never said", tag, key, form)
				}
			}
		}
	}
}

func TestMatchLocale(t *testing.T) {
	for _, c := range []struct{ accept, query, remembered, want string }{
		{"", "", "", "en"},
		{"de-CH,de;q=0.9,en;q=0.8", "", "", "de"},
		{"sv, th;q=0.5", "", "", "th"},
		{"xx-nonsense, fr;q=0.1", "", "", "fr"},
		{"en;q=0.2, pl", "", "", "pl"},
		{"zh-CN", "", "", "zh-Hans"},
		{"zh-TW,zh;q=0.9", "", "", "zh-Hans"},
		{"pt-BR", "", "", "pt"},
		{"es-419", "", "", "es"},
		{"in", "", "", "id"}, // the old code of Indonesian
		{"ar-EG", "", "", "ar"},
		{"*", "", "", "en"},
		{"is", "", "", "en"},
		{"de;q=x;;;", "", "", "en"},
		{"de", "th", "fr", "th"},
		{"de", "", "fr", "fr"},
		{"de", "TH", "", "th"},
		{"de", "zh", "", "zh-Hans"},
		{"de", "zz", "ja", "ja"},
		{"de", "../../etc", "<script>", "de"},
		{"de", strings.Repeat("a", 100_000), strings.Repeat("-", 100_000), "de"},
		{"ko," + strings.Repeat("en;q=0.1,", 50_000), "", "", "ko"},
		{strings.Repeat("-", 50_000), "", "", "en"},
	} {
		if got := web.MatchLocale(c.accept, c.query, c.remembered); got != c.want {
			t.Errorf("%.40q, ?lang=%.20q, remembered %.20q: %s, want %s", c.accept, c.query, c.remembered, got, c.want)
		}
	}
}

func FuzzMatchLocale(f *testing.F) {
	f.Add("de-CH,de;q=0.9", "th", "fr")
	f.Fuzz(func(t *testing.T, accept, query, remembered string) {
		if got := web.MatchLocale(accept, query, remembered); !slices.Contains(wanted, got) {
			t.Errorf("%q is no locale", got)
		}
	})
}

// The switch links to every language by its own name and marks the present
// one, on the page and on the notices, and keeps where the visitor came from.
func TestTheSwitchLinksToEveryLanguage(t *testing.T) {
	html := render(t, web.WaitingPage{RoomID: "demo", Locale: "th", ReturnURL: "https://shop.example/a?b&c"})
	var b strings.Builder
	if err := web.RenderNotice(&b, web.NoticePage{Notice: web.NoticeGone, Locale: "th"}); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{html, b.String()} {
		if !strings.Contains(page, `<html lang="th" dir="ltr">`) {
			t.Errorf("not Thai: %.60s", page)
		}
		if n := strings.Count(page, `aria-current="true"`); n != 1 {
			t.Errorf("%d present languages", n)
		}
		for _, tag := range wanted {
			if !strings.Contains(page, `<a href="?lang=`+tag) || !strings.Contains(page, ">"+sentences(t, tag)["language.name"]+"</a>") {
				t.Errorf("no link to %s", tag)
			}
		}
	}
	if !strings.Contains(html, `href="?lang=de&amp;qm_return=https%3A%2F%2Fshop.example%2Fa%3Fb%26c"`) {
		t.Error("the return address gets lost")
	}
	if html := render(t, web.WaitingPage{RoomID: "demo", Locale: "ar-EG"}); !strings.Contains(html, `<html lang="ar" dir="rtl">`) {
		t.Errorf("Arabic is not set from right to left: %.60s", html)
	}
}

// The module has every sentence that it asks for; what it never asks for does
// not travel with the page.
func TestTheModuleGetsWhatItSays(t *testing.T) {
	html := render(t, web.WaitingPage{RoomID: "demo"})
	block := regexp.MustCompile(`(?s)id="qm-config">(.*?)</script>`).FindStringSubmatch(html)
	var config struct{ Words map[string]string }
	if err := json.Unmarshal([]byte(block[1]), &config); err != nil {
		t.Fatal(err)
	}
	var module []byte
	for _, name := range []string{"waiting.js", "waiting-words.js"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		module = append(module, text...)
	}
	// Keys are written out, but for those of a state.
	for key := range config.Words {
		stem, _, ok := cutForm(key)
		if !ok {
			stem = strings.TrimSuffix(strings.TrimSuffix(key, ".h"), ".p")
		}
		if stem != "lang" && stem != "dir" && !strings.Contains(string(module), `"`+stem+`"`) {
			t.Errorf("%s travels for nothing", key)
		}
	}
	for _, m := range regexp.MustCompile(`(?:say|count)\("([a-z][A-Za-z.]*)"|[?:] "([a-z]+\.[a-z]+)"`).FindAllStringSubmatch(string(module), -1) {
		if key := m[1] + m[2]; config.Words[key] == "" {
			t.Errorf("the module says %s, which does not travel", key)
		}
	}
}
