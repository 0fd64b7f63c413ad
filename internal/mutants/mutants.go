package main

import (
	"fmt"
	"strings"
)

// mutant is one bug.
type mutant struct {
	name  string // what goes wrong
	file  string // from the module's root
	old   string // occurs exactly once in the file
	new   string
	tests string // the package pattern of the tests that must notice
	only  string // a -run expression that picks among them; "" runs all
}

// apply returns the file with the bug in it.
func (m mutant) apply(file string) (string, error) {
	if n := strings.Count(file, m.old); n != 1 {
		return "", fmt.Errorf("the text to replace occurs %d times in %s", n, m.file)
	}
	return strings.Replace(file, m.old, m.new, 1), nil
}

// args is the go command that runs the mutant's tests.
func (m mutant) args() []string {
	args := []string{"test", "-count=1", "-failfast", "-timeout=5m"}
	if m.only != "" {
		args = append(args, "-run="+m.only)
	}
	return append(args, m.tests)
}

// mutants are bugs that somebody could make in an hour of haste and that would cost a visitor a
// place, or an operator the truth. A change that moves the text of one moves it here too.
var mutants = []mutant{
	{
		name:  "a rank counts the ticket itself",
		file:  "engine/room/line.go",
		old:   "bits.OnesCount64(words[last]&(1<<(n&63)-1))",
		new:   "bits.OnesCount64(words[last]&(2<<(n&63)-1))",
		tests: "./engine/room",
		only:  "Line",
	},
	{
		name:  "a removal leaves the counts behind it",
		file:  "engine/room/line.go",
		old:   "l.shift(uint32(n)>>lineBlockBits, ^uint32(0))",
		new:   "l.shift(uint32(n)>>lineBlockBits, 0)",
		tests: "./engine/room",
		only:  "Line",
	},
}
