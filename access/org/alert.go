package org

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Alerts are events of the organisation, so that each fires once whatever the number of processes that see its cause, and none
// fires again because a process began anew. Nobody but the clock fires or ends one; silences are an operator's.

// Clock is the actor of what happens by itself.
const Clock = "clock"

// AlertFired says that something is wrong.
type AlertFired struct {
	ID      string `json:"id"` // "al_" and a ULID in lower case
	Rule    string `json:"rule"`
	Subject string `json:"subject"`        // what it is about: a room, a process, a share link
	Room    string `json:"room,omitempty"` // where it is about a room
	Value   int64  `json:"value"`          // what was measured, in the rule's unit
	Limit   int64  `json:"limit"`
	Since   int64  `json:"since"`          // epoch ms: when it fired
	Kept    bool   `json:"kept,omitempty"` // a silence keeps the message back
}

// AlertEnded says that it is over.
type AlertEnded struct {
	ID   string `json:"id"`
	Kept bool   `json:"kept,omitempty"`
}

// AlertTold says that a message which a silence had kept back is on its way.
type AlertTold struct {
	ID string `json:"id"`
}

// Silenced keeps the messages of a rule back until an instant: in one room, or wherever it fires. Why is a note.
type Silenced struct {
	ID    string `json:"id"` // "si_" and a ULID in lower case
	Rule  string `json:"rule"`
	Room  string `json:"room,omitempty"`
	Until int64  `json:"until"` // epoch ms
}

// SilenceEnded ends that early.
type SilenceEnded struct {
	ID string `json:"id"`
}

// Kind implements [Body].
func (*AlertFired) Kind() string   { return "alert" }
func (*AlertEnded) Kind() string   { return "alert-end" }
func (*AlertTold) Kind() string    { return "alert-told" }
func (*Silenced) Kind() string     { return "silence" }
func (*SilenceEnded) Kind() string { return "silence-end" }

// Say implements [Body].
func (b *AlertFired) Say() string {
	return fmt.Sprintf("alert %s fired: %s of %s is %d, the limit %d", b.ID, b.Rule, b.Subject, b.Value, b.Limit)
}
func (b *AlertEnded) Say() string { return fmt.Sprintf("alert %s is over", b.ID) }
func (b *AlertTold) Say() string {
	return fmt.Sprintf("the message of alert %s, kept back by a silence, was sent", b.ID)
}
func (b *Silenced) Say() string {
	where := "everywhere"
	if b.Room != "" {
		where = "in room " + b.Room
	}
	return fmt.Sprintf("silence %s: alerts of %s %s are kept back until %s", b.ID, b.Rule, where, time.UnixMilli(b.Until).UTC().Format(time.DateTime))
}
func (b *SilenceEnded) Say() string { return fmt.Sprintf("silence %s ended", b.ID) }

func (*AlertFired) isBody()   {}
func (*AlertEnded) isBody()   {}
func (*AlertTold) isBody()    {}
func (*Silenced) isBody()     {}
func (*SilenceEnded) isBody() {}

// Alert is one that fired.
type Alert struct {
	ID      string
	Rule    string
	Subject string
	Room    string
	Value   int64
	Limit   int64
	Since   time.Time
	Ended   time.Time // zero while it is active
	Told    bool      // that it fired
	EndTold bool
}

// Silence keeps messages back.
type Silence struct {
	ID    string
	Rule  string
	Room  string // "" for all
	By    string
	At    time.Time
	Until time.Time
	Cause string // of the event, where the reason is noted
}

// pastAlerts is how many alerts that are over are remembered.
const pastAlerts = 200

// Alerts lists the active alerts, the newest first.
func (s *State) Alerts() []Alert {
	list := slices.Collect(maps.Values(s.alerts))
	slices.SortFunc(list, func(a, b Alert) int { return cmp.Or(b.Since.Compare(a.Since), strings.Compare(b.ID, a.ID)) })
	return list
}

// PastAlerts lists the last alerts that are over, the newest end first.
func (s *State) PastAlerts() []Alert {
	list := slices.Clone(s.past)
	slices.Reverse(list)
	return list
}

