package httpapi

import (
	"net/http"
	"time"

	"qm/access/org"
)

// How long a share link lasts: a month unless something else is asked for, up to a year.
const (
	linkLife    = 30 * 24 * time.Hour
	maxLinkLife = 366 * 24 * time.Hour
)

// mintMonitor is POST /api/admin/monitor-token {expiresInSec?}: a credential that only looks. The address to share carries it in the
// fragment, which no browser sends to any server (seed 004).
func (s *Server) mintMonitor(x *exchange) error {
	body, err := x.object(adminBody, true)
	if err != nil {
		return err
	}
	if err := body.only("expiresInSec"); err != nil {
		return err
	}
	life := linkLife
	if raw, ok := body.find("expiresInSec"); ok {
		n, ok := whole(raw)
		if !ok || n < 60 || n > int64(maxLinkLife/time.Second) {
			return refuseField("invalid_expires_in_sec", "expiresInSec", "")
		}
		life = time.Duration(n) * time.Second
	}
	key, link, err := s.o.Gate.MintMonitor(x.r.Context(), s.by(x), life, x.now)
	if err != nil {
		return err
	}
	b := appendString(append(x.buf[:0], `{"id":`...), link.ID)
	b = appendText(b, "token", key)
	b = appendText(b, "url", s.base(x.r)+"/#monitor="+key)
	b = appendInt(b, "expiresAt", link.Ends.UnixMilli())
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// listMonitors lists the live share links. What they carry is not kept.
func (s *Server) listMonitors(x *exchange) error {
	b := append(x.buf[:0], `{"links":[`...)
	for i, l := range s.o.Gate.MonitorLinks(x.now) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"id":`...), l.ID)
		b = appendText(b, "createdBy", l.By)
		b = appendText(b, "createdByName", s.nameOf(l.By))
		b = appendInt(b, "createdAt", l.At.UnixMilli())
		b = appendInt(b, "expiresAt", l.Ends.UnixMilli())
		b = append(b, '}')
	}
	x.buf = append(b, ']', '}')
	x.json(http.StatusOK)
	return nil
}

// nameOf is an actor's name, for people.
func (s *Server) nameOf(actor string) string {
	if actor == org.Admin {
		return "admin key"
	}
	return s.o.Book.Name(actor)
}

// revokeMonitors is DELETE /api/admin/monitor-token?id= or ?all=1.
func (s *Server) revokeMonitors(x *exchange) error {
	id, one, err := x.query("id")
	if err != nil {
		return err
	}
	all, every, err := x.query("all")
	switch {
	case err != nil:
		return err
	case one && every, !one && !every, one && id == "":
		return refuseField("invalid_parameter", "id", "Either id names one link, or all=1 means every one.")
	case every && all != "1":
		return refuseField("invalid_parameter", "all", "")
	}
	n, err := s.o.Gate.RevokeMonitor(x.r.Context(), s.by(x), id, x.now)
	if err != nil {
		return err
	}
	x.buf = append(appendInt(append(x.buf[:0], `{"ok":true`...), "revoked", int64(n)), '}')
	x.json(http.StatusOK)
	return nil
}
