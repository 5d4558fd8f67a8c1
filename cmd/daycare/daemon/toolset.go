package daemon

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"daycare/agents/subagent"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/tools"
	"daycare/tools/ask"
	"daycare/tools/mcp"
	"daycare/tools/peers"
)

// toolsets is which tools which kind of agent has:
//
//	user                        all; those to a chat where there is one to reach, set_reaction
//	                            where it takes reactions
//	cron, heartbeat, permanent  all but those to a chat: they speak to people through agents
//	subagent                    what starts no others, sets no clock, reaches no person
//	subagent of a definition    the definition's tools alone
type toolsets struct {
	registry *subagent.Registry
	family   *engine.Family
	events   *event.Stream
	base     *tools.Set              // of all agents, those between agents among them
	plans    func(agent string) bool // whether it plans before it changes anything; nil: none does
	mcp      *mcp.Pool               // servers whose tools all agents have; nil: there are none

	mu      sync.Mutex
	version int // of the registry that full is made of
	served  int // likewise, of the tools of servers
	full    *tools.Set
	only    map[string]*tools.Set // by what of names an agent
}

// newToolsets puts the tools between agents to the others.
func newToolsets(root string, set *tools.Set, send tools.Tool, f *engine.Family, events *event.Stream,
	report func(path string, found []finding.Finding)) (*toolsets, error) {
	base, err := set.With(append(append(peers.New(f), ask.New(f)...), send)...)
	if err != nil {
		return nil, err
	}
	t := &toolsets{family: f, events: events, base: base, full: base}
	reserved := func(name string) bool {
		_, _, ok := base.Get(name)
		return ok || strings.HasPrefix(name, "mcp_")
	}
	if t.registry, err = subagent.NewRegistry(filepath.Join(root, "subagents"), reserved, report); err != nil {
		return nil, err
	}
	t.all()
	return t, nil
}

// all is every tool that agents can have, sub-agents as they are defined now.
func (t *toolsets) all() *tools.Set {
	list, version := t.registry.List()
	t.mu.Lock()
	defer t.mu.Unlock()
	served := 0
	if t.mcp != nil {
		served = t.mcp.Version()
	}
	if version == t.version && served == t.served {
		return t.full
	}
	full, err := t.base.With(subagent.Tools(list, t.family, t.events)...)
	if err == nil { // the registry has checked names and schemas
		t.full = full
	}
	if t.mcp != nil {
		var tools []tools.Tool
		tools, served = t.mcp.Tools()
		if full, err := t.full.With(tools...); err == nil { // the pool has checked them
			t.full = full
		}
	}
	t.version, t.served, t.only = version, served, map[string]*tools.Set{}
	return t.full
}

// definition is that of a sub-agent, as it is now.
func (t *toolsets) definition(d address.Descriptor) (subagent.Definition, bool) {
	if d.Definition == "" {
		return subagent.Definition{}, false
	}
	return t.registry.Get(d.Definition)
}

// of are an agent's tools as they are now.
func (t *toolsets) of(meta address.Meta) *tools.Set {
	d, full := meta.Descriptor, t.all()
	if t.plans != nil && t.plans(meta.ID) {
		return t.planning(full, d)
	}
	if d.Type == address.User && t.family.Reacts(d.Connector) {
		return full
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := fmt.Sprintf("%s/%s/%v", d.Type, d.Definition, d.Type == address.User && t.family.Speaks(d))
	if t.only[key] == nil {
		t.only[key], _ = full.Only(t.names(full, d)...)
	}
	return t.only[key]
}

// planning are the tools of an agent that plans first: the usual ones and submit_plan.
func (t *toolsets) planning(full *tools.Set, d address.Descriptor) *tools.Set {
	names := t.names(full, d)
	if d.Type == address.User && t.family.Reacts(d.Connector) {
		names = full.Names()
	}
	set, _ := full.Only(names...) // names of its own
	if more, err := set.With(ask.NewPlan()); err == nil {
		return more
	}
	return set
}

const reaction = "set_reaction"

// names are those of the tools that an agent may have; a user's agent that comes
// here has a chat without reactions.
func (t *toolsets) names(full *tools.Set, d address.Descriptor) []string {
	if d.Type == address.Subagent && d.Definition != "" {
		def, _ := t.registry.Get(d.Definition) // one that is gone leaves no tools
		return def.Tools
	}
	list, _ := t.registry.List()
	agent := map[string]bool{}
	for _, def := range list {
		agent[def.Name] = true
	}
	var names []string
	for _, name := range full.Names() {
		switch {
		case d.Type == address.User && !slices.Contains(peers.ToChat, name):
			names = append(names, name)
		case d.Type == address.User && name != reaction && t.family.Speaks(d):
			names = append(names, name)
		case slices.Contains(peers.ToChat, name):
		case d.Type == address.Subagent && (agent[name] || subagent.Forbidden(name)):
		default:
			names = append(names, name)
		}
	}
	return names
}
