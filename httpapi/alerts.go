package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"qm/access/org"
	"qm/engine/room"
	"qm/notify"
)

// How long a silence may last.
const (
	leastSilenceSec = 60
	mostSilenceSec  = 30 * 86_400
)

// alarm is an active alert of a room.
type alarm struct {
	alert    org.Alert
	silenced time.Time
}

// alarms are the active alerts of all rooms, the newest first.
func (s *Server) alarms(at room.Instant) map[string][]alarm {
	if s.o.Alerts == nil {
		return nil
	}
	now := time.UnixMilli(int64(at))
	var all map[string][]alarm
	s.o.Book.Look(func(st *org.State) {
		for _, a := range st.Alerts() {
			if a.Room == "" {
				continue
			}
			if all == nil {
				all = map[string][]alarm{}
			}
			all[a.Room] = append(all[a.Room], alarm{a, st.SilencedUntil(a.Rule, a.Room, now)})
		}
	})
	return all
}

// alarmsOf words the alerts of one room: what changes is that one comes or goes, or is silenced.
func (s *Server) alarmsOf(list []alarm, name string) (b []byte) {
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"rule":`...), v.alert.Rule)
		b = appendInt(b, "since", v.alert.Since.UnixMilli())
		b = appendText(b, "sentence", s.o.Alerts.Sentence(v.alert.Rule, v.alert.Subject, name, v.alert.Value, v.alert.Limit))
		if !v.silenced.IsZero() {
			b = appendInt(b, "silencedUntil", v.silenced.UnixMilli())
		}
		b = append(b, '}')
	}
	return b
}

// alerts is GET /api/admin/alerts: what is watched, what is wrong, what was, and what is silenced (seed 004; issue 4).
func (s *Server) alerts(x *exchange) error {
	var rules []notify.AlertRule
	host, mails := "", 0
	if s.o.Alerts != nil {
		rules, host, mails = s.o.Alerts.Rules(), s.o.Alerts.Webhook(), s.o.Alerts.Mails()
	}
	var active, past []org.Alert
	var silences []org.Silence
	var until []time.Time
	s.o.Book.Look(func(st *org.State) {
		active, past, silences = st.Alerts(), st.PastAlerts(), st.Silences(x.now)
		for _, a := range active {
			until = append(until, st.SilencedUntil(a.Rule, a.Room, x.now))
		}
	})
	causes := make([]string, len(silences))
	for i, v := range silences {
		causes[i] = v.Cause
	}
	why, err := s.o.Book.Reasons(x.r.Context(), causes)
	if err != nil {
		why = nil // while the database is away, all but the reasons is known, and wanted
	}
	names := map[string]string{}
	name := func(id string) string {
		if _, known := names[id]; !known && id != "" {
			if sum, _, err := s.summary(x.r.Context(), id); err == nil {
				names[id] = nameOf(sum.Settings, id)
			} else {
				names[id] = id
			}
		}
		return names[id]
	}
	b := strconv.AppendBool(append(x.buf[:0], `{"enabled":`...), host != "")
	b = appendTextOr(b, "webhook", host)
	b = appendBool(b, "mail", mails > 0)
	b = appendInt(b, "mails", int64(mails))
	b = append(appendMember(b, "rules"), '[')
	for i, r := range rules {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"id":`...), r.ID)
		b = appendText(b, "title", r.Title)
		b = appendIntOr(b, "limit", r.Limit, r.Unit != "")
		b = appendText(b, "unit", r.Unit)
		b = append(b, '}')
	}
	b = append(append(b, ']'), `,"active":[`...)
	for i, a := range active {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendAlert(b, a, name(a.Room))
		if !until[i].IsZero() {
			b = appendInt(b, "silencedUntil", until[i].UnixMilli())
		}
		b = append(b, '}')
	}
	b = append(append(b, ']'), `,"history":[`...)
	for i, a := range past {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendAlert(b, a, name(a.Room))
		b = appendInt(b, "endedAt", a.Ended.UnixMilli())
		b = append(b, '}')
	}
	b = append(append(b, ']'), `,"silences":[`...)
	for i, v := range silences {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(s.appendSilence(b, v, why[v.Cause]), '}')
	}
	b = append(b, ']')
	b = appendInt(b, "now", x.ms())
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// appendAlert appends an alert without its closing brace.
func (s *Server) appendAlert(b []byte, a org.Alert, name string) []byte {
	b = appendString(append(b, `{"id":`...), a.ID)
	b = appendText(b, "rule", a.Rule)
	b = appendText(b, "subject", a.Subject)
	b = appendTextOr(b, "roomId", a.Room)
	b = appendInt(b, "since", a.Since.UnixMilli())
	b = appendInt(b, "value", a.Value)
	b = appendInt(b, "limit", a.Limit)
	sentence := ""
	if s.o.Alerts != nil {
		sentence = s.o.Alerts.Sentence(a.Rule, a.Subject, name, a.Value, a.Limit)
	}
	b = appendText(b, "sentence", sentence)
	return appendBool(b, "told", a.Told)
}

