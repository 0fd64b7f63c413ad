package alert

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"qm/access/org"
	"qm/engine"
	"qm/notify"
	"qm/notify/outbound"
	"qm/projection"
)

// Rooms is what has to be known of rooms; engine.Engine implements it.
type Rooms interface {
	Rooms(ctx context.Context) ([]string, error)
	View(ctx context.Context, roomID string) (projection.View, error)
	// Serves reports whether this process takes care of a room now: it alone judges it.
	Serves(roomID string) bool
	Health() engine.Health
}

// Options are what a Service is made of.
type Options struct {
	Rooms        Rooms
	Book         *org.Book
	Rules        []Rule
	Process      string       // what this process is called, in alerts about it
	WebhookURL   string       // "": messages go to no webhook
	SigningKey   string       // a secret of which the key of the webhook's signatures is made; "": they are not signed
	Post         notify.Post  // nil: messages are not mailed
	MailTo       []string     // as notify.ParseAddress gives them
	AllowPrivate bool         // the webhook and certificates may be at private addresses
	PublicURL    string       // its certificate is watched; messages lead to the console there
	Refused      func() int64 // how many requests this process has refused so far; nil: not watched
	Log          *slog.Logger
	Now          func() time.Time // time.Now by default
}

// Service implements [notify.Alerts].
type Service struct {
	o       Options
	rules   map[string]Rule
	order   []notify.AlertRule
	client  *http.Client
	key     []byte
	queue   notify.Queue // nil: nothing leaves the building
	spare   *notify.Memory
	metrics *metrics

	// Of the watcher alone.
	memory  map[[2]string]Memory    // by rule and subject
	offline map[[2]string]org.Alert // fired while the organisation's stream could not be written to
	ended   []org.Alert             // offline ones that are over and not yet recorded
	refused refusals

	certificates certificates
}

var _ notify.Alerts = (*Service)(nil)

const webhookTimeout = 10 * time.Second

// New makes a service. It watches nothing before [Service.Run], and sends nothing before [Service.Use].
func New(o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		o: o, rules: make(map[string]Rule), client: outbound.Client(o.AllowPrivate, webhookTimeout),
		memory: make(map[[2]string]Memory), offline: make(map[[2]string]org.Alert),
	}
	for _, r := range o.Rules {
		s.rules[r.ID] = r
		s.order = append(s.order, r.AlertRule)
	}
	if o.SigningKey != "" {
		key, err := hkdf.Key(sha256.New, []byte(o.SigningKey), nil, "qm:alert", sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("alert: derive the key of signatures: %w", err)
		}
		s.key = key
	}
	s.certificates.until = make(map[string]looked)
	s.metrics = newMetrics(s)
	return s, nil
}

// Use hands in the queue that carries the messages.
func (s *Service) Use(q notify.Queue) {
	s.queue = q
	s.spare = notify.NewMemory(s.o.Log, s.o.Now, notify.NewKinds(s.kinds(s.offlineJob)...))
}

// Sends reports whether messages have anywhere to go.
func (s *Service) Sends() bool { return s.o.WebhookURL != "" || s.Mails() > 0 }

// Collectors are the metrics, for a registry.
func (s *Service) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.sends, s.metrics}
}

// Rules implements [notify.Alerts].
func (s *Service) Rules() []notify.AlertRule { return slices.Clone(s.order) }

// Sentence implements [notify.Alerts].
func (s *Service) Sentence(rule, subject, room string, value, limit int64) string {
	return Sentence(rule, subject, room, value, limit)
}

// Webhook implements [notify.Alerts].
func (s *Service) Webhook() string {
	u, err := url.Parse(s.o.WebhookURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Mails implements [notify.Alerts].
func (s *Service) Mails() int {
	if s.o.Post == nil {
		return 0
	}
	return len(s.o.MailTo)
}

// metrics count what was sent, and read what is active when scraped.
type metrics struct {
	s      *Service
	sends  *prometheus.CounterVec
	active *prometheus.Desc
}

func newMetrics(s *Service) *metrics {
	return &metrics{
		s:      s,
		sends:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "qm_alert_messages_total", Help: "Attempts to tell of an alert, by way and outcome."}, []string{"by", "outcome"}),
		active: prometheus.NewDesc("qm_alerts_active", "Alerts that have fired and are not over, in all processes.", []string{"rule"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.active }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	count := make(map[string]int, len(m.s.rules))
	m.s.o.Book.Look(func(st *org.State) {
		for _, a := range st.Alerts() {
			count[a.Rule]++
		}
	})
	for _, id := range slices.Sorted(maps.Keys(m.s.rules)) {
		ch <- prometheus.MustNewConstMetric(m.active, prometheus.GaugeValue, float64(count[id]), id)
	}
}
