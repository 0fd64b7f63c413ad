package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what HTTP knows, on a registry of their own. No label grows with visitors (architecture.md, Errors, logs, metrics).
type metrics struct {
	requests *prometheus.CounterVec
	refusals *prometheus.CounterVec
	forwards *prometheus.CounterVec
	doors    *prometheus.CounterVec
	handler  http.Handler
	refused  atomic.Int64 // as [Server.Refused] counts
	known    sync.Map     // outcome -> prometheus.Counter, so that counting builds no labels
}

// outcome is what a request came to.
type outcome struct {
	route, method string
	status        int
}

func newMetrics(s *Server, routes []*route, more []prometheus.Collector) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "qm_http_requests_total", Help: "Requests answered, by route, method and status.",
		}, []string{"route", "method", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "qm_http_refusals_total", Help: "Requests refused, by stable code.",
		}, []string{"code"}),
		forwards: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "qm_forward_decisions_total", Help: "Visitors' requests that proxies asked about, by decision. open: served undecided.",
		}, []string{"decision"}),
		doors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "qm_door_verdicts_total", Help: "What the doors of rooms with protection came to.",
		}, []string{"verdict"}),
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m.requests, m.refusals, m.forwards, m.doors, collectors.NewGoCollector(),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "qm_sse_streams", Help: "Event streams that are open.",
		}, func() float64 { return float64(s.streams.count()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "qm_http_connections", Help: "Connections that are open, those of streams included.",
		}, func() float64 { return float64(s.ceiling.open.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "qm_check_no_room_total", Help: "Checks of unknown rooms, which fail open.",
		}, func() float64 { return float64(s.noRoom.n.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "qm_ready", Help: "1 while joins can be made durable, else 0.",
		}, func() float64 {
			if s.o.Engine.Health().Ready {
				return 1
			}
			return 0
		}),
	)
	r.MustRegister(more...)
	for _, rt := range routes {
		rt.ok = make(map[string]prometheus.Counter)
		for _, verb := range strings.Split(rt.allow, ", ") {
			rt.ok[verb] = m.requests.WithLabelValues(rt.name, verb, "200")
		}
	}
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{})
	return m
}

// observe counts a finished exchange.
func (m *metrics) observe(x *exchange) {
	if x.status == http.StatusOK && x.route != nil && x.code == "" {
		if c := x.route.ok[x.r.Method]; c != nil {
			c.Inc()
			return
		}
	}
	o := outcome{x.name(), method(x.r.Method), x.status}
	c, ok := m.known.Load(o)
	if !ok {
		c, _ = m.known.LoadOrStore(o, m.requests.WithLabelValues(o.route, o.method, strconv.Itoa(o.status)))
	}
	c.(prometheus.Counter).Inc()
	if x.code != "" {
		m.refusals.WithLabelValues(x.code).Inc()
		if (x.status == http.StatusTooManyRequests || x.status == http.StatusServiceUnavailable) && x.code != "queued" {
			m.refused.Add(1)
		}
	}
}

// Refused is how many requests were refused so far because there were too many, or because they could not be served: 429 and 503, but for
// the visitors whom a proxy was told to send to the line.
func (s *Server) Refused() int64 { return s.metrics.refused.Load() }

// method keeps what anybody can invent out of the labels.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodPut, http.MethodPatch:
		return m
	}
	return "other"
}

// exposition answers Prometheus.
func (s *Server) exposition(x *exchange) error {
	x.status, x.wrote = http.StatusOK, true
	s.metrics.handler.ServeHTTP(x.w, x.r)
	return nil
}
