package access

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the peers whose word about a client is believed: TRUSTED_PROXIES
// (contract.md, Configuration). The zero value believes nobody.
type Proxies struct{ trusted []netip.Prefix }

// ParseProxies reads a list of CIDR prefixes and single addresses, separated by
// commas or spaces. All entries that cannot be read are named in one error.
func ParseProxies(list string) (Proxies, error) {
	var p Proxies
	var errs []error
	for _, entry := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		prefix, err := parsePrefix(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("trusted proxy %q is neither an address nor a CIDR prefix", entry))
			continue
		}
		p.trusted = append(p.trusted, prefix)
	}
	return p, errors.Join(errs...)
}

func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Prefix{}, err
		}
		addr = addr.WithZone("").Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	// ::ffff:10.0.0.0/104 means 10.0.0.0/8: addresses are compared unmapped.
	if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), nil
}

// Trusts reports whether addr is one of the trusted proxies.
func (p Proxies) Trusts(addr netip.Addr) bool {
	for _, prefix := range p.trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// TrustsPeer reports whether a request comes from a trusted proxy itself, so that what it forwards is to be believed.
func (p Proxies) TrustsPeer(r *http.Request) bool { return p.Trusts(parseHop(r.RemoteAddr)) }

// Client is the address that a request comes from: the peer's, or, where the
// peer is a trusted proxy, the right-most address of X-Forwarded-For that is
// not itself trusted. Whatever stands left of that was written by the client
// and may be a lie. Where an entry cannot be read, the walk ends at the proxy
// that passed it on; where all are trusted, the left-most is the client. The
// zero Addr is a peer without an address (a Unix socket).
func (p Proxies) Client(r *http.Request) netip.Addr {
	client := parseHop(r.RemoteAddr)
	if !p.Trusts(client) {
		return client
	}
	// Several header lines read as one list, in their order.
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var hop string
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, hop = rest[:comma], rest[comma+1:]
			} else {
				hop, more = rest, false
			}
			addr := parseHop(strings.TrimSpace(hop))
			if !addr.IsValid() {
				return client
			}
			if client = addr; !p.Trusts(client) {
				return client
			}
		}
	}
	return client
}

// HTTPS reports whether the client's own connection is encrypted, as far as
// that is known: to this server, or to the trusted proxy before it, which says
// so in X-Forwarded-Proto.
func (p Proxies) HTTPS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	lines := r.Header["X-Forwarded-Proto"]
	if len(lines) == 0 || !p.TrustsPeer(r) {
		return false
	}
	proto := lines[len(lines)-1]
	return strings.EqualFold(strings.TrimSpace(proto[strings.LastIndexByte(proto, ',')+1:]), "https")
}

// ParseAddr reads one address, as ?ip= carries it: no port, no zone, no list
// (contract.md, answer 7). An IPv4-mapped IPv6 address is its IPv4 address.
func ParseAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// parseHop reads an address with or without a port; the zero Addr if it is none.
func parseHop(s string) netip.Addr {
	// What looks like it has a port is read with one first: an error costs an allocation, and every peer's address has a port.
	if colon := strings.IndexByte(s, ':'); colon > 0 && (s[0] == '[' || colon == strings.LastIndexByte(s, ':')) {
		if ap, err := netip.ParseAddrPort(s); err == nil {
			return ap.Addr().WithZone("").Unmap()
		}
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
			addr, _ = netip.ParseAddr(s[1 : len(s)-1])
		}
	}
	return addr.WithZone("").Unmap()
}

// Network is what counts as one client: an IPv4 address or an IPv6 /64
// (contract.md, answer 3). It is comparable; the zero value stands for all
// peers without an address.
type Network struct {
	prefix uint64 // the address, or the upper half of it
	family byte   // 4, 6, or 0 for no address
}

// NetworkOf is the network of an address.
func NetworkOf(addr netip.Addr) Network {
	addr = addr.Unmap()
	switch {
	case addr.Is4():
		b := addr.As4()
		return Network{uint64(binary.BigEndian.Uint32(b[:])), 4}
	case addr.Is6():
		b := addr.As16()
		return Network{binary.BigEndian.Uint64(b[:8]), 6}
	}
	return Network{}
}

// Append appends the canonical bytes, from which identities are digested: the
// family, then 4 or 8 bytes of address.
func (n Network) Append(dst []byte) []byte {
	dst = append(dst, n.family)
	switch n.family {
	case 4:
		return binary.BigEndian.AppendUint32(dst, uint32(n.prefix))
	case 6:
		return binary.BigEndian.AppendUint64(dst, n.prefix)
	}
	return dst
}

// String is 192.0.2.1, 2001:db8::/64 or none. It is an address: logs print a
// digest of it, never this.
func (n Network) String() string {
	switch n.family {
	case 4:
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(n.prefix))
		return netip.AddrFrom4(b).String()
	case 6:
		var b [16]byte
		binary.BigEndian.PutUint64(b[:8], n.prefix)
		return netip.PrefixFrom(netip.AddrFrom16(b), 64).String()
	}
	return "none"
}

// Empty reports that nobody is believed.
func (p Proxies) Empty() bool { return len(p.trusted) == 0 }

// Everybody reports that any address of IPv4 or IPv6 is believed.
func (p Proxies) Everybody() bool {
	return slices.ContainsFunc(p.trusted, func(n netip.Prefix) bool { return n.Bits() == 0 })
}

// String is the list as TRUSTED_PROXIES would have it.
func (p Proxies) String() string {
	list := make([]string, len(p.trusted))
	for i, n := range p.trusted {
		list[i] = n.String()
	}
	return strings.Join(list, ",")
}
