package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// longest is how many lines a file may have that is no test and was written by hand. The aim is
// about 600 (architecture.md, "Tree"); the rest is for the comment that was needed.
const longest = 650

// shapeless are names that say nothing of what is inside.
var shapeless = []string{"util", "utils", "common", "helper", "helpers", "pkg", "model", "models", "misc", "shared", "lib"}

// nameRule refuses packages with a name that says nothing.
func nameRule(s source) (findings []string) {
	for _, name := range append(strings.Split(s.dir(), "/"), strings.TrimSuffix(s.file.Name.Name, "_test")) {
		if slices.Contains(shapeless, name) {
			return []string{fmt.Sprintf("%s: a package called %s", s.at(s.file.Name), name)}
		}
	}
	return nil
}

// skipRule refuses tests that leave themselves out: a suite that passes without its parts has proved
// nothing. (rapid's Skip is refused with them: it hides how few draws are left.) A benchmark may be
// smaller when run short, since it passes no verdict.
func skipRule(s source) (findings []string) {
	for _, decl := range s.file.Decls {
		benchmark := false
		if f, ok := decl.(*ast.FuncDecl); ok {
			benchmark = strings.HasPrefix(f.Name.Name, "Benchmark")
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			onTest := x != nil && slices.Contains([]string{"t", "b", "f", "tb", "rt"}, x.Name)
			switch name := sel.Sel.Name; {
			case name == "Skipf", name == "SkipNow", name == "Skip" && onTest:
				findings = append(findings, s.at(sel)+": a test that may be skipped")
			case name == "Short" && x != nil && x.Name == "testing" && !benchmark:
				findings = append(findings, s.at(sel)+": a test that is less when run short")
			}
			return true
		})
	}
	return findings
}

// realWorld are imports of files whose tests run by the real clock, if the file itself makes no bubble.
var realWorld = []string{"net", "net/http/httptest", "os/exec", module + "/internal/testenv", module + "/internal/faultnet"}

// sleepRule refuses tests that hope that something has happened meanwhile. In a bubble of
// testing/synctest the clock is a fake one, and a sleep is exact: a file may sleep when it makes
// bubbles, or when its package does and nothing in the file could not be in one.
func sleepRule(s source, bubbles map[string]bool) (findings []string) {
	if !s.test() || s.nameOf("testing/synctest") != "" {
		return nil
	}
	real := slices.ContainsFunc(realWorld, func(p string) bool { return s.nameOf(p) != "" })
	if bubbles[s.dir()] && !real {
		return nil
	}
	s.uses("time", func(n ast.Node, member string) {
		if member == "Sleep" {
			findings = append(findings, s.at(n)+": time.Sleep in a test; await the event instead")
		}
	})
	return findings
}

func TestHabits(t *testing.T) {
	sources := tree(t)
	bubbles := map[string]bool{}
	for _, s := range sources {
		if s.test() && s.nameOf("testing/synctest") != "" {
			bubbles[s.dir()] = true
		}
	}
	for _, s := range sources {
		report(t, slices.Concat(nameRule(s), skipRule(s), sleepRule(s, bubbles)))
	}
}

func TestFilesStayShort(t *testing.T) {
	generated := map[string]bool{}
	for _, s := range tree(t) {
		generated[s.path] = s.generated()
	}
	each(t, func(name string, text []byte) {
		switch {
		case strings.HasSuffix(name, "_test.go"), generated[name], strings.Contains(path.Base(name), ".min."):
			return
		}
		if n := lines(text); n > longest {
			t.Errorf("%s: %d lines; split it by noun at about 600", name, n)
		}
	})
}

func TestTheHabitRulesBite(t *testing.T) {
	sleeps := func(s source) []string { return sleepRule(s, map[string]bool{"httpapi": true}) }
	cases := []struct {
		name, text string
		rule       func(source) []string
	}{
		{"engine/util/x.go", "package util // bad", nameRule},
		{"engine/x.go", "package models // bad", nameRule},
		{"engine/x_test.go", "package helpers_test // bad", nameRule},
		{"engine/room/x.go", "package room", nameRule},
		{"engine/x_test.go", `package engine
import "testing"
func TestA(t *testing.T) {
	t.Skip("later") // bad
	if testing.Short() { // bad
		t.SkipNow() // bad
	}
	line.Skip(3)
}
func BenchmarkA(b *testing.B) {
	if testing.Short() {
		b.Skip() // bad
	}
}`, skipRule},
		{"engine/x_test.go", `package engine
import "time"
func wait() {
	time.Sleep(1) // bad
}`, sleeps},
		{"engine/x_test.go", `package engine
import ("time"; "testing/synctest")
var _ = synctest.Wait
func wait() { time.Sleep(1) }`, sleeps},
		{"httpapi/x_test.go", `package httpapi
import "time"
func wait() { time.Sleep(1) }`, sleeps},
		{"httpapi/x_test.go", `package httpapi
import ("time"; "os/exec")
var _ = exec.Command
func wait() {
	time.Sleep(1) // bad
}`, sleeps},
		{"engine/x.go", `package engine
import "time"
func wait() { time.Sleep(1) }`, sleeps},
	}
	for _, c := range cases {
		s := parse(t, c.name, c.text)
		expect(t, s, c.rule(s))
	}
}
