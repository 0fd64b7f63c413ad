package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"qm/access/org"
	"qm/journal"
)

// The audit trail is what operators caused, in the organisation's stream and the rooms': who did what, when and from where, and what it was
// before and after (seed 004, GET /api/admin/audit). It is read from the journal itself; only names, addresses and reasons come from notes.

const (
	auditLimit    = 100
	auditMaxLimit = 1000
)

// audit pages the trail, newest first, or streams all that is asked for as NDJSON or CSV.
func (s *Server) audit(x *exchange) error {
	q, err := s.auditQuery(x)
	if err != nil {
		return err
	}
	limit, err := x.number("limit", "invalid_limit", auditLimit, 1, auditMaxLimit)
	if err != nil {
		return err
	}
	format, _, err := x.query("format")
	if err != nil {
		return err
	}
	switch format {
	case "", "json":
	case "ndjson", "csv":
		return s.exportAudit(x, q, format)
	default:
		return refuseField("invalid_audit_format", "format", "")
	}
	entries, next, err := s.entries(x.r.Context(), q, int(limit))
	if err != nil {
		return err
	}
	b := append(x.buf[:0], `{"entries":[`...)
	for i := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = entries[i].append(b)
	}
	b = append(b, ']')
	if next != nil {
		b = appendText(b, "next", cursorOf(next))
	}
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// auditQuery reads the filters: room (an id, or $org), operator (an id, or admin), kind, since, until, cursor.
func (s *Server) auditQuery(x *exchange) (q journal.ActQuery, err error) {
	for _, name := range []string{"room", "operator", "kind", "since", "until", "cursor"} {
		value, ok, err := x.query(name)
		if err != nil {
			return q, err
		}
		if !ok || value == "" {
			continue
		}
		good, code := true, "invalid_"+name
		switch name {
		case "room":
			code = "invalid_room_id"
			if q.Stream = streamOf(value); value == org.Stream {
				q.Stream = org.Stream
			}
			good = value == org.Stream || validRoomID(value)
		case "operator":
			code, good = "invalid_parameter", readable(value, 100, false)
			q.Actor = value
		case "kind":
			good = knownKind(value) || knownActKind(value)
			q.Kind = value
		case "since":
			q.Since, good = instantOf(value)
		case "until":
			q.Until, good = instantOf(value)
		case "cursor":
			q.After, good = placeOf(value)
		}
		if !good {
			return q, refuseField(code, name, "")
		}
	}
	return q, nil
}

func knownActKind(kind string) bool {
	for _, k := range org.Kinds() {
		if k == kind {
			return true
		}
	}
	return false
}

// instantOf reads epoch milliseconds or RFC 3339.
func instantOf(text string) (time.Time, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(n), n >= 0 && n < 1<<53
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil && t.Year() >= 1970
}

// A cursor is where a page ended, so that what is appended meanwhile shifts nothing.
func cursorOf(p *journal.ActPlace) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.At.UnixMicro(), 10) + " " + strconv.FormatInt(p.Seq, 10) + " " + p.Stream))
}

func placeOf(cursor string) (*journal.ActPlace, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	at, rest, _ := strings.Cut(string(raw), " ")
	seq, stream, _ := strings.Cut(rest, " ")
	us, err1 := strconv.ParseInt(at, 10, 64)
	n, err2 := strconv.ParseInt(seq, 10, 64)
	if err := errors.Join(err, err1, err2); err != nil || us < 0 || us > 1<<60 || n < 1 || !readable(stream, 100, false) || stream == "" {
		return nil, false
	}
	return &journal.ActPlace{At: time.UnixMicro(us).UTC(), Stream: stream, Seq: n}, true
}

// entry is one act.
type entry struct {
	at              time.Time
	room            string // "" for the organisation
	seq             int64
	kind            string
	actor, name     string
	cause           string
	from, reason    string
	erased          bool   // its address and reason were, or its whole note
	before, after   []byte // JSON objects, nil where there is nothing to say
	subject, stream string // the name that the act gave, and where it is recorded
}

