package httpapi

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"qm/engine/room"
)

// Times of a writer.
const (
	// roundEvery is how often a room is looked at. The outflow moves in slices of a second at most (seed 004, Outflow), so this is what a
	// visitor's news may lag behind the event.
	roundEvery = 200 * time.Millisecond
	// markWait bounds the look at a room whose owner is another process, and roundWait the looks at the places of one round: when
	// Valkey stalls, beats go on from memory.
	markWait  = 400 * time.Millisecond
	roundWait = time.Second
)

// writer serves some of a room's streams, all from one goroutine: what a stream holds needs no lock, and no stream needs a
// goroutine or a timer. It ends when its last stream does.
type writer struct {
	s    *Server
	room string

	size    int       // of arrived and streams; guarded by streams.mu, like arrived
	arrived []*stream // since the last round
	streams []*stream // by what is ahead of them, as far as known
	last    mark

	// Of the round under way.
	now       time.Time
	at        time.Duration // now, since streams.born
	reachable bool          // the room can be read
	before    []byte        // the event that all entries of the pre-queue share; nil: not made yet
	event     []byte        // what is to be said
	common    bool          // event is before

	// Memory that is used again.
	frame   frame
	json    []byte
	buf     []byte
	scratch [512]byte
}

func (w *writer) run() {
	t := w.s.streams
	tick := time.NewTimer(w.untilRound())
	defer tick.Stop()
	for {
		select {
		case <-t.running.Done():
			w.farewell()
			return
		case <-tick.C:
		}
		if ended := w.round(t.running); ended > 0 && t.dismiss(w, ended) {
			return
		}
		tick.Reset(w.untilRound())
	}
}

// untilRound is the time to the next round. The writers of a room look at it at the same instants, so that all its pages hear of a
// change together, and each room has instants of its own.
func (w *writer) untilRound() time.Duration {
	own := time.Duration(maphash.String(w.s.streams.seed, w.room) % uint64(roundEvery))
	return roundEvery - (time.Since(w.s.streams.born)+own)%roundEvery
}

// round looks at the room and tells each stream what there is to tell, those near the front first. It returns how many have ended.
func (w *writer) round(ctx context.Context) (ended int) {
	w.now, w.at, w.before = w.s.o.Now(), time.Since(w.s.streams.born), nil
	was := w.last
	w.look(ctx)
	news := w.reachable && w.last.news != was.news
	moved := w.reachable && w.last.flow != was.flow
	ctx, cancel := context.WithTimeout(ctx, roundWait)
	defer cancel()
	fresh := w.takeArrived()
	if moved || fresh {
		slices.SortFunc(w.streams, func(a, b *stream) int { return cmp.Compare(a.ahead, b.ahead) })
	}
	kept := w.streams[:0]
	for _, st := range w.streams {
		st.stale = st.stale || news || moved && st.touched(w.last.flow.departed)
		if w.serve(ctx, st) {
			kept = append(kept, st)
			continue
		}
		st.wire.close()
		ended++
	}
	clear(w.streams[len(kept):])
	w.streams = kept
	return ended
}

// takeArrived adds the streams that came since the last round. What has changed since their first frame shows in this one.
func (w *writer) takeArrived() bool {
	t := w.s.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(w.arrived) == 0 {
		return false
	}
	for _, st := range w.arrived {
		st.stale = true
	}
	w.streams = append(w.streams, w.arrived...)
	clear(w.arrived)
	w.arrived = w.arrived[:0]
	return true
}

// farewell ends all streams, each with a time of its own to come back at.
func (w *writer) farewell() {
	t := w.s.streams
	open := t.count()
	w.takeArrived()
	for _, st := range w.streams {
		st.farewell(open)
	}
	t.dismiss(w, len(w.streams))
	w.streams = nil
}

func (st *stream) farewell(open int) {
	if st.left == 0 { // it would land inside a frame
		_, _ = st.wire.push(append(appendRetry(nil, retryStopped(open)), '\n'))
	}
	st.wire.close()
}

// mark is what frames depend on, arrivals aside: somebody joining behind moves nobody's place.
type mark struct {
	news news
	flow flow
}

// news is of interest to everybody in the room.
type news struct {
	exists     bool
	generation uint32
	mode       room.Mode
	opensAt    room.Instant
	rate       int64
	hold       int64
	message    room.Instant
	drawn      room.Instant
	full       bool
}

// flow is of interest to those near the front, and to those who are through.
type flow struct {
	departed int
	doors    int
}

// departed is how many tickets have left the line one way or another.
func departed(sum *room.Summary) int { return int(sum.LastTicket) - sum.Waiting - sum.Held }

// look reads the room's mark. A room that does not exist is one that can be read.
func (w *writer) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, markWait)
	defer cancel()
	sum, _, err := w.s.summary(ctx, w.room)
	if w.reachable = err == nil || isNoRoom(err); !w.reachable {
		return
	}
	if err != nil {
		w.last = mark{}
		return
	}
	w.last = mark{
		news{
			exists: true, generation: sum.Generation, mode: sum.Mode, opensAt: sum.OpensAt, rate: sum.Settings.RatePerMinute,
			hold: sum.Settings.HoldScore, message: sum.Settings.Branding.MessageAt, full: full(&sum),
		},
		flow{departed(&sum), sum.Doors},
	}
	if sum.Proof != nil {
		w.last.news.drawn = sum.Proof.DrawnAt
	}
}
