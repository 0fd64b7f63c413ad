// Mutants puts curated one-edit bugs into a copy of the module, one at a time, and runs the tests
// that are expected to notice. A bug that they do not notice has survived: the suite has a hole
// there. The table is in mutants.go.
//
//	go run ./internal/mutants [-only regexp] [-v]
//
// It exits 0 when every mutant is killed, 1 when one survives or can no longer be applied, and 2 when
// it could not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

func main() {
	only := flag.String("only", "", "run the mutants whose name matches this regular expression")
	verbose := flag.Bool("v", false, "print what the tests said of each mutant")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Stdout, *only, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		code = 2
	}
	stop()
	os.Exit(code)
}

func run(ctx context.Context, out io.Writer, only string, verbose bool) (code int, err error) {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return 0, fmt.Errorf("read -only: %w", err)
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return 0, fmt.Errorf("find the module: %w", err)
	}
	dir, err := os.MkdirTemp("", "qm-mutants-")
	if err != nil {
		return 0, fmt.Errorf("make a directory for the copy: %w", err)
	}
	defer os.RemoveAll(dir) // It is below the system's temporary directory.
	if err := copyModule(strings.TrimSpace(string(root)), dir); err != nil {
		return 0, err
	}

	l := lab{dir: dir, out: out, verbose: verbose, healthy: map[string]error{}}
	bad, tried := 0, 0
	for _, m := range mutants {
		if !chosen.MatchString(m.name) {
			continue
		}
		verdict := l.try(ctx, m)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		tried++
		if verdict == nil {
			fmt.Fprintf(out, "killed    %s\n", m.name)
			continue
		}
		bad++
		summary, detail, _ := strings.Cut(verdict.Error(), "\n")
		fmt.Fprintf(out, "FAIL      %s (%s): %s\n", m.name, m.file, summary)
		if verbose && detail != "" {
			fmt.Fprintln(out, detail)
		}
	}
	fmt.Fprintf(out, "%d of %d mutants killed\n", tried-bad, tried)
	if bad > 0 {
		return 1, nil
	}
	return 0, nil
}

// errSurvived is the verdict on a mutant that the tests let pass.
var errSurvived = errors.New("SURVIVED")

// lab is the copy in which mutants live.
type lab struct {
	dir     string
	out     io.Writer
	verbose bool
	healthy map[string]error // what the tests say without a mutant, by what is run
}

// try applies the mutant, runs its tests and takes it out again. It returns nil when it was killed.
func (l *lab) try(ctx context.Context, m mutant) error {
	file := filepath.Join(l.dir, filepath.FromSlash(m.file))
	whole, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("DOES NOT APPLY: %w", err)
	}
	mutated, err := m.apply(string(whole))
	if err != nil {
		return fmt.Errorf("DOES NOT APPLY: %w", err)
	}
	// Tests that fail anyway would kill everything.
	what := strings.Join(m.args(), " ")
	if _, known := l.healthy[what]; !known {
		l.healthy[what] = l.gotool(ctx, m.args()...)
	}
	if err := l.healthy[what]; err != nil {
		return fmt.Errorf("CANNOT TELL: the tests fail without it: %w", err)
	}

	if err := os.WriteFile(file, []byte(mutated), 0o644); err != nil {
		return fmt.Errorf("CANNOT TELL: %w", err)
	}
	defer os.WriteFile(file, whole, 0o644) //nolint:errcheck // The next mutant of the file fails to apply then.
	if err := l.gotool(ctx, "build", m.tests); err != nil {
		return fmt.Errorf("DOES NOT COMPILE: %w", err)
	}
	err = l.gotool(ctx, m.args()...)
	if err == nil {
		return errSurvived
	}
	if l.verbose {
		fmt.Fprintf(l.out, "%v\n", err)
	}
	return nil
}

// gotool runs the go command in the copy; the error carries the end of what it printed.
func (l *lab) gotool(ctx context.Context, args ...string) error {
	const enough = 3000
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = l.dir
	printed, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if len(printed) > enough {
		printed = printed[len(printed)-enough:]
	}
	return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, printed)
}

// copyModule copies the files of the module, without what git and the developer keep beside them.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch base := entry.Name(); {
		case entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "bin"):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("copy the module: %w", err)
		}
		return os.WriteFile(target, content, 0o644)
	})
}
