package alert

import "time"

// Reading is what was seen of one thing that a rule watches.
type Reading struct {
	Rule    string
	Subject string // a room, a process, a share link
	Room    string // where it is about a room
	Value   int64
	Bad     bool // beyond the limit
	Good    bool // well within it; what is neither changes nothing
}

// Memory is what the judge remembers of one thing between two looks: since when it has been contrary to what is known. Its zero value
// remembers nothing.
type Memory struct{ Since time.Time }

// Verdict is what a reading leads to.
type Verdict int

// The verdicts.
const (
	Stay Verdict = iota
	Fire
	End
)

// Judge decides about a reading. active says whether the alert has fired and is not over. Contrary readings have to last, without a break, for as
// long as the rule says.
func Judge(r Rule, m Memory, active bool, seen Reading, now time.Time) (Memory, Verdict) {
	contrary, wait, verdict := seen.Bad, r.For, Fire
	if active {
		contrary, wait, verdict = seen.Good, r.Clear, End
	}
	switch {
	case !contrary:
		return Memory{}, Stay
	case m.Since.IsZero():
		m.Since = now
	}
	if now.Sub(m.Since) < wait {
		return m, Stay
	}
	return m, verdict // what is not carried out is judged the same at the next look
}

// above is a reading of what should not be above a limit. It is well within below four fifths.
func above(rule, subject, room string, value, limit int64) Reading {
	return Reading{rule, subject, room, value, value >= limit, value < limit*4/5 || value == 0}
}
