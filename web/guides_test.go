package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"qm/docs"
	"qm/internal/testenv"
)

// The guides are legible on a phone and a desk, in both schemes: axe finds nothing, nothing but code and tables scrolls sideways.
func TestTheGuidesOnEveryScreen(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := docs.Guide(strings.TrimPrefix(r.URL.Path, "/docs/"))
		if r.URL.Path == "/docs/progress" {
			page, ok = docs.Progress(), true
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", docs.Policy)
		_, _ = w.Write(page)
	}))
	t.Cleanup(s.Close)
	b := newTab(t)
	b.before(testenv.Axe(t))
	for _, name := range []string{"integration", "operations", "th/integration", "th/operations", "reference", "progress"} {
		b.open(s.URL + "/docs/" + name)
		for i, width := range []int64{320, 1440} {
			b.size(width, 900)
			scheme := []string{"light", "dark"}[i]
			b.media(feature("prefers-color-scheme", scheme))
			b.axe(fmt.Sprintf("%s at %d, %s", name, width, scheme))
			if wide := b.text("document.documentElement.scrollWidth - innerWidth"); wide != "0" && wide[0] != '-' {
				t.Errorf("%s is %s px wider than a screen of %d", name, wide, width)
			}
		}
	}
}
