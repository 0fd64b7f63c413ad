package httpapi

import (
	"bytes"
	"errors"
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
	defer s.streams.leave(x.network)
	if s.stopping() {
		return refuse("shutting_down")
	}
	p, done := s.listen(v.Room)
	defer done()
	beat := s.streams.next(p)
	if err := s.tell(x, f); err != nil {
		return err
	}
	out, err := x.begin()
	if err != nil {
		return err
	}
	if out.send("status", x.buf) != nil || f.gone != "" {
		return nil
	}
	// A refreshed token is in every frame from now on, and the stream is as old as that one.
	v.IssuedAt = f.visitor.IssuedAt
	refresh := time.NewTimer(v.RefreshAt(s.refreshAfter).Sub(x.now))
	defer refresh.Stop()
	sent, passed := append([]byte(nil), x.buf...), f.passed
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for {
		forced, due := false, false
		select {
		case <-x.r.Context().Done():
			return nil
		case <-s.quit:
			return nil
		case <-beat:
			beat = s.streams.next(p)
		case <-timer.C:
			forced = true
		case <-refresh.C:
			due = true
		}
		x.now = s.o.Now()
		err := s.look(x.r.Context(), f, v, x.now)
		switch {
		case isNoRoom(err):
			*f = frame{visitor: v, gone: "room_reset"}
		case errors.Is(err, errNoToken):
			*f = frame{visitor: v, gone: "expired"}
		case err != nil:
			// The room is out of reach for now. What was said last still holds as far as anyone knows; it keeps the line alive.
			if forced && out.send("status", sent) != nil {
				return nil
			}
			timer.Reset(heartbeat)
			continue
		}
		if due && f.waits() {
			// Cookies cannot be set once the head is sent: a stream opened anew can (seed 004, QM-469). Who would be
			// refused the refresh keeps the stream.
			if owner, err := s.owned(x.r.Context(), f, sessions(x.r.Header, v.Room)); err == nil && owner != "" {
				_ = out.send("refresh", []byte("{}"))
				return nil
			}
		}
		if err := s.tell(x, f); err != nil {
			return nil
		}
		// Each frame of a pass has a fresh hand-over code: that alone is no news.
		if !forced && f.gone == "" && (f.passed && passed || bytes.Equal(x.buf, sent)) {
			continue
		}
		if out.send("status", x.buf) != nil || f.gone != "" {
			return nil
		}
		sent, passed = append(sent[:0], x.buf...), f.passed
		timer.Reset(heartbeat)
	}
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
