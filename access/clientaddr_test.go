package access

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func proxies(t testing.TB, list string) Proxies {
	t.Helper()
	p, err := ParseProxies(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseProxies(t *testing.T) {
	p := proxies(t, "10.0.0.0/8, 192.0.2.1 ::1,2001:db8::/32,::ffff:172.16.0.0/108, ")
	for addr, want := range map[string]bool{
		"10.255.0.1": true, "192.0.2.1": true, "192.0.2.2": false, "::1": true, "::2": false,
		"2001:db8:ffff::1": true, "2001:db9::": false, "172.31.0.1": true, "172.32.0.1": false,
	} {
		if got := p.Trusts(netip.MustParseAddr(addr)); got != want {
			t.Errorf("trusts %s: %v", addr, got)
		}
	}
	if p.Trusts(netip.Addr{}) {
		t.Error("trusts no address")
	}
	_, err := ParseProxies("10.0.0.0/33, 10.0.0.1, proxy.internal")
	if err == nil || !strings.Contains(err.Error(), "10.0.0.0/33") || !strings.Contains(err.Error(), "proxy.internal") {
		t.Errorf("bad entries: %v", err)
	}
}

func TestClient(t *testing.T) {
	p := proxies(t, "10.0.0.0/8,::1,fd00::/8")
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "192.0.2.7:1234", nil, "192.0.2.7"},
		{"a stranger's header is not believed", "192.0.2.7:1234", []string{"198.51.100.1"}, "192.0.2.7"},
		{"a proxy's header is", "10.0.0.1:1234", []string{"198.51.100.1"}, "198.51.100.1"},
		{"right-most that is not trusted", "10.0.0.1:1", []string{"6.6.6.6, 198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		{"several lines are one list", "10.0.0.1:1", []string{"6.6.6.6", "198.51.100.1", "10.0.0.2,10.0.0.3"}, "198.51.100.1"},
		{"all trusted", "10.0.0.1:1", []string{"10.0.0.9, 10.0.0.2"}, "10.0.0.9"},
		{"no header", "10.0.0.1:1", nil, "10.0.0.1"},
		{"an empty header", "10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"nonsense ends the walk", "10.0.0.1:1", []string{"198.51.100.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"with ports", "10.0.0.1:1", []string{"198.51.100.1:8080"}, "198.51.100.1"},
		{"IPv6 with port", "[::1]:1", []string{"[2001:db8::5]:443"}, "2001:db8::5"},
		{"IPv6 in brackets", "[::1]:1", []string{"[2001:db8::5]"}, "2001:db8::5"},
		{"a zone is dropped", "[::1]:1", []string{"fe80::1%eth0"}, "fe80::1"},
		{"a mapped peer is its IPv4 address", "[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"a peer without a port", "192.0.2.7", nil, "192.0.2.7"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.forwarded != nil {
			r.Header["X-Forwarded-For"] = c.forwarded
		}
		if got := p.Client(r); got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
	if got := p.Client(&http.Request{RemoteAddr: "@"}); got.IsValid() {
		t.Errorf("a Unix socket: %v", got)
	}
}

func TestHTTPS(t *testing.T) {
	p := proxies(t, "10.0.0.0/8")
	for _, c := range []struct {
		peer, proto string
		encrypted   bool
		want        bool
	}{
		{"192.0.2.1:1", "", true, true},
		{"192.0.2.1:1", "https", false, false},
		{"10.0.0.1:1", "https", false, true},
		{"10.0.0.1:1", "http, HTTPS", false, true},
		{"10.0.0.1:1", "https, http", false, false},
		{"10.0.0.1:1", "", false, false},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.proto != "" {
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		if c.encrypted {
			r.TLS = &tls.ConnectionState{}
		}
		if got := p.HTTPS(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestParseAddr(t *testing.T) {
	for _, s := range []string{"", "1.2.3.4, 5.6.7.8", "1.2.3.4:80", "1.2.3", "fe80::1%eth0", "localhost", "1.2.3.4 "} {
		if a, ok := ParseAddr(s); ok {
			t.Errorf("took %q as %v", s, a)
		}
	}
	if a, ok := ParseAddr("::ffff:1.2.3.4"); !ok || a.String() != "1.2.3.4" {
		t.Errorf("mapped: %v, %v", a, ok)
	}
}

func TestNetworkOf(t *testing.T) {
	of := func(s string) Network { return NetworkOf(netip.MustParseAddr(s)) }
	if of("192.0.2.1") != of("::ffff:192.0.2.1") || of("192.0.2.1") == of("192.0.2.2") {
		t.Error("IPv4 is not grouped by address")
	}
	if of("2001:db8::1") != of("2001:db8::ffff:0:0:1") || of("2001:db8::1") == of("2001:db8:0:1::1") {
		t.Error("IPv6 is not grouped by /64")
	}
	if of("0.0.0.0") == of("::") || of("0.0.0.0") == (Network{}) {
		t.Error("families mix")
	}
	for s, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64"} {
		if got := of(s).String(); got != want {
			t.Errorf("%s prints as %s", s, got)
		}
	}
	if got := (Network{}).String(); got != "none" {
		t.Errorf("no address prints as %s", got)
	}
}

// Two addresses have the same canonical bytes exactly when they are one network.
func TestNetworkBytesAreCanonical(t *testing.T) {
	addr := rapid.Custom(func(t *rapid.T) netip.Addr {
		if rapid.Bool().Draw(t, "IPv4") {
			return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.ByteRange(0, 1), 4, 4).Draw(t, "bytes")))
		}
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.ByteRange(0, 1), 16, 16).Draw(t, "bytes")))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := addr.Draw(t, "a"), addr.Draw(t, "b")
		na, nb := NetworkOf(a), NetworkOf(b)
		bits := func(a netip.Addr) int {
			if a.Is4() {
				return 32
			}
			return 64
		}
		same := a.Is4() == b.Is4() && netip.PrefixFrom(a, bits(a)).Masked() == netip.PrefixFrom(b, bits(b)).Masked()
		if (na == nb) != same || bytes.Equal(na.Append(nil), nb.Append(nil)) != same || (na.String() == nb.String()) != same {
			t.Fatalf("%v and %v: %v and %v", a, b, na, nb)
		}
	})
}

func FuzzClient(f *testing.F) {
	f.Add("10.0.0.1:1", "6.6.6.6, 198.51.100.1, 10.0.0.2")
	f.Add("[::1]:1", "[")
	p := proxies(f, "10.0.0.0/8,::1")
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {forwarded}}}
		got := p.Client(r)
		if direct := parseHop(peer); !p.Trusts(direct) && got != direct {
			t.Fatalf("believed %q about %q", forwarded, peer)
		}
		NetworkOf(got).Append(nil)
	})
}
