package org

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"qm/journal"
)

var update = flag.Bool("update", false, "write the goldens of events that have none yet")

var start = time.UnixMilli(1764525600000).UTC()

func book(t *testing.T, j journal.Journal, kept interface {
	journal.Notes
	journal.Vault
}) *Book {
	t.Helper()
	return NewBook(Options{Journal: j, Notes: kept, Vault: kept, Now: func() time.Time { return start }})
}

// examples has each kind once, with every member set.
var examples = []Body{
	&OperatorAdded{ID: "op_01kb5v2w3x4y5z6a7b8c9d0e1f", Role: Manager, Verifier: "2.0011aaff.AbC"}, &OperatorRevoked{ID: "op_1"},
	&Resealed{ID: "op_1", Verifier: "1.AbC"}, &SignedIn{ID: "S", Ends: 1764525600000, Mark: "1.AbC", Step: 58817520}, &SignedOut{ID: "S"},
	&LinkMade{ID: "ml_1", Ends: 1764525600000, Mark: "1.AbC"}, &LinksRevoked{IDs: []string{"ml_1", "ml_2"}},
	&FactorStarted{ID: "op_1", Secret: "otp/op_1/01"}, &FactorOn{ID: "op_1", Step: 58817520, Keep: "S"}, &FactorOff{ID: "op_1"},
	&Set{Name: "alerts", Value: json.RawMessage(`{"a":[1,"<b>"]}`), Was: json.RawMessage("null")}, &Forgotten{Before: 1764525600000}, &ShutDown{},
	&AlertFired{ID: "al_1", Rule: "eta", Subject: "sale", Room: "sale", Value: 4000, Limit: 3600, Since: 1764525600000, Kept: true}, &AlertEnded{ID: "al_1", Kept: true},
	&AlertTold{ID: "al_1"}, &Silenced{ID: "si_1", Rule: "eta", Room: "sale", Until: 1764525600000}, &SilenceEnded{ID: "si_1"},
}

