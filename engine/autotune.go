package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"qm/engine/room"
)

// Probed is one look at a room's target.
type Probed struct {
	Took   time.Duration
	Failed bool // no answer in time, or one that blames the server
}

// Prober looks at a target. It must return within a few seconds.
type Prober func(ctx context.Context, targetURL string) Probed

const (
	probeEvery = 3 * time.Second
	tuneEvery  = 15 * time.Second // the rate is judged anew; an increase, or a decrease, at most as often
)

// health is what a period of probes says.
type health struct {
	median time.Duration
	failed int64 // percent
}

// tuner probes a room's target while its rate follows it.
type tuner struct {
	mu     sync.Mutex
	target string
	cancel context.CancelFunc
	probes []Probed
	judged time.Time
}

// watch begins to probe, unless it does already.
func (t *tuner) watch(ctx context.Context, e *Engine, target string, probing *sync.WaitGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil && t.target == target {
		return
	}
	if t.cancel != nil {
		t.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	t.target, t.cancel, t.probes, t.judged = target, cancel, nil, e.o.Now()
	probing.Go(func() {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for {
			probed := e.o.Probe(ctx, target)
			if ctx.Err() != nil {
				return
			}
			t.mu.Lock()
			t.probes = append(t.probes, probed)
			t.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// stop ends the probing.
func (t *tuner) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
		t.cancel = nil
	}
}

// taken is what the last period says, once it is over and has something to say.
func (t *tuner) taken(now time.Time) (h health, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.judged) < tuneEvery || len(t.probes) == 0 {
		return health{}, false
	}
	var took []time.Duration
	for _, p := range t.probes {
		if p.Failed {
			h.failed++
		}
		took = append(took, p.Took)
	}
	h.failed = h.failed * 100 / int64(len(t.probes))
	slices.Sort(took)
	h.median = took[len(took)/2]
	t.probes, t.judged = nil, now
	return h, true
}

// retune says what the target's health makes of the rate (seed 004, autotune): up by a step while it is well and people wait, down by half when
// it is not, within floor and ceiling. It leaves alone a rate of 0, which is an operator's stop, and a rate that an operator has just set.
func retune(s *room.Summary, h health, now room.Instant) (Change, bool) {
	rule, rate := s.Settings.Autotune, s.Settings.RatePerMinute
	if rule == nil || s.Mode != room.Active || rate == 0 {
		return Change{}, false
	}
	if s.Steering.RateRule == "" && now-s.Steering.RateAt < room.Instant(handsOff.Milliseconds()) {
		return Change{}, false
	}
	why := room.Reason{Rule: "autotune", Sign: "well", Value: h.median.Milliseconds(), Limit: rule.LatencyMs}
	next := rate
	switch {
	case h.failed > rule.ErrorPct:
		why.Sign, why.Value, why.Limit = "failing", h.failed, rule.ErrorPct
		next = min(rate, max(rule.Floor, rate/2))
	case why.Value > rule.LatencyMs:
		why.Sign = "slow"
		next = min(rate, max(rule.Floor, rate/2))
	case s.Waiting > 0:
		next = max(rate, min(rule.Ceiling, rate+rule.Step))
	}
	if next == rate {
		return Change{}, false
	}
	set := *s.Settings
	set.RatePerMinute = next
	return Change{Settings: &set, Reason: &why}, true
}
