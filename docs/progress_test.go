package docs

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write progress.json anew from the tests' sources")

// proofs reads which tests name which lines of the contracts: "Proves: id, id" in a test's comment.
func proofs(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "node_modules" || strings.HasPrefix(e.Name(), ".") && e.Name() != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil {
				continue
			}
			for line := range strings.Lines(f.Doc.Text()) {
				ids, proves := strings.CutPrefix(strings.TrimSpace(line), "Proves: ")
				if !proves {
					continue
				}
				if !strings.HasPrefix(f.Name.Name, "Test") || f.Recv != nil {
					t.Errorf("%s: %s is no test, and proves nothing", path, f.Name.Name)
				}
				name := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../")) + "." + f.Name.Name
				for id := range strings.SplitSeq(ids, ", ") {
					found[id] = append(found[id], name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range found {
		slices.Sort(names)
	}
	return found
}

// The page lists the tests that there are, and each of them names a line that there is.
//
// Proves: progress
func TestProgressIsMadeOfTheTests(t *testing.T) {
	found := proofs(t)
	known := map[string]bool{}
	for _, c := range clauses() {
		if known[c.ID] {
			t.Errorf("two lines are called %s", c.ID)
		}
		known[c.ID] = true
	}
	for id, tests := range found {
		if !known[id] {
			t.Errorf("%v prove %q, which nobody asks for", tests, id)
		}
	}
	want, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	have, err := os.ReadFile("progress.json")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case bytes.Equal(have, want):
	case *update:
		if err := os.WriteFile("progress.json", want, 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("progress.json is not what the tests' comments say: make generate writes it anew")
	}
}

// What no test proves is said to be unproved.
func TestProgressSaysWhatIsMissing(t *testing.T) {
	page := string(Progress())
	for _, c := range clauses() {
		_, row, found := strings.Cut(page, `<td id="`+c.ID+`">`)
		row, _, _ = strings.Cut(row, "</tr>")
		if !found || strings.Contains(row, "not proved yet") != (len(c.Tests) == 0) {
			t.Errorf("%s with %v: %s", c.ID, c.Tests, row)
		}
	}
}
