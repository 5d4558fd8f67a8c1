package agents

import (
	"slices"
	"strings"
	"time"

	"daycare/engine/permission"
	"daycare/engine/record"
)

// A turn that has read text from outside may be doing what that text says. What a user
// allowed "always" before, for everything to come, did not mean that: where it reaches
// outside the workspace it is asked for again, with the source named. What was said in so
// many words (settings, permissions grant) stays.

// given reports whether a right comes from the answer to a request that was given before
// the newest of the sources was read.
func given(g permission.Grant, sources []record.Source) bool {
	return g.Token != "" && slices.ContainsFunc(sources, func(s record.Source) bool { return g.At.Before(s.At.Time) })
}

// guarded is a set without the rights to hosts nobody named, @web and patterns, and to tools of
// MCP servers, that were the answer to a request before the sources were read.
func guarded(set permission.Set, sources []record.Source) permission.Set {
	for _, g := range set.Grants {
		a, err := permission.Parse(g.Tag)
		if err != nil || g.SHA256 != "" || !given(g, foreign(a, sources)) {
			continue
		}
		if hearer(a) != "" || anyHost(a) {
			if less, err := set.Revoke(g.Tag); err == nil {
				set = less
			}
		}
	}

	return set
}

// foreign are the sources that a right is to be asked for again after. What an MCP server or a
// remote agent said says nothing new to it.
func foreign(a permission.Access, sources []record.Source) []record.Source {
	own := hearer(a)
	return slices.DeleteFunc(slices.Clone(sources), func(s record.Source) bool { return own != "" && s.Source == own })
}

// hearer is the source that answers where a right is used, which hears the arguments of a call: an
// MCP server, a remote agent. "" for other rights.
func hearer(a permission.Access) string {
	switch a := a.(type) {
	case permission.Mcp:
		return a.SourceOf()
	case permission.A2A:
		return a.SourceOf()
	}

	return ""
}

// anyHost reports whether a right is to hosts that it does not name.
func anyHost(a permission.Access) bool {
	w, ok := a.(permission.Web)
	return ok && (w.Host == "" || strings.HasPrefix(w.Host, "*."))
}

// outside reports whether a request reaches outside the workspace with nothing to hold
// it: a command without a sandbox, a message to somebody else, a tool of an MCP server, a task for
// a remote agent.
func outside(r permission.Request) bool {
	a, err := permission.Parse(r.Tag)
	_, tells := a.(permission.Message)
	return err == nil && (tells || hearer(a) != "") || r.Sandbox == permission.NoSandbox
}

// texts are the sources as a card names them.
func texts(sources []record.Source) (list []string) {
	for _, s := range sources {
		list = append(list, s.Source+" at "+s.At.UTC().Format(time.TimeOnly))
	}
	return list
}