// AlertOf is the active alert of a rule about a subject.
func (s *State) AlertOf(rule, subject string) (Alert, bool) {
	for _, a := range s.alerts {
		if a.Rule == rule && a.Subject == subject {
			return a, true
		}
	}
	return Alert{}, false
}

// Alert is an alert by its id, active or past.
func (s *State) Alert(id string) (Alert, bool) {
	if a, ok := s.alerts[id]; ok {
		return a, true
	}
	if i := slices.IndexFunc(s.past, func(a Alert) bool { return a.ID == id }); i >= 0 {
		return s.past[i], true
	}
	return Alert{}, false
}

// Silences lists those that keep something back by now, the one that ends first first.
func (s *State) Silences(now time.Time) []Silence {
	var list []Silence
	for _, v := range s.silences {
		if now.Before(v.Until) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b Silence) int { return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.ID, b.ID)) })
	return list
}

// SilencedUntil is until when an alert's messages are kept back; the zero time: they are not.
func (s *State) SilencedUntil(rule, room string, now time.Time) (until time.Time) {
	for _, v := range s.silences {
		if v.Rule == rule && (v.Room == "" || v.Room == room) && now.Before(v.Until) && v.Until.After(until) {
			until = v.Until
		}
	}
	return until
}

// applyAlert takes an event of this file.
func (s *State) applyAlert(e Event) {
	switch b := e.Body.(type) {
	case *AlertFired:
		s.alerts[b.ID] = Alert{ID: b.ID, Rule: b.Rule, Subject: b.Subject, Room: b.Room, Value: b.Value, Limit: b.Limit, Since: time.UnixMilli(b.Since).UTC(), Told: !b.Kept}
	case *AlertEnded:
		a, ok := s.alerts[b.ID]
		if !ok {
			return
		}
		delete(s.alerts, b.ID)
		a.Ended, a.EndTold = e.At, a.Told && !b.Kept
		if s.past = append(s.past, a); len(s.past) > pastAlerts {
			s.past = slices.Delete(s.past, 0, 1)
		}
	case *AlertTold:
		if a, ok := s.alerts[b.ID]; ok {
			a.Told = true
			s.alerts[b.ID] = a
		} else if i := slices.IndexFunc(s.past, func(a Alert) bool { return a.ID == b.ID }); i >= 0 {
			s.past[i].EndTold = true
		}
	case *Silenced:
		maps.DeleteFunc(s.silences, func(_ string, v Silence) bool { return !e.At.Before(v.Until) })
		if len(s.silences) >= most {
			delete(s.silences, soonest(s.silences, func(v Silence) time.Time { return v.Until }))
		}
		s.silences[b.ID] = Silence{ID: b.ID, Rule: b.Rule, Room: b.Room, By: e.Actor, At: e.At, Until: time.UnixMilli(b.Until).UTC(), Cause: e.Cause}
	case *SilenceEnded:
		delete(s.silences, b.ID)
	}
}

// judgeAlert is [State.Judge] for an event of this file; ours is false for any other.
func (s *State) judgeAlert(e Event) (ours bool, err error) {
	clock, good := true, false
	switch b := e.Body.(type) {
	case *AlertFired:
		_, known := s.Alert(b.ID)
		_, active := s.AlertOf(b.Rule, b.Subject)
		good = !known && !active && b.ID != ""
	case *AlertEnded:
		_, good = s.alerts[b.ID]
	case *AlertTold:
		a, ok := s.Alert(b.ID)
		good = ok && (a.Ended.IsZero() && !a.Told || !a.Ended.IsZero() && a.Told && !a.EndTold)
	case *Silenced:
		_, double := s.silences[b.ID]
		clock, good = false, !double && b.ID != "" && b.Rule != ""
	case *SilenceEnded:
		_, ok := s.silences[b.ID]
		clock, good = false, ok
	default:
		return false, nil
	}
	switch {
	case !good:
		return true, fmt.Errorf("org: %s: %w", e.Body.Kind(), ErrReference)
	case clock != (e.Actor == Clock), !clock && reach[s.RoleOf(e.Actor)] < reach[Manager]:
		return true, fmt.Errorf("org: %s by %s: %w", e.Body.Kind(), e.Actor, ErrActor)
	}
	return true, nil
}
