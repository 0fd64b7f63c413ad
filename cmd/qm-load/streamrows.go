package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"qm/access"
	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
	"qm/httpapi"
	"qm/journal"
)

// streamsVerb is how a bench calls itself: the streams' server is a process that has done nothing else, and its pages are another.
const streamsVerb = "streams"

// A bench of streams opens so many at first, so that what a process takes once is not counted.
const warmStreams = 200

// measureStreams weighs open event streams, and pushes a frame to all of them.
func measureStreams(ctx context.Context, b *bench) ([]figure, error) {
	some, many := b.scale(10_000, 2_000), b.scale(17_000, 4_000)
	c, err := startCinema(ctx, many)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	if err := c.fill(ctx, warmStreams); err != nil {
		return nil, err
	}
	before, err := c.resident(ctx)
	if err != nil {
		return nil, err
	}
	weigh := func(n int) (figure, error) {
		if err := c.fill(ctx, n); err != nil {
			return figure{}, err
		}
		after, err := c.resident(ctx)
		if err != nil {
			return figure{}, err
		}
		return atMost(fmt.Sprintf("memory an event stream, by the server's resident memory at %s, bytes", grouped(n)), 2048,
			float64(after-before)/float64(n-warmStreams), "the process has %d MB, with %d streams %d MB", after>>20, warmStreams, before>>20), nil
	}
	light, err := weigh(some)
	if err != nil {
		return nil, err
	}
	var pushes, works []float64
	for range b.rounds {
		push, work, err := c.push(ctx)
		if err != nil {
			return nil, err
		}
		pushes, works = append(pushes, push), append(works, work)
	}
	slices.Sort(pushes)
	slices.Sort(works)
	middle := len(pushes) / 2
	push := atMost(fmt.Sprintf("one frame to %s streams, from the first page's to the last one's, ms", grouped(some)), 120, pushes[middle],
		"%.0f to %.0f; the server's processors worked %.0f ms for it", pushes[0], pushes[len(pushes)-1], works[middle])
	heavy, err := weigh(many)
	if err != nil {
		return nil, err
	}
	return []figure{light, heavy, push}, nil
}

// cinema is a server in a process of its own, and pages here that listen to it.
type cinema struct {
	child *exec.Cmd
	ask   io.WriteCloser
	told  *bufio.Scanner
	addr  string
	keys  *token.Keyring

	pages   []net.Conn
	reading sync.WaitGroup
	lost    atomic.Int64
	wave    atomic.Pointer[wave]
	pushed  int
}

// wave is one push on its way.
type wave struct {
	mark        []byte // what its frame has in it
	left        atomic.Int64
	first, last atomic.Int64 // nanoseconds since began; first is 0 before
	began       time.Time
	done        chan struct{}
}

func startCinema(ctx context.Context, streams int) (*cinema, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &cinema{child: exec.CommandContext(ctx, self, streamsVerb, "--places", fmt.Sprint(streams))}
	c.child.Stderr = os.Stderr
	if c.keys, err = token.New(benchSecret, "", token.Options{}); err != nil {
		return nil, err
	}
	if c.ask, err = c.child.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.told = bufio.NewScanner(out)
	if err := c.child.Start(); err != nil {
		return nil, err
	}
	if !c.told.Scan() {
		return nil, fmt.Errorf("the streams' server does not start: %w", c.child.Wait())
	}
	c.addr = c.told.Text()
	return c, nil
}

func (c *cinema) stop() {
	_ = c.ask.Close() // which ends the server, and so the streams
	for _, p := range c.pages {
		_ = p.Close()
	}
	c.reading.Wait()
	_ = c.child.Wait()
}

// fill opens streams until there are n.
func (c *cinema) fill(ctx context.Context, n int) error {
	const together = 64
	from := len(c.pages)
	c.pages = slices.Grow(c.pages, n-from)[:n]
	next := atomic.Int64{}
	next.Store(int64(from))
	errs := make(chan error, together)
	for range together {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					errs <- ctx.Err()
					return
				}
				err := c.open(i)
				for again := 0; err != nil && again < 5; again++ { // on a busy machine a request may come later than a server waits for it
					err = c.open(i)
				}
				if err != nil {
					next.Store(int64(n))
					errs <- err
					return
				}
			}
		}()
	}
	var failed error
	for range together {
		failed = errors.Join(failed, <-errs)
	}
	c.pages = slices.DeleteFunc(c.pages, func(p net.Conn) bool { return p == nil })
	if failed != nil {
		return fmt.Errorf("open stream %d of %d: %w", len(c.pages), n, failed)
	}
	return nil
}

// open opens the i-th stream and reads its first frame.
func (c *cinema) open(i int) error {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return err
	}
	t := c.keys.SignVisitor(token.Visitor{Room: roomID, Ticket: uint32(i + 1), Generation: 1, IssuedAt: time.Now().UnixMilli()})
	// As a browser asks: with its cookies, and some headers that nobody needs.
	_, err = fmt.Fprintf(conn, "GET /api/v1/events?roomId=%s HTTP/1.1\r\nHost: qm\r\nX-Forwarded-For: %s\r\nCookie: qm_%s=%s; qms_%s=%s\r\n"+
		"Accept: text/event-stream\r\nAccept-Language: en-GB,en;q=0.9\r\nCache-Control: no-cache\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) qm-load\r\n\r\n",
		roomID, addressOf(uint64(i)), roomID, t, roomID, token.NewSession())
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	in := bufio.NewReaderSize(conn, 1024)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return errors.Join(fmt.Errorf("the stream breaks off: %w", err), conn.Close())
		}
		if bytes.HasPrefix(line, []byte("HTTP/1.1 ")) && !bytes.HasPrefix(line[9:], []byte("200")) {
			return errors.Join(fmt.Errorf("answered %s", bytes.TrimSpace(line[9:])), conn.Close())
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			break
		}
	}
	c.pages[i] = conn
	c.reading.Go(func() { c.read(in) })
	return nil
}

