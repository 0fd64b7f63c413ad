package httpapi

import (
	"maps"
	"sync"
	"time"

	"qm/access/score"
	"qm/engine/room"
)

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

// came is what a judgement came to; blocked says that it gave no place.
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

// note counts a judgement. One of a generation that has ended meanwhile comes too late to count.
func (r *records) note(id string, generation uint32, j *judgement, verdict string, place room.Place, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.rooms[id]
	if of != nil && generation < of.generation {
		return
	}
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
