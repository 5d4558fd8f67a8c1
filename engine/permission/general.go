package permission

import "fmt"

// Revoked is the decision of an inbox item that takes a permission away. It answers no request.
const Revoked Decision = "revoked"

// Used is the decision of an inbox item which records that a Once approval was used by something
// other than a call of the agent: the gate of a task.
const Used Decision = "used"

// Profiled is the decision of an inbox item that gives an agent another profile, which is in its
// Tag.
const Profiled Decision = "profile"

// General returns the request for a permission as such, as opposed to one exact call: what the tool
// request_permission asks for. If the answer is Always, it widens the agent's set.
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
	case A2A:
		r.Detail.Call = "any task for an agent at " + a.Host
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
