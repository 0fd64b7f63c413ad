package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"qm/engine/room"
	"qm/journal"
	"qm/replay"
)

const (
	journalLimit    = 100
	journalMaxLimit = 1000
)

var errEnough = errors.New("enough")

// journal pages a room's events in seq order, or streams all of them in the form that qm-replay reads (contract.md 14).
func (s *Server) journal(x *exchange) error {
	if err := s.named(x); err != nil {
		return err
	}
	for _, name := range []string{"format", "after", "limit", "kind", "ticket", "words"} {
		if _, _, err := x.query(name); err != nil {
			return err
		}
	}
	format, _, _ := x.query("format")
	switch format {
	case "", "json":
	case "ndjson":
		return s.export(x)
	default:
		return refuseField("invalid_format", "format", "")
	}
	after, err := x.number("after", "invalid_after", 0, 0, 1<<53)
	if err != nil {
		return err
	}
	limit, err := x.number("limit", "invalid_limit", journalLimit, 1, journalMaxLimit)
	if err != nil {
		return err
	}
	ticket, err := x.number("ticket", "invalid_ticket", 0, 1, 1<<32-1)
	if err != nil {
		return err
	}
	kind, _, _ := x.query("kind")
	if kind != "" && !knownKind(kind) {
		return refuseField("invalid_kind", "kind", "")
	}
	words, _, _ := x.query("words")
	if words != "" && words != "0" && words != "1" {
		return refuseField("invalid_parameter", "words", "words is 1 or 0.")
	}
	b := append(x.buf[:0], `{"events":[`...)
	n, last := int64(0), after
	var ends []ending
	err = s.o.Engine.Read(x.r.Context(), x.id, after, func(r *journal.Record) error {
		if n == limit {
			return errEnough
		}
		last = r.Seq
		if kind != "" && r.Kind != kind || ticket != 0 && !concerns(r, room.Ticket(ticket)) {
			return nil
		}
		if n > 0 {
			b = append(b, ',')
		}
		n++
		b = appendRecord(b, r)
		ends = append(ends, ending{r.Seq, len(b) - 1})
		return nil
	})
	more := errors.Is(err, errEnough)
	if err != nil && !more {
		return err
	}
	if words == "1" {
		b = s.worded(x, room.Ticket(ticket), b, ends)
	}
	b = append(b, ']')
	b = appendInt(b, "after", last)
	b = appendBool(b, "more", more)
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// ending is where the JSON of an event ends, before its brace.
type ending struct {
	seq int64
	at  int
}

// worded puts into each event of a page, as text, what it says: to a ticket where one was asked for. An event that is too far from the
// room's first to be told in time, or that says nothing to the ticket, stays without.
func (s *Server) worded(x *exchange, ticket room.Ticket, page []byte, ends []ending) []byte {
	b := make([]byte, 0, len(page)+100*len(ends))
	from := 0
	s.narrate(x.r.Context(), x.id, replay.StoryOptions{Ticket: ticket}, func(e replay.Told) error {
		for len(ends) > 0 && ends[0].seq < e.Seq {
			ends = ends[1:]
		}
		if len(ends) == 0 {
			return errEnough
		}
		if ends[0].seq == e.Seq {
			b = appendText(append(b, page[from:ends[0].at]...), "text", e.Text)
			from, ends = ends[0].at, ends[1:]
		}
		return nil
	})
	return append(b, page[from:]...)
}

// number is a query parameter that is a whole number; absent: otherwise.
func (x *exchange) number(name, code string, otherwise, least, most int64) (int64, error) {
	text, ok, _ := x.query(name)
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, refuseField(code, name, "")
	}
	return n, nil
}

// export streams everything. Once bytes are on their way a failure can only cut the connection, which a reader notices.
func (s *Server) export(x *exchange) error {
	// A room that was deleted, or is shut because its journal is damaged, has a journal all the same.
	first := func(*journal.Record) error { return errEnough }
	if err := s.o.Engine.Read(x.r.Context(), x.id, 0, first); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	h := x.w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Content-Disposition", `attachment; filename="`+x.id+`.ndjson"`)
	x.status, x.wrote = http.StatusOK, true
	if x.head {
		x.w.WriteHeader(http.StatusOK)
		return nil
	}
	if err := s.o.Engine.Export(x.r.Context(), x.id, &patient{w: x.w, ctl: http.NewResponseController(x.w)}); err != nil {
		if x.r.Context().Err() == nil {
			s.o.Log.Error("export a journal", "room", x.id, "err", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

// patient gives each write a time of its own: a long export is fine, a reader that stands still is not.
type patient struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.ctl.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.w.Write(b)
}

func appendRecord(b []byte, r *journal.Record) []byte {
	b = strconv.AppendInt(append(b, `{"seq":`...), r.Seq, 10)
	b = append(b, `,"at":"`...)
	b = r.At.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = append(b, '"')
	b = appendText(b, "kind", r.Kind)
	b = appendInt(b, "version", int64(r.Version))
	b = appendText(b, "actor", r.Actor)
	b = appendText(b, "cause", r.Cause)
	b = append(appendMember(b, "body"), r.Body...)
	b = appendHex(b, "hash", room.Digest(r.Hash))
	return append(b, '}')
}

var kinds = []room.Body{
	&room.Create{}, &room.Configure{}, &room.StateChange{}, &room.Schedule{}, &room.Enqueue{}, &room.Draw{}, &room.Join{}, &room.Pass{},
	&room.Unslot{}, &room.Enter{}, &room.Renew{}, &room.Leave{}, &room.Lapse{}, &room.Eject{}, &room.Purge{}, &room.Close{}, &room.Delete{},
}

func knownKind(kind string) bool {
	for _, k := range kinds {
		if k.Kind() == kind {
			return true
		}
	}
	return false
}

// concerns reports whether an event names a ticket.
func concerns(r *journal.Record, n room.Ticket) bool {
	e, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
	if err != nil {
		return true // whoever looks for something odd should see it
	}
	among := func(list []room.Ticket) bool {
		for _, t := range list {
			if t == n {
				return true
			}
		}
		return false
	}
	switch b := e.Body.(type) {
	case *room.Join:
		return b.Ticket == n
	case *room.Draw:
		return n >= b.First && n < b.First+room.Ticket(b.Count)
	case *room.Pass:
		for _, span := range b.Spans {
			if span[0] <= n && n <= span[1] {
				return true
			}
		}
	case *room.Unslot:
		return among(b.Tickets)
	case *room.Enter:
		return b.Ticket == n
	case *room.Renew:
		return among(b.Tickets)
	case *room.Leave:
		return among(b.Tickets)
	case *room.Lapse:
		return among(b.Tickets)
	case *room.Eject:
		return b.Ticket == n || b.To == n
	}
	return false
}
