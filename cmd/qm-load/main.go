// Command qm-load puts load on Queue Manager.
//
//	qm-load bench [--json] [--quick] [--only WORDS] [--verbose]   measures this machine beside bare baselines (docs/performance.md)
//	qm-load surge --url URL --room ID [--rate N] [--visitors N]…  sends visitors to a running server who join and poll
//
// It exits 0 when it could run (a figure that falls short is marked, not an error), 2 when it could not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"qm/engine"
)

func main() {
	engine.TuneCollector() // as the server does, which this program measures in its own process
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `qm-load puts load on Queue Manager.

  qm-load bench [--json] [--quick] [--only WORDS] [--verbose]
  qm-load surge --url URL --room ID [--rate N] [--visitors N] [--poll D] [--for D] [--forwarded]

"qm-load VERB -h" explains a verb's flags.
`

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	var err error
	switch verb {
	case "bench":
		err = runBench(ctx, args, stdout, stderr)
	case "surge":
		err = runSurge(ctx, args, stdout, stderr)
	case residentVerb: // what a bench starts for itself
		err = runResident(ctx, args, stdout, stderr)
	case streamsVerb: // likewise
		err = runStreams(ctx, args, os.Stdin, stdout, stderr)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	default:
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case !errors.Is(err, errFlags): // the flag package has said what is wrong
		fmt.Fprintf(stderr, "qm-load %s: %v\n", verb, err)
	}
	return 2
}

var errFlags = errors.New("wrong flags")

// parse reads a verb's flags. There are no other arguments.
func parse(flags *flag.FlagSet, args []string, stderr io.Writer) error {
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errFlags
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	return nil
}
