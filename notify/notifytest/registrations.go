// Package notifytest holds the suites that every notify.Registrations and every notify.Queue passes, in memory or in a
// database (architecture.md, "Tests").
package notifytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qm/notify"
)

// Table is a side table under test. Age lets so much time pass for the counts of addresses.
type Table struct {
	notify.Registrations
	Age func(d time.Duration)
}

// Registrations runs the suite of notify.Registrations. open returns a table that nobody else uses and that is empty at first; it is
// called once per case, with that case's t.
func Registrations(t *testing.T, open func(t *testing.T) Table) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Table)
	}{
		{"set, find, erase", setFindErase},
		{"the same address again", sameAgain},
		{"changes of a place", changes},
		{"places of an address", places},
		{"places of an address at once", placesAtOnce},
		{"a claim is had once", claimOnce},
		{"a claim given back", unclaim},
		{"served", served},
		{"the draw", draw},
		{"a new place", newPlace},
		{"move to what is there", moveOnto},
		{"live", live},
		{"sweep", sweep},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

var at = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)

func ticket(room string, g, n uint32) notify.Place {
	return notify.Place{Room: room, Generation: g, Ticket: n}
}

func handle(room string, g, q uint32) notify.Place {
	return notify.Place{Room: room, Generation: g, Handle: q}
}

func digest(address string) (d notify.Digest) { copy(d[:], address); return d }

func registration(p notify.Place, address string) notify.Registration {
	return notify.Registration{Place: p, Address: address, Locale: "th", Owner: digest("owner"), At: at}
}

func (s Table) set(t *testing.T, p notify.Place, address string) {
	t.Helper()
	if err := s.Set(t.Context(), registration(p, address), digest(address)); err != nil {
		t.Fatalf("set %v: %v", p, err)
	}
}

// want checks what is filed under a place.
func (s Table) want(t *testing.T, want notify.Registration) {
	t.Helper()
	got, ok, err := s.Find(t.Context(), want.Place)
	if err != nil || !ok {
		t.Fatalf("find %v: %v, %v", want.Place, ok, err)
	}
	got.At = got.At.UTC()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("find %v (-want +got):\n%s", want.Place, diff)
	}
}

func (s Table) wantNone(t *testing.T, p notify.Place) {
	t.Helper()
	if got, ok, err := s.Find(t.Context(), p); ok || err != nil {
		t.Errorf("find %v: %+v, %v", p, got, err)
	}
}

