package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"qm/access/org"
	"qm/engine/room"
	"qm/journal"
)

// recordOrganisation is a stream of the organisation: two operators come, one of them goes.
func recordOrganisation(t testing.TB) *recorder {
	t.Helper()
	m := journal.NewMemory()
	at := time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)
	ends := at.Add(12 * time.Hour).UnixMilli()
	head := journal.Head{Stream: org.Stream}
	for i, e := range []org.Event{
		{Actor: org.Admin, Body: &org.OperatorAdded{ID: "op_1", Role: org.Owner, Verifier: "1.a"}},
		{Actor: "op_1", Body: &org.OperatorAdded{ID: "op_2", Role: org.Manager, Verifier: "1.b"}},
		{Actor: "op_2", Body: &org.SignedIn{ID: "S1", Ends: ends}},
		{Actor: "op_2", Body: &org.FactorStarted{ID: "op_2", Secret: "otp/op_2/1"}},
		{Actor: "op_2", Body: &org.FactorOn{ID: "op_2", Step: 100, Keep: "S1"}},
		{Actor: "op_2", Body: &org.SignedIn{ID: "S2", Ends: ends, Step: 101}},
		{Actor: "op_2", Body: &org.SignedOut{ID: "S2"}},
		{Actor: "op_2", Body: &org.LinkMade{ID: "ml_1", Ends: ends}},
		{Actor: "op_1", Body: &org.LinksRevoked{IDs: []string{"ml_1"}}},
		{Actor: "op_1", Body: &org.FactorOff{ID: "op_2"}},
		{Actor: "op_2", Body: &org.Resealed{ID: "op_2", Verifier: "2.aabbccdd.b"}},
		{Actor: "op_2", Body: &org.Set{Name: "alerts", Value: json.RawMessage(`{"on":true}`), Was: json.RawMessage("null")}},
		{Actor: "op_1", Body: &org.OperatorRevoked{ID: "op_2"}},
		{Actor: org.Admin, Body: &org.Forgotten{Before: at.UnixMilli()}},
		{Actor: org.Admin, Body: &org.ShutDown{}},
	} {
		e.At, e.Cause = at.Add(time.Duration(i)*time.Second), fmt.Sprintf("01KJM%021d", i)
		batch := []journal.Record{org.Record(e)}
		head = journal.Seal(head, batch)
		if err := m.Append(context.Background(), 0, batch); err != nil {
			t.Fatal(err)
		}
	}
	return &recorder{t: t, journal: m, lease: journal.Lease{Stream: org.Stream}}
}

// brokenOrganisations are broken journals of the organisation's stream.
var brokenOrganisations = []broken{
	{want: []Code{OrgActor}, what: "a revoked operator adds an owner", from: recordOrganisation, edit: func(e *editor) {
		e.act(org.Event{Actor: "op_2", Body: &org.OperatorAdded{ID: "op_3", Role: org.Owner, Verifier: "1.c"}})
	}},
	{name: "org_actor-role", want: []Code{OrgActor}, what: "a key's role was edited, so that its holder could not do what follows", from: recordOrganisation, edit: func(e *editor) {
		e.records[0].Body = []byte(strings.Replace(string(e.records[0].Body), "owner", "viewer", 1))
		e.cut(2)
	}},
	{want: []Code{OrgReference}, what: "one code signs in twice", from: recordOrganisation, edit: func(e *editor) {
		e.cut(e.find("signout", 1))
		e.act(org.Event{Actor: "op_2", Body: &org.SignedIn{ID: "S3", Ends: 1, Step: 101}})
	}},
	{name: "org-hash", want: []Code{Hash}, what: "a verifier was exchanged in place", from: recordOrganisation, edit: func(e *editor) {
		e.records[1].Body = []byte(strings.Replace(string(e.records[1].Body), "1.b", "1.x", 1))
		e.broken = true
	}},
}

func init() { brokenJournals = append(brokenJournals, brokenOrganisations...) }

// act appends an act a second after the last.
func (e *editor) act(a org.Event) {
	a.At, a.Cause = e.records[e.last()].At.Add(time.Second), "01KJM999999999999999999999"
	e.records = append(e.records, org.Record(a))
}

func TestTheOrganisationIsTold(t *testing.T) {
	var texts []string
	_, findings, err := Tell(Records(recordOrganisation(t).records()), StoryOptions{}, func(s Told) error {
		texts = append(texts, s.String())
		return nil
	})
	if err != nil || len(findings) > 0 || len(texts) != 15 {
		t.Fatalf("%d told, %v, %v", len(texts), findings, err)
	}
	for i, want := range map[int]string{
		0: "2026-03-01 18:00:00.000  seq 1  operator op_1 added as owner (by admin)", 12: "2026-03-01 18:00:12.000  seq 13  operator op_2 revoked (by op_1)",
	} {
		if texts[i] != want {
			t.Errorf("told %q, not %q", texts[i], want)
		}
	}
	// A ticket's story is no business of the organisation's.
	_, _, err = Tell(Records(recordOrganisation(t).records()), StoryOptions{Ticket: room.Ticket(1)}, func(s Told) error {
		return fmt.Errorf("told %s", s)
	})
	if err != nil {
		t.Error(err)
	}
}
