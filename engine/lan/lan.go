// Package lan says where an address leads: to the Internet, into the network of its
// owner, or to what no agent may reach. Every connection that an agent makes, by itself
// or through the proxy of a command, is judged by Of (tools/fetch), and a right to an
// address is refused by it where it is given (engine/permission).
package lan

import (
	"net"
	"net/netip"
	"slices"
)

// A Place is where an address leads.
type Place int

const (
	// Never is no place for agents: addresses of a link, by which clouds tell machines their
	// keys, addresses that carry another one inside, and those that no server has.
	Never Place = iota
	// Inside is this machine or the network that it is in.
	Inside
	// Public is what anybody on the Internet reaches.
	Public
)

// never are addresses of neither network beside those of a link: metadata and services of
// clouds, documentation, tests, and prefixes that stand for an IPv4 address inside
// (compatible, NAT64, Teredo, 6to4), by which any other could be spelled.
var never = prefixes(
	"0.0.0.0/8", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
	"fd00:ec2::/32", "fd20:ce::254/128")

// compatible is the prefix of ::1 and of IPv4 addresses in an old spelling.
var compatible = netip.MustParsePrefix("::/96")

// carriers is the network between customers of a carrier, and of many virtual networks.
var carriers = netip.MustParsePrefix("100.64.0.0/10")

func prefixes(list ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(list))
	for i, s := range list {
		all[i] = netip.MustParsePrefix(s)
	}

	return all
}

// Interfaces are the addresses of this machine: net.InterfaceAddrs, which tests replace.
type Interfaces func() ([]net.Addr, error)

// Of returns where an address leads. A public address of this machine is Inside: it leads
// past the firewall to services that are meant for the machine alone. The machine's addresses
// are read each time, because they come and go; while they are unknown, all are Inside.
func Of(a netip.Addr, mine Interfaces) Place {
	if !a.IsValid() || a.Zone() != "" {
		return Never
	}
	a = a.Unmap()
	switch {
	case a.IsLoopback():
		return Inside
	case !a.IsGlobalUnicast(), compatible.Contains(a), slices.ContainsFunc(never, func(p netip.Prefix) bool { return p.Contains(a) }):
		return Never
	case a.IsPrivate(), carriers.Contains(a), own(a, mine):
		return Inside
	}

	return Public
}

// Plainly reports whether a host is plainly not on the Internet: localhost, or an address
// elsewhere. Where other names lead, only a look at them tells.
func Plainly(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && Of(ip, net.InterfaceAddrs) != Public
}

// Loopback reports whether a host can be reached only from this machine: localhost, or a
// loopback address. What any other name stands for can change.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// own reports whether an address is one of this machine's.
func own(a netip.Addr, mine Interfaces) bool {
	all, err := mine()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(all, func(i net.Addr) bool {
		p, err := netip.ParsePrefix(i.String())
		return err == nil && p.Addr().Unmap() == a
	})
}
