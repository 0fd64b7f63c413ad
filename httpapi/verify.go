package httpapi

import (
	"net/http"
	"strings"

	"qm/access/scope"
)

// result is what one check of a report came to (seed 004, GET /api/verify).
type result string

// A report is good while nothing in it failed. What warns works today and will surprise somebody; info only tells.
const (
	good    result = "pass"
	bad     result = "fail"
	warning result = "warn"
	note    result = "info"
)

// finding is one check of a report. Its id is stable: connectors and X-QM-Verify name it.
type finding struct {
	id     string
	result result
	title  string
	detail string // "" for none
	fix    string // what to do about it, "" for nothing
}

// report says whether an installation works, check by check.
type report struct {
	install  install
	findings []finding
}

func (r *report) add(id string, as result, title, detail, fix string) {
	r.findings = append(r.findings, finding{id, as, title, detail, fix})
}

// ok reports that nothing failed.
func (r *report) ok() bool {
	for i := range r.findings {
		if r.findings[i].result == bad {
			return false
		}
	}
	return true
}

// failing are the ids of the checks that failed.
func (r *report) failing() []string {
	var ids []string
	for i := range r.findings {
		if r.findings[i].result == bad {
			ids = append(ids, r.findings[i].id)
		}
	}
	return ids
}

// install is the installation that a report is about, as the request describes it.
type install struct {
	roomID    string
	page      string // url=, "" for none
	origin    string // in the spelling of browsers; "" when none was given or it is none
	given     bool   // an origin was given, be it one or not
	connector string // "" for none
	version   string // of the connector, "" for none
	keyed     bool   // the request carries the Public API key, or the admin key
}

// installOf reads what a request says of an installation. The origin is origin=, else that of url=, else the Origin header's
// (seed 004).
func installOf(x *exchange) (in install, err error) {
	id, ok, err := x.query("roomId")
	if err != nil {
		return in, err
	}
	if !ok || !validRoomID(id) {
		return in, refuseField("invalid_room_id", "roomId", "")
	}
	in.roomID = id
	var origin string
	for _, p := range []struct {
		name string
		to   *string
	}{{"url", &in.page}, {"origin", &origin}, {"connector", &in.connector}, {"version", &in.version}} {
		text, _, err := x.query(p.name)
		if err != nil {
			return in, err
		}
		*p.to = strings.TrimSpace(text)
	}
	in.connector, in.version = clip(in.connector), clip(in.version)
	for _, text := range []string{origin, in.page, x.r.Header.Get("Origin")} {
		if text == "" {
			continue
		}
		in.given = true
		if u, ok := scope.Normalise(text); ok {
			in.origin = u.Origin()
		}
		break
	}
	return in, nil
}

// verify is the check that a connector's command line or settings screen runs before it goes live (seed 004, GET /api/verify). What it
// finds is an answer and no error: a room that does not exist is a check that failed.
func (s *Server) verify(x *exchange) error {
	r, err := s.inspect(x)
	if err != nil {
		return err
	}
	x.buf = append(r.append(x.buf[:0], x.ms()), '}')
	x.json(http.StatusOK)
	return nil
}

// pixel is a transparent image of one point.
var pixel = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

// verifyImage is the same verdict for the sandbox of a tag manager, which can only see whether an image loaded (seed 004, GET
// /api/verify.gif).
func (s *Server) verifyImage(x *exchange) error {
	h := x.w.Header()
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // pages that isolate themselves may load it, too
	r, err := s.inspect(x)
	if err != nil {
		return err
	}
	if r.ok() {
		h.Set("Content-Type", "image/gif")
		x.buf = append(x.buf[:0], pixel...)
		x.send(http.StatusOK)
		return nil
	}
	h.Set("X-QM-Verify", strings.Join(r.failing(), ","))
	x.code = "verify_failed"
	b := append(x.buf[:0], `{"ok":false,"error":"verify_failed","code":"verify_failed"`...)
	x.buf = append(appendFindings(b, r.findings), '}')
	x.json(Codes["verify_failed"].Status)
	return nil
}

// append appends the report without its closing bracket.
func (r *report) append(b []byte, now int64) []byte {
	b = append(b, `{"ok":`...)
	if r.ok() {
		b = append(b, "true"...)
	} else {
		b = append(b, "false"...)
	}
	b = appendText(b, "roomId", r.install.roomID)
	b = appendText(b, "api", "v1")
	b = appendBool(b, "privileged", r.install.keyed)
	b = appendFindings(b, r.findings)
	return appendInt(b, "now", now)
}

func appendFindings(b []byte, list []finding) []byte {
	b = append(appendMember(b, "checks"), '[')
	for i := range list {
		f := &list[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"id":`...), f.id)
		b = appendText(b, "status", string(f.result))
		b = appendText(b, "title", f.title)
		if f.detail != "" {
			b = appendText(b, "detail", f.detail)
		}
		if f.fix != "" {
			b = appendText(b, "fix", f.fix)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
