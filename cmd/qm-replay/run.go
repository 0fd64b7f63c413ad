package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"qm/access/org"
	"qm/replay"
)

// The exit codes (contract.md 15).
const (
	holds    = 0 // all holds
	reported = 1 // a finding was reported
	unable   = 2 // it could not run
)

const usage = `qm-replay reads the journals of Queue Manager's rooms.

Usage:
  qm-replay VERB [--room ID] [FILE]

With FILE it reads NDJSON, as export writes it; "-" is standard input. Without FILE it reads the database of
DATABASE_URL and, for diff and rebuild, the Valkey of VALKEY_URL. Without --room it takes all rooms.

Verbs:
  verify   check the hash chain, gaps, order and every numbered invariant
  show     tell what happened, in words; --ticket N tells the story of one ticket
  export   write the records as NDJSON
  diff     compare what Valkey and the rooms' history hold with what the journal says (a FILE takes the place of the
           database; the history is left out then)
  rebuild  make Valkey's projection and the rooms' history anew from the database
  draw     check each draw: commitment, seed and recomputed order

Options:
  --room ID      one room only; with verify, show and export also $org, the stream of operators and their acts
  --json         findings (and what show and draw tell) as JSON lines
  --head HASH    verify: a head hash noted elsewhere, which the journal must contain; 64 hex digits
  --ticket N     show: one ticket only
  --progress     say on standard error how far it has come, also when that is not a terminal

It exits 0 when all holds, 1 when a finding is reported (each is one line: room, seq, invariant, what is wrong), 2 when it could not run.
`

// command is one call of qm-replay.
type command struct {
	verb     string
	room     string
	file     string // "" is the database
	json     bool
	head     string
	ticket   uint64
	progress bool

	stdin  io.Reader
	out    *bufio.Writer
	stderr io.Writer
	env    func(string) string
	meter  *progress
	found  int
}

var verbs = map[string]func(*command, context.Context) error{
	"verify":  (*command).verify,
	"show":    (*command).show,
	"export":  (*command).export,
	"diff":    (*command).diff,
	"rebuild": (*command).rebuild,
	"draw":    (*command).draw,
}

// run is main without a process around it; it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	if len(args) > 0 && (args[0] == "help" || args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		fmt.Fprint(stdout, usage)
		return holds
	}
	c := &command{stdin: stdin, out: bufio.NewWriterSize(stdout, 64<<10), stderr: stderr, env: env}
	if err := c.parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, usage)
			return holds
		}
		fmt.Fprintf(stderr, "qm-replay: %v\n\nqm-replay --help says how it is called.\n", err)
		return unable
	}
	c.meter = newProgress(stderr, c.progress)
	err := verbs[c.verb](c, ctx)
	c.meter.end()
	var damage *replay.DamageError
	if errors.As(err, &damage) {
		c.report(damage.Finding)
		err = nil
	}
	if flushed := c.out.Flush(); err == nil && flushed != nil {
		err = fmt.Errorf("write the answer: %w", flushed)
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "qm-replay: %v\n", err)
		return unable
	case c.found > 0:
		return reported
	}
	return holds
}

// parse takes options before and after FILE.
func (c *command) parse(args []string) error {
	if len(args) == 0 {
		return errors.New("which verb? One of verify, show, export, diff, rebuild, draw")
	}
	c.verb = args[0]
	if verbs[c.verb] == nil {
		return fmt.Errorf("there is no verb %q; there are verify, show, export, diff, rebuild, draw", c.verb)
	}
	flags := flag.NewFlagSet(c.verb, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.room, "room", "", "")
	flags.BoolVar(&c.json, "json", false, "")
	flags.BoolVar(&c.progress, "progress", false, "")
	if c.verb == "verify" {
		flags.StringVar(&c.head, "head", "", "")
	}
	if c.verb == "show" {
		flags.Uint64Var(&c.ticket, "ticket", 0, "")
	}
	for rest := args[1:]; ; {
		if err := flags.Parse(rest); err != nil {
			return err
		}
		if flags.NArg() == 0 {
			break
		}
		if c.file != "" {
			return fmt.Errorf("one FILE is enough: %q and %q were given", c.file, flags.Arg(0))
		}
		if c.file = flags.Arg(0); c.file == "" {
			return errors.New("FILE is an empty name")
		}
		rest = flags.Args()[1:]
	}
	if c.room != "" && !validRoom(c.room) && !(c.room == org.Stream && (c.verb == "verify" || c.verb == "show" || c.verb == "export")) {
		return fmt.Errorf("--room %q is no room id: 3 to 64 of a-z 0-9 -, not starting or ending with -", c.room)
	}
	if c.ticket > uint64(maxTicket) {
		return fmt.Errorf("--ticket %d: there are no such tickets", c.ticket)
	}
	if c.verb == "rebuild" && c.file != "" {
		return errors.New("rebuild makes the projection of what is in the database; it takes no FILE")
	}
	return nil
}

// validRoom is contract.md 1.
func validRoom(id string) bool {
	if len(id) < 3 || len(id) > 64 || id[0] == '-' || id[len(id)-1] == '-' {
		return false
	}
	for i := range len(id) {
		if ch := id[i]; ch != '-' && (ch < '0' || ch > '9') && (ch < 'a' || ch > 'z') {
			return false
		}
	}
	return true
}

// isTerminal tells whether somebody watches w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
