package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"qm/access"
	"qm/access/org"
	"qm/access/token"
	"qm/engine"
	"qm/httpapi"
	"qm/journal"
	"qm/journal/postgres"
	"qm/notify"
	"qm/notify/outbound"
	"qm/projection"
	"qm/projection/valkey"
)

// environment is the namespace of rooms that the Queue Manager contract speaks of (domain.md, "Words").
const environment = "production"

const (
	openRetry = time.Second
	probeWait = 6 * time.Second  // longer than the longest latency that a room may ask for
	stopWait  = 10 * time.Second // for requests that are under way when the server stops
)

// App is the server put together: this is where packages meet.
type App struct {
	config   *Config
	log      *slog.Logger
	engine   *engine.Engine
	book     *org.Book
	web      *httpapi.Server
	listener net.Listener
	demo     *demo
	out      outbox
	closers  []func()

	records records         // the journal and what lies beside it
	told    context.Context // ends when an owner has the process stop
	stop    context.CancelFunc
}

// records is the journal with what must be durable and erasable beside it.
type records interface {
	journal.Journal
	journal.Vault
	journal.Notes
	journal.Acts
}

// Build opens the stores and the listener. A store that cannot be reached is waited for until ctx ends: whoever starts
// the server and its stores together need not order them.
func Build(ctx context.Context, c *Config, log *slog.Logger) (_ *App, err error) {
	a := &App{config: c, log: log}
	a.told, a.stop = context.WithCancel(context.WithoutCancel(ctx))
	a.closers = append(a.closers, a.stop)
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	o := engine.Options{Environment: environment, Log: log}
	if c.Durable() {
		if err := a.openStores(ctx, &o); err != nil {
			return nil, err
		}
	} else {
		memory := journal.NewMemory()
		o.Journal, o.Vault, o.Series = memory, memory, projection.NewMemorySeries()
		a.records = memory
	}
	probing := outbound.Client(bool(c.AllowPrivateOutbound), probeWait)
	o.Probe = func(ctx context.Context, target string) engine.Probed {
		took, failed := outbound.Look(ctx, probing, target)
		return engine.Probed{Took: took, Failed: failed}
	}
	a.engine = engine.New(o)
	a.book = org.NewBook(org.Options{Journal: a.records, Notes: a.records, Vault: a.records, Log: log, KeepNotes: time.Duration(c.AuditDetailsDays) * 24 * time.Hour})

	secret := c.Secret
	if secret == "" {
		secret = token.NewSecret()
	}
	keys, err := token.New(secret, c.SecretPrevious, token.Options{
		SignV2: bool(c.TokenSignV2), MaxAge: time.Duration(c.TokenMaxAgeSec) * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("make the keyring: %w", err)
	}
	gate := access.NewGate(access.Credentials{
		AdminKey: c.AdminKey, PublicAPIKey: c.PublicAPIKey, AuthFailPerMinute: c.AdminAuthFailPerMin, Tokens: keys, Book: a.book,
	})
	if err := a.openOutbox(ctx, keys, secret); err != nil {
		return nil, err
	}
	collectors := append(a.engine.Collectors(), a.out.alerts.Collectors()...)
	var turns notify.Turns // nil when none are sent
	if a.out.turns != nil {
		turns, collectors = a.out.turns, append(collectors, a.out.turns.Collectors()...)
	}
	a.web = httpapi.New(httpapi.Options{
		Engine: a.engine, Keys: keys, Gate: gate, Book: a.book, Acts: a.records, Stop: a.stop, Proxies: c.TrustedProxies.Proxies, Log: log,
		Collectors: collectors, Turns: turns, Alerts: a.out.alerts, Version: version(), Stores: c.Stores(), Warnings: c.Warnings(), Variables: c.Variables(),
		PublicURL: c.PublicURL, CookieMaxAgeSec: c.QueueCookieMaxAgeSec, RoomCookieCap: c.RoomCookieCap,
		Centres: c.DataCentres.Networks, JoinLimitPerMin: c.JoinLimitPerMin, CheckLimitPerMin: c.CheckLimitPerMin, StatusLimitPerMin: c.StatusLimitPerMin,
		Files: openFiles(), SSEMaxTotal: c.SSEMaxTotal, SSEPerIP: c.SSEPerIP, Demo: bool(c.Demo),
	})
	if a.listener, err = net.Listen("tcp", c.Addr()); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	a.closers = append(a.closers, func() { _ = a.listener.Close() })
	if c.Demo {
		a.demo = &demo{engine: a.engine, target: a.url() + "/demo", log: log}
	}
	return a, nil
}

func (a *App) openStores(ctx context.Context, o *engine.Options) error {
	for {
		j, err := postgres.Open(ctx, a.config.DatabaseURL, postgres.Options{MigrateURL: a.config.DatabaseMigrateURL})
		if err == nil {
			o.Journal, o.Vault, o.Series = j, j, j.Series()
			a.records = j
			a.out.registrations = j.Registrations()
			a.closers = append(a.closers, j.Close)
			break
		}
		a.log.Warn("waiting for Postgres", "error", err)
		timer := time.NewTimer(openRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("open the journal: %w", err)
		case <-timer.C:
		}
	}
	shared, err := valkey.Open(ctx, a.config.ValkeyURL, valkey.Options{Log: a.log})
	if err != nil {
		return fmt.Errorf("open the projection: %w", err)
	}
	o.Shared = shared
	a.closers = append(a.closers, shared.Close)
	return nil
}

// Run serves until ctx ends, then stops in order: no new requests, streams ended, requests answered, rooms given up.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(a.told, end)()
	rooms, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	engineDone := make(chan error, 1)
	go func() { engineDone <- a.engine.Run(rooms) }()
	bookDone := make(chan error, 1)
	go func() { bookDone <- a.book.Run(rooms) }()
	demoDone := make(chan struct{})
	go func() {
		defer close(demoDone)
		if a.demo != nil {
			a.demo.run(ctx)
		}
	}()
	outDone := make(chan struct{})
	go func() {
		defer close(outDone)
		a.out.run(rooms, a.log)
	}()
	server := a.web.HTTP()
	serveDone := make(chan error, 1)
	go func() { serveDone <- server.Serve(a.listener) }()

	var failed error
	select {
	case <-ctx.Done():
	case err := <-serveDone:
		failed = fmt.Errorf("serve: %w", err)
		serveDone <- http.ErrServerClosed
	}
	a.log.Info("stopping")
	grace, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if err := errors.Join(a.web.Shutdown(grace), server.Shutdown(grace)); err != nil {
		a.log.Warn("some requests were cut off", "error", err)
		_ = server.Close()
	}
	if err := <-serveDone; !errors.Is(err, http.ErrServerClosed) {
		a.log.Warn("the listener ended early", "error", err)
	}
	if failed == nil {
		<-demoDone
	}
	giveUp()
	<-outDone
	return errors.Join(failed, <-engineDone, <-bookDone)
}

// Close gives up what Build opened. Run does it by itself.
func (a *App) Close() {
	for i := len(a.closers) - 1; i >= 0; i-- {
		a.closers[i]()
	}
	a.closers = nil
}

// url is where a browser on this machine finds the server, or PUBLIC_URL.
func (a *App) url() string {
	if a.config.PublicURL != "" {
		return a.config.PublicURL
	}
	host, port, _ := net.SplitHostPort(a.listener.Addr().String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// greet prints what a newcomer wants to know.
func (a *App) greet(w io.Writer) {
	fmt.Fprintf(w, "Queue Manager %s, stores %s\n", version(), a.config.Stores())
	if a.demo != nil {
		fmt.Fprintf(w, "  the waiting page of the demo room:  %s/w/%s\n", a.url(), demoRoom)
	}
	fmt.Fprintf(w, "  the console:                        %s/", a.url())
	if a.config.AdminKey == DefaultAdminKey {
		fmt.Fprintf(w, "   (admin key: %s)", DefaultAdminKey)
	}
	fmt.Fprintln(w)
}

// version is the module's version or commit, as the build recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
