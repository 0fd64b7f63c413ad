// Package httpapi is HTTP and nothing but HTTP: it reads requests, asks the engine, and words the answers of seed 004's contract.
// Every route is in one list ([Server.routes]), every refusal in one table ([Codes]).
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"qm/access"
	"qm/access/org"
	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
	"qm/journal"
	"qm/notify"
	"qm/projection"
)

// Engine is what the HTTP surfaces need of [engine.Engine]; its methods and errors are documented there.
type Engine interface {
	Join(ctx context.Context, roomID, session string, network netip.Prefix, score uint8) (engine.Answer, error)
	Enter(ctx context.Context, roomID string, generation uint32, n room.Ticket, session string, codeAt room.Instant, door room.Holder) (engine.Answer, error)
	Leave(ctx context.Context, roomID, session string) (engine.Answer, error)
	Do(ctx context.Context, roomID, actor string, c room.Command) (engine.Answer, error)
	Create(ctx context.Context, roomID, actor string, settings room.Settings, mode room.Mode, opensAt time.Time) (engine.Answer, error)
	Change(ctx context.Context, roomID, actor string, decide func(*room.Summary) (engine.Change, error)) (engine.Answer, error)
	Owns(ctx context.Context, roomID, session string, p room.Place) (bool, error)
	View(ctx context.Context, roomID string) (projection.View, error)
	Rooms(ctx context.Context) ([]string, error)
	Seen(roomID string, n room.Ticket)
	SeenDoor(roomID string, n room.Ticket)
	DoorOpen(roomID string, s *room.Summary, p room.Place, now time.Time) bool
	Read(ctx context.Context, roomID string, after int64, fn func(*journal.Record) error) error
	Export(ctx context.Context, roomID string, w io.Writer) error
	ETARecord(roomID string) engine.ETARecord
	Arrived(roomID string, s *room.Summary, network netip.Prefix)
	History(ctx context.Context, roomID string, span projection.Span, from, to int64) ([]room.Minute, error)
	HistoryBefore(ctx context.Context, roomID string, minute int64) (room.Minute, bool, error)
	Health() engine.Health
}

// Options are what a Server is made of. Everything is handed in.
type Options struct {
	Engine  Engine
	Keys    *token.Keyring
	Gate    *access.Gate
	Book    *org.Book    // the organisation: operators, sessions, links
	Acts    journal.Acts // what the audit reads
	Proxies access.Proxies
	Turns   notify.Turns  // nil: EMAIL_NOTIFY is off
	Alerts  notify.Alerts // nil: nothing is watched
	Log     *slog.Logger
	Now     func() time.Time // time.Now by default

	Collectors []prometheus.Collector // of the layers below, for /metrics
	Version    string                 // of the build, for /api/version
	Stores     string                 // "memory+memory" or "valkey+pg", for health
	Warnings   []string               // what the operator should know of the configuration, for health
	Variables  []Variable             // the configuration in force, for health

	PublicURL       string // "https://queue.example.com", no slash at the end; "": from the request
	CookieMaxAgeSec int    // QUEUE_COOKIE_MAX_AGE_SEC, 86,400 by default
	RoomCookieCap   int    // ROOM_COOKIE_CAP, 8 by default

	JoinLimitPerMin   int // per client; 0: no limit
	CheckLimitPerMin  int
	StatusLimitPerMin int

	Centres access.Networks // networks of data centres, for rooms with protection

	Files       int // how many files this process may open, which the ceiling of connections follows; 0: unknown
	SSEMaxTotal int // streams in all, 50,000 by default, or as many as fit below the ceiling
	SSEPerIP    int // streams a client, 64 by default

	Stop func() // has the process stop in order; nil: it cannot be told to

	Demo bool // serve the page behind the demo room (QM_DEMO)
}

// Server answers HTTP requests. It is an http.Handler; [Server.HTTP] wraps it in limits of time and size.
type Server struct {
	o        Options
	fixed    map[string]*route // by path
	wild     []wildcard
	metrics  *metrics
	streams  *streams
	ceiling  *ceiling
	joins    *access.Limiter
	checks   *access.Limiter
	statuses *access.Limiter
	notifies *access.Limiter
	started  time.Time

	refreshAfter time.Duration // how old a token is when it is due to be signed anew (seed 004, QM-391)
	openLogged   atomic.Int64  // when a visitor served undecided was last logged, in epoch seconds
	noRoom       counter       // checks of unknown rooms, which fail open
	scopes       sync.Map      // room id -> *roomScope, of rooms with rules
	door         *door
	checkins     checkins      // the connectors that asked for a report
	telling      chan struct{} // full while a journal is put in words
	storyTime    time.Duration // how long that may take
	quit         chan struct{}
	quitOnce     sync.Once
}

