package docs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The flag is not called update, and make generate does not set it: only who has read a section anew may say that its translation follows.
var translated = flag.Bool("translated", false, "note that the Thai guides follow the English ones as they are now")

const sourcesFile = "th/sources.json"

// made is what make generate writes into a guide, in every language: no translation hangs on it.
var made = regexp.MustCompile(`(?ms)^<!-- [^\n]*-->\n.*?^<!-- end of [^\n]*-->\n`)

// section is a guide's text from one heading of the first two levels to the next.
type section struct {
	Heading string `json:"heading"`
	Sum     string `json:"sha256"`
}

// sections reads a guide. A "#" within a block of code is no heading.
func sections(guide string) (list []section) {
	var text []string
	coding := false
	closeLast := func() {
		if len(list) > 0 {
			sum := sha256.Sum256([]byte(strings.Join(text, "")))
			list[len(list)-1].Sum = hex.EncodeToString(sum[:])
		}
		text = nil
	}
	for line := range strings.Lines(made.ReplaceAllString(guide, "")) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			coding = !coding
		}
		if !coding && (strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ")) {
			closeLast()
			list = append(list, section{Heading: strings.TrimSpace(strings.TrimLeft(line, "#"))})
		}
		text = append(text, line)
	}
	closeLast()
	return list
}

// changed are the headings of sections that are not as they were noted, and of those that are gone.
func changed(noted, now []section) (headings []string) {
	for _, s := range slices.Concat(now, noted) {
		if (!slices.Contains(noted, s) || !slices.Contains(now, s)) && !slices.Contains(headings, s.Heading) {
			headings = append(headings, s.Heading)
		}
	}
	return headings
}

// A section that changes in English fails here until somebody has brought its translation into line, and says so.
func TestThaiFollowsTheEnglishOfToday(t *testing.T) {
	now := make(map[string][]section)
	files, _ := filepath.Glob("th/*.md")
	if len(files) == 0 {
		t.Fatal("there is no Thai guide")
	}
	for _, file := range files {
		english, err := os.ReadFile(filepath.Base(file))
		if err != nil {
			t.Fatal(err)
		}
		if now[filepath.Base(file)] = sections(string(english)); len(now[filepath.Base(file)]) < 5 {
			t.Fatalf("only %d sections of %s were read", len(now[filepath.Base(file)]), filepath.Base(file))
		}
	}
	if *translated {
		out, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sourcesFile, append(out, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.ReadFile(sourcesFile)
	if err != nil {
		t.Fatal(err)
	}
	var noted map[string][]section
	if err := json.Unmarshal(source, &noted); err != nil {
		t.Fatal(err)
	}
	for name, sections := range now {
		for _, heading := range changed(noted[name], sections) {
			t.Errorf("docs/%s, section %q, is not what docs/th/%s was translated from: read \"git log -p docs/%s\", bring the Thai section into line, "+
				"then run \"go test ./docs -run TestThaiFollowsTheEnglishOfToday -translated\" and commit docs/%s with it", name, heading, name, name, sourcesFile)
		}
	}
	for name := range noted {
		if now[name] == nil {
			t.Errorf("docs/%s notes %s, which has no translation", sourcesFile, name)
		}
	}
}

// A change names its own section and no other; what make generate writes and headings in code do not count.
func TestChangedSectionsAreNamed(t *testing.T) {
	const guide = "# Guide\n\nHello.\n\n## One\n\n```sh\n# no heading\n## nor this\n```\n\n### Part\n\nText.\n\n## Two\n\n<!-- codes: made -->\n| a |\n<!-- end of codes -->\nMore.\n"
	noted := sections(guide)
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{"", "", nil},
		{"Hello", "Good day", []string{"Guide"}},
		{"no heading", "another command", []string{"One"}},
		{"Text.", "Other text.", []string{"One"}},
		{"| a |", "| b |", nil},
		{"More.", "Less.", []string{"Two"}},
		{"## Two", "## Three", []string{"Three", "Two"}},
		{"## Two", "## New\n\nNew.\n\n## Two", []string{"New"}},
	} {
		if diff := cmp.Diff(c.want, changed(noted, sections(strings.Replace(guide, c.from, c.to, 1)))); diff != "" {
			t.Errorf("%q became %q: %s", c.from, c.to, diff)
		}
	}
}

// Every sentence that the Thai tables are made with is in one of them: none is left of a table that has another by now.
func TestThaiSentencesAreInUse(t *testing.T) {
	var guides []byte
	files, _ := filepath.Glob("th/*.md")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		guides = append(guides, text...)
	}
	source, err := os.ReadFile("th/sentences.json")
	if err != nil {
		t.Fatal(err)
	}
	var sentences map[string]string
	if err := json.Unmarshal(source, &sentences); err != nil {
		t.Fatal(err)
	}
	for english, thai := range sentences {
		if !strings.Contains(string(guides), "| "+thai+" |") {
			t.Errorf("docs/th/sentences.json has %q for %q, which no table says", thai, english)
		}
	}
}
