package httpapi

import (
	"strings"
	"sync"
	"time"

	"qm/access"
	"qm/access/score"
	"qm/access/token"
	"qm/engine/room"
)

// Who asks for a place within a minute more often than this is hasty, or in a crowded network. Places of one address are families,
// offices and carriers as well, so both count for little (package score).
const (
	hastyPerMin   = 10
	crowdedPerMin = 120
)

// door judges whoever asks for a place of a room with protection (seed 004), and remembers what it judged.
type door struct {
	keys    *token.Keyring
	centres access.Networks
	hasty   *access.Limiter // by address
	crowded *access.Limiter // by the network around it
	spent   spent
	records
}

func newDoor(keys *token.Keyring, centres access.Networks, now time.Time) *door {
	return &door{
		keys: keys, centres: centres, hasty: access.NewLimiter(hastyPerMin), crowded: access.NewLimiter(crowdedPerMin),
		records: records{since: now, rooms: make(map[string]*record)},
	}
}

// knock is what comes along with a request for a place beside its headers.
type knock struct {
	stamp string // that the waiting page got on its way (token.Stamp)
	marks string // what its script noticed, names with commas between
	work  string // a proof of work about the stamp
	plain bool   // it is a page whose script did not run
}

// Limits on what a page reports; it sends less.
const (
	maxStamp = 64
	maxMarks = 200
	maxWork  = token.WorkParts * 9
)

// knockOf reads the members of a body. What cannot be read is as good as not sent: it never costs more than its absence.
func knockOf(o object) (k knock, err error) {
	for _, f := range []struct {
		name string
		to   *string
		most int
	}{{"stamp", &k.stamp, maxStamp}, {"marks", &k.marks, maxMarks}, {"work", &k.work, maxWork}} {
		text, _, err := o.text(f.name, "invalid_field")
		if err != nil {
			return knock{}, err
		}
		if len(text) <= f.most {
			*f.to = text
		}
	}
	return k, nil
}

// judgement is what a door came to. Its zero value is that of a room that scores nobody.
type judgement struct {
	score.Verdict
	scored bool
	worked bool // a proof of work halves the score, and so is always below what a room refuses
}

// judge scores whoever asks for a place. replayed says that a token was shown whose place is another browser's.
func (d *door) judge(x *exchange, id string, set *room.Settings, k knock, secure, replayed bool) judgement {
	client := x.network.Append(nil)
	age, err := d.keys.VerifyStamp(k.stamp, id, client, x.now)
	quick, _ := d.hasty.Allow(x.network, x.now)
	roomy, _ := d.crowded.Allow(x.network.Around(), x.now)
	j := judgement{scored: true, Verdict: score.Judge(score.Signals{
		Header: x.r.Header, Secure: secure, Page: err == nil, Since: age, Plain: k.plain, Marks: strings.Split(k.marks, ","),
		Hasty: !quick, Crowded: !roomy, DataCentre: d.centres.Contain(x.addr), Replayed: replayed,
	})}
	if err == nil && set.Protection.Work && token.Worked(k.stamp, k.work) && d.spent.spend(k.stamp, x.now) {
		j.worked = true
		j.Score /= 2
	}
	return j
}

// blocked is the refusal of a room's protection. Where a proof of work opens the door, it carries what that is about.
func (d *door) blocked(x *exchange, id string, set *room.Settings) error {
	p := refuse("blocked_by_protection")
	if set.Protection.Work {
		p.Work = d.keys.Stamp(id, x.network.Append(nil), x.now)
	}
	return p
}

// spent are the stamps whose proof of work has been taken: each is good for one place. It keeps those of two spans, the present one and the
// one before, so that each is remembered for as long as it would be good. Whoever fills a span early has solved maxSpent of them.
type spent struct {
	mu          sync.Mutex
	began       time.Time
	now, before map[string]struct{}
}

const maxSpent = 100_000 // of some 100 bytes each

func (s *spent) spend(stamp string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := at.Sub(s.began); since > token.StampLife || len(s.now) >= maxSpent {
		s.before, s.now, s.began = s.now, make(map[string]struct{}), at
		if since > 2*token.StampLife {
			s.before = nil
		}
	}
	if _, known := s.now[stamp]; known {
		return false
	}
	if _, known := s.before[stamp]; known {
		return false
	}
	s.now[stamp] = struct{}{}
	return true
}

// knocks judges whoever asks for a place in a room. Where everybody passes nobody is judged.
func (s *Server) knocks(x *exchange, id string, sum *room.Summary, shown string, k knock) judgement {
	if sum.Mode == room.Bypass || !sum.Settings.Protection.Scores() {
		return judgement{}
	}
	s.client(x)
	return s.door.judge(x, id, sum.Settings, k, s.secure(x.r), s.replays(x, id, shown))
}

// judged counts what somebody's knock came to. The place is zero when none was given.
func (s *Server) judged(id string, sum *room.Summary, j *judgement, blocked bool, place room.Place, at time.Time) {
	verdict := j.came(sum.Settings, blocked)
	s.door.note(id, sum.Generation, j, verdict, place, at)
	s.metrics.doors.WithLabelValues(verdict).Inc()
}

// replays reports whether the token that a browser shows names a living place that is not its own.
func (s *Server) replays(x *exchange, id, shown string) bool {
	if shown == "" {
		return false
	}
	v, err := s.o.Keys.VerifyVisitor(shown, id, x.now)
	if err != nil || v.Bypass() {
		return false
	}
	var f frame
	if err := s.look(x.r.Context(), &f, v, x.now); err != nil || f.gone != "" || f.unseen {
		return false
	}
	owner, err := s.owned(x.r.Context(), &f, sessions(x.r.Header, id))
	return err == nil && owner == ""
}
