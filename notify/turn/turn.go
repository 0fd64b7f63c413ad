// Package turn mails visitors who asked for it when their turn is near and when it has come.
//
// It looks at rooms and keeps no position: what a place is now says what is owed to it, so nothing is missed whatever
// happens to a process, and nothing has to be caught up. What keeps a mail from being sent twice is a claim in the side table,
// durable before the mail server is handed the letter: a crash at that moment loses the mail rather than doubling it.
package turn

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"qm/engine/room"
	"qm/notify"
	"qm/projection"
)

// Rooms is what has to be known of rooms; engine.Engine implements it.
type Rooms interface {
	// View reads a room.
	View(ctx context.Context, roomID string) (projection.View, error)
	// Serves reports whether this process takes care of a room now: it alone looks whom to mail.
	Serves(roomID string) bool
}

// Letter is what a mail says, before it is put into words.
type Letter struct {
	Mail     notify.Mail
	Locale   string
	Brand    string // the name that the room's pages carry; "" where the room's own is all there is
	RoomName string
	Room     string
}

// Options are what a Service is made of.
type Options struct {
	Rooms         Rooms
	Registrations notify.Registrations
	Post          notify.Post
	// Word puts a letter into words: Subject, Text, HTML and FromName. placeURL leads back to the page, withdrawURL to the end of
	// the mails.
	Word func(l Letter, placeURL, withdrawURL string) (notify.Letter, error)
	// Link signs what withdraws the mails of a place.
	Link      func(p notify.Place, now time.Time) string
	PublicURL string // without a slash at the end; every link begins with it, never with what a request said
	Secret    string // of this installation: digests of addresses and sessions are keyed with it
	Log       *slog.Logger
	Now       func() time.Time // time.Now by default
}

// Service implements [notify.Turns].
type Service struct {
	o     Options
	key   []byte
	queue notify.Queue
	hint  chan struct{} // one pending at most: a registration of this process
	seen  map[string]*memory

	metrics *metrics
	waiting atomic.Int64 // mails in the queue, as last counted
	live    atomic.Int64 // live registrations of the rooms that this process serves
	post    postHealth
}

var _ notify.Turns = (*Service)(nil)

// New makes a service. It mails nothing before [Service.Use] and [Service.Run].
func New(o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	key, err := hkdf.Key(sha256.New, []byte(o.Secret), nil, "qm:notify", 32)
	if err != nil {
		return nil, fmt.Errorf("turn: derive the key of the digests: %w", err)
	}
	s := &Service{o: o, key: key, hint: make(chan struct{}, 1), seen: make(map[string]*memory)}
	s.metrics = newMetrics(s)
	return s, nil
}

// Use says which queue carries the mails; its kinds include [Service.Kind]. Call it once, before Run.
func (s *Service) Use(q notify.Queue) { s.queue = q }

func (s *Service) digest(what, text string) (d notify.Digest) {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(what + "\x00" + text))
	mac.Sum(d[:0])
	return d
}

// Register implements [notify.Turns].
func (s *Service) Register(ctx context.Context, p notify.Place, session, address, locale string) (notify.Statement, error) {
	view, err := s.o.Rooms.View(ctx, p.Room)
	if err != nil {
		return notify.Statement{}, err
	}
	sum, place, err := look(ctx, view, p)
	if err != nil {
		return notify.Statement{}, err
	}
	now := s.o.Now().UTC().Truncate(time.Millisecond)
	r := notify.Registration{
		Place: p, Address: address, Locale: locale, Owner: s.digest("session", session), At: now,
		Near: sum.Exists && isNear(&sum, &place, room.Instant(now.UnixMilli())),
	}
	if err := s.o.Registrations.Set(ctx, r, s.digest("address", address)); err != nil {
		return notify.Statement{}, err
	}
	select {
	case s.hint <- struct{}{}:
	default:
	}
	told, err := s.Told(ctx, p)
	if err != nil {
		return notify.Statement{}, err
	}
	if told == nil { // withdrawn or sent meanwhile
		return *statement(&r), nil
	}
	return *told, nil
}