// New makes a server of its options.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.CookieMaxAgeSec == 0 {
		o.CookieMaxAgeSec = 86_400
	}
	if o.RoomCookieCap == 0 {
		o.RoomCookieCap = 8
	}
	if o.SSEMaxTotal == 0 {
		o.SSEMaxTotal = 50_000
	}
	if o.SSEPerIP == 0 {
		o.SSEPerIP = 64
	}
	s := &Server{
		o:        o,
		joins:    access.NewLimiter(o.JoinLimitPerMin),
		checks:   access.NewLimiter(o.CheckLimitPerMin),
		statuses: access.NewLimiter(o.StatusLimitPerMin),
		notifies: access.NewLimiter(notifyLimitPerMin),
		started:  o.Now(),
		quit:     make(chan struct{}),

		telling:   make(chan struct{}, 1),
		storyTime: storyTime,
	}
	s.door = newDoor(o.Keys, o.Centres, s.started)
	s.refreshAfter = token.RefreshAfter(o.Keys.MaxAge(), time.Duration(o.CookieMaxAgeSec)*time.Second)
	var most int
	s.ceiling, most = ceilingOf(o.Files, o.SSEMaxTotal)
	if most < o.SSEMaxTotal {
		s.o.Warnings = append(slices.Clip(s.o.Warnings), fmt.Sprintf(
			"SSE_MAX_TOTAL is %d, and the limit of %d open files leaves room for %d streams.", o.SSEMaxTotal, o.Files, most))
	}
	s.streams = newStreams(most, o.SSEPerIP)
	routes := s.routes()
	s.index(routes)
	s.metrics = newMetrics(s, routes, o.Collectors)
	return s
}

// Limits of time (issue 2, Bad input: bodies and headers that never end, slow readers).
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 120 * time.Second
	maxHeader     = 32 << 10 // contract.md 16

	// storyTime is for putting a journal in words: some hundred thousands of events, and far within writeTimeout.
	storyTime = 3 * time.Second
)

// HTTP is an http.Server that serves s with limits on what a client may cost. Streams set write deadlines of their own.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       s.ceiling.opened,
		ConnState:         s.ceiling.changed,
		MaxHeaderBytes:    maxHeader - 4096, // net/http adds 4,096 of its own
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
}

// Shutdown ends all streams and waits until they have left or ctx ends. Call it before http.Server.Shutdown, which waits for
// running requests and knows nothing of streams.
func (s *Server) Shutdown(ctx context.Context) error {
	s.quitOnce.Do(func() { close(s.quit) })
	s.streams.stop()
	return s.streams.drained(ctx)
}

