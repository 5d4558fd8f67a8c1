package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"daycare/engine/permission"
)

// ErrPrivate: the address is not a public one.
var ErrPrivate = errors.New("not a public address")

// reserved are addresses that look public and are not: for documentation, tests,
// carriers' own networks, machines of the provider, and those that carry another
// address inside.
var reserved = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "168.63.129.16/32", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")

func prefixes(list ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(list))
	for i, s := range list {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}

// public reports whether an address is one that anybody on the Internet reaches.
func public(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}

// own reports whether an address is one of this machine's: a public one leads past
// the firewall to services that are meant for the machine alone. The addresses are read
// for each connection, because they come and go.
func own(a netip.Addr, addresses interfaces) bool {
	all, err := addresses()
	if err != nil {
		return true // not known: refused
	}
	return slices.ContainsFunc(all, func(i net.Addr) bool {
		p, err := netip.ParsePrefix(i.String())
		return err == nil && p.Addr().Unmap() == a.Unmap()
	})
}

// interfaces is net.InterfaceAddrs, which tests replace.
type interfaces func() ([]net.Addr, error)

// usable are the ports that web servers have; others speak to what is no web server.
func usable(port uint16) bool { return port == 80 || port == 443 || port >= 1024 }

// named reports whether a host was granted by its own name.
func named(set permission.Set, host string) bool {
	return slices.ContainsFunc(set.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// transport makes connections for one call, with the agent's grants.
func transport(set permission.Set, timeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // one from the environment would be asked for private addresses, too
		DisableKeepAlives:      true,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
		TLSHandshakeTimeout:    timeout,
		ResponseHeaderTimeout:  timeout,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return Dial(ctx, set, address)
		},
	}
}

// Dial connects an agent to host:port. Wherever the name leads, the address must be
// a public one and the port one of a web server, unless the host itself is granted
// by its name; else the error wraps ErrPrivate.
func Dial(ctx context.Context, set permission.Set, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, Control: judge(named(set, hostOf(address)), net.InterfaceAddrs)}
	return d.DialContext(ctx, "tcp", address)
}

// judge looks at the address of a connection before it is made. It is called for
// each address that a name has.
func judge(inside bool, addresses interfaces) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s", ErrPrivate, address)
		}
		if !inside && (!public(ap.Addr()) || own(ap.Addr(), addresses) || !usable(ap.Port())) {
			return fmt.Errorf("%w: %s", ErrPrivate, address)
		}
		return nil
	}
}

// hostOf is the host of "host:port", as grants spell it.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}