// A (kind, version) is a contract: what was written once reads the same for ever.
func TestGoldens(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range examples {
		seen[b.Kind()] = true
		r := Record(Event{At: start, Actor: Admin, Cause: "c", Body: b})
		file := filepath.Join("..", "..", "testdata", "events", fmt.Sprintf("org.%s.v%d.json", b.Kind(), r.Version))
		golden, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) && *update {
			golden, err = r.Body, os.WriteFile(file, r.Body, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(golden) != string(r.Body) {
			t.Errorf("%s is written as %s, not %s", b.Kind(), r.Body, golden)
		}
		r.Body = golden
		e, err := Decode(&r)
		if err != nil {
			t.Fatalf("%s: %v", b.Kind(), err)
		}
		if again := Record(e); string(again.Body) != string(golden) || e.Body.Say() == "" {
			t.Errorf("%s comes back as %s", golden, again.Body)
		}
	}
	for _, kind := range Kinds() {
		if !seen[kind] {
			t.Errorf("there is no golden of %s", kind)
		}
	}
	for _, r := range []journal.Record{{Kind: "operator", Version: 2, Body: []byte(`{}`)}, {Kind: "join", Version: 1, Body: []byte(`{}`)}} {
		var unknown *UnknownEventError
		if _, err := Decode(&r); !errors.As(err, &unknown) {
			t.Errorf("%s.v%d: %v", r.Kind, r.Version, err)
		}
	}
	for _, body := range []string{`{"id":1}`, `{"id":"x","more":1}`, `[]`} {
		if _, err := Decode(&journal.Record{Kind: "revoke", Version: 1, Body: []byte(body)}); err == nil {
			t.Errorf("took %s", body)
		}
	}
}

// Who may do what, and to what, is judged of the state alone.
func TestJudge(t *testing.T) {
	s := New()
	at := start
	apply := func(actor string, b Body) {
		t.Helper()
		at = at.Add(time.Second)
		e := Event{At: at, Actor: actor, Body: b}
		if err := s.Judge(e); err != nil {
			t.Fatal(err)
		}
		s.Apply(e)
	}
	ends := start.Add(time.Hour).UnixMilli()
	for id, role := range map[string]Role{"o": Owner, "m": Manager, "v": Viewer, "gone": Owner, "otp": Viewer} {
		apply(Admin, &OperatorAdded{ID: id, Role: role, Verifier: "1.x"})
	}
	apply("o", &OperatorRevoked{ID: "gone"})
	apply("v", &SignedIn{ID: "sv", Ends: ends})
	apply("otp", &FactorStarted{ID: "otp", Secret: "x"})
	apply("otp", &FactorOn{ID: "otp", Step: 5})
	apply("m", &LinkMade{ID: "l", Ends: ends})
	for _, c := range []struct {
		actor string
		body  Body
		want  error
	}{
		{"m", &OperatorAdded{ID: "n", Role: Viewer}, ErrActor}, {"gone", &OperatorAdded{ID: "n", Role: Viewer}, ErrActor}, {"nobody", &OperatorAdded{ID: "n", Role: Viewer}, ErrActor},
		{"o", &OperatorAdded{ID: "n", Role: Viewer}, nil}, {"o", &OperatorAdded{ID: "v", Role: Viewer}, ErrReference}, {"o", &OperatorAdded{ID: "gone", Role: Viewer}, ErrReference},
		{"o", &OperatorAdded{ID: Admin, Role: Viewer}, ErrReference}, {"o", &OperatorAdded{ID: "n", Role: "root"}, ErrReference},
		{"o", &OperatorRevoked{ID: "gone"}, ErrReference}, {"v", &OperatorRevoked{ID: "m"}, ErrActor}, {"o", &OperatorRevoked{ID: "v"}, nil},
		{"o", &Resealed{ID: "v", Verifier: "x"}, ErrActor}, {"v", &Resealed{ID: "v", Verifier: "x"}, nil},
		{"v", &SignedIn{ID: "s2", Ends: ends}, nil}, {"v", &SignedIn{ID: "sv", Ends: ends}, ErrReference}, {"gone", &SignedIn{ID: "s2", Ends: ends}, ErrActor},
		{"otp", &SignedIn{ID: "s2", Ends: ends}, ErrReference}, {"otp", &SignedIn{ID: "s2", Ends: ends, Step: 5}, ErrReference}, {"otp", &SignedIn{ID: "s2", Ends: ends, Step: 6}, nil},
		{"o", &SignedOut{ID: "sv"}, ErrActor}, {"v", &SignedOut{ID: "sv"}, nil}, {"v", &SignedOut{ID: "none"}, ErrReference},
		{"v", &LinkMade{ID: "l2", Ends: ends}, ErrActor}, {"m", &LinkMade{ID: "l", Ends: ends}, ErrReference}, {"v", &LinksRevoked{IDs: []string{"l"}}, ErrActor},
		{"o", &LinksRevoked{IDs: []string{"l"}}, nil}, {"o", &LinksRevoked{IDs: []string{"l", "none"}}, ErrReference},
		{"o", &FactorStarted{ID: "v", Secret: "x"}, ErrActor}, {"otp", &FactorStarted{ID: "otp", Secret: "y"}, ErrReference}, {"v", &FactorOn{ID: "v", Step: 1}, ErrReference},
		{"o", &FactorOff{ID: "otp"}, nil}, {"m", &FactorOff{ID: "otp"}, ErrActor}, {"otp", &FactorOff{ID: "otp"}, nil},
		{"v", &Set{Name: "a", Value: []byte("1")}, ErrActor}, {"m", &Forgotten{}, ErrActor}, {"m", &ShutDown{}, ErrActor}, {"o", &ShutDown{}, nil},
	} {
		if err := s.Judge(Event{At: at, Actor: c.actor, Body: c.body}); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s by %s: %v", c.body.Say(), c.actor, err)
		}
	}
}