// routes is every route that this server answers, in one list. A path under "api:" is served at /api/v1/… and at the
// unversioned twin /api/… (seed 004, Versioning policy).
func (s *Server) routes() []*route {
	demo := []*route(nil)
	if s.o.Demo {
		demo = []*route{{name: "demo", paths: []string{"/demo"}, get: s.demoTarget, page: true}}
	}
	return append(demo,
		// Visitors
		&route{name: "join", paths: []string{"api:join"}, post: s.join},
		&route{name: "status", paths: []string{"api:status"}, get: s.status, cors: true},
		&route{name: "events", paths: []string{"api:events", "/events"}, get: s.events},
		&route{name: "leave", paths: []string{"api:leave"}, post: s.leave, cors: true},
		&route{name: "room", paths: []string{"api:rooms/{id}"}, get: s.publicRoom},
		&route{name: "notify", paths: []string{"api:notify"}, post: s.notify},
		&route{name: "notify.box", paths: []string{"/notify/box"}, get: s.mailBox, page: true},
		&route{name: "notify.withdraw", paths: []string{notify.WithdrawPath}, get: s.withdrawPage, post: s.withdrawByLink, page: true},
		// The edge
		&route{name: "check", paths: []string{"api:check"}, get: s.check, cors: true},
		&route{name: "check.forward", paths: []string{"api:check/forward"}, get: s.forward},
		&route{name: "targeting", paths: []string{"api:targeting"}, get: s.targeting},
		// Installing
		&route{name: "verify", paths: []string{"api:verify"}, get: s.verify, public: true},
		&route{name: "verify.gif", paths: []string{"api:verify.gif"}, get: s.verifyImage, public: true},
		&route{name: "connectors", paths: []string{"api:connectors"}, get: s.connectors, public: true},
		&route{name: "connectors.wordpress", paths: []string{"api:connectors/wordpress/update"}, get: s.wordpressUpdate, public: true},
		&route{name: "connectors.artifact", paths: []string{"/connectors/{id}/latest.js", "/connectors/{id}/latest.tgz", "/connectors/{id}/latest.zip"}, get: s.artifact, public: true},
		&route{name: "connectors.vectors", paths: []string{vectorsPath}, get: s.vectors, public: true},
		// Health
		&route{name: "health", paths: []string{"api:health", "/healthz"}, get: s.health, vital: true},
		&route{name: "version", paths: []string{"api:version"}, get: s.version, vital: true},
		&route{name: "openapi", paths: []string{"api:openapi.json"}, get: s.openAPI, public: true},
		&route{name: "metrics", paths: []string{"/metrics"}, get: s.exposition, role: access.Monitor},
		// Operators
		&route{name: "admin.session", paths: []string{"api:admin/session"}, get: s.whoAmI, post: s.signIn, delete: s.signOut, role: access.Monitor, free: true},
		&route{name: "admin.sse-ticket", paths: []string{"api:admin/sse-ticket"}, post: s.mintTicket, role: access.Monitor, write: access.Monitor},
		&route{name: "admin.events", paths: []string{"api:admin/events"}, get: s.adminEvents, role: access.Monitor, open: true},
		&route{name: "admin.health", paths: []string{"api:admin/health"}, get: s.adminHealth, role: access.Monitor},
		&route{name: "admin.operators", paths: []string{"api:admin/operators"}, get: s.listOperators, post: s.addOperator, role: access.Owner, write: access.Owner},
		&route{name: "admin.operator", paths: []string{"api:admin/operators/{id}"}, delete: s.revokeOperator, write: access.Owner},
		&route{name: "admin.operator-otp", paths: []string{"api:admin/operators/{id}/otp"}, delete: s.resetFactor, write: access.Owner},
		&route{name: "admin.otp", paths: []string{"api:admin/otp"}, post: s.startFactor, delete: s.dropFactor, write: access.Viewer},
		&route{name: "admin.monitor-token", paths: []string{"api:admin/monitor-token"}, get: s.listMonitors, post: s.mintMonitor, delete: s.revokeMonitors, role: access.Viewer, write: access.Operator},
		&route{name: "admin.audit", paths: []string{"api:admin/audit"}, get: s.audit, delete: s.forget, role: access.Viewer, write: access.Owner},
		&route{name: "admin.alerts", paths: []string{"api:admin/alerts"}, get: s.alerts, post: s.testAlerts, role: access.Monitor, write: access.Operator},
		&route{name: "admin.alerts-silence", paths: []string{"api:admin/alerts/silence"}, post: s.silence, delete: s.endSilence, write: access.Operator},
		&route{name: "admin.shutdown", paths: []string{"api:admin/shutdown"}, post: s.shutdown, write: access.Owner},
		&route{name: "admin.rooms", paths: []string{"api:admin/rooms"}, get: s.listRooms, post: s.saveRoom, role: access.Monitor, write: access.Operator},
		&route{name: "admin.room", paths: []string{"api:admin/rooms/{id}"}, get: s.oneRoom, delete: s.deleteRoom, role: access.Monitor, write: access.Owner},
		&route{name: "admin.state", paths: []string{"api:admin/rooms/{id}/state"}, post: s.setState, write: access.Operator},
		&route{name: "admin.rate", paths: []string{"api:admin/rooms/{id}/rate"}, post: s.setRate, write: access.Operator},
		&route{name: "admin.flush", paths: []string{"api:admin/rooms/{id}/flush"}, post: s.flush, write: access.Operator},
		&route{name: "admin.schedule", paths: []string{"api:admin/rooms/{id}/schedule"}, post: s.schedule, write: access.Operator},
		&route{name: "admin.eject", paths: []string{"api:admin/rooms/{id}/eject"}, post: s.eject, write: access.Operator},
		&route{name: "admin.purge", paths: []string{"api:admin/rooms/{id}/purge"}, post: s.purge, write: access.Operator},
		&route{name: "admin.journal", paths: []string{"api:admin/rooms/{id}/journal"}, get: s.journal, role: access.Viewer},
		&route{name: "admin.visitors", paths: []string{"api:admin/rooms/{id}/visitors"}, get: s.visitors, role: access.Viewer},
		&route{name: "admin.connectors", paths: []string{"api:admin/rooms/{id}/connectors"}, get: s.checkedIn, role: access.Viewer},
		&route{name: "admin.preview", paths: []string{"api:admin/rooms/{id}/preview"}, get: s.preview, role: access.Viewer},
		&route{name: "admin.metrics", paths: []string{"api:admin/metrics"}, get: s.roomMetrics, role: access.Monitor},
		&route{name: "admin.reports", paths: []string{"api:admin/reports"}, get: s.reports, role: access.Monitor},
		&route{name: "admin.security", paths: []string{"api:admin/security"}, get: s.security, role: access.Monitor},
		&route{name: "admin.targeting", paths: []string{"api:admin/rooms/{id}/targeting"}, get: s.adminTargeting, role: access.Viewer},
		// Pages
		&route{name: "waiting", paths: []string{"/w/{id}"}, get: s.waitingPage, page: true},
		&route{name: "draw", paths: []string{"/w/{id}/draw"}, get: s.drawPage, page: true},
		&route{name: "console", paths: []string{"/"}, get: s.console, page: true},
		&route{name: "docs", paths: []string{"/docs", "/docs/{id}", "/docs/th/{id}"}, get: s.guide, page: true},
		&route{name: "progress", paths: []string{"/progress"}, get: s.progress, page: true},
		&route{name: "assets", paths: []string{"/assets/{id}", "/__qm/assets/{id}"}, get: s.asset, page: true},
		&route{name: "snippet", paths: []string{"/snippet/{id}"}, get: s.snippet, public: true},
	)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchanges.Get().(*exchange)
	x.w, x.r, x.now = w, r, s.o.Now()
	h := w.Header()
	h["Cache-Control"] = valueNoStore
	h["X-Content-Type-Options"] = valueNoSniff
	x.route, x.id = s.find(r.URL.Path)
	defer s.finished(x)
	if s.ceiling.sheds(x) {
		h.Set("Connection", "close")
		s.failed(x, refuse("over_capacity"))
		return
	}
	if err := s.dispatch(x); err != nil {
		s.failed(x, err)
	}
}