// appendSilence appends a silence without its closing brace.
func (s *Server) appendSilence(b []byte, v org.Silence, reason string) []byte {
	b = appendString(append(b, `{"id":`...), v.ID)
	b = appendText(b, "rule", v.Rule)
	b = appendTextOr(b, "roomId", v.Room)
	b = appendInt(b, "until", v.Until.UnixMilli())
	b = appendText(b, "by", v.By)
	b = appendText(b, "byName", s.nameOf(v.By))
	b = appendInt(b, "at", v.At.UnixMilli())
	return appendText(b, "reason", reason)
}

// testAlerts is POST /api/admin/alerts: a test page (seed 004).
func (s *Server) testAlerts(x *exchange) error {
	body, err := x.object(adminBody, true)
	if err != nil {
		return err
	}
	if err := body.only(); err != nil {
		return err
	}
	if s.o.Alerts == nil {
		return notify.ErrNoAlerts
	}
	mailed, err := s.o.Alerts.Test(x.r.Context())
	if err != nil {
		return err
	}
	b := append(x.buf[:0], `{"ok":true`...)
	b = appendText(b, "webhook", s.o.Alerts.Webhook())
	b = appendBool(b, "mailed", mailed)
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// silence is POST /api/admin/alerts/silence {rule, roomId?, forSec | until, reason?}.
func (s *Server) silence(x *exchange) error {
	body, err := x.object(adminBody, false)
	if err != nil {
		return err
	}
	if err := body.only("rule", "roomId", "forSec", "until", "reason"); err != nil {
		return err
	}
	rule, _, err := body.text("rule", "invalid_rule")
	if err != nil {
		return err
	}
	if s.o.Alerts == nil || !slices.ContainsFunc(s.o.Alerts.Rules(), func(r notify.AlertRule) bool { return r.ID == rule }) {
		return refuseField("invalid_rule", "rule", "")
	}
	roomID, named, err := body.text("roomId", "invalid_room_id")
	if err != nil {
		return err
	}
	if named {
		if !validRoomID(roomID) {
			return refuseField("invalid_room_id", "roomId", "")
		}
		if _, _, err := s.summary(x.r.Context(), roomID); err != nil {
			return err
		}
	}
	until, err := silenceEnd(body, x.now)
	if err != nil {
		return err
	}
	by := s.by(x)
	if by.Reason, err = body.reason(); err != nil {
		return err
	}
	made, err := s.o.Book.Silence(x.r.Context(), by, rule, roomID, until)
	if err != nil {
		return err
	}
	x.buf = append(s.appendSilence(x.buf[:0], made, by.Reason), '}')
	x.json(http.StatusOK)
	return nil
}

// silenceEnd reads either of forSec and until.
func silenceEnd(body object, now time.Time) (time.Time, error) {
	raw, span := body.find("forSec")
	at, instant := body.find("until")
	switch {
	case span && instant:
		return time.Time{}, refuseField("conflicting_field", "until", "Give forSec or until.")
	case span:
		n, ok := whole(raw)
		if !ok || n < leastSilenceSec || n > mostSilenceSec {
			return time.Time{}, refuseField("invalid_for_sec", "forSec", "")
		}
		return now.Add(time.Duration(n) * time.Second), nil
	case instant:
		until, ok := instantIn(at)
		if !ok || !until.After(now) || until.Sub(now) > mostSilenceSec*time.Second {
			return time.Time{}, refuseField("invalid_until", "until", "until is an instant within the next 30 days, in epoch milliseconds or RFC 3339.")
		}
		return until, nil
	}
	return time.Time{}, refuseField("invalid_for_sec", "forSec", "")
}

// endSilence is DELETE /api/admin/alerts/silence?id=.
func (s *Server) endSilence(x *exchange) error {
	id, ok, err := x.query("id")
	if err != nil {
		return err
	}
	if !ok || id == "" {
		return refuseField("invalid_parameter", "id", "id names a silence.")
	}
	if err := s.o.Book.EndSilence(x.r.Context(), s.by(x), id); err != nil {
		return err
	}
	x.buf = append(x.buf[:0], `{"ok":true}`...)
	x.json(http.StatusOK)
	return nil
}
