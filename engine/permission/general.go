package permission

import "fmt"

// Revoked is the word of an item that takes a right away again. It answers no
// request.
const Revoked Decision = "revoked"

// Used is the word of an item that says that what was allowed once was done, where
// no call of the agent did it: the gate of a task ran.
const Used Decision = "used"

// Profiled is the word of an item that gives an agent another profile: its Tag.
const Profiled Decision = "profile"

// General is the request for a right as such, not for one exact call: what
// request_permission asks. Allowed always, it widens the agent's set.
func General(tag, reason string) (Request, error) {
	a, err := Parse(tag)
	if err != nil {
		return Request{}, err
	}
	r := Request{Tag: a.Tag(), Reason: reason}
	switch a := a.(type) {
	case Read:
		r.Detail.Path = a.Path
	case Write:
		r.Detail.Path = a.Path
	case Web:
		r.Detail.Host = a.Host
		if a.Host == "" {
			r.Detail.Host = "any host"
		}
	case Lan:
		r.Detail.Host = a.address() + " in your network"
	case Exec:
		r.Detail.Command = a.Prefix + " …"
	case Mcp:
		r.Detail.Call = a.name() + " with any arguments"
		if a.Tool == "" {
			r.Detail.Call = "every tool of the MCP server " + a.Server
		}
	default:
		return r, fmt.Errorf("%w: %s is of an unknown kind", ErrTag, tag)
	}
	return r, nil
}

// general reports whether the request is for a right as such.
func (r Request) general() bool {
	g, err := General(r.Tag, "")
	return err == nil && g.Detail == r.Detail && r.Workdir == ""
}

// IsGeneral reports whether sha is the hash of an agent's general request for tag.
func IsGeneral(agent, tag, sha string) bool {
	r, err := General(tag, "")
	return err == nil && r.SHA256(agent) == sha
}