// failed words an error as an answer, and logs what only we can be to blame for. Errors end here.
func (s *Server) failed(x *exchange, err error) {
	p, ok := problemOf(err)
	switch {
	case ok:
	case x.r.Context().Err() != nil:
		x.status = 499 // the client has gone: nobody reads an answer
		return
	default:
		s.o.Log.Error("answer a request", "route", x.name(), "method", x.r.Method, "err", err)
		p = refuse("internal_error")
	}
	if x.wrote {
		return // too late to say anything: a stream or a page was under way
	}
	if x.route != nil && x.route.page {
		s.notice(x, p)
		return
	}
	p.write(x)
}

// finished counts the exchange and puts it back. It stops panics here, so that one request cannot take the process down.
func (s *Server) finished(x *exchange) {
	if v := recover(); v != nil {
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v)
		}
		s.o.Log.Error("answer a request", "route", x.name(), "method", x.r.Method, "panic", v, "stack", string(debug.Stack()))
		x.code = "internal_error"
		if x.wrote {
			panic(http.ErrAbortHandler) // cut the connection, so that half an answer is not taken for a whole one
		}
		refuse("internal_error").write(x)
	}
	s.metrics.observe(x)
	x.release()
}

func (x *exchange) name() string {
	if x.route == nil {
		return "none"
	}
	return x.route.name
}

// client finds out where the request comes from.
func (s *Server) client(x *exchange) {
	x.addr = s.o.Proxies.Client(x.r)
	x.network = access.NetworkOf(x.addr)
}

// allow takes one from the client's allowance.
func (s *Server) allow(x *exchange, l *access.Limiter) error {
	s.client(x)
	return s.allowNetwork(x, l, x.network)
}

func (s *Server) allowNetwork(x *exchange, l *access.Limiter, n access.Network) error {
	if ok, after := l.Allow(n, x.now); !ok {
		return &Problem{Code: "rate_limited", After: seconds(after)}
	}
	return nil
}

// secure reports whether cookies may travel over TLS alone.
func (s *Server) secure(r *http.Request) bool {
	return strings.HasPrefix(s.o.PublicURL, "https:") || s.o.Proxies.HTTPS(r)
}

// base is the address at which visitors reach this server, without a slash at the end.
func (s *Server) base(r *http.Request) string {
	if s.o.PublicURL != "" {
		return s.o.PublicURL
	}
	host := r.Host
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && host == "" {
		host = local.String() // HTTP/1.0 need not name one
	}
	if s.o.Proxies.HTTPS(r) {
		return "https://" + host
	}
	return "http://" + host
}

// summary reads a room. projection.ErrNoRoom when there is none.
func (s *Server) summary(ctx context.Context, id string) (room.Summary, projection.Position, error) {
	view, err := s.o.Engine.View(ctx, id)
	if err != nil {
		return room.Summary{}, projection.Position{}, err
	}
	sum, at, err := view.Summary(ctx)
	if err == nil && !sum.Exists {
		err = projection.ErrNoRoom
	}
	return sum, at, err
}

func isNoRoom(err error) bool {
	return errors.Is(err, projection.ErrNoRoom) || errors.Is(err, room.ErrRoomNotFound)
}