func (c *cinema) read(in *bufio.Reader) {
	var had *wave
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			c.lost.Add(1)
			return
		}
		w := c.wave.Load()
		if w == nil || w == had || !bytes.Contains(line, w.mark) {
			continue
		}
		had = w
		at := time.Since(w.began).Nanoseconds()
		w.first.CompareAndSwap(0, at)
		for last := w.last.Load(); last < at && !w.last.CompareAndSwap(last, at); last = w.last.Load() {
		}
		if w.left.Add(-1) == 0 {
			close(w.done)
		}
	}
}

// push changes what all pages show. It returns how long it took from the first that showed it to the last, and how long the server's
// processors worked meanwhile, in milliseconds.
func (c *cinema) push(ctx context.Context) (spread, work float64, err error) {
	before, err := c.weigh()
	if err != nil {
		return 0, 0, err
	}
	mode := room.Paused
	if c.pushed++; c.pushed%2 == 0 {
		mode = room.Active
	}
	w := &wave{mark: fmt.Appendf(nil, `"state":%q`, mode), began: time.Now(), done: make(chan struct{})}
	w.left.Store(int64(len(c.pages)))
	c.wave.Store(w)
	if _, err := fmt.Fprintln(c.ask, mode); err != nil {
		return 0, 0, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-time.After(30 * time.Second):
		return 0, 0, fmt.Errorf("%d of %d pages did not hear of a change; %d streams broke off", w.left.Load(), len(c.pages), c.lost.Load())
	}
	after, err := c.weigh()
	return float64(w.last.Load()-w.first.Load()) / 1e6, after.Worked - before.Worked, err
}

// resident is the server's resident memory once it has come to rest.
func (c *cinema) resident(ctx context.Context) (int64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(10 * time.Second): // the runtime gives back what opening them left over; beats go on
	}
	if n := c.lost.Load(); n > 0 {
		return 0, fmt.Errorf("%d streams broke off", n)
	}
	w, err := c.weigh()
	return w.Resident, err
}

// burden is what the server costs so far.
type burden struct {
	Resident int64   // bytes
	Worked   float64 // milliseconds of processor time
}

func (c *cinema) weigh() (w burden, err error) {
	if _, err := io.WriteString(c.ask, "weigh\n"); err != nil {
		return w, err
	}
	if !c.told.Scan() {
		return w, errors.New("the streams' server has ended")
	}
	err = json.Unmarshal(c.told.Bytes(), &w)
	return w, err
}

// runStreams is the server: all of qm but the stores. It says where it listens, and its weight when asked; a line that is a mode changes
// the room.
func runStreams(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("qm-load "+streamsVerb, flag.ContinueOnError)
	places := flags.Int("places", 1000, "how many wait in line")
	if err := parse(flags, args, stderr); err != nil {
		return err
	}
	memory := journal.NewMemory()
	h := &house{engine: engine.New(engine.Options{Environment: "production", Journal: memory, Vault: memory, Log: slog.New(slog.DiscardHandler)})}
	var err error
	if h.keys, err = token.New(benchSecret, "", token.Options{}); err != nil {
		return err
	}
	proxies, err := access.ParseProxies("127.0.0.1")
	if err != nil {
		return err
	}
	h.web = httpapi.New(httpapi.Options{
		Engine: h.engine, Keys: h.keys, Proxies: proxies, Log: slog.New(slog.DiscardHandler),
		Gate: access.NewGate(access.Credentials{AdminKey: benchSecret, Tokens: h.keys}), Version: "bench", Stores: "memory",
	})
	running, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- h.engine.Run(running) }()
	addr, stop, err := listen(h.web.HTTP())
	if err == nil {
		err = h.project(ctx, *places, addr, stdin, stdout)
		err = errors.Join(err, h.web.Shutdown(context.WithoutCancel(ctx)))
		stop()
	}
	giveUp()
	return errors.Join(err, <-done)
}

func (h *house) project(ctx context.Context, places int, addr string, stdin io.Reader, stdout io.Writer) error {
	settings := roomSettings()
	settings.PresenceSec = nil
	if _, err := h.engine.Create(ctx, roomID, "qm-load", settings, room.Active, time.Time{}); err != nil {
		return err
	}
	if err := h.fill(ctx, 500, places); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, addr); err != nil {
		return err
	}
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		if mode := room.Mode(lines.Text()); mode == room.Paused || mode == room.Active {
			if _, err := h.engine.Do(ctx, roomID, "qm-load", room.SetMode{Mode: mode}); err != nil {
				return err
			}
			continue
		}
		n, err := residentBytes()
		if err != nil {
			return err
		}
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return err
		}
		w := burden{Resident: n, Worked: float64(used.Utime.Nano()+used.Stime.Nano()) / 1e6}
		if err := json.NewEncoder(stdout).Encode(w); err != nil {
			return err
		}
	}
	return nil
}
