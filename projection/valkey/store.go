// Package valkey is the projection that other processes, consoles and edges read (architecture.md, "The projection").
//
// Rooms are stored as packed pages of 4,096 tickets and bitmaps; see layout.go. A batch is one script that compares the lease
// epoch and the position first, so a stale publisher overwrites nothing and a reader, whose every read is one script too, never sees half a
// batch. A batch too big for one script, a new generation and a Reset are written under a new incarnation and switched to.
//
// It may lose everything at any time: then there is no such room, Apply answers ErrGap, and the owner Resets it from the journal. It may
// not lose a part: maxmemory-policy must be noeviction, see [Store.Ping].
package valkey

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	client "github.com/valkey-io/valkey-go"

	"qm/engine/room"
	"qm/projection"
)

var (
	//go:embed scripts/apply.lua
	applyLua string
	//go:embed scripts/switch.lua
	switchLua string
	//go:embed scripts/read.lua
	readLua string

	applyScript  = client.NewLuaScript(applyLua)
	switchScript = client.NewLuaScript(switchLua)
	disownScript = client.NewLuaScript(`if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'epoch', '0') end return 1`)
	readScript   = client.NewLuaScriptReadOnly(readLua)
)

// Options of a Store. The zero Options are good.
type Options struct {
	Prefix  string        // begins every key and channel; for tests
	Timeout time.Duration // of one round trip; 2 s by default
	Log     *slog.Logger
}

// Store is a projection in Valkey. While the server is out of reach every call gives an error within the
// timeout; it connects again by itself.
type Store struct {
	client    client.Client
	prefix    string
	timeout   time.Duration
	log       *slog.Logger
	summaries sync.Map // stream -> *summary, the last one decoded
}

var (
	_ projection.Store    = (*Store)(nil)
	_ projection.Preparer = (*Store)(nil)
)

// Open makes a Store of a URL such as redis://user:password@host:6379/0 (valkey:// means the same; rediss:// is TLS; further
// nodes of a cluster as ?addr=host2:6379). A single server need not be up yet. It fails when the URL makes no
// sense or no node of a cluster can be reached.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if rest, ok := strings.CutPrefix(url, "valkey"); ok {
		url = "redis" + rest // valkey:// and valkeys:// are young; the library knows redis:// best
	}
	options, err := client.ParseURL(url)
	if err != nil {
		return nil, errors.New("valkey: the URL is not valid") // Without the cause, which may quote a password.
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	options.ForceSingleClient = len(options.InitAddress) == 1
	options.DisableCache = true // Client-side caching would answer from a moment ago.
	options.DisableRetry = true // Whoever calls knows better whether to try again.
	options.Dialer.Timeout = o.Timeout
	options.ConnWriteTimeout = o.Timeout
	c, err := client.NewClient(options)
	if c == nil || err != nil && !options.ForceSingleClient {
		return nil, fmt.Errorf("valkey: connect: %w", err)
	}
	if err != nil {
		o.Log.WarnContext(ctx, "projection: the server is out of reach yet", "err", err)
	}
	return &Store{client: c, prefix: o.Prefix, timeout: o.Timeout, log: o.Log}, nil
}

// Close ends the connections. Calls after it give an error.
func (s *Store) Close() { s.client.Close() }

func (s *Store) base(stream string) string    { return s.prefix + "qm:{" + stream + "}:" }
func (s *Store) head(stream string) string    { return s.base(stream) + "head" }
func (s *Store) channel(stream string) string { return s.base(stream) + "hint" }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func (s *Store) run(ctx context.Context, script *client.Lua, stream string, args []string) client.ValkeyResult {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return script.Exec(ctx, s.client, []string{s.head(stream)}, args)
}

func (s *Store) do(ctx context.Context, cmd client.Completed) client.ValkeyResult {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.client.Do(ctx, cmd)
}

