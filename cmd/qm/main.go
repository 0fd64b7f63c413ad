// Command qm is the Queue Manager server: a virtual waiting room. It is configured by environment variables alone; see
// docs/OPERATIONS.md. It ends in order on SIGINT and SIGTERM: exit code 0; 1 when it fails; 2 when the configuration is wrong.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"qm/engine"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "qm takes no arguments: it is configured by environment variables, which docs/OPERATIONS.md lists.")
		os.Exit(2)
	}
	engine.TuneCollector()
	os.Exit(run(os.Environ(), os.Stdout, os.Stderr))
}

func run(environ []string, stdout, stderr *os.File) int {
	config, err := LoadConfig(environ)
	if err != nil {
		fmt.Fprintf(stderr, "qm does not start: the configuration is wrong.\n%v\n", err)
		return 2
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app, err := Build(ctx, config, log)
	if err != nil {
		log.Error("qm does not start", "error", err)
		return 1
	}
	app.greet(stdout)
	if err := app.Run(ctx); err != nil {
		log.Error("qm has failed", "error", err)
		return 1
	}
	return 0
}
