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
// nothing. (rapid's Skip is refused with them: it hides how few draws are left.)
func skipRule(s source) (findings []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, _ := sel.X.(*ast.Ident)
		onTest := x != nil && slices.Contains([]string{"t", "b", "f", "tb", "rt"}, x.Name)
		switch name := sel.Sel.Name; {
		case name == "Skipf", name == "SkipNow", name == "Skip" && onTest:
			findings = append(findings, s.at(call)+": a test that may be skipped")
		case name == "Short" && x != nil && x.Name == "testing":
			findings = append(findings, s.at(call)+": a test that is less when run short")
		}
		return true
	})
	return findings
}

// sleepRule refuses tests that hope that something has happened meanwhile. In a bubble of
// testing/synctest the clock is a fake one, and a sleep is exact.
func sleepRule(s source) (findings []string) {
	if !s.test() || s.nameOf("testing/synctest") != "" {
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
	for _, s := range tree(t) {
		report(t, slices.Concat(nameRule(s), skipRule(s), sleepRule(s)))
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
}`, skipRule},
		{"engine/x_test.go", `package engine
import "time"
func wait() {
	time.Sleep(1) // bad
}`, sleepRule},
		{"engine/x_test.go", `package engine
import ("time"; "testing/synctest")
var _ = synctest.Wait
func wait() { time.Sleep(1) }`, sleepRule},
		{"engine/x.go", `package engine
import "time"
func wait() { time.Sleep(1) }`, sleepRule},
	}
	for _, c := range cases {
		s := parse(t, c.name, c.text)
		expect(t, s, c.rule(s))
	}
}
