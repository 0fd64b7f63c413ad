package access

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
)

// Networks is a set of networks, such as an operator's list of data centres. The zero value is empty. A look costs one look-up for each
// length of prefix that is in it, whatever its size.
type Networks struct {
	bits []int // the lengths of the prefixes
	all  map[netip.Prefix]struct{}
}

// ParseNetworks reads one network a line: an address or a prefix ("192.0.2.0/24"). Empty lines, and what follows a #, are left out. The
// error names the line.
func ParseNetworks(r io.Reader) (Networks, error) {
	n := Networks{all: map[netip.Prefix]struct{}{}}
	lines := bufio.NewScanner(r)
	for at := 1; lines.Scan(); at++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(text); err != nil || a.Zone() != "" {
				return Networks{}, fmt.Errorf("line %d: %q is neither an address nor a network", at, text)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p.Addr().Is4In6() {
			return Networks{}, fmt.Errorf("line %d: write %q as the IPv4 network that it is", at, text)
		}
		n.all[p.Masked()] = struct{}{}
		if !slices.Contains(n.bits, p.Bits()) {
			n.bits = append(n.bits, p.Bits())
		}
	}
	if err := lines.Err(); err != nil {
		return Networks{}, fmt.Errorf("read networks: %w", err)
	}
	return n, nil
}

// Contain reports whether an address is in one of the networks.
func (n Networks) Contain(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, bits := range n.bits {
		if p, err := a.Prefix(bits); err == nil {
			if _, ok := n.all[p]; ok {
				return true
			}
		}
	}
	return false
}

// Len is how many networks there are.
func (n Networks) Len() int { return len(n.all) }

// Around is the larger network that a client's is in: an IPv4 /24, an IPv6 /48.
func (n Network) Around() Network {
	if n.family == 4 {
		return Network{n.prefix >> 8 << 8, 4}
	}
	return Network{n.prefix >> 16 << 16, n.family}
}

// String says how many there are, "" for none.
func (n Networks) String() string {
	switch len(n.all) {
	case 0:
		return ""
	case 1:
		return "1 network"
	}
	return fmt.Sprintf("%d networks", len(n.all))
}
