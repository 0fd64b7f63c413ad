package httpapi

import (
	"net/http"
	"slices"

	"qm/access"
)

// health is readiness: 503 while this instance cannot, for example, make a join durable (seed 004, Health).
func (s *Server) health(x *exchange) error {
	status := http.StatusOK
	if !s.readiness(x) {
		status = http.StatusServiceUnavailable
		x.w.Header().Set("Retry-After", "2")
	}
	x.json(status)
	return nil
}

// version is the same payload, always 200.
func (s *Server) version(x *exchange) error {
	s.readiness(x)
	x.json(http.StatusOK)
	return nil
}

// readiness appends the payload that anyone may see: no room and no address is named.
func (s *Server) readiness(x *exchange) bool {
	h := s.o.Engine.Health()
	ready := h.Ready && !s.stopping()
	b := append(x.buf[:0], `{"ok":`...)
	b = append(b, map[bool]string{true: "true", false: "false"}[ready]...)
	b = appendText(b, "status", map[bool]string{true: "ready", false: "not ready"}[ready])
	b = appendText(b, "version", s.o.Version)
	b = appendText(b, "stores", s.o.Stores)
	b = appendBool(b, "journal", h.JournalErr == "")
	b = appendBool(b, "projection", h.SharedErr == "")
	b = appendBool(b, "stopping", s.stopping())
	b = appendInt(b, "uptimeSec", int64(x.now.Sub(s.started).Seconds()))
	b = appendInt(b, "now", x.ms())
	x.buf = append(b, '}')
	return ready
}

// Variable is one of the environment, as an operator may see it.
type Variable struct {
	Name    string
	Value   string // "set" or "" where Hidden; never the secret itself
	Hidden  bool   // it is a secret, or an address that may contain one
	Default bool   // the value is that of a server whose environment says nothing
}

func appendVariables(b []byte, list []Variable) []byte {
	b = append(appendMember(b, "variables"), '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"name":`...), v.Name)
		if v.Hidden {
			b = appendBool(b, "set", v.Value != "")
			b = append(b, `,"value":null`...)
		} else {
			b = appendText(b, "value", v.Value)
		}
		b = appendBool(b, "default", v.Default)
		b = append(b, '}')
	}
	return append(b, ']')
}

// adminHealth is what the operator should know (seed 004, GET /api/admin/health).
func (s *Server) adminHealth(x *exchange) error {
	s.readiness(x)
	h := s.o.Engine.Health()
	b := x.buf[:len(x.buf)-1]
	b = appendText(b, "journalError", h.JournalErr)
	b = appendText(b, "projectionError", h.SharedErr)
	organisation := "" // while it cannot be read, operators may look and change nothing
	if err := s.o.Book.Stale(); err != nil {
		organisation = err.Error()
	}
	b = appendText(b, "organisationError", organisation)
	b = appendInt(b, "streams", int64(s.streams.count()))
	b = appendInt(b, "connections", s.ceiling.open.Load())
	b = appendInt(b, "checksOfUnknownRooms", s.noRoom.n.Load())
	var warnings []string
	if x.actor.Role > access.Monitor { // how weak a key is, is nothing for whoever was given a link
		warnings = s.o.Warnings
	}
	if s.o.Turns != nil {
		if w := s.o.Turns.Warning(); w != "" {
			warnings = append(slices.Clip(warnings), w)
		}
	}
	b = appendStrings(b, "warnings", warnings)
	b = append(b, `,"rooms":[`...)
	for i, r := range h.Rooms {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":`...)
		b = appendString(b, r.Room)
		b = appendBool(b, "owned", r.Owned)
		b = appendText(b, "damaged", r.Damaged)
		b = appendInt(b, "lag", r.Lag)
		b = append(b, '}')
	}
	b = append(b, `],"config":{"stores":`...)
	b = appendString(b, s.o.Stores)
	b = appendInt(b, "joinLimitPerMin", int64(s.o.JoinLimitPerMin))
	b = appendInt(b, "checkLimitPerMin", int64(s.o.CheckLimitPerMin))
	b = appendInt(b, "statusLimitPerMin", int64(s.o.StatusLimitPerMin))
	b = appendInt(b, "sseMaxTotal", int64(s.streams.max))
	b = appendInt(b, "maxConnections", s.ceiling.most)
	b = appendInt(b, "ssePerIp", int64(s.o.SSEPerIP))
	b = appendInt(b, "roomCookieCap", int64(s.o.RoomCookieCap))
	b = appendInt(b, "queueCookieMaxAgeSec", int64(s.o.CookieMaxAgeSec))
	b = appendInt(b, "tokenMaxAgeSec", int64(s.o.Keys.MaxAge().Seconds()))
	b = appendText(b, "publicUrl", s.o.PublicURL)
	b = appendBool(b, "demo", s.o.Demo)
	if x.actor.Role > access.Monitor { // a shared link shows no internal address, and the environment has some
		b = appendVariables(b, s.o.Variables)
	}
	x.buf = append(b, '}', '}')
	x.json(http.StatusOK)
	return nil
}
