package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"qm/web"
)

// speaking is a line whose page is in the language that the address asks for,
// or that was chosen before.
func speaking(t *testing.T, first frame) *line {
	t.Helper()
	l := newLine(t, first)
	pages := l.Config.Handler
	l.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/w/") {
			remembered := ""
			if c, err := r.Cookie(web.LocaleCookie); err == nil {
				remembered = c.Value
			}
			locale := web.MatchLocale(r.Header.Get("Accept-Language"), r.URL.Query().Get("lang"), remembered)
			if r.URL.Query().Has("lang") {
				http.SetCookie(w, &http.Cookie{Name: web.LocaleCookie, Value: locale, Path: "/"})
			}
			l.with(func(l *line) { l.page.Locale = locale })
		}
		pages.ServeHTTP(w, r)
	})
	return l
}

// fits fails when the page is wider than its window.
func (b *tab) fits(what string) {
	b.t.Helper()
	if over := b.text("Math.max(0, document.documentElement.scrollWidth - innerWidth)"); over != "0" {
		b.t.Errorf("%s is %s px wider than its window", what, over)
	}
}

func TestThePageSpeaksTheVisitorsLanguage(t *testing.T) {
	t.Parallel()
	l := speaking(t, at(1524, 1500))
	b := newTab(t)
	for _, c := range []struct{ lang, dir, place, when, ahead, waiting, near, minutes string }{
		{"de", "ltr", "1.524", "20 bis 30 Minuten", "1.523 Personen vor Ihnen", "Sie stehen in der Schlange", "Sie sind fast da", "etwa 3 Minuten"},
		{"th", "ltr", "1,524", "20 ถึง 30 นาที", "มี 1,523 คนก่อนคุณ", "คุณอยู่ในแถวแล้ว", "ใกล้ถึงคิวของคุณแล้ว", "ประมาณ 3 นาที"},
		{"ar", "rtl", "1,524", "من 20 إلى 30 دقيقة", "1,523 شخصًا قبلك", "أنت في الصف", "اقترب دورك", "حوالي 3 دقائق"},
	} {
		for _, width := range []int64{360, 1280} {
			l.with(func(l *line) { l.now = at(1524, 1500) })
			b.size(width, 860)
			b.open(l.URL + "/w/demo?lang=" + c.lang)
			b.await(fmt.Sprintf("document.documentElement.lang === %q && document.documentElement.dir === %q", c.lang, c.dir))
			b.awaitState("waiting")
			b.awaitText("big", c.place)
			b.awaitText("head", c.waiting)
			b.awaitText("when", c.when)
			b.awaitText("ahead", c.ahead)
			b.fits(fmt.Sprint(c.lang, " at ", width))

			l.say(at(4, 180)) // a live frame speaks it too
			b.awaitState("near")
			b.awaitText("head", c.near)
			b.awaitText("when", c.minutes)
			b.await(fmt.Sprintf("document.documentElement.lang === %q", c.lang))
			b.fits(fmt.Sprint(c.lang, " near at ", width))
			b.still()
			b.shot(fmt.Sprintf("near-%s-%d", c.lang, width))
			b.text("localStorage.clear()")
		}
	}
	b.clean()
}

// The switch is made of links: it works without script, and the choice stays.
func TestTheSwitchWorksWithoutScript(t *testing.T) {
	t.Parallel()
	l := speaking(t, at(24, 300))
	place := int64(24)
	l.with(func(l *line) { l.page.First = web.Frame{State: "active", Position: &place} })
	b := newTab(t)
	b.scripts(false)
	b.open(l.URL + "/w/demo")
	if lang := b.text("document.documentElement.lang"); lang != "en" {
		t.Fatalf("begins in %s", lang)
	}
	b.click(".langs a[lang=vi]")
	b.await(`document.documentElement.lang === "vi" && document.getElementById("head").textContent === "Bạn đang xếp hàng"`)
	b.open(l.URL + "/w/demo")
	if lang := b.text("document.documentElement.lang"); lang != "vi" {
		t.Errorf("the choice is forgotten: %s", lang)
	}
	b.clean()
}

// The first paint and the frames after it say the same in every language: the
// two plural rules, and the two ways to write a number, agree.
func TestServerAndModuleSayTheSame(t *testing.T) {
	t.Parallel()
	l := speaking(t, frame{"state": "active"})
	b := newTab(t)
	b.size(360, 860)
	b.media(&emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	for _, tag := range wanted {
		b.open(l.URL + "/w/demo?lang=" + tag)
		b.await("document.documentElement.lang === " + strconv.Quote(tag))
		for _, c := range []struct{ position, etaSec int64 }{{2, 120}, {3, 180}, {6, 600}, {22, 4 * 3600}, {102, 11 * 3600}, {1_234_567, 90_000}, {1524, 1500}} {
			ahead := c.position - 1
			first := render(t, web.WaitingPage{RoomID: "demo", Locale: tag, First: web.Frame{State: "active", Position: &c.position, Ahead: &ahead, EtaSec: &c.etaSec, Now: time.Now()}})
			l.say(frame{"state": "active", "position": c.position, "ahead": ahead, "etaSec": c.etaSec})
			for _, id := range []string{"ahead", "big", "when", "head", "lead", "next"} {
				want, _ := json.Marshal(between(t, first, `id="`+id+`"`))
				// Which no-break space groups digits differs between releases of CLDR.
				b.await(fmt.Sprintf(`document.getElementById(%q).textContent.replace(/\s/g, " ") === %s.replace(/\s/g, " ")`, id, want))
			}
		}
		b.fits(tag)
		b.shot("first-" + tag)
		b.text("localStorage.clear()")
	}
	b.clean()
}

// A change of state, and of what to do next, moves nothing in any language.
func TestEverySentenceHasItsRoom(t *testing.T) {
	t.Parallel()
	l := speaking(t, at(24, 300))
	b := newTab(t)
	for _, tag := range wanted {
		for _, width := range []int64{360, 1280} {
			b.size(width, 860)
			b.open(l.URL + "/w/demo?lang=" + tag)
			b.await("document.documentElement.lang === " + strconv.Quote(tag))
			b.awaitState("waiting")
			if moved := b.text(`(() => {
				const words = QM_CONFIG.words, get = (id) => document.getElementById(id), out = [];
				const head = get("head"), lead = get("lead"), next = get("next");
				const room = [head, lead, next].map((el) => parseFloat(getComputedStyle(el).minBlockSize));
				for (const key in words) {
					const el = key.endsWith(".h") ? head : key.endsWith(".p") ? lead : key.startsWith("next.") ? next : null;
					if (!el || /^(gone|refused|toomany|linefull|cookies|left)\./.test(key)) continue;
					el.textContent = words[key];
					const over = el.getBoundingClientRect().height - room[[head, lead, next].indexOf(el)];
					if (over > 1) out.push(key + " +" + Math.round(over));
				}
				return out.join(", ");
			})()`); moved != "" {
				t.Errorf("%s at %d: no room for %s", tag, width, moved)
			}
		}
	}
	b.clean()
}

// between is the text of the element whose start tag has the attribute.
func between(t *testing.T, html, attribute string) string {
	t.Helper()
	_, rest, ok := strings.Cut(html, attribute)
	_, rest, ok2 := strings.Cut(rest, ">")
	text, _, ok3 := strings.Cut(rest, "<")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("no element with %s", attribute)
	}
	return text
}