func (s Table) claim(t *testing.T, p notify.Place, m notify.Mail) bool {
	t.Helper()
	r, ok, err := s.Claim(t.Context(), p, m)
	if err != nil {
		t.Fatalf("claim %s of %v: %v", m, p, err)
	}
	if ok && (r.Place != p || r.Address == "" || r.Locale != "th" || !map[notify.Mail]bool{notify.Near: r.Near, notify.Turn: r.Turn}[m]) {
		t.Errorf("the claim of %s gives %+v", m, r)
	}
	return ok
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func setFindErase(t *testing.T, s Table) {
	p := ticket("shop", 2, 7)
	s.wantNone(t, p)
	s.set(t, p, "a@example.com")
	s.want(t, registration(p, "a@example.com"))
	for _, other := range []notify.Place{ticket("shop", 1, 7), ticket("shop", 2, 8), handle("shop", 2, 7), ticket("other", 2, 7)} {
		s.wantNone(t, other)
	}
	erased, err := s.Erase(t.Context(), p)
	if !erased || err != nil {
		t.Errorf("erase: %v, %v", erased, err)
	}
	// What stays is nothing personal.
	s.want(t, notify.Registration{Place: p, At: at})
	if erased, err = s.Erase(t.Context(), p); erased || err != nil {
		t.Errorf("erase again: %v, %v", erased, err)
	}
	if s.claim(t, p, notify.Turn) {
		t.Error("a mail without an address")
	}
	s.set(t, p, "b@example.com")
	s.want(t, registration(p, "b@example.com"))
}

func sameAgain(t *testing.T, s Table) {
	p := ticket("shop", 1, 1)
	for i := range 3 * notify.ChangesPerPlace {
		r := registration(p, "a@example.com")
		r.Locale, r.At = "de", at.Add(time.Duration(i)*time.Second)
		must(t, s.Set(t.Context(), r, digest("a@example.com")))
	}
	want := registration(p, "a@example.com")
	want.Locale = "de"
	s.want(t, want)
}

func changes(t *testing.T, s Table) {
	p := ticket("shop", 1, 1)
	for i := range notify.ChangesPerPlace {
		s.set(t, p, fmt.Sprintf("%d@example.com", i))
		if i%2 == 0 { // withdrawing in between makes no difference
			_, err := s.Erase(t.Context(), p)
			must(t, err)
		}
	}
	last := registration(p, "last@example.com")
	if err := s.Set(t.Context(), last, digest("last")); !errors.Is(err, notify.ErrChanges) {
		t.Errorf("one change more: %v", err)
	}
	if r, _, _ := s.Find(t.Context(), p); r.Address == "last@example.com" {
		t.Error("a refused change was made")
	}
	s.set(t, ticket("shop", 1, 2), "last@example.com") // another place may
}

func places(t *testing.T, s Table) {
	for n := range notify.PlacesPerAddress {
		s.set(t, ticket("shop", 1, uint32(n+1)), "victim@example.com")
	}
	more := ticket("other", 1, 1)
	set := func() error {
		return s.Set(t.Context(), registration(more, "victim@example.com"), digest("victim@example.com"))
	}
	if err := set(); !errors.Is(err, notify.ErrAddress) {
		t.Errorf("one place more: %v", err)
	}
	s.wantNone(t, more)
	// Erasing gives nothing back: the mails may have been sent.
	_, err := s.Erase(t.Context(), ticket("shop", 1, 1))
	must(t, err)
	if err := set(); !errors.Is(err, notify.ErrAddress) {
		t.Errorf("after a withdrawal: %v", err)
	}
	s.Age(time.Hour + time.Second)
	must(t, set())
}

func placesAtOnce(t *testing.T, s Table) {
	var taken atomic.Int32
	var all sync.WaitGroup
	for n := range 4 * notify.PlacesPerAddress {
		all.Go(func() {
			err := s.Set(context.Background(), registration(ticket("shop", 1, uint32(n+1)), "a@example.com"), digest("a"))
			if err == nil {
				taken.Add(1)
			} else if !errors.Is(err, notify.ErrAddress) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if taken.Load() != notify.PlacesPerAddress {
		t.Errorf("%d places of one address", taken.Load())
	}
}

func claimOnce(t *testing.T, s Table) {
	p := ticket("shop", 1, 3)
	if s.claim(t, p, notify.Near) {
		t.Error("a claim of nothing")
	}
	s.set(t, p, "a@example.com")
	for _, m := range []notify.Mail{notify.Near, notify.Turn} {
		var had atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, ok, err := s.Claim(context.Background(), p, m); err != nil {
					t.Error(err)
				} else if ok {
					had.Add(1)
				}
			})
		}
		all.Wait()
		if had.Load() != 1 {
			t.Errorf("%d callers have the %s mail", had.Load(), m)
		}
	}
	// An address that was changed meanwhile makes no second mail.
	q := ticket("shop", 1, 4)
	s.set(t, q, "b@example.com")
	s.claim(t, q, notify.Near)
	s.set(t, q, "c@example.com")
	if s.claim(t, q, notify.Near) {
		t.Error("a second near mail after the address was changed")
	}
}

func unclaim(t *testing.T, s Table) {
	p := ticket("shop", 1, 3)
	s.set(t, p, "a@example.com")
	for _, m := range []notify.Mail{notify.Near, notify.Turn} {
		if !s.claim(t, p, m) {
			t.Fatalf("no claim of %s", m)
		}
		must(t, s.Unclaim(t.Context(), p, m))
		if !s.claim(t, p, m) {
			t.Errorf("no claim of %s after it was given back", m)
		}
	}
}

func served(t *testing.T, s Table) {
	p := ticket("shop", 1, 3)
	s.set(t, p, "a@example.com")
	s.claim(t, p, notify.Turn)
	if s.claim(t, p, notify.Near) {
		t.Error("near after the turn")
	}
	_, err := s.Erase(t.Context(), p)
	must(t, err)
	for _, address := range []string{"a@example.com", "b@example.com"} {
		if err := s.Set(t.Context(), registration(p, address), digest(address)); !errors.Is(err, notify.ErrServed) {
			t.Errorf("set %s after the last mail: %v", address, err)
		}
	}
	near := registration(ticket("shop", 1, 4), "a@example.com")
	near.Near = true
	must(t, s.Set(t.Context(), near, digest("a")))
	if s.claim(t, near.Place, notify.Near) {
		t.Error("a near mail that is not worth sending")
	}
}

func draw(t *testing.T, s Table) {
	from, to := handle("shop", 1, 9), ticket("shop", 1, 2)
	s.set(t, from, "a@example.com")
	s.claim(t, from, notify.Near)
	must(t, s.Move(t.Context(), from, to, false))
	s.wantNone(t, from)
	want := registration(to, "a@example.com")
	want.Near = true
	s.want(t, want)
	must(t, s.Move(t.Context(), from, to, false)) // again: nothing is there to move
	s.want(t, want)
}

func newPlace(t *testing.T, s Table) {
	from, to := ticket("shop", 1, 2), ticket("shop", 1, 50)
	s.set(t, from, "a@example.com")
	s.claim(t, from, notify.Near)
	must(t, s.Move(t.Context(), from, to, true))
	s.wantNone(t, from)
	s.want(t, registration(to, "a@example.com"))
	if !s.claim(t, to, notify.Near) {
		t.Error("no near mail for the new place")
	}
}

func moveOnto(t *testing.T, s Table) {
	from, to := ticket("shop", 1, 2), ticket("shop", 1, 50)
	s.set(t, from, "a@example.com")
	s.set(t, to, "b@example.com")
	must(t, s.Move(t.Context(), from, to, true))
	s.wantNone(t, from)
	s.want(t, registration(to, "b@example.com"))
	s.set(t, from, "c@example.com")
	_, err := s.Erase(t.Context(), from)
	must(t, err)
	must(t, s.Move(t.Context(), from, ticket("shop", 1, 51), true))
	s.wantNone(t, ticket("shop", 1, 51)) // an erased one is not carried over
}

func live(t *testing.T, s Table) {
	rooms := func(want ...string) {
		t.Helper()
		got, err := s.Rooms(t.Context())
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("rooms %q, want %q", got, want)
		}
	}
	rooms()
	order := []notify.Place{
		ticket("shop", 1, 5), ticket("shop", 2, 1), ticket("shop", 2, 300), ticket("shop", 2, 70_000), handle("shop", 2, 1), handle("shop", 2, 2),
	}
	for i, p := range slices.Backward(order) {
		s.set(t, p, fmt.Sprintf("%d@example.com", i))
	}
	s.set(t, ticket("about", 1, 1), "x@example.com")
	s.set(t, ticket("zoo", 1, 1), "y@example.com")
	_, err := s.Erase(t.Context(), ticket("zoo", 1, 1))
	must(t, err)
	rooms("about", "shop")
	var got []notify.Place
	var after notify.Place
	for {
		page, err := s.Live(t.Context(), "shop", after, 2)
		must(t, err)
		for _, r := range page {
			got, after = append(got, r.Place), r.Place
			if !r.Live() || r.Locale != "th" {
				t.Errorf("%+v", r)
			}
		}
		if len(page) < 2 {
			break
		}
	}
	if !slices.Equal(got, order) {
		t.Errorf("live are %v, want %v", got, order)
	}
	_, err = s.Erase(t.Context(), ticket("about", 1, 1))
	must(t, err)
	rooms("shop")
}

func sweep(t *testing.T, s Table) {
	old, young := registration(ticket("shop", 1, 1), "a@example.com"), registration(ticket("shop", 1, 2), "b@example.com")
	old.At = at.Add(-time.Millisecond)
	must(t, s.Set(t.Context(), old, digest("a")))
	must(t, s.Set(t.Context(), young, digest("b")))
	must(t, s.Sweep(t.Context(), at))
	s.wantNone(t, old.Place)
	s.want(t, young)
}
