package xmpp

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/secure/precis"
)

// A jid is an address, local@domain/resource, in the form in which addresses are compared
// (RFC 7622): two spellings of one address are equal.
type jid struct{ local, domain, resource string }

// maxPart is the longest part of an address, in bytes (RFC 7622, section 3).
const maxPart = 1023

var errAddress = errors.New("not an XMPP address")

// parseJID reads an address.
func parseJID(s string) (j jid, err error) {
	rest, resource, full := strings.Cut(s, "/")
	local, domain, named := strings.Cut(rest, "@")
	if !named {
		local, domain = "", rest
	}

	if named {
		if j.local, err = precis.UsernameCaseMapped.String(local); err != nil || j.local == "" ||
			strings.ContainsAny(j.local, "\"&'/:<>@") {
			return jid{}, fmt.Errorf("%w: %q", errAddress, s)
		}
	}
	domain = strings.TrimSuffix(domain, ".")
	if j.domain, err = idna.Display.ToUnicode(domain); err != nil || domain == "" || strings.ContainsAny(j.domain, " @/<>&'\"") {
		return jid{}, fmt.Errorf("%w: %q", errAddress, s)
	}
	if full {
		if j.resource, err = precis.OpaqueString.String(resource); err != nil {
			return jid{}, fmt.Errorf("%w: %q", errAddress, s)
		}
	}
	if len(j.local) > maxPart || len(j.domain) > maxPart || len(j.resource) > maxPart {
		return jid{}, fmt.Errorf("%w: %d bytes long", errAddress, len(s))
	}

	return j, nil
}

// bare is the address without its resource.
func (j jid) bare() string {
	if j.local == "" {
		return j.domain
	}
	return j.local + "@" + j.domain
}

func (j jid) String() string {
	if j.resource == "" {
		return j.bare()
	}
	return j.bare() + "/" + j.resource
}

// bareOf is the bare form of what a stanza has as an address; "": it is none.
func bareOf(s string) string {
	j, err := parseJID(s)
	if err != nil {
		return ""
	}

	return j.bare()
}

// account reports whether an address is of somebody at a server, without a resource.
func (j jid) account() bool { return j.local != "" && j.resource == "" }
