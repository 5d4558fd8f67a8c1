package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"daycare/engine/lan"
	"daycare/engine/permission"
)

// ErrPrivate: the address is not one that the agent's rights open. An Inside error says
// which right would.
var ErrPrivate = errors.New("not an address that may be reached")

// Inside is the error of a connection to this machine or its network without the right.
type Inside struct{ Need permission.Lan }

func (e *Inside) Error() string {
	return fmt.Sprintf("%s is this machine or in its network, which needs the right %s", e.Need.Host, e.Need.Tag())
}

// Unwrap makes it an ErrPrivate.
func (e *Inside) Unwrap() error { return ErrPrivate }

// usable are the ports that web servers have; others speak to what is not a web server.
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

// Dial connects an agent to host:port: web_fetch, web_search and the commands of exec come
// through here. Wherever the name leads, the address decides when it is dialled: a public
// one needs the right to the host (Web) and, unless the host itself is granted by its name, a
// port of a web server; this machine and its network need the right to the very port (Lan);
// the others are never reached. An error that is about rights wraps ErrPrivate.
func Dial(ctx context.Context, set permission.Set, address string) (net.Conn, error) {
	return dial(ctx, set, address, net.InterfaceAddrs)
}

func dial(ctx context.Context, set permission.Set, address string, mine lan.Interfaces) (net.Conn, error) {
	host, port, err := target(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 10 * time.Second, Control: judge(set, host, port, mine)}

	return d.DialContext(ctx, "tcp", address)
}

// judge looks at the address of a connection before it is made. It is called for
// each address that a name has.
func judge(set permission.Set, host string, port uint16, mine lan.Interfaces) func(network, address string, _ syscall.RawConn) error {
	need := permission.Lan{Host: host, Port: port}
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s", ErrPrivate, address)
		}

		switch lan.Of(ap.Addr(), mine) {
		case lan.Inside:
			if set.Allows(need) {
				return nil
			}
			return &Inside{need}
		case lan.Public:
			if set.Allows(permission.Web{Host: host}) && (usable(port) || named(set, host)) {
				return nil
			}
		}

		return fmt.Errorf("%w: %s", ErrPrivate, address)
	}
}

// target reads "host:port". The host is as grants spell it.
func target(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %s", ErrPrivate, address)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%w: %s has no port", ErrPrivate, address)
	}

	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		host = ip.Unmap().String()
	}

	return host, uint16(n), nil
}

// lookup is how long a question waits for a name server.
const lookup = 3 * time.Second

// inside returns the addresses of a host if all of them are this machine or in its network;
// none if it is unknown. The answer decides what is asked; what is reached is decided by judge.
func inside(host string) []netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), lookup) // a question has no context of its own
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || slices.ContainsFunc(addresses, func(a netip.Addr) bool { return lan.Of(a, net.InterfaceAddrs) != lan.Inside }) {
		return nil
	}

	return addresses
}

// homely are the last labels of names that are no names of the Internet: a name server out
// there is never asked for them.
var homely = []string{"localhost", "local", "lan", "home", "internal", "intranet", "private", "corp", "home.arpa"}

// tells reports whether looking a host up may tell someone outside what an agent put into
// its name.
func tells(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return false
	}
	return !slices.ContainsFunc(homely, func(last string) bool { return strings.HasSuffix(host, "."+last) })
}
