package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"text/tabwriter"
	"time"
)

// figure is one measured number beside its bound.
type figure struct {
	What     string  `json:"what"`
	Bound    string  `json:"bound"` // in words: "≥ 0.85"
	Measured float64 `json:"measured"`
	Met      bool    `json:"met"`
	Detail   string  `json:"detail"` // the absolute figures behind it, which hold for this run of this machine alone
}

// atLeast and atMost judge a figure.
func atLeast(what string, bound, measured float64, format string, args ...any) figure {
	return figure{what, fmt.Sprintf("≥ %g", bound), measured, measured >= bound, fmt.Sprintf(format, args...)}
}

func atMost(what string, bound, measured float64, format string, args ...any) figure {
	return figure{what, fmt.Sprintf("≤ %g", bound), measured, measured <= bound, fmt.Sprintf(format, args...)}
}

// subject is one thing to measure, with all its figures.
type subject struct {
	name string // for --only
	run  func(context.Context, *bench) ([]figure, error)
}

var subjects = []subject{
	{"tokens", measureTokens},
	{"rank", measureRank},
	{"draw", measureDraw},
	{"line-memory", measureLineMemory},
	{"projection", measureProjection},
	{"joins-actor", measureActorJoins},
	{"joins-latency", measureAnswerTime},
	{"joins-http", measureHTTPJoins},
	{"status-http", measureHTTPStatus},
	{"streams", measureStreams},
	{"memory", measureResident},
	{"replay", measureReplay},
	{"start", measureStart},
}

// bench is one run.
type bench struct {
	quick   bool
	rounds  int           // sets of slices; the median of their ratios counts
	slice   time.Duration // of one base or candidate
	servers *servers
	say     func(format string, args ...any)
}

// scale is n in a full run and quick in a quick one.
func (b *bench) scale(n, quick int) int {
	if b.quick {
		return quick
	}
	return n
}

func runBench(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var names []string
	for _, s := range subjects {
		names = append(names, s.name)
	}
	flags := flag.NewFlagSet("qm-load bench", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print one JSON object")
	quick := flags.Bool("quick", false, "smaller data and shorter slices: for a look, not for the record")
	only := flags.String("only", "", "measure only these, separated by commas: "+strings.Join(names, ", "))
	profile := flags.String("cpuprofile", "", "write a CPU profile to this file")
	verbose := flags.Bool("verbose", false, "say what is being done on standard error")
	if err := parse(flags, args, stderr); err != nil {
		return err
	}
	chosen, err := choose(*only, names)
	if err != nil {
		return err
	}
	b := &bench{quick: *quick, rounds: 7, slice: 1500 * time.Millisecond, servers: newServers(stderr), say: func(string, ...any) {}}
	if *quick {
		b.rounds, b.slice = 5, 400*time.Millisecond
	}
	if *verbose {
		b.say = func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	}
	defer b.servers.stop()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}

	began := time.Now()
	report := Report{Machine: machine(), Quick: *quick}
	for _, s := range chosen {
		b.say("%s …", s.name)
		at := time.Now()
		figures, err := s.run(ctx, b)
		if err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
		report.Figures = append(report.Figures, figures...)
		for _, f := range figures {
			b.say("  %s: %.3g (%s) %s", f.What, f.Measured, f.Bound, f.Detail)
		}
		b.say("  took %s", time.Since(at).Round(100*time.Millisecond))
		debug.FreeOSMemory() // the next subject is not to pay for this one's garbage
	}
	report.Seconds = time.Since(began).Seconds()
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(report)
	}
	return report.print(stdout)
}

func choose(only string, names []string) ([]subject, error) {
	if only == "" {
		return subjects, nil
	}
	var chosen []subject
	for _, want := range strings.Split(only, ",") {
		found := false
		for _, s := range subjects {
			if s.name == strings.TrimSpace(want) {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("--only: %q is none of %s", want, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}

// Report is what bench --json prints.
type Report struct {
	Machine string   `json:"machine"`
	Quick   bool     `json:"quick"`
	Seconds float64  `json:"seconds"`
	Figures []figure `json:"figures"`
}

// machine describes where the figures come from, without naming it.
func machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

func (r *Report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| what\t| bound\t| measured\t|\t| behind it\t|")
	fmt.Fprintln(t, "| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, f := range r.Figures {
		met := "met"
		if !f.Met {
			met = "short"
		}
		fmt.Fprintf(t, "| %s\t| %s\t| %s\t| %s\t| %s\t|\n", f.What, f.Bound, number(f.Measured), met, f.Detail)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	kind := ""
	if r.Quick {
		kind = " (--quick: not for the record)"
	}
	_, err := fmt.Fprintf(w, "\n%s; %.0f s in all%s\n", r.Machine, r.Seconds, kind)
	return err
}

// number prints three digits that matter.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
