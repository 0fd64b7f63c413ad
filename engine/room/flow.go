package room

// Flow remembers, in buckets of ten seconds of the room's clock, how many joined and passed in the last five minutes. It is
// a fold over events like everything else, so a rebuilt room gives the same figures.
type Flow struct {
	Joined [flowBuckets]uint32
	Passed [flowBuckets]uint32
	Newest int64   // number of the newest bucket: instant / flowBucket
	Since  Instant // since when somebody has waited without a break under the present rate and mode; 0: nobody waits
}

const flowBuckets = 30

const (
	flowBucket Instant = 10_000 // ms
	// FlowWindow is how far back a Flow remembers, in milliseconds.
	FlowWindow Instant = flowBucket * flowBuckets
)

// advance empties the buckets between the newest and at's, and returns at's index.
func (f *Flow) advance(at Instant) int {
	b := int64(at / flowBucket)
	if b > f.Newest {
		from := max(f.Newest+1, b-flowBuckets+1)
		for i := from; i <= b; i++ {
			f.Joined[i%flowBuckets], f.Passed[i%flowBuckets] = 0, 0
		}
		f.Newest = b
	}
	return int(f.Newest % flowBuckets)
}

func (f *Flow) joined(at Instant, n int) { f.Joined[f.advance(at)] += uint32(n) }
func (f *Flow) passed(at Instant, n int) { f.Passed[f.advance(at)] += uint32(n) }

// sum adds up the buckets that began within the window before now.
func (f *Flow) sum(b *[flowBuckets]uint32, now Instant, window Instant) int {
	first := int64((now - window) / flowBucket)
	total := 0
	for i := max(first+1, f.Newest-flowBuckets+1, 0); i <= f.Newest; i++ {
		total += int(b[i%flowBuckets])
	}
	return total
}

// JoinedLastMin is how many joined in the last minute, give or take a bucket of ten seconds.
func (f *Flow) JoinedLastMin(now Instant) int { return f.sum(&f.Joined, now, 60_000) }

// PassedLastMin is how many passed in the last minute, give or take a bucket of ten seconds.
func (f *Flow) PassedLastMin(now Instant) int { return f.sum(&f.Passed, now, 60_000) }

// priorMs is how many milliseconds of measurement the configured rate weighs as much as, in a blended speed.
const priorMs = 30_000

// Speed is the outflow to expect, in tickets an hour: what was measured since the line has been moving under the present rate
// and mode, at most the last five minutes, blended with the configured rate (contract.md 10). A full room passes as fast as slots come
// free, whatever its rate, and the rush that filled it says nothing: there only the last minute counts. ok is false when nobody is let
// in: paused, idle, rate 0, or a measured outflow of zero where the rate would have passed at least two.
func (s *Summary) Speed(now Instant) (perHour int64, ok bool) {
	if !s.Exists || s.Mode != Active || s.Settings.RatePerMinute == 0 {
		return 0, false
	}
	configured := s.Settings.RatePerMinute * 60
	span := int64(min(max(now-s.Flow.Since, 0), FlowWindow-flowBucket))
	enough := configured*span >= 2*3_600_000
	switch {
	case s.Scheduled():
		return configured, true
	case enough && !s.slotFree():
		passed := int64(s.Flow.PassedLastMin(now))
		return max(passed*3_600_000/min(span, 60_000), 1), passed > 0
	case s.Flow.Since == 0:
		return configured, true
	}
	passed := int64(s.Flow.sum(&s.Flow.Passed, now, Instant(span)+flowBucket))
	if enough && passed == 0 {
		return 0, false
	}
	// Both terms are in tickets: what the rate promises in priorMs, and what passed in span.
	return max((configured*priorMs+passed*3_600_000)/(priorMs+span), 1), true
}

// ETA is the expected wait of a ticket with so many passable tickets ahead of it, in whole seconds, rounded up; ok is false
// when nobody is let in (the wire says null). Before the doors open it counts from now, over the opening.
func (s *Summary) ETA(ahead int, now Instant) (sec int64, ok bool) {
	speed, ok := s.Speed(now)
	if !ok {
		return 0, false
	}
	sec = (int64(ahead+1)*3600 + speed - 1) / speed
	if s.Scheduled() {
		sec += int64(max(s.OpensAt-now, 0)+999) / 1000
	}
	return sec, true
}

// Wait is the expected wait of somebody who joins now (seed 004, estWaitSec). floor is true while the doors are shut: the draw
// decides how much longer a pre-queue entry waits.
func (s *Summary) Wait(now Instant) (sec int64, floor, ok bool) {
	if s.Exists && s.Mode == Bypass {
		return 0, false, true
	}
	if s.Scheduled() {
		if s.Waiting == 0 && s.Mode == Active && s.Settings.RatePerMinute > 0 {
			return int64(max(s.OpensAt-now, 0)+999) / 1000, true, true
		}
		sec, ok = s.ETA(s.Waiting-1, now)
		return sec, true, ok
	}
	if _, ok = s.Speed(now); ok && s.Waiting == 0 && s.slotFree() {
		return 0, false, true
	}
	sec, ok = s.ETA(s.Waiting, now)
	return sec, false, ok
}

func (s *Summary) slotFree() bool {
	return s.Settings.MaxConcurrent == nil || int64(s.Slots) < *s.Settings.MaxConcurrent
}
