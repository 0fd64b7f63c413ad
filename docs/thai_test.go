package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"qm/docs"
)

// shape is what a translation must not change.
type shape struct {
	Headings []int      // levels, in order
	Blocks   []string   // language and text of each block of code, in order
	Tables   [][2]int   // rows and columns of each, in order
	Lists    []int      // items of each, in order
	Links    []string   // where they lead, in order of address
	Spans    [][]string // the code in the sentences of each section, in order of spelling
}

// shapeOf reads a document of the folder docs. Links are told by the English file that they lead to.
func shapeOf(t *testing.T, file string) (s shape) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Spans = [][]string{nil}
	tree := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			s.Headings, s.Spans = append(s.Headings, n.Level), append(s.Spans, nil)
		case *ast.FencedCodeBlock:
			s.Blocks = append(s.Blocks, string(n.Language(source))+"\n"+string(n.Lines().Value(source)))
		case *east.Table:
			s.Tables = append(s.Tables, [2]int{n.ChildCount(), len(n.Alignments)})
		case *ast.List:
			s.Lists = append(s.Lists, n.ChildCount())
		case *ast.Link:
			to := string(n.Destination)
			if !strings.HasPrefix(to, "#") && !strings.Contains(to, "://") {
				to = strings.TrimPrefix(path.Join(path.Dir(file), to), "th/")
			}
			s.Links = append(s.Links, to)
		case *ast.CodeSpan:
			var b strings.Builder
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				b.Write(c.(*ast.Text).Segment.Value(source))
			}
			last := len(s.Spans) - 1
			s.Spans[last] = append(s.Spans[last], b.String())
		}
		return ast.WalkContinue, nil
	})
	slices.Sort(s.Links)
	for _, spans := range s.Spans {
		slices.Sort(spans)
	}
	return s
}

// A Thai guide says what the English one says: the same sections with the same code, commands, tables and links.
func TestThaiGuidesHaveTheShapeOfTheEnglishOnes(t *testing.T) {
	list, _ := filepath.Glob("th/*.md")
	if len(list) == 0 {
		t.Fatal("there is no Thai guide")
	}
	thai := regexp.MustCompile(`\p{Thai}`)
	for _, file := range list {
		english := shapeOf(t, filepath.Base(file))
		if len(english.Headings) < 5 || len(english.Blocks) < 5 || len(english.Tables) < 3 {
			t.Fatalf("too little was read of %s: %+v", filepath.Base(file), english)
		}
		if diff := cmp.Diff(english, shapeOf(t, file)); diff != "" {
			t.Errorf("%s is not as the English guide (-English +Thai):\n%s", file, diff)
		}
		source, _ := os.ReadFile(file)
		for line := range strings.Lines(string(source)) {
			if strings.HasPrefix(line, "#") && !thai.MatchString(line) {
				t.Errorf("%s: the heading %q is not in Thai", file, strings.TrimSpace(line))
			}
		}
	}
}

var (
	headingID = regexp.MustCompile(`<(h[1-6]) id="([^"]*)"`)
	alternate = regexp.MustCompile(`<link rel="alternate" hreflang="(\w+)" href="([^"]+)">`)
	switchTo  = regexp.MustCompile(`<a href="([^"]+)" lang="(\w+)" hreflang="\w+">`)
)

// A guide that is there in both languages has the same fragments in both, and each page leads to the other.
func TestLanguagesOfTheGuides(t *testing.T) {
	for _, name := range thaiGuides(t) {
		english, _ := docs.Guide(name)
		thai, ok := docs.Guide("th/" + name)
		if !ok || !strings.Contains(string(thai), `<html lang="th">`) || !strings.Contains(string(english), `<html lang="en">`) {
			t.Fatalf("%s is not there in both languages", name)
		}
		ids := headingID.FindAllString(string(english), -1)
		if diff := cmp.Diff(ids, headingID.FindAllString(string(thai), -1)); diff != "" || len(ids) < 5 {
			t.Errorf("%s: the ids of headings differ:\n%s", name, diff)
		}
		both := [][]string{{"en", "/docs/" + name}, {"th", "/docs/th/" + name}}
		for i, page := range []string{string(english), string(thai)} {
			var have [][]string
			for _, m := range alternate.FindAllStringSubmatch(page, -1) {
				have = append(have, m[1:])
			}
			if diff := cmp.Diff(both, have); diff != "" {
				t.Errorf("%s: hreflang:\n%s", both[i][1], diff)
			}
			if m, other := switchTo.FindStringSubmatch(page), both[1-i]; m == nil || m[1] != other[1] || m[2] != other[0] {
				t.Errorf("%s does not lead to %s: %q", both[i][1], other[1], m)
			}
		}
	}
	// What is there in English alone leads to the Thai guides all the same, claims no translation, and is marked in the Thai list.
	page, _ := docs.Guide("architecture")
	if m := switchTo.FindStringSubmatch(string(page)); m == nil || m[1] != "/docs/th" || alternate.Match(page) {
		t.Errorf("architecture: %q", m)
	}
	first, _ := docs.Guide("th")
	if !strings.Contains(string(first), `<a href="/docs/architecture" hreflang="en">สถาปัตยกรรม (ภาษาอังกฤษ)</a>`) {
		t.Error("the Thai list of guides does not say which are in English")
	}
}

func thaiGuides(t *testing.T) (names []string) {
	t.Helper()
	list, _ := filepath.Glob("th/*.md")
	for _, file := range list {
		names = append(names, strings.ToLower(strings.TrimSuffix(filepath.Base(file), ".md")))
	}
	if len(names) == 0 {
		t.Fatal("there is no Thai guide")
	}
	return names
}
