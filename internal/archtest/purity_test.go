package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"path"
	"slices"
	"testing"
)

// core is the package that has to be pure: the same events must lead to the same state on every
// machine and at any time (architecture.md, "The core"; domain.md, rule 3).
const core = "engine/room"

// outside are packages through which the world, chance or another goroutine would get in.
var outside = []string{
	"context", "crypto/rand", "log", "log/slog", "net", "net/http", "os", "os/exec", "os/signal", "path/filepath", "runtime",
	"sync", "sync/atomic", "syscall", "time/tzdata", "unsafe", "math/rand", "embed", "io/fs", "iter",
}

// pureTime are the members of package time that read no clock and start none.
var pureTime = []string{
	"Time", "Duration", "Month", "Weekday", "Location", "UTC", "Date", "Unix", "UnixMilli", "UnixMicro", "Parse", "ParseDuration",
	"Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour", "RFC3339", "RFC3339Nano", "DateOnly", "DateTime",
}

// seeded are the members of math/rand/v2 that hold no global state.
var seeded = []string{"Rand", "Source", "New", "NewChaCha8", "ChaCha8", "NewPCG", "PCG", "NewZipf", "Zipf"}

// purityRule looks for what needs no types: clocks, goroutines, channels and chance.
func purityRule(s source) (findings []string) {
	find := func(n ast.Node, format string, args ...any) {
		findings = append(findings, s.at(n)+": "+fmt.Sprintf(format, args...)+" in the pure core")
	}
	for i, p := range s.imports() {
		if slices.Contains(outside, p) {
			find(s.file.Imports[i], "import of %s", p)
		}
	}
	s.uses("time", func(n ast.Node, member string) {
		if !slices.Contains(pureTime, member) {
			find(n, "time.%s", member)
		}
	})
	s.uses("math/rand/v2", func(n ast.Node, member string) {
		if !slices.Contains(seeded, member) {
			find(n, "the global rand.%s", member)
		}
	})
	s.uses("maps", func(n ast.Node, member string) {
		if slices.Contains([]string{"All", "Keys", "Values"}, member) {
			find(n, "the random order of maps.%s", member)
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			find(n, "a goroutine")
		case *ast.ChanType:
			find(n, "a channel")
		case *ast.SelectStmt:
			find(n, "a select")
		case *ast.SendStmt:
			find(n, "a send")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				find(n, "a receive")
			}
		}
		return true
	})
	return findings
}

// mapRule looks for ranges over maps, whose order is random. What it cannot give a type it reports.
func mapRule(sources []source) (findings []string) {
	if len(sources) == 0 {
		return nil
	}
	files := make([]*ast.File, len(sources))
	for i, s := range sources {
		files[i] = s.file
	}
	fset := sources[0].fset
	var broken []error
	config := types.Config{
		Importer: importer.ForCompiler(fset, "source", nil),
		Error:    func(err error) { broken = append(broken, err) },
	}
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	_, _ = config.Check(module+"/"+sources[0].dir(), fset, files, &info) // Errors are in broken.
	for _, err := range broken {
		findings = append(findings, fmt.Sprintf("%s: does not type-check: %v", sources[0].dir(), err))
	}
	for _, s := range sources {
		ast.Inspect(s.file, func(n ast.Node) bool {
			loop, ok := n.(*ast.RangeStmt)
			if !ok {
				return true
			}
			typ := info.TypeOf(loop.X)
			if typ == nil || typ == types.Typ[types.Invalid] {
				findings = append(findings, s.at(loop)+": a range over something without a known type")
			} else if _, isMap := typ.Underlying().(*types.Map); isMap {
				findings = append(findings, s.at(loop)+": a range over a map, whose order is random, in the pure core")
			}
			return true
		})
	}
	return findings
}

func TestTheCoreIsPure(t *testing.T) {
	var sources []source
	for _, s := range tree(t) {
		if s.dir() == core && !s.test() {
			sources = append(sources, s)
			report(t, purityRule(s))
		}
	}
	report(t, mapRule(sources))
}

func TestThePurityRuleBites(t *testing.T) {
	s := parse(t, path.Join(core, "x.go"), `package room
import (
	"math/rand/v2"
	"maps"
	clock "time"
	"sync" // bad
)
var mu sync.Mutex
var day clock.Time
var soon = clock.Now() // bad
var late = clock.AfterFunc // bad
var chance = rand.IntN(3) // bad
var fair = rand.New(rand.NewPCG(1, 2)).IntN(3)
var order = maps.Keys(map[int]int{}) // bad
func f(wake chan int) { // bad
	go f(nil) // bad
	wake <- 1 // bad
	<-wake // bad
	select {} // bad
}
func g() {
	clock := struct{ Now func() int }{}
	clock.Now()
}`)
	expect(t, s, purityRule(s))
}

func TestTheMapRuleBites(t *testing.T) {
	s := parse(t, path.Join(core, "x.go"), `package room
import "strings"
type index map[string]int
type state struct{ byName index }
func f(s *state, names []string) {
	for range s.byName { // bad
	}
	for k := range map[int]bool{} { // bad
		_ = k
	}
	for range names {
	}
	for range strings.Split("a b", " ") {
	}
	for range 10 {
	}
}`)
	expect(t, s, mapRule([]source{s}))
}
