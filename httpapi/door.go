package httpapi

import (
	"maps"
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
	maxWork  = 16 * 9
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

// What a door came to.
const (
	letIn       = "let_in"
	heldBack    = "held"         // has a place that is not passed
	refused     = "refused"      // got none
	offered     = "offered"      // got none, and a proof of work to do
	worked      = "worked"       // got one for a proof of work
	wouldRefuse = "would_refuse" // got one, and would have got none in enforce mode
)

// verdicts are all of them, in the order in which they are told.
var verdicts = []string{letIn, heldBack, refused, offered, worked, wouldRefuse}

// came is what a judgement came to, err being what became of the request for a place.
func (j *judgement) came(set *room.Settings, blocked bool) string {
	switch {
	case blocked && set.Protection.Work:
		return offered
	case blocked:
		return refused
	case set.Protection.Monitor() && int64(j.Score) >= set.Protection.RefusesFrom():
		return wouldRefuse
	case set.Holds(j.Score):
		return heldBack
	case j.worked:
		return worked
	}
	return letIn
}

// maxRecent is how many of a room's latest are kept, of those with something against them.
const maxRecent = 100

// records is what this process judged since it started. There is one for each room that exists, of a fixed size.
type records struct {
	since time.Time

	mu    sync.Mutex
	rooms map[string]*record
}

type record struct {
	generation uint32
	scored     int64
	verdicts   map[string]int64
	scores     [10]int64 // how many of 0 to 9, 10 to 19 and so on; the last has 100, too
	reasons    map[string]int64
	recent     []knocked // a ring
	next       int
}

// knocked is one of a room's latest. Who it was is not kept: only the place, by which its later fate is known.
type knocked struct {
	at      time.Time
	score   uint8
	reasons []score.Reason
	verdict string
	ticket  room.Ticket
	handle  room.Handle
}

// note counts a judgement.
func (r *records) note(id string, generation uint32, j *judgement, verdict string, place room.Place, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.rooms[id]
	if of == nil || of.generation != generation {
		of = &record{generation: generation, verdicts: make(map[string]int64), reasons: make(map[string]int64)}
		r.rooms[id] = of
	}
	of.scored++
	of.verdicts[verdict]++
	of.scores[min(int(j.Score)/10, 9)]++
	for _, reason := range j.Reasons {
		of.reasons[reason.ID]++
	}
	if len(j.Reasons) == 0 {
		return
	}
	entry := knocked{at: at, score: j.Score, reasons: j.Reasons, verdict: verdict, ticket: place.Ticket, handle: place.Handle}
	if len(of.recent) < maxRecent {
		of.recent = append(of.recent, entry)
		return
	}
	of.recent[of.next] = entry
	of.next = (of.next + 1) % maxRecent
}

// of is a copy of a room's record, the latest first.
func (r *records) of(id string, generation uint32) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.rooms[id]
	if of == nil || of.generation != generation {
		return record{}
	}
	c := *of
	c.verdicts, c.reasons, c.recent = maps.Clone(of.verdicts), maps.Clone(of.reasons), nil
	for i := range of.recent {
		c.recent = append(c.recent, of.recent[(of.next-1-i+2*len(of.recent))%len(of.recent)])
	}
	return c
}

// forget drops a room that was deleted.
func (r *records) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rooms, id)
}
