package org

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Who may do what about alerts, and what has to be there.
func TestAlertsAreJudged(t *testing.T) {
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	s := New()
	for i, c := range []struct {
		actor string
		body  Body
		want  error
	}{
		{Admin, &OperatorAdded{ID: "op_v", Role: Viewer, Verifier: "1.a"}, nil},
		{Admin, &OperatorAdded{ID: "op_m", Role: Manager, Verifier: "1.b"}, nil},
		{Admin, &AlertFired{ID: "al_1", Rule: "eta", Subject: "sale", Room: "sale"}, ErrActor}, // nobody makes one up
		{Clock, &AlertFired{ID: "al_1", Rule: "eta", Subject: "sale", Room: "sale"}, nil},
		{Clock, &AlertFired{ID: "al_2", Rule: "eta", Subject: "sale", Room: "sale"}, ErrReference}, // never two fires without an end
		{Clock, &AlertFired{ID: "al_2", Rule: "eta", Subject: "other", Room: "other", Kept: true}, nil},
		{Clock, &AlertTold{ID: "al_1"}, ErrReference}, // it was told already
		{Clock, &AlertTold{ID: "al_2"}, nil},
		{Clock, &AlertTold{ID: "al_2"}, ErrReference},
		{"op_m", &AlertEnded{ID: "al_1"}, ErrActor},
		{Clock, &AlertEnded{ID: "al_1", Kept: true}, nil},
		{Clock, &AlertEnded{ID: "al_1"}, ErrReference},
		{Clock, &AlertTold{ID: "al_1"}, nil}, // its end, after a silence
		{Clock, &AlertFired{ID: "al_1", Rule: "eta", Subject: "sale"}, ErrReference},
		{"op_v", &Silenced{ID: "si_1", Rule: "eta", Until: at(100).UnixMilli()}, ErrActor},
		{Clock, &Silenced{ID: "si_1", Rule: "eta", Until: at(100).UnixMilli()}, ErrActor},
		{"op_m", &Silenced{ID: "si_1", Rule: "eta", Room: "sale", Until: at(100).UnixMilli()}, nil},
		{"op_m", &Silenced{ID: "si_1", Rule: "eta", Until: at(100).UnixMilli()}, ErrReference},
		{"op_v", &SilenceEnded{ID: "si_1"}, ErrActor},
		{"op_m", &SilenceEnded{ID: "si_2"}, ErrReference},
	} {
		e := Event{Seq: int64(i + 1), At: at(i), Actor: c.actor, Body: c.body}
		if err := s.Judge(e); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s by %s: %v, not %v", c.body.Say(), c.actor, err, c.want)
		} else if err == nil {
			s.Apply(e)
		}
	}
	if until := s.SilencedUntil("eta", "sale", at(30)); !until.Equal(at(100)) {
		t.Errorf("silenced until %v", until)
	}
	if !s.SilencedUntil("eta", "other", at(30)).IsZero() || !s.SilencedUntil("surge", "sale", at(30)).IsZero() || !s.SilencedUntil("eta", "sale", at(100)).IsZero() {
		t.Error("too much is silenced")
	}
	if list := s.Alerts(); len(list) != 1 || list[0].ID != "al_2" || !list[0].Told {
		t.Errorf("active %+v", list)
	}
	// The history is bounded.
	for i := range 3 * pastAlerts {
		id := fmt.Sprint("al_x", i)
		s.Apply(Event{At: at(i), Actor: Clock, Body: &AlertFired{ID: id, Rule: "eta", Subject: id}})
		s.Apply(Event{At: at(i), Actor: Clock, Body: &AlertEnded{ID: id}})
	}
	if past := s.PastAlerts(); len(past) != pastAlerts || past[0].ID != fmt.Sprint("al_x", 3*pastAlerts-1) {
		t.Errorf("%d past, first %+v", len(past), past[0])
	}
}