// entries reads a page of the trail; next is where it goes on, nil at the end.
func (s *Server) entries(ctx context.Context, q journal.ActQuery, limit int) (list []entry, next *journal.ActPlace, err error) {
	var records []journal.Record
	err = s.o.Acts.Acts(ctx, q, func(r *journal.Record) error {
		if len(records) == limit {
			last := &records[limit-1]
			next = &journal.ActPlace{At: last.At, Stream: last.Stream, Seq: last.Seq}
			return errEnough
		}
		kept := *r
		kept.Body = append([]byte(nil), r.Body...)
		records = append(records, kept)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, nil, unreachable(err)
	}
	causes := make([]string, len(records))
	for i := range records {
		causes[i] = records[i].Cause
	}
	notes, err := s.o.Book.Notes(ctx, causes)
	if err != nil {
		return nil, nil, err
	}
	for i := range records {
		r := &records[i]
		n, noted := notes[r.Cause]
		e := entry{at: r.At, seq: r.Seq, kind: r.Kind, actor: r.Actor, name: s.nameOf(r.Actor), cause: r.Cause, from: n.From, reason: n.Reason,
			subject: n.Name, stream: r.Stream}
		// Every act over HTTP is noted with the address that it came from, and only an operator's name takes the whole note along.
		e.erased = noted && n.From == "" || !noted && r.Stream == org.Stream && r.Kind == (*org.OperatorAdded)(nil).Kind()
		if r.Stream == org.Stream {
			e.ofOrganisation(s, r)
		} else {
			_, e.room, _ = strings.Cut(r.Stream, "/")
			if err := e.ofRoom(ctx, s.o.Acts, r); err != nil {
				return nil, nil, unreachable(err)
			}
		}
		list = append(list, e)
	}
	return list, next, nil
}

// unreachable is a failure to read the journal, as HTTP says it.
func unreachable(err error) error {
	return errors.Join(org.ErrStorage, err)
}

func (e *entry) append(b []byte) []byte {
	b = append(b, `{"at":"`...)
	b = e.at.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, '"')
	b = appendText(b, "actor", e.actor)
	b = appendText(b, "name", e.name)
	b = appendTextOr(b, "room", e.room)
	b = appendText(b, "stream", e.stream)
	b = appendInt(b, "seq", e.seq)
	b = appendText(b, "kind", e.kind)
	b = appendText(b, "cause", e.cause)
	b = appendTextOr(b, "from", e.from)
	b = appendTextOr(b, "reason", e.reason)
	b = appendBool(b, "erased", e.erased)
	for _, part := range []struct {
		name string
		raw  []byte
	}{{"before", e.before}, {"after", e.after}} {
		b = appendMember(b, part.name)
		if part.raw == nil {
			part.raw = []byte("null")
		}
		b = append(b, part.raw...)
	}
	return append(b, '}')
}

// exportPage is how many acts an export reads at once.
const exportPage = 500

// exportAudit streams everything that the filters leave. Once bytes are on their way a failure can only cut the connection.
func (s *Server) exportAudit(x *exchange, q journal.ActQuery, format string) error {
	list, next, err := s.entries(x.r.Context(), q, exportPage)
	if err != nil {
		return err
	}
	h := x.w.Header()
	h.Set("Content-Type", map[string]string{"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}[format])
	h.Set("Content-Disposition", `attachment; filename="audit.`+format+`"`)
	x.status, x.wrote = http.StatusOK, true
	if x.head {
		x.w.WriteHeader(http.StatusOK)
		return nil
	}
	out := &patient{w: x.w, ctl: http.NewResponseController(x.w)}
	table := csv.NewWriter(out)
	write := func(e *entry) error {
		x.buf = append(e.append(x.buf[:0]), '\n')
		_, err := out.Write(x.buf)
		return err
	}
	if format == "csv" {
		err = table.Write(auditColumns)
		write = func(e *entry) error { return table.Write(e.row()) }
	}
	for err == nil {
		for i := range list {
			if err = write(&list[i]); err != nil {
				break
			}
		}
		if table.Flush(); err == nil {
			err = table.Error()
		}
		if next == nil || err != nil {
			break
		}
		q.After = next
		list, next, err = s.entries(x.r.Context(), q, exportPage)
	}
	if err != nil {
		if x.r.Context().Err() == nil {
			s.o.Log.Error("export the audit trail", "err", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

var auditColumns = []string{"at", "actor", "name", "room", "seq", "kind", "from", "reason", "before", "after", "cause", "erased"}

// row is the entry for a spreadsheet, which must not take what somebody typed for a formula.
func (e *entry) row() []string {
	row := []string{e.at.UTC().Format("2006-01-02T15:04:05.000Z"), e.actor, e.name, e.room, strconv.FormatInt(e.seq, 10), e.kind, e.from, e.reason,
		string(e.before), string(e.after), e.cause, strconv.FormatBool(e.erased)}
	for i, cell := range row {
		if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
			row[i] = "'" + cell
		}
	}
	return row
}

// forget is DELETE /api/admin/audit?before=: the addresses and reasons of older acts are erased, and the names of operators who were revoked. That they
// were is an act of its own; the acts themselves stay.
func (s *Server) forget(x *exchange) error {
	text, _, err := x.query("before")
	if err != nil {
		return err
	}
	before, ok := instantOf(text)
	if !ok || text == "" || before.After(x.now) {
		return refuseField("invalid_before", "before", "")
	}
	n, err := s.o.Book.Forget(x.r.Context(), s.by(x), before)
	if err != nil {
		return err
	}
	x.buf = append(appendInt(append(x.buf[:0], `{"ok":true`...), "forgotten", int64(n)), '}')
	x.json(http.StatusOK)
	return nil
}
