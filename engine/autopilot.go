package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"qm/engine/room"
)

// The autopilot carries out what rooms may do by themselves: autotune, autoActivate (seed 004) and openings. It looks at each room that
// this process owns once a second, decides by pure functions of what it sees, and acts by the same commands as operators; the event says why.
// What an operator did by hand stands for a while before it acts again.

const (
	steerEvery = time.Second
	handsOff   = time.Minute // after an operator's own change of the rate
)

func (e *Engine) autopilot(ctx context.Context) {
	var probing sync.WaitGroup
	defer probing.Wait()
	tick := time.NewTicker(steerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, r := range e.runners() {
			if r.current() != owned {
				r.tuner.stop()
				continue
			}
			r.steer(ctx, &probing)
		}
	}
}

// steer lets the room's rules act, if it has any.
func (r *runner) steer(ctx context.Context, probing *sync.WaitGroup) {
	s, _, err := r.view.Summary(ctx)
	if err != nil || !s.Exists {
		r.tuner.stop()
		return
	}
	set := s.Settings
	if set.Autotune == nil || s.Mode != room.Active || s.Scheduled() {
		r.tuner.stop()
	}
	if len(set.Openings) == 0 && set.AutoActivate == nil && set.Autotune == nil {
		return
	}
	wall := r.e.o.Now()
	now := room.Instant(wall.UnixMilli())
	switch {
	case closing(&s, now):
		_, err = r.e.Do(ctx, r.id, "clock", room.CloseRoom{})
	case opening(&s, now) != 0:
		err = r.rule(ctx, func(s *room.Summary) (Change, bool) {
			at := opening(s, now)
			opens := time.UnixMilli(int64(at))
			c := Change{OpensAt: &opens, Reason: &room.Reason{Rule: "openings", Sign: "opens", Value: int64(at)}}
			if s.Mode == room.Idle {
				c.Mode = room.Active
			}
			return c, at != 0
		})
	case set.AutoActivate != nil && !s.Scheduled():
		arrived := r.arrivals.lastMinute(wall)
		calm := calmSince(&s, r.calmSince, now)
		r.calmSince = calm
		if turn(&s, arrived, calm, now) != nil {
			err = r.rule(ctx, func(s *room.Summary) (Change, bool) {
				switch why := turn(s, arrived, calmSince(s, calm, now), now); {
				case why == nil:
					return Change{}, false
				case why.Sign == "surge":
					return Change{Mode: room.Active, Reason: why}, true
				default:
					return Change{Mode: room.Bypass, Reason: why}, true
				}
			})
		}
	}
	if err == nil && set.Autotune != nil && s.Mode == room.Active && !s.Scheduled() && r.e.o.Probe != nil {
		r.tuner.watch(ctx, r.e, set.TargetURL, probing)
		if health, ok := r.tuner.taken(wall); ok {
			err = r.rule(ctx, func(s *room.Summary) (Change, bool) { return retune(s, health, now) })
		}
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("a rule of the room could not be carried out; it will be tried again", "error", err)
	}
}

var errUnwanted = errors.New("engine: the rule no longer applies")

// rule changes the room if decide, called with the room as it stands when the change is decided, still wants it.
func (r *runner) rule(ctx context.Context, decide func(*room.Summary) (Change, bool)) error {
	_, err := r.e.Change(ctx, r.id, "clock", func(s *room.Summary) (Change, error) {
		c, ok := decide(s)
		if !ok || c.Settings == nil && c.OpensAt == nil && (c.Mode == "" || c.Mode == s.Mode) {
			return Change{}, errUnwanted
		}
		return c, nil
	})
	if errors.Is(err, errUnwanted) {
		return nil
	}
	return err
}

// closing says whether an opening has ended: the room was there while it ran.
func closing(s *room.Summary, now room.Instant) bool {
	for _, o := range s.Settings.Openings {
		if o.ClosesAt != 0 && o.ClosesAt <= now && s.CreatedAt < o.ClosesAt && s.Mode != room.Idle {
			return true
		}
	}
	return false
}

// opening is the next opening, if it is time to schedule it: nothing is scheduled and none is under way. 0: no.
func opening(s *room.Summary, now room.Instant) room.Instant {
	if s.Scheduled() {
		return 0
	}
	for _, o := range s.Settings.Openings {
		switch {
		case o.OpensAt > now:
			return o.OpensAt
		case o.ClosesAt == 0 || o.ClosesAt > now:
			return 0
		}
	}
	return 0
}

// calmSince is since when a room that began to queue by itself has been calm: fewer than half of the threshold join in a minute, and nobody waits.
// 0: it is not. since is what it was a moment ago.
func calmSince(s *room.Summary, since, now room.Instant) room.Instant {
	rule := s.Settings.AutoActivate
	switch {
	case rule == nil || s.Mode != room.Active || s.Steering.ModeRule != "autoActivate":
		return 0
	case int64(s.Flow.JoinedLastMin(now))*2 >= rule.ArrivalsPerMinute || s.Waiting+s.Held+s.PreQueue > 0:
		return 0
	case since == 0:
		return now
	}
	return since
}

// turn says whether a room has to begin or end queueing, and why; nil: neither. It begins when more than the threshold arrive in a minute; it ends,
// if it began by itself, after calmMinutes of calm. An operator's own change of the state stands for calmMinutes.
func turn(s *room.Summary, arrived int64, calmSince, now room.Instant) *room.Reason {
	rule := s.Settings.AutoActivate
	if rule == nil {
		return nil
	}
	calm := room.Instant(rule.CalmMinutes) * 60_000
	switch {
	case s.Mode == room.Bypass:
		byHand := s.Steering.ModeRule == "" && s.Steering.ModeAt > s.CreatedAt
		if arrived > rule.ArrivalsPerMinute && !(byHand && now-s.Steering.ModeAt < calm) {
			return &room.Reason{Rule: "autoActivate", Sign: "surge", Value: arrived, Limit: rule.ArrivalsPerMinute}
		}
	case calmSince != 0 && now-calmSince >= calm:
		return &room.Reason{Rule: "autoActivate", Sign: "calm", Value: int64(s.Flow.JoinedLastMin(now)), Limit: rule.ArrivalsPerMinute / 2}
	}
	return nil
}
