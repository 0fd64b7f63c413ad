package httpapi

import (
	"strings"
	"testing"

	"qm/web"
)

// The page and its notices are in the language that was asked for, and the choice stays, whatever the browser prefers.
func TestThePageIsInTheVisitorsLanguage(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		b := w.browser("198.51.100.1")
		speaks := func(path, lang string) answer {
			t.Helper()
			got := b.get(path)
			if !strings.Contains(got.body, `<html lang="`+lang+`"`) || got.header.Get("Content-Language") != lang {
				t.Errorf("%s is in %s: %.60s", path, got.header.Get("Content-Language"), got.body)
			}
			return got
		}
		speaks("/w/rm1", "en")
		if b.jar[web.LocaleCookie] != "" {
			t.Error("a choice is kept that nobody made")
		}
		ticket := b.ticket("rm1")
		b.headers["Accept-Language"] = "de-CH, de;q=0.9, en;q=0.8"
		speaks("/w/rm1", "de")
		speaks("/w/rm1?lang=th", "th")
		speaks("/w/rm1", "th")
		speaks("/w/unknown", "th")
		speaks("/w/rm1?lang=nonsense", "th")
		if got := speaks("/w/rm1?lang=th", "th"); got.header["Set-Cookie"] != nil {
			t.Errorf("the same choice sets %q", got.header["Set-Cookie"])
		}
		speaks("/w/unknown?lang=ar", "ar")
		if b.jar[web.LocaleCookie] != "ar" || b.ticket("rm1") != ticket {
			t.Errorf("chose %q, ticket %d, not %d", b.jar[web.LocaleCookie], b.ticket("rm1"), ticket)
		}
	})
}
