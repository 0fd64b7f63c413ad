package httpapi

import (
	"strings"
	"time"
)

// events streams what status says, on each change and at least every five seconds (seed 004, GET /api/events). A stream ends by itself
// when its place does, and when the server stops; the page asks again by itself.
func (s *Server) events(x *exchange) error {
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	v, err := s.visitor(x)
	if err != nil {
		return err
	}
	f := &x.frame
	f.wanted = x.wanted()
	if err := s.look(x.r.Context(), f, v, x.now); err != nil {
		return err
	}
	if x.head {
		x.w.Header().Set("Content-Type", "text/event-stream")
		x.buf = x.buf[:0]
		x.send(200)
		return nil
	}
	if err := s.streams.enter(x.network); err != nil {
		return err
	}
	taken := false // by a wire that leaves by itself
	defer func() {
		if !taken {
			s.streams.leave(x.network)
		}
	}()
	if err := s.tell(x, f); err != nil {
		return err
	}
	st := newStream(x, f, time.Since(s.streams.born))
	if f.ref != "" {
		st.visitor.IssuedAt = x.ms() // the owner's place was signed anew, with this answer's cookies
	}
	st.renewAt = st.visitor.RefreshAt(s.refreshAfter).UnixMilli()
	first := append(appendRetry(nil, retryAfter()), st.said...)
	over := f.gone != ""

	w, err := s.takeOver(x, first)
	if w != nil {
		taken = true
		if st.wire = w; over {
			w.close()
		} else if !s.streams.hand(s, st) {
			st.farewell(s.streams.count())
		}
		return nil
	}
	var out *feed
	if err == nil {
		out, err = x.begin(first)
	}
	if err != nil {
		if x.wrote {
			return nil // the page has gone
		}
		return err
	}
	r := newRelay(out)
	if st.wire = r; !over && s.streams.hand(s, st) {
		r.run(x.r.Context())
	}
	return nil
}

// newStream makes the stream of an exchange whose first frame is f, in x.buf. It keeps nothing of the request's memory.
func newStream(x *exchange, f *frame, at time.Duration) *stream {
	st := &stream{said: appendEvent(make([]byte, 0, len(x.buf)+32), "status", x.buf), wanted: strings.Clone(f.wanted)}
	for _, session := range sessions(x.r.Header, f.visitor.Room) {
		st.sessions = append(st.sessions, strings.Clone(session))
	}
	st.heard(f, at)
	return st
}

// stopping reports whether Shutdown was called.
func (s *Server) stopping() bool {
	select {
	case <-s.quit:
		return true
	default:
		return false
	}
}
