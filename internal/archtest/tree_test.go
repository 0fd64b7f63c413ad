package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module is the module's path; import paths below it are ours.
const module = "qm"

// root is the module's directory as seen from this package, where go test runs.
const root = "../.."

// source is one Go file.
type source struct {
	path string // from the module's root, with slashes
	fset *token.FileSet
	file *ast.File
}

func (s source) dir() string     { return path.Dir(s.path) }
func (s source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) generated() bool { return ast.IsGenerated(s.file) }

// at says where a node is, for a finding.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(n.Pos()).Line)
}

// imports lists the paths that the file imports.
func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// nameOf returns the name by which the file calls an imported package, or "" when it does not import
// it. No package that the rules look for has a name unlike the last element of its path, but for a
// version element.
func (s source) nameOf(importPath string) string {
	for _, spec := range s.file.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(strings.TrimSuffix(importPath, "/v2"))
	}
	return ""
}

// uses calls found for each mention of a member of an imported package, such as time.Now.
func (s source) uses(importPath string, found func(n ast.Node, member string)) {
	name := s.nameOf(importPath)
	if name == "" {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			// An identifier with an object is a variable of the file that hides the package.
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && x.Obj == nil {
				found(sel, sel.Sel.Name)
			}
		}
		return true
	})
}

// parse reads a source from text: rules are tried on such.
func parse(t *testing.T, name, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{path: name, fset: fset, file: file}
}

// tree parses every Go file of the module.
func tree(t *testing.T) []source {
	t.Helper()
	fset := token.NewFileSet()
	var all []source
	each(t, func(name string, text []byte) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			t.Errorf("parse: %v", err)
			return
		}
		all = append(all, source{path: name, fset: fset, file: file})
	})
	if len(all) == 0 {
		t.Fatal("no Go file found: is the module's root elsewhere?")
	}
	return all
}

// each calls visit for each file of the module that is ours and no data.
func each(t *testing.T, visit func(name string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			base := entry.Name()
			if name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "vendor" || base == "node_modules" || base == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go", ".js", ".css":
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			visit(name, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lines counts the lines of a text, the last one with or without its newline.
func lines(text []byte) int {
	return bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) + 1
}

// report fails the test with each finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

// expect checks that a rule names exactly the lines of the sample that end in a comment "// bad".
func expect(t *testing.T, s source, findings []string) {
	t.Helper()
	want := map[string]bool{}
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if strings.TrimSpace(strings.TrimPrefix(c.Text, "//")) == "bad" {
				want[s.at(c)] = true
			}
		}
	}
	got := map[string]bool{}
	for _, f := range findings {
		where, _, _ := strings.Cut(f, ": ")
		got[where] = true
		if !want[where] {
			t.Errorf("unexpected finding %q", f)
		}
	}
	for where := range want {
		if !got[where] {
			t.Errorf("%s: the rule found nothing", where)
		}
	}
}
