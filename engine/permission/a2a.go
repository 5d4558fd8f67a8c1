package permission

import (
	"fmt"
	"strings"
)

// A2A is the right to give tasks to the agents of another program, at a host.
type A2A struct{ Host string }

func (A2A) access() {}

const a2aKind = "@a2a"

// Tag is @a2a:host.
func (a A2A) Tag() string { return a2aKind + ":" + a.Host }

// SourceOf is the source that a turn has read when an agent at the host answered.
func (a A2A) SourceOf() string { return "an A2A agent at " + a.Host }

func parseA2A(value string) (Access, error) {
	host := strings.ToLower(value)
	if !hostName.MatchString(host) || strings.HasPrefix(host, "*") || len(host) > 253 {
		return nil, fmt.Errorf("%w: %q is not a host name; allowed: @a2a:example.com", ErrTag, value)
	}

	return A2A{Host: host}, nil
}
