package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"qm/docs"
)

var (
	linkIn  = regexp.MustCompile(`href="([^"]+)"`)
	mdLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	guideOf = regexp.MustCompile(`^/docs/([a-z/]+)(?:#(.+))?$`)
)

// Every link between the guides leads to a page, and every fragment to a heading of it.
//
// Proves: docs
func TestLinksBetweenTheGuides(t *testing.T) {
	links := 0
	for _, name := range []string{"", "integration", "operations", "architecture", "invariants", "gotchas", "performance", "reference", "th", "th/integration", "th/operations"} {
		page, ok := docs.Guide(name)
		if !ok {
			t.Fatalf("there is no guide %q", name)
		}
		for _, m := range linkIn.FindAllSubmatch(page, -1) {
			to := string(m[1])
			target, fragment := page, ""
			if g := guideOf.FindStringSubmatch(to); g != nil {
				if target, ok = docs.Guide(g[1]); !ok {
					t.Errorf("%q links to %s, which is no guide", name, to)
					continue
				}
				fragment = g[2]
			} else if strings.HasPrefix(to, "#") {
				fragment = to[1:]
			}
			if links++; fragment != "" && !strings.Contains(string(target), `id="`+fragment+`"`) {
				t.Errorf("%q links to %s, which is no heading", name, to)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were looked at", links)
	}
}

// Every relative link of the documents leads to a file of the source.
func TestLinksOfTheDocuments(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"*.md", "design/*.md", "th/*.md", "../*.md", "../web/snippet/*.md", "../edge/connector/*.md", "../edge/connector/*/*.md"} {
		list, _ := filepath.Glob(pattern)
		for _, file := range list {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range mdLink.FindAllSubmatch(text, -1) {
				to, _, _ := strings.Cut(string(m[1]), "#")
				if to == "" || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
					continue
				}
				seen++
				if _, err := os.Stat(filepath.Join(filepath.Dir(file), to)); err != nil {
					t.Errorf("%s links to %s, which is not there", file, m[1])
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d links were looked at", seen)
	}
}
