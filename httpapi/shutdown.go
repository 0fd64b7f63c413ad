package httpapi

import (
	"context"
	"net/http"
	"time"
)

// shutdown is POST /api/admin/shutdown: a clean stop, as by SIGTERM (seed 004). It answers first. That it can be recorded is not waited for long: a
// process must be stoppable while its storage is away.
func (s *Server) shutdown(x *exchange) error {
	if err := x.noFields(); err != nil {
		return err
	}
	if s.o.Stop == nil {
		return refuse("not_available")
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), time.Second)
	defer cancel()
	if err := s.o.Book.ShutDown(ctx, s.by(x)); err != nil {
		s.o.Log.Warn("record who stops the server", "actor", x.actor.ID, "err", err)
	}
	b := append(x.buf[:0], `{"ok":true,"stopping":true`...)
	b = appendInt(b, "uptimeSec", int64(x.now.Sub(s.started).Seconds()))
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	if err := http.NewResponseController(x.w).Flush(); err != nil {
		s.o.Log.Debug("flush the last answer", "err", err)
	}
	s.o.Stop()
	return nil
}
