package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table must keep up with the code; that needs no run of the mutants.
func TestEveryMutantApplies(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
		file, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(m.file)))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if _, err := m.apply(string(file)); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if m.tests == "" || m.old == m.new {
			t.Errorf("%s: no tests, or no change", m.name)
		}
	}
}

func TestVerdicts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module example\n\ngo 1.26\n",
		"sum/sum.go":       "package sum\n\nfunc Sum(a, b int) int { return a + b }\n\nfunc Untested() int { return 1 }\n",
		"sum/sum_test.go":  "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) != 5 {\n\t\tt.Fatal()\n\t}\n}\n",
		"sick/sick.go":     "package sick\n\nfunc One() int { return 1 }\n",
		"sick/one_test.go": "package sick\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) { t.Fatal() }\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := lab{dir: dir, out: os.Stderr, healthy: map[string]error{}}
	cases := []struct {
		want string // "" is a kill
		m    mutant
	}{
		{"", mutant{file: "sum/sum.go", old: "a + b", new: "a - b", tests: "./sum"}},
		{"SURVIVED", mutant{file: "sum/sum.go", old: "return 1", new: "return 2", tests: "./sum"}},
		{"SURVIVED", mutant{file: "sum/sum.go", old: "a + b", new: "a - b", tests: "./sum", only: "Other"}},
		{"DOES NOT APPLY", mutant{file: "sum/sum.go", old: "a * b", new: "a", tests: "./sum"}},
		{"DOES NOT APPLY", mutant{file: "sum/sum.go", old: "int", new: "int8", tests: "./sum"}},
		{"DOES NOT APPLY", mutant{file: "sum/none.go", old: "a", new: "b", tests: "./sum"}},
		{"DOES NOT COMPILE", mutant{file: "sum/sum.go", old: "a + b", new: "a +", tests: "./sum"}},
		{"CANNOT TELL", mutant{file: "sick/sick.go", old: "return 1", new: "return 2", tests: "./sick"}},
	}
	for _, c := range cases {
		err := l.try(t.Context(), c.m)
		if got := verdict(err); c.want == "" && err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s -> %s: %q, want %q", c.m.old, c.m.new, got, c.want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "sum/sum.go"))
	if err != nil || !strings.Contains(string(text), "return a + b") {
		t.Fatalf("a mutant was left behind: %q, %v", text, err)
	}
}

func verdict(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
