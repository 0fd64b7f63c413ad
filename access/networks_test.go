package access

import (
	"net/netip"
	"strings"
	"testing"
)

func TestNetworks(t *testing.T) {
	n, err := ParseNetworks(strings.NewReader("# clouds\n192.0.2.77/24 # the first\n\n198.51.100.7\n2001:db8::/32\n192.0.2.0/24\n"))
	if err != nil || n.Len() != 3 {
		t.Fatal(n.Len(), err)
	}
	for addr, want := range map[string]bool{
		"192.0.2.1": true, "192.0.2.255": true, "192.0.3.1": false, "198.51.100.7": true, "198.51.100.8": false,
		"2001:db8:1::5": true, "2001:db9::": false, "::ffff:192.0.2.9": true, "fe80::1%eth0": false,
	} {
		if n.Contain(netip.MustParseAddr(addr)) != want {
			t.Errorf("%s: %v", addr, !want)
		}
	}
	if n.Contain(netip.Addr{}) || (Networks{}).Contain(netip.MustParseAddr("192.0.2.1")) {
		t.Error("nothing is in a network")
	}
	for text, says := range map[string]string{
		"192.0.2.0/24\nexample.com": `line 2: "example.com"`, "192.0.2.0/33": "line 1", "::ffff:192.0.2.0/120": "as the IPv4 network", "fe80::1%eth0": "line 1",
		"192.0.2.0/24\n" + strings.Repeat("1", 70_000): "read networks",
	} {
		if _, err := ParseNetworks(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}

func TestAround(t *testing.T) {
	of := func(a string) Network { return NetworkOf(netip.MustParseAddr(a)) }
	if of("192.0.2.1").Around() != of("192.0.2.200").Around() || of("192.0.2.1").Around() == of("192.0.3.1").Around() ||
		of("2001:db8:1:2::1").Around() != of("2001:db8:1:ffff::1").Around() || of("2001:db8:1::").Around() == of("2001:db8:2::").Around() {
		t.Error("a network is in another than the one around it")
	}
}