func TestWhatARevocationEnds(t *testing.T) {
	s := New()
	ends := start.Add(time.Hour).UnixMilli()
	for _, e := range []Event{
		{Actor: Admin, Body: &OperatorAdded{ID: "a", Role: Manager}}, {Actor: Admin, Body: &OperatorAdded{ID: "b", Role: Manager}},
		{Actor: "a", Body: &SignedIn{ID: "sa", Ends: ends}}, {Actor: "b", Body: &SignedIn{ID: "sb", Ends: ends}},
		{Actor: "a", Body: &LinkMade{ID: "la", Ends: ends}}, {Actor: "b", Body: &LinkMade{ID: "lb", Ends: ends}},
		{Actor: Admin, Body: &OperatorRevoked{ID: "a"}},
	} {
		e.At = start
		s.Apply(e)
	}
	if _, ok := s.Session("sa", start); ok {
		t.Error("the session lives on")
	}
	if _, ok := s.Link("la", start); ok {
		t.Error("the link lives on")
	}
	if _, ok := s.Session("sb", start); !ok || len(s.Links(start)) != 1 || len(s.Operators()) != 1 || s.RoleOf("a") != stranger {
		t.Error("more ended than was theirs")
	}
	if _, ok := s.Session("sb", start.Add(time.Hour)); ok || len(s.Links(start.Add(time.Hour))) != 0 {
		t.Error("they outlive their end")
	}
	// However many sign in, what is kept is bounded; who ends soonest gives way.
	for i := range 2 * most {
		s.Apply(Event{At: start, Actor: "b", Body: &SignedIn{ID: fmt.Sprint(i), Ends: ends + int64(i) + 1}})
	}
	if _, ok := s.Session("sb", start); ok || len(s.sessions) != most {
		t.Errorf("%d sessions are kept", len(s.sessions))
	}
}

// Many processes write at once: every change happens once, in one chain, whoever had to try again.
func TestOptimisticWriters(t *testing.T) {
	m := journal.NewMemory()
	var wg sync.WaitGroup
	for p := range 4 {
		b := book(t, m, m)
		for i := range 5 {
			wg.Go(func() {
				id := fmt.Sprintf("op_%d_%d", p, i)
				if err := b.AddOperator(t.Context(), By{Actor: Admin, Name: id, From: "192.0.2.1"}, id, Viewer, "1.x"); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	b := book(t, m, m)
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list []Operator
	b.Look(func(s *State) { list = s.Operators() })
	if len(list) != 20 || b.Head().Seq != 20 || b.Name("op_3_4") != "op_3_4" {
		t.Errorf("%d operators after %d events", len(list), b.Head().Seq)
	}
	// The same revocation in two processes: one of them does it.
	one, two := book(t, m, m), book(t, m, m)
	var errs [2]error
	wg.Go(func() { errs[0] = one.RevokeOperator(t.Context(), By{Actor: Admin}, "op_0_0") })
	wg.Go(func() { errs[1] = two.RevokeOperator(t.Context(), By{Actor: Admin}, "op_0_0") })
	wg.Wait()
	if !errors.Is(errors.Join(errs[:]...), ErrNoOperator) || errs[0] != nil && errs[1] != nil {
		t.Errorf("revoked twice: %v", errs)
	}
}

// What another process writes is known here within the 5 seconds of the contract, and what cannot be read makes the book stale.
func TestFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := journal.NewMemory()
		faulty := &cut{Journal: m}
		here := NewBook(Options{Journal: faulty, Notes: m, Vault: m})
		there := NewBook(Options{Journal: m, Notes: m, Vault: m})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- here.Run(ctx) }()
		defer func() { stop(); <-done }()
		synctest.Wait()
		if here.Stale() != nil {
			t.Fatal("stale after the first look")
		}
		if err := there.AddOperator(ctx, By{Actor: Admin, Name: "Ada"}, "op_1", Owner, "1.x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(followEvery)
		synctest.Wait()
		if here.Name("op_1") != "Ada" {
			t.Error("not known after a look")
		}
		faulty.set(errors.New("away"))
		time.Sleep(StaleAfter + followEvery)
		if here.Stale() == nil {
			t.Error("not stale while nothing can be read")
		}
		if err := here.RevokeOperator(ctx, By{Actor: Admin}, "op_1"); !errors.Is(err, ErrStorage) {
			t.Errorf("a change while the journal is away: %v", err)
		}
		faulty.set(nil)
		time.Sleep(followEvery)
		synctest.Wait()
		if here.Stale() != nil {
			t.Error("still stale")
		}
		// A record that this build cannot read stops it for good.
		batch := []journal.Record{{Stream: Stream, At: start, Kind: "operator", Version: 9, Actor: Admin, Cause: "c", Body: []byte(`{}`)}}
		journal.Seal(there.Head(), batch)
		if err := m.Append(ctx, 0, batch); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * followEvery)
		var unknown *UnknownEventError
		if err := here.Stale(); !errors.As(err, &unknown) {
			t.Errorf("after an unknown event: %v", err)
		}
	})
}

