package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	codesBegin = "<!-- codes: made by make generate from httpapi.Codes -->\n"
	codesEnd   = "<!-- end of codes -->"
)

// codesTable is the code table as the guide shows it: what a visitor's browser, an edge or a connector may meet. The operators' own
// codes, which name a field of a setting, are left to the OpenAPI document and the console.
func codesTable() string {
	codes := documentedCodes()
	var b strings.Builder
	b.WriteString("| code | status | meaning | retry after |\n| --- | --- | --- | --- |\n")
	for _, code := range codes {
		v := Codes[code]
		after := "–"
		if v.Retry > 0 {
			after = fmt.Sprintf("%d s", v.Retry)
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", code, v.Status, strings.ReplaceAll(v.Title, "|", `\|`), after)
	}
	return b.String()
}

// documentedCodes are the codes of the OpenAPI document, which is held to the running server.
func documentedCodes() (codes []string) {
	text, err := os.ReadFile("../docs/openapi.json")
	if err != nil {
		panic(err)
	}
	for _, found := range regexp.MustCompile(`"([a-z0-9_]+)"`).FindAllSubmatch(text, -1) {
		if code := string(found[1]); Codes[code].Status != 0 && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

func TestTheGuidesListTheCodes(t *testing.T) {
	holdTable(t, "../docs/INTEGRATION.md", codesBegin, codesEnd, codesTable())
	holdTable(t, "../docs/th/INTEGRATION.md", codesBegin, codesEnd, inThai(t, codesTable()))
}

// inThai is a table with each cell in Thai that has a word in it and is no code. What it says is in docs/th/sentences.json by the English
// cell, so that a sentence that changes has no translation until somebody gives it one.
func inThai(t *testing.T, table string) string {
	t.Helper()
	source, err := os.ReadFile("../docs/th/sentences.json")
	if err != nil {
		t.Fatal(err)
	}
	var sentences map[string]string
	if err := json.Unmarshal(source, &sentences); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`[^|\n]*[A-Za-z][^|\n]*`).ReplaceAllStringFunc(table, func(cell string) string {
		english := strings.TrimSpace(cell)
		if strings.HasPrefix(english, "`") {
			return cell
		}
		if sentences[english] == "" {
			t.Errorf("docs/th/sentences.json does not say %q in Thai", english)
		}
		return " " + sentences[english] + " "
	})
}

// holdTable compares what stands between two lines of a guide with what should, and writes it with -update.
func holdTable(t *testing.T, file, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no place for the table that begins with %s", file, begin)
	case have == want:
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not show the table as the code has it; make generate writes it: %s", file, begin)
	}
}

// Every address that the guides speak of is a route.
func TestTheGuidesSpeakOfRoutesThatExist(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		spoken := regexp.MustCompile("[` \"'(](?:https://queue\\.example\\.com)?(/(?:api|connectors|snippet|docs|w|healthz|metrics|events)(?:/[A-Za-z0-9:._{}<>-]+)*)")
		variable := regexp.MustCompile(`:[A-Za-z]+|\{[A-Za-z]+\}|<[A-Za-z]+>|SLUG|…`)
		seen := 0
		for _, file := range []string{"../docs/INTEGRATION.md", "../docs/OPERATIONS.md", "../docs/th/INTEGRATION.md", "../docs/th/OPERATIONS.md", "../README.md"} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range spoken.FindAllSubmatch(text, -1) {
				path := strings.TrimRight(variable.ReplaceAllString(string(m[1]), "shop"), ".")
				if path == "/api/v1" || path == "/api" || strings.HasPrefix(path, "/api/v4") || path == "/api/management" || path == "/w" {
					continue // a prefix, or what the README says is not there
				}
				seen++
				if r, _ := w.server.find(path); r == nil {
					t.Errorf("%s speaks of %s, which is no route", file, m[1])
				}
			}
		}
		if seen < 40 {
			t.Errorf("only %d addresses were found", seen)
		}
	})
}

// Proves: docs
func TestGuides(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		b := w.browser("198.51.100.1")
		for _, path := range []string{"/docs", "/docs/integration", "/docs/operations", "/docs/architecture", "/docs/performance", "/docs/reference", "/docs/th", "/docs/th/integration", "/docs/th/operations", "/progress"} {
			a := b.do("GET", path, "")
			if a.status != http.StatusOK || !strings.Contains(a.body, "<h1") || strings.Contains(a.body, `<html lang="th">`) != strings.HasPrefix(path, "/docs/th") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%s: %d", path, a.status)
			}
			if head := b.do("HEAD", path, ""); head.status != http.StatusOK || head.body != "" {
				t.Errorf("HEAD %s: %d %q", path, head.status, head.body)
			}
		}
		for _, path := range []string{"/docs/", "/docs/nothing", "/docs/INTEGRATION.md", "/docs/../docs", "/docs/th/", "/docs/th/nothing", "/docs/th/architecture", "/docs/de"} {
			if a := b.do("GET", path, ""); a.status != http.StatusNotFound {
				t.Errorf("%s: %d", path, a.status)
			}
		}
	})
}
