package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"qm/engine/room"
)

// metrics are the engine's counters. No label grows with visitors.
type metrics struct {
	e               *Engine
	joins           prometheus.Counter
	passes          *prometheus.CounterVec
	events          *prometheus.CounterVec
	appendSeconds   prometheus.Histogram
	appendFailures  prometheus.Counter
	batchEvents     prometheus.Histogram
	mailbox         prometheus.Histogram
	busy            prometheus.Counter
	publishFailures prometheus.Counter
	shareFailures   prometheus.Counter
	etaRatio        prometheus.Histogram

	waiting, preQueue, slots, lag, queued, ownedRooms, damagedRooms *prometheus.Desc
}

func newMetrics(e *Engine) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &metrics{
		e:               e,
		joins:           counter("qm_joins_total", "Places given, in line or in the pre-queue."),
		passes:          prometheus.NewCounterVec(prometheus.CounterOpts{Name: "qm_passes_total", Help: "Tickets let through."}, []string{"by"}),
		events:          prometheus.NewCounterVec(prometheus.CounterOpts{Name: "qm_events_total", Help: "Durable events by kind."}, []string{"kind"}),
		appendSeconds:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "qm_append_seconds", Help: "Time to make a batch durable.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14)}),
		appendFailures:  counter("qm_append_failures_total", "Batches whose append failed."),
		batchEvents:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "qm_append_batch_events", Help: "Events a batch.", Buckets: prometheus.ExponentialBuckets(1, 4, 8)}),
		mailbox:         prometheus.NewHistogram(prometheus.HistogramOpts{Name: "qm_mailbox_taken", Help: "Requests taken from a room's mailbox at once.", Buckets: prometheus.ExponentialBuckets(1, 4, 8)}),
		busy:            counter("qm_mailbox_refused_total", "Requests refused because the mailbox was full."),
		publishFailures: counter("qm_projection_failures_total", "Failed writes to the shared projection."),
		shareFailures:   counter("qm_presence_failures_total", "Failed exchanges of presence with other processes."),
		etaRatio:        prometheus.NewHistogram(prometheus.HistogramOpts{Name: "qm_eta_ratio", Help: "Real wait of a pass over the wait its ticket was told.", Buckets: []float64{.25, .5, .67, .8, .9, 1, 1.1, 1.25, 1.5, 2, 4}}),
		waiting:         desc("qm_room_waiting", "Tickets waiting, held ones included.", "room"),
		preQueue:        desc("qm_room_prequeue", "Entries in the pre-queue.", "room"),
		slots:           desc("qm_room_slots", "Slots in use.", "room"),
		lag:             desc("qm_projection_lag_events", "Events durable and not yet in the shared projection.", "room"),
		queued:          desc("qm_mailbox_waiting", "Requests waiting in the room's mailbox.", "room"),
		ownedRooms:      desc("qm_rooms_owned", "Rooms that this process owns."),
		damagedRooms:    desc("qm_rooms_damaged", "Rooms that are shut because their journal does not verify."),
	}
}

// count counts events that have become durable.
func (m *metrics) count(events []room.Event) {
	run := 0 // events of one kind in a row: a surge is one run
	for i, e := range events {
		if run++; i+1 == len(events) || events[i+1].Body.Kind() != e.Body.Kind() {
			m.events.WithLabelValues(e.Body.Kind()).Add(float64(run))
			run = 0
		}
		switch b := e.Body.(type) {
		case *room.Join, *room.Enqueue:
			m.joins.Inc()
		case *room.Pass:
			n := 0
			for _, span := range b.Spans {
				n += int(span[1]-span[0]) + 1
			}
			m.passes.WithLabelValues(b.By).Add(float64(n))
		}
	}
}

// Collectors are the engine's metrics, for a registry.
func (e *Engine) Collectors() []prometheus.Collector {
	m := e.metrics
	return []prometheus.Collector{
		m.joins, m.passes, m.events, m.appendSeconds, m.appendFailures, m.batchEvents, m.mailbox, m.busy, m.publishFailures, m.shareFailures, m.etaRatio, gauges{m},
	}
}

// gauges reads the rooms when they are scraped.
type gauges struct{ m *metrics }

func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.m.waiting, g.m.preQueue, g.m.slots, g.m.lag, g.m.queued, g.m.ownedRooms, g.m.damagedRooms} {
		ch <- d
	}
}

func (g gauges) Collect(ch chan<- prometheus.Metric) {
	value := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	var ownedRooms, damagedRooms float64
	for _, r := range g.m.e.runners() {
		switch r.current() {
		case owned:
			ownedRooms++
		case damaged:
			damagedRooms++
		}
		_ = g.m.e.live.With(r.stream, func(_, _ int64, st *room.State) error {
			if s := st.Summary(); s.Exists {
				value(g.m.waiting, float64(s.Waiting+s.Held), r.id)
				value(g.m.preQueue, float64(s.PreQueue), r.id)
				value(g.m.slots, float64(s.Slots), r.id)
			}
			return nil
		})
		value(g.m.lag, float64(r.publisher.lag.Load()), r.id)
		value(g.m.queued, float64(r.mailbox.len()), r.id)
	}
	value(g.m.ownedRooms, ownedRooms)
	value(g.m.damagedRooms, damagedRooms)
}