// cut is a journal that can be away.
type cut struct {
	journal.Journal
	mu  sync.Mutex
	err error
}

func (c *cut) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *cut) Read(ctx context.Context, stream string, after int64, fn func(*journal.Record) error) error {
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.Journal.Read(ctx, stream, after, fn)
}

// Nothing personal is in the journal, and a name is gone when it was erased.
func TestPersonalThingsAreNotes(t *testing.T) {
	m := journal.NewMemory()
	b := book(t, m, m)
	by := By{Actor: Admin, Name: "Ada Lovelace", From: "203.0.113.9", Reason: "she joined"}
	if err := b.AddOperator(t.Context(), by, "op_1", Viewer, "1.x"); err != nil {
		t.Fatal(err)
	}
	var cause string
	if err := m.Read(t.Context(), Stream, 0, func(r *journal.Record) error {
		for _, secret := range []string{"Ada", "203.0.113.9", "joined"} {
			if strings.Contains(string(r.Body)+r.Actor, secret) {
				t.Errorf("%q stands in the journal: %s", secret, r.Body)
			}
		}
		cause = r.Cause
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Notes(t.Context(), []string{cause}); err != nil || n[cause].Name != by.Name || n[cause].From != by.From || n[cause].Reason != by.Reason {
		t.Errorf("noted %+v, %v", n, err)
	}
	if err := b.RevokeOperator(t.Context(), By{Actor: Admin}, "op_1"); err != nil || b.Name("op_1") != "Ada Lovelace" {
		t.Fatalf("%v, %s", err, b.Name("op_1"))
	}
	if n, err := b.Forget(t.Context(), By{Actor: Admin, From: "203.0.113.9"}, start.Add(time.Second)); err != nil || n == 0 {
		t.Fatalf("forgot %d, %v", n, err)
	}
	if err := b.Refresh(t.Context()); err != nil || b.Name("op_1") != "op_1" {
		t.Errorf("the name is still %q, %v", b.Name("op_1"), err)
	}
	// A change that is refused leaves no note behind.
	err := b.RevokeOperator(t.Context(), By{Actor: Admin, Reason: "again"}, "op_1")
	if !errors.Is(err, ErrNoOperator) {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	m := journal.NewMemory()
	b := book(t, m, m)
	for _, v := range []string{`{"a":1}`, `{"a":1}`, `{"a":2}`, `null`, `null`} {
		if err := b.Set(t.Context(), By{Actor: Admin}, "alerts", []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	if b.Head().Seq != 3 {
		t.Errorf("%d events for three changes", b.Head().Seq)
	}
	b.Look(func(s *State) {
		if s.Setting("alerts") != nil {
			t.Error("null did not remove it")
		}
	})
}
