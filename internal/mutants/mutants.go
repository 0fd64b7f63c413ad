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
	},
	{
		name:  "a removal leaves the counts behind it",
		file:  "engine/room/line.go",
		old:   "l.shift(uint32(n)>>lineBlockBits, ^uint32(0))",
		new:   "l.shift(uint32(n)>>lineBlockBits, 0)",
		tests: "./engine/room",
	},
	{
		name:  "credit is saved up while nobody waits",
		file:  "engine/room/outflow.go",
		old:   "\tif m.idle {\n\t\tm.Credit",
		new:   "\tif false {\n\t\tm.Credit",
		tests: "./engine/room",
	},
	{
		name:  "time without an owner is made up",
		file:  "engine/room/outflow.go",
		old:   "min(max(now-m.at, 0), maxSlice-m.slice)",
		new:   "max(now-m.at, 0)",
		tests: "./engine/room",
	},
	{
		name:  "the clock passes more than there are slots",
		file:  "engine/room/outflow.go",
		old:   "p.paid < min(budget, slots);",
		new:   "p.paid < budget;",
		tests: "./engine/room",
	},
	{
		name:  "a flush passes one more than there are slots",
		file:  "engine/room/outflow.go",
		old:   "if !ghost && p.paid == slots {",
		new:   "if !ghost && p.paid > slots {",
		tests: "./engine/room",
	},
	{
		name:  "a new owner takes everybody for a ghost",
		file:  "engine/room/outflow.go",
		old:   "now-max(p.Seen(n), p.Since())",
		new:   "now-p.Seen(n)",
		tests: "./engine/room",
	},
	{
		name:  "an identity's entries are dealt in the order in which they came",
		file:  "engine/room/draw.go",
		old:   "shuffleEntries(stream, entries[start:end])",
		new:   "_ = entries[start:end]",
		tests: "./engine/room",
	},
	{
		name:  "an ejected ticket goes to a number that is taken",
		file:  "engine/room/decide.go",
		old:   "To: s.last + 1})",
		new:   "To: s.last})",
		tests: "./engine/room",
	},
	{
		name:  "the chain does not cover who did it",
		file:  "journal/chain.go",
		old:   "\tb = appendField(b, r.Actor)\n",
		new:   "",
		tests: "./journal",
	},
	{
		name:  "a stale owner may write in memory",
		file:  "journal/memory.go",
		old:   "case s.head.Epoch != epoch,",
		new:   "case s.head.Epoch < epoch,",
		tests: "./journal",
	},
	{
		name:  "a stale owner may write in Postgres",
		file:  "journal/postgres/append.go",
		old:   "epoch = $2::bigint and seq",
		new:   "$2::bigint is not null and seq",
		tests: "./journal/postgres",
	},
	{
		name:  "a stale publisher overwrites the projection",
		file:  "projection/valkey/scripts/apply.lua",
		old:   "tonumber(ARGV[1]) < tonumber(head[2])",
		new:   "false",
		tests: "./projection/valkey",
	},
	{
		name:  "a failed append is forgotten",
		file:  "engine/actor.go",
		old:   "\t\ta.fail(cause)\n\t\treturn err\n",
		new:   "\t\treturn nil\n",
		tests: "./engine",
	},
	{
		name:  "an answer overtakes its commit",
		file:  "engine/actor.go",
		old:   "\ta.flying, a.flownAt = &b, time.Now()\n",
		new:   "\ta.reply(&b)\n\tb.replies = nil\n\ta.flying, a.flownAt = &b, time.Now()\n",
		tests: "./engine",
	},
	{
		name:  "an owner whose clock is behind earns for the time until it has caught up",
		file:  "engine/room/outflow.go",
		old:   "at: max(now, s.at)}",
		new:   "at: now}",
		tests: "./engine/room",
	},
	{
		name:  "a clock that was set back runs back in the room",
		file:  "engine/actor.go",
		old:   "a.clock = max(a.clock, room.Instant(wall.UnixMilli()), a.state.At())",
		new:   "a.clock = max(room.Instant(wall.UnixMilli()), a.state.At())",
		tests: "./engine",
	},
	{
		name:  "a process that was stopped takes everybody for a ghost",
		file:  "engine/presence.go",
		old:   "now > was+observeGap",
		new:   "false",
		tests: "./engine",
	},
	{
		name:  "the draw does not wait for what is on its way",
		file:  "engine/actor.go",
		old:   "\t\t\tif a.flying != nil {\n\t\t\t\treturn nil // the draw",
		new:   "\t\t\tif false {\n\t\t\t\treturn nil // the draw",
		tests: "./engine",
	},
	{
		name:  "a lease that is not trusted answers",
		file:  "engine/actor.go",
		old:   "case len(b.events) == 0 && !trusted:",
		new:   "case false && !trusted:",
		tests: "./engine",
	},
	{
		name:  "a snapshot of another history is believed",
		file:  "engine/runner.go",
		old:   "if rec.Hash != snap.Hash {",
		new:   "if false {",
		tests: "./engine",
	},
	{
		name:  "a lost projection reads as a missing room",
		file:  "engine/view.go",
		old:   "fmt.Errorf(\"%w: %v\", ErrStorage, err)",
		new:   "fmt.Errorf(\"%w: %w\", ErrStorage, err)",
		tests: "./engine",
	},
	{
		name:  "the verifier overlooks a second pass",
		file:  "replay/invariants_pass.go",
		old:   "v.found(PassTwice, \"ticket %d passes a second time\", n)",
		new:   "_ = PassTwice",
		tests: "./replay",
	},
	{
		name:  "a token signed with another key is believed",
		file:  "access/token/keyring.go",
		old:   "subtle.ConstantTimeCompare(want, m.text[dot+1:n]) == 1",
		new:   "subtle.ConstantTimeCompare(want, m.text[dot+1:n]) >= 0",
		tests: "./access/token",
	},
}
