package httpapi

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"qm/access/token"
	"qm/engine/room"
)

// stream is one page that listens. Ten thousands of them are open at a time, so it holds what the next frame needs and nothing else.
// It belongs to its writer alone.
type stream struct {
	wire     wire
	visitor  token.Visitor
	sessions []string // the ownership sessions that the browser showed
	wanted   string   // where the visitor asked to be brought back to
	token    string   // of a place signed anew or drawn, "" for none: in every frame from then on (seed 004, QM-391)
	ref      string   // told with the token

	said   []byte // the last frame, as it went out: what equals it is no news
	shared bool   // said is other streams', too, and not to be written over
	left   int    // how many bytes at the end of said are still to go out
	passed bool   // said so

	ahead    int           // when last looked at
	departed int           // likewise, of the room
	stale    bool          // something has changed since
	beatAt   time.Duration // when something has to be said whatever happens; since streams.born, like the next
	stuckAt  time.Duration // since when left has not become less
	renewAt  int64         // when the token is due to be signed anew, epoch milliseconds; 0: it has been judged
}

// nearness is the part of what is ahead whose departure is news: with 2,000 ahead a page hears of every 100th that leaves, with 20 of
// each. Whoever is further back hears less often, though never later than the next beat.
const nearness = 20

// touched reports whether departures from the line matter to the stream.
func (st *stream) touched(departed int) bool { return (departed-st.departed)*nearness >= st.ahead }

// heard notes what was said of a frame.
func (st *stream) heard(f *frame, at time.Duration) {
	st.visitor, st.token, st.ref, st.passed = f.holds(), f.token, f.ref, f.passed // an entry that was drawn is a ticket from now on
	st.beatAt = at + beatEarliest + rand.N(beatLatest-beatEarliest)
	st.seen(f)
}

// seen notes what the room was like when the stream was looked at.
func (st *stream) seen(f *frame) {
	st.stale, st.departed, st.ahead = false, departed(&f.sum), 0
	if f.waits() && (f.place.Status == room.Waiting || f.place.Status == room.Enqueued) {
		st.ahead = f.place.Ahead
	}
}

// flush pushes what is still to go out of the last frame. It is false when the page is gone, or has taken nothing for too long.
func (st *stream) flush(at time.Duration) bool {
	n, err := st.wire.push(st.said[len(st.said)-st.left:])
	if err != nil {
		return false
	}
	if st.left -= n; n > 0 || st.left == 0 {
		st.stuckAt = at
	}
	return at-st.stuckAt < writePatient
}

// say sends w.event, or the last frame once more.
func (w *writer) say(st *stream, again bool) bool {
	switch {
	case again:
	case w.common:
		st.said, st.shared = w.event, true
	default:
		if st.shared || cap(st.said) < len(w.event) {
			st.said, st.shared = make([]byte, 0, len(w.event)+8), false // a position may grow by a digit
		}
		st.said = append(st.said[:0], w.event...)
	}
	st.left, st.stuckAt = len(st.said), w.at
	return st.flush(w.at)
}

// serve tells a stream what there is to tell. It is false when the stream ends.
func (w *writer) serve(ctx context.Context, st *stream) bool {
	if st.left > 0 {
		if !st.flush(w.at) {
			return false
		}
		if st.left > 0 {
			return !st.wire.gone(w.scratch[:])
		}
	}
	beat := w.at >= st.beatAt
	if beat && st.wire.gone(w.scratch[:]) {
		return false
	}
	due := st.renewAt != 0 && w.now.UnixMilli() >= st.renewAt
	if !beat && !(w.reachable && (due || st.stale)) {
		return true
	}
	if !w.reachable {
		return w.repeat(st)
	}
	f := &w.frame
	*f = frame{wanted: st.wanted, token: st.token, ref: st.ref}
	err := w.s.glance(ctx, f, st.visitor, w.now)
	switch {
	case isNoRoom(err):
		*f = frame{visitor: st.visitor, gone: "room_reset"}
	case errors.Is(err, errNoToken):
		*f = frame{visitor: st.visitor, gone: "expired"}
	case err != nil:
		return w.lost(st, beat)
	}
	if n := f.ticket(); n != 0 {
		w.s.o.Engine.Seen(w.room, n)
	}
	if due {
		ends, err := w.renews(ctx, f, st)
		if err != nil {
			return w.lost(st, beat)
		}
		if ends {
			return false
		}
	}
	if f.passed || f.visitor.PreQueued() && f.place.Ticket != 0 {
		if _, err := w.s.finish(ctx, f, st.sessions, w.now, false); err != nil {
			return w.lost(st, beat)
		}
	}
	w.compose(f)
	// Each frame of a pass has a fresh hand-over code: that alone is no news.
	if !beat && f.gone == "" && (f.passed && st.passed || bytes.Equal(w.event, st.said)) {
		st.seen(f)
		return true
	}
	if !w.say(st, false) || f.gone != "" {
		return false
	}
	st.heard(f, w.at)
	return true
}

// renews ends a stream whose token is due to be signed anew: cookies cannot be set once the head is sent, and a stream opened anew can
// (seed 004, QM-469). Who would be refused that keeps the stream, and is not asked again.
func (w *writer) renews(ctx context.Context, f *frame, st *stream) (ends bool, err error) {
	if f.waits() {
		owner, err := w.s.owned(ctx, f, st.sessions)
		if err != nil {
			return false, err
		}
		if owner != "" {
			_, _ = st.wire.push(refreshEvent)
			return true, nil
		}
	}
	st.renewAt = 0
	return false, nil
}

var refreshEvent = appendEvent(nil, "refresh", []byte("{}"))

// compose makes the frame's event. Before the draw it is one for all: there are no places yet.
func (w *writer) compose(f *frame) {
	w.common = f.waits() && f.place.Status == room.Enqueued && f.token == ""
	if w.common && w.before != nil {
		w.event = w.before
		return
	}
	w.json = f.append(w.json[:0], w.now)
	if w.common {
		w.before = appendEvent(nil, "status", w.json)
		w.event = w.before
		return
	}
	w.buf = appendEvent(w.buf[:0], "status", w.json)
	w.event = w.buf
}

// lost: the room has come out of reach, for this round's other streams as well. Their turn comes in a later round.
func (w *writer) lost(st *stream, beat bool) bool {
	w.reachable = false
	return !beat || w.repeat(st)
}

// repeat says the last frame again: it still holds as far as anyone knows, and keeps the line alive.
func (w *writer) repeat(st *stream) bool {
	st.beatAt = w.at + beatEarliest + rand.N(beatLatest-beatEarliest)
	return w.say(st, true)
}
