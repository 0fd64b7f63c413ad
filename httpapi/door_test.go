package httpapi

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"qm/access/token"
)

// A proof of work is taken once for as long as its stamp is good, and whoever brings ever more of them does not fill the memory.
func TestProofsAreRememberedAndBounded(t *testing.T) {
	var s spent
	start := time.UnixMilli(1_700_000_000_000)
	if !s.spend("first", start) {
		t.Fatal("a new proof is not taken")
	}
	for at := time.Duration(0); at <= token.StampLife; at += token.StampLife / 20 {
		if s.spend("first", start.Add(at)) {
			t.Fatalf("taken again after %v", at)
		}
	}
	late := start.Add(token.StampLife - time.Second)
	if !s.spend("late", late) || s.spend("late", late.Add(token.StampLife)) {
		t.Error("one of the end of a span is forgotten with it")
	}
	if !s.spend("late", late.Add(4*token.StampLife)) {
		t.Error("one whose stamp is long no good is remembered yet")
	}
	s = spent{}
	for i := range 3 * maxSpent {
		s.spend(strconv.Itoa(i), start)
		if len(s.now)+len(s.before) > 2*maxSpent {
			t.Fatalf("%d are kept", len(s.now)+len(s.before))
		}
	}
	if s.spend(strconv.Itoa(3*maxSpent-1), start) || s.spend(strconv.Itoa(2*maxSpent), start) {
		t.Error("a flood makes it forget the latest")
	}
}

// The second look of a page whose script did not run loses nothing that came with the first, whatever net/url makes of it.
func TestTheSecondLookKeepsTheAddress(t *testing.T) {
	for _, c := range []struct{ query, with, without string }{
		{"", "/w/demo?plain=1", "/w/demo"},
		{"plain=1", "/w/demo?plain=1", "/w/demo"},
		{"plain=&lang=th&plain=2", "/w/demo?lang=th&plain=1", "/w/demo?lang=th"},
		{"qm_return=https://shop.example/a;b=1&lang=th", "/w/demo?qm_return=https://shop.example/a;b=1&lang=th&plain=1", "/w/demo?qm_return=https://shop.example/a;b=1&lang=th"},
		{"qm_return=https://shop.example/100%", "/w/demo?qm_return=https://shop.example/100%&plain=1", "/w/demo?qm_return=https://shop.example/100%"},
		{"qm_return=a%26plain%3D1", "/w/demo?qm_return=a%26plain%3D1&plain=1", "/w/demo?qm_return=a%26plain%3D1"},
	} {
		u := &url.URL{Path: "/w/demo", RawQuery: c.query}
		if got := withQuery(u, plainParam, "1"); got != c.with {
			t.Errorf("%q with: %q", c.query, got)
		}
		if got := withQuery(u, plainParam, ""); got != c.without {
			t.Errorf("%q without: %q", c.query, got)
		}
	}
}
