package permission

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"daycare/engine/lan"
	"daycare/engine/lazyregexp"
)

// An Access is one permission, written as a tag: Read, Write, Web, Lan or Exec.
type Access interface {
	// Tag is the canonical text: Parse of it gives the Access back.
	Tag() string
	access()
}

type (
	// Read is the permission to read a file, or a folder and everything in it.
	Read struct{ Path string } // absolute and clean
	// Write is the permission to change a file, or a folder and everything in it, and to read it.
	Write struct{ Path string } // absolute and clean
	// Web is the permission to reach a host on the Internet; "*.example.com": all hosts below
	// example.com; "": any host. It never covers private addresses.
	Web struct{ Host string } // lower case
	// Lan is the permission to reach one port of a host that is this machine or in its network.
	Lan struct {
		Host string // lower case, or an IP address
		Port uint16
	}
	// Exec is the permission to run commands that begin with these words.
	Exec struct{ Prefix string }
)

func (Read) access()  {}
func (Write) access() {}
func (Web) access()   {}
func (Lan) access()   {}
func (Exec) access()  {}

// Tag is @read:/path.
func (a Read) Tag() string { return "@read:" + a.Path }

// Tag is @write:/path.
func (a Write) Tag() string { return "@write:" + a.Path }

// Tag is @web or @web:host.
func (a Web) Tag() string {
	if a.Host == "" {
		return "@web"
	}
	return "@web:" + a.Host
}

// Tag is @lan:host:port.
func (a Lan) Tag() string { return "@lan:" + a.address() }

// address is host:port.
func (a Lan) address() string { return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))) }

// Tag is @exec:first words.
func (a Exec) Tag() string { return "@exec:" + a.Prefix }

// ErrTag: the text is not a permission tag.
var ErrTag = errors.New("not a permission tag")

const tagHelp = "allowed: @read:/path, @write:/path, @web, @web:host, @lan:host:port, @exec:command, @mcp:server/tool, @a2a:host"

// maxTag bounds a tag, in bytes: users must be able to read what they allow.
const maxTag = 4096

// hostName is a DNS name or an IPv4 address, with *. in front for all below it.
var hostName = lazyregexp.New(`^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// agentID is how the ids of agents look.
var agentID = lazyregexp.New(`^[a-z0-9]{24,32}$`)

// Parse reads a tag. Errors wrap ErrTag and say which tags are allowed.
func Parse(tag string) (Access, error) {
	if len(tag) > maxTag {
		return nil, fmt.Errorf("%w: %d bytes are too long; allowed: %d", ErrTag, len(tag), maxTag)
	}
	if i := strings.IndexFunc(tag, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }); i >= 0 {
		return nil, fmt.Errorf("%w: %q contains an unprintable character; %s", ErrTag, tag, tagHelp)
	}
	kind, value, hasValue := strings.Cut(strings.TrimLeft(tag, " "), ":")
	if kind != "@read" && kind != "@write" {
		value = strings.TrimSpace(value) // a path may end in a space
	}
	switch {
	case kind == "@message" && agentID.MatchString(value):
		return Message{Agent: value}, nil
	case kind == "@budget":
		return parseBudget(value)
	case kind == "@plan" && !hasValue:
		return Plan{}, nil
	case kind == "@web" && !hasValue:
		return Web{}, nil
	case kind == "@web":
		host := strings.ToLower(value)
		if !hostName.MatchString(host) || len(host) > 253 {
			return nil, fmt.Errorf("%w: %q is not a host name; allowed: @web:example.com, @web:*.example.com", ErrTag, value)
		}
		return Web{Host: host}, nil
	case kind == "@lan":
		return parseLan(strings.ToLower(value))
	case kind == "@read" || kind == "@write":
		if !filepath.IsAbs(value) {
			return nil, fmt.Errorf("%w: %q is not an absolute path; %s", ErrTag, value, tagHelp)
		}
		if kind == "@read" {
			return Read{Path: filepath.Clean(value)}, nil
		}
		return Write{Path: filepath.Clean(value)}, nil
	case kind == mcpKind:
		return parseMcp(value)
	case kind == a2aKind:
		return parseA2A(value)
	case kind == "@exec":
		if value == "" {
			return nil, fmt.Errorf("%w: @exec: needs the beginning of a command; %s", ErrTag, tagHelp)
		}
		return Exec{Prefix: value}, nil
	}

	return nil, fmt.Errorf("%w: %q; %s", ErrTag, tag, tagHelp)
}

// parseLan reads host:port. An address of a link, such as that of a cloud's metadata, is
// refused: no right opens it.
func parseLan(value string) (Access, error) {
	host, port, err := net.SplitHostPort(value)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || n == 0 {
		return nil, fmt.Errorf("%w: %q is not a host with a port; allowed: @lan:nas.home:8080, @lan:192.168.1.5:80, @lan:[fd12::1]:80",
			ErrTag, value)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if lan.Of(ip, net.InterfaceAddrs) == lan.Never {
			return nil, fmt.Errorf("%w: agents never reach %s: it is neither this machine nor a host in its network", ErrTag, host)
		}
		return Lan{Host: ip.Unmap().String(), Port: uint16(n)}, nil
	}
	host = strings.TrimSuffix(host, ".")
	if !hostName.MatchString(host) || strings.HasPrefix(host, "*.") || len(host) > 253 {
		return nil, fmt.Errorf("%w: %q is not the name of one host; allowed: @lan:nas.home:8080", ErrTag, host)
	}

	return Lan{Host: host, Port: uint16(n)}, nil
}