// Withdraw implements [notify.Turns].
func (s *Service) Withdraw(ctx context.Context, p notify.Place) (bool, error) {
	return s.o.Registrations.Erase(ctx, p)
}

// Told implements [notify.Turns].
func (s *Service) Told(ctx context.Context, p notify.Place) (*notify.Statement, error) {
	r, ok, err := s.o.Registrations.Find(ctx, p)
	if err != nil || !ok || !r.Live() || r.Turn {
		return nil, err
	}
	return statement(&r), nil
}

func statement(r *notify.Registration) *notify.Statement {
	t := &notify.Statement{EmailMasked: notify.Mask(r.Address), RequestedAt: r.At, Delivery: "pending"}
	if r.Near {
		t.Delivery = "near"
	}
	return t
}

// Carry implements [notify.Turns].
func (s *Service) Carry(ctx context.Context, from, to notify.Place, session string) error {
	if ok, err := s.filed(ctx, from, session); !ok {
		return err
	}
	drawn := from.Handle != 0 && to.Ticket != 0 && from.Generation == to.Generation
	return s.o.Registrations.Move(ctx, from, to, !drawn)
}

// Discard implements [notify.Turns].
func (s *Service) Discard(ctx context.Context, p notify.Place, session string) error {
	if ok, err := s.filed(ctx, p, session); !ok {
		return err
	}
	_, err := s.o.Registrations.Erase(ctx, p)
	return err
}

// filed reports whether session filed what is live under a place.
func (s *Service) filed(ctx context.Context, p notify.Place, session string) (bool, error) {
	r, ok, err := s.o.Registrations.Find(ctx, p)
	if err != nil || !ok || !r.Live() {
		return false, err
	}
	owner := s.digest("session", session)
	return hmac.Equal(owner[:], r.Owner[:]), nil
}

// postHealth remembers how the mail server does.
type postHealth struct {
	mu    sync.Mutex
	since time.Time // of the first failure after the last success; zero when all is well
	last  time.Time
	why   string
}

func (h *postHealth) well() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since, h.why = time.Time{}, ""
}

func (h *postHealth) failed(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = now
	}
	h.last, h.why = now, err.Error()
}

// warnAfter is how long the mail server has to fail before an operator is told, and how long ago the last failure may be.
const warnAfter = time.Minute

// Warning implements [notify.Turns].
func (s *Service) Warning() string {
	s.post.mu.Lock()
	defer s.post.mu.Unlock()
	if s.post.since.IsZero() || s.post.last.Sub(s.post.since) < warnAfter {
		return ""
	}
	return fmt.Sprintf("Mails cannot be sent since %s: %s", s.post.since.UTC().Format(time.RFC3339), s.post.why)
}

// metrics are this service's figures. No label grows with visitors.
type metrics struct {
	mails   *prometheus.CounterVec
	waiting prometheus.GaugeFunc
	live    prometheus.GaugeFunc
}

func newMetrics(s *Service) *metrics {
	m := &metrics{
		mails: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "qm_mails_total", Help: "Attempts to mail, by mail (near, turn) and outcome (sent, refused, later, unknown, given_up).",
		}, []string{"mail", "outcome"}),
		waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "qm_mails_waiting", Help: "Mails in the queue that are not sent, as counted within the last half minute.",
		}, func() float64 { return float64(s.waiting.Load()) }),
		live: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "qm_mail_registrations", Help: "Places in this process's rooms whose visitor waits for a mail.",
		}, func() float64 { return float64(s.live.Load()) }),
	}
	for _, mail := range []notify.Mail{notify.Near, notify.Turn} {
		for _, outcome := range []string{"sent", "refused", "later", "unknown", "given_up"} {
			m.mails.WithLabelValues(string(mail), outcome)
		}
	}
	return m
}

func (m *metrics) count(mail notify.Mail, outcome string) {
	m.mails.WithLabelValues(string(mail), outcome).Inc()
}

// Collectors are the metrics of the service.
func (s *Service) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.mails, s.metrics.waiting, s.metrics.live}
}
