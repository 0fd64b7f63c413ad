package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/valkey-io/valkey-go"

	"qm/access"
	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
	"qm/httpapi"
	"qm/journal"
	"qm/journal/postgres"
	"qm/projection/valkey"
)

// The one room that is measured, and where its events are.
const (
	roomID = "bench"
	stream = "production/" + roomID
)

// house is qm at work in this process, put together as cmd/qm does.
type house struct {
	engine  *engine.Engine
	journal *postgres.Journal
	keys    *token.Keyring
	web     *httpapi.Server
	shared  *valkey.Store
	stop    func() error // ends the engine in order
	visitor atomic.Uint64
}

// houseOptions are what differs from subject to subject.
type houseOptions struct {
	wrap      func(journal.Journal) journal.Journal // between the engine and Postgres; nil: nothing
	projected bool                                  // with the projection in Valkey
}

// openHouse starts an engine on a place. It has no room yet unless the place's journal does.
func openHouse(ctx context.Context, p *place, o houseOptions) (_ *house, err error) {
	h := &house{}
	if h.journal, err = postgres.Open(ctx, p.database, postgres.Options{}); err != nil {
		return nil, err
	}
	options := engine.Options{Environment: "production", Journal: h.journal, Vault: h.journal, Log: slog.New(slog.DiscardHandler)}
	if o.wrap != nil {
		options.Journal = o.wrap(h.journal)
	}
	if o.projected {
		if h.shared, err = valkey.Open(ctx, p.valkey, valkey.Options{Prefix: p.prefix}); err != nil {
			h.journal.Close()
			return nil, err
		}
		options.Shared = h.shared
	}
	h.engine = engine.New(options)
	if h.keys, err = token.New(benchSecret, "", token.Options{}); err != nil {
		return nil, err
	}
	proxies, err := access.ParseProxies("127.0.0.1")
	if err != nil {
		return nil, err
	}
	h.web = httpapi.New(httpapi.Options{
		Engine: h.engine, Keys: h.keys, Proxies: proxies, Log: slog.New(slog.DiscardHandler),
		Gate:       access.NewGate(access.Credentials{AdminKey: benchSecret, Tokens: h.keys}),
		Collectors: h.engine.Collectors(), Version: "bench", Stores: "valkey+pg",
	})
	running, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- h.engine.Run(running) }()
	h.stop = func() error {
		giveUp()
		err := <-done
		if h.shared != nil {
			h.shared.Close()
		}
		h.journal.Close()
		return err
	}
	return h, nil
}

// roomSettings are those of a room in which nobody passes and nobody is refused.
func roomSettings() room.Settings {
	s := room.DefaultSettings()
	s.Name, s.TargetURL, s.RatePerMinute = "Bench", "https://shop.example/", 0
	s.QueueMaxPerIP, s.PreQueueMaxPerIP = nil, nil
	return s
}

func (h *house) createRoom(ctx context.Context) error {
	_, err := h.engine.Create(ctx, roomID, "qm-load", roomSettings(), room.Active, time.Time{})
	return err
}

// identities is how many addresses the visitors come from.
const identities = 300_000

// addressOf is the address of a visitor, one of identities.
func addressOf(visitor uint64) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 0x0b000000+uint32(visitor*7919%identities))
	return netip.AddrFrom4(b)
}

// join lets a visitor in who was never here.
func (h *house) join(ctx context.Context) error {
	n := h.visitor.Add(1)
	var text [24]byte
	session := strconv.AppendUint(append(text[:0], 's'), n, 10)
	a, err := h.engine.Join(ctx, roomID, string(session), netip.PrefixFrom(addressOf(n), 32), 0)
	if err == nil && !a.Fresh {
		err = errors.New("a new visitor was given an old place")
	}
	return err
}

// joins runs callers that join one after the other until the slice is over, and returns joins a second.
func (h *house) joins(ctx context.Context, callers int, slice time.Duration) (float64, error) {
	var done atomic.Int64
	elapsed, err := together(callers, slice, func(over *atomic.Bool) error {
		for !over.Load() {
			if err := h.join(ctx); err != nil {
				return fmt.Errorf("join: %w", err)
			}
			done.Add(1)
		}
		return nil
	})
	return float64(done.Load()) / elapsed.Seconds(), err
}

// fill joins n visitors.
func (h *house) fill(ctx context.Context, callers, n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	_, err := together(callers, time.Hour, func(*atomic.Bool) error {
		for left.Add(-1) >= 0 {
			if err := h.join(ctx); err != nil {
				return fmt.Errorf("join: %w", err)
			}
		}
		return nil
	})
	return err
}

// together runs n workers until the slice is over or one fails, and returns how long it took until all had stopped.
func together(n int, slice time.Duration, work func(over *atomic.Bool) error) (time.Duration, error) {
	var over atomic.Bool
	errs := make(chan error, n)
	var running sync.WaitGroup
	timer := time.AfterFunc(slice, func() { over.Store(true) })
	defer timer.Stop()
	start := time.Now()
	for range n {
		running.Go(func() {
			if err := work(&over); err != nil {
				over.Store(true)
				errs <- err
			}
		})
	}
	running.Wait()
	elapsed := time.Since(start)
	select {
	case err := <-errs:
		return elapsed, err
	default:
		return elapsed, nil
	}
}

// listen serves a handler on the loopback.
func listen(server *http.Server) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until Close
	}()
	return l.Addr().String(), func() { _ = server.Close(); <-done }, nil
}

// forget deletes a place's keys from Valkey.
func forget(ctx context.Context, p *place) error {
	c, err := valkeyClient(p)
	if err != nil {
		return err
	}
	defer c.Close()
	keys, err := keysOf(ctx, c, p.prefix)
	if err != nil || len(keys) == 0 {
		return err
	}
	for len(keys) > 0 {
		n := min(len(keys), 1000)
		if err := c.Do(ctx, c.B().Unlink().Key(keys[:n]...).Build()).Error(); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

func valkeyClient(p *place) (client.Client, error) {
	options, err := client.ParseURL(p.valkey)
	if err != nil {
		return nil, err
	}
	options.DisableCache, options.ForceSingleClient = true, true
	return client.NewClient(options)
}

// keysOf lists the keys that begin with a prefix.
func keysOf(ctx context.Context, c client.Client, prefix string) (keys []string, err error) {
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		page, err := c.Do(ctx, c.B().Scan().Cursor(cursor).Match(prefix+"*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			return nil, err
		}
		keys, cursor = append(keys, page.Elements...), page.Cursor
	}
	return keys, nil
}