func (s *Store) multi(ctx context.Context, batch client.Commands) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for _, answer := range s.client.DoMulti(ctx, batch...) {
		if err := answer.Error(); err != nil {
			return err
		}
	}
	return nil
}

// outcome makes an error of a script's verdict.
func outcome(verdict string, err error) error {
	switch {
	case err != nil:
		return err
	case verdict == "ok", verdict == "seen":
		return nil
	case verdict == "gap":
		return projection.ErrGap
	case verdict == "stale":
		return projection.ErrStale
	}
	return fmt.Errorf("valkey: a script answered %q", verdict)
}

// Apply implements [projection.Store].
func (s *Store) Apply(ctx context.Context, b projection.Batch) error { return s.Prepare(b).Send(ctx) }

// Reset implements [projection.Store]. While it writes, the room takes twice its memory.
func (s *Store) Reset(ctx context.Context, stream string, epoch, seq int64, state *room.State) error {
	return s.PrepareReset(stream, epoch, seq, state).Send(ctx)
}

// Send implements [projection.Write].
func (w *write) Send(ctx context.Context) error {
	switch {
	case w.pages != nil:
		return w.rewrite(ctx)
	case w.commands == nil: // a batch without events
		verdict, err := w.check(ctx)
		return outcome(verdict, err)
	}
	args := make([]string, 0, 7+len(w.commands.args))
	args = append(args, itoa(w.epoch), itoa(w.after), itoa(w.last), w.summary,
		itoa(int64(w.sum.LastTicket)), itoa(int64(w.sum.LastHandle)), w.store.channel(w.stream))
	verdict, err := w.store.run(ctx, applyScript, w.stream, append(args, w.commands.args...)).ToString()
	if err != nil {
		return fmt.Errorf("apply a batch of %s up to %d: %w", w.stream, w.last, err)
	}
	return outcome(verdict, nil)
}

// Position implements [projection.Store].
func (s *Store) Position(ctx context.Context, stream string) (projection.Position, error) {
	answer, err := s.do(ctx, s.client.B().Hmget().Key(s.head(stream)).Field("incarnation", "epoch", "seq").Build()).ToArray()
	if err != nil {
		return projection.Position{}, fmt.Errorf("read the position of %s: %w", stream, err)
	}
	if len(answer) != 3 || answer[0].IsNil() {
		return projection.Position{}, nil
	}
	var fields [3]string
	for i := range fields {
		if fields[i], err = answer[i].ToString(); err != nil {
			return projection.Position{}, fmt.Errorf("read the position of %s: %w", stream, err)
		}
	}
	return position(fields[0], fields[1], fields[2])
}

// Disown implements [projection.Store].
func (s *Store) Disown(ctx context.Context, stream string) error {
	// Only where there is a head: one with an epoch alone would not be one.
	err := s.run(ctx, disownScript, stream, nil).Error()
	if err != nil && !client.IsValkeyNil(err) {
		return fmt.Errorf("disown the projection of %s: %w", stream, err)
	}
	return nil
}

func position(incarnation, epoch, seq string) (at projection.Position, err error) {
	at.Incarnation = incarnation
	if at.Epoch, err = strconv.ParseInt(epoch, 10, 64); err == nil {
		at.Seq, err = strconv.ParseInt(seq, 10, 64)
	}
	return at, err
}

// Ping implements [projection.Store]: the server answers, and evicts nothing.
func (s *Store) Ping(ctx context.Context) error {
	info, err := s.do(ctx, s.client.B().Info().Section("memory").Build()).ToString()
	if err != nil {
		return fmt.Errorf("reach Valkey: %w", err)
	}
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok {
			if policy = strings.TrimSpace(policy); policy != "noeviction" {
				return fmt.Errorf("valkey: maxmemory-policy is %q and must be noeviction", policy)
			}
			return nil
		}
	}
	return errors.New("valkey: the server does not tell its maxmemory-policy")
}
