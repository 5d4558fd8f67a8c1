package daemon

import (
	"cmp"
	"context"
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
	"daycare/tools/skills"
)

// toolsets is which tools which kind of agent has:
//
//	user                        all; those to a chat where there is one to reach, set_reaction
//	                            where it takes reactions
//	cron, heartbeat, permanent  all but those to a chat: they speak to users through agents
//	subagent                    what starts no others, sets no clock, reaches no user
//	subagent of a definition    the definition's tools alone
//
// Models are told of what agents of that kind usually need; the rest is behind a search, see
// families.
type toolsets struct {
	registry *subagent.Registry
	family   *engine.Family
	events   *event.Stream
	base     *tools.Set // of all agents, those between agents among them
	mcp      *mcp.Pool  // servers whose tools all agents have; nil: none

	mu      sync.Mutex
	version int // of the registry that full is made of
	served  int // likewise, of the tools of servers
	full    *tools.Set
	offered mcp.Offered // of servers; without its tools, which are in full
	only    map[kind]*tools.Set
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
		return ok || strings.HasPrefix(name, "mcp_") || name == tools.SearchTool || name == tools.CallTool
	}
	t.registry = subagent.NewRegistry(filepath.Join(root, "subagents"), reserved, report)
	return t, nil
}

// readAhead reads what the first message would wait for otherwise, and reports definitions that are broken.
func (t *toolsets) readAhead(ctx context.Context) error {
	skills.Builtin()
	t.all()

	<-ctx.Done()
	return nil
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
		t.offered = t.mcp.Offered()
		if full, err := t.full.With(t.offered.Tools...); err == nil { // the pool has checked them
			t.full = full
		}
		t.offered.Tools, served = nil, t.offered.Version
	}
	t.version, t.served, t.only = version, served, map[kind]*tools.Set{}
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
func (t *toolsets) of(meta address.Meta, plans bool) *tools.Set {
	d, full := meta.Descriptor, t.all()
	k := kind{Type: d.Type, definition: d.Definition, plans: plans}
	if d.Type == address.User {
		k.reacts, k.speaks = t.family.Reacts(d.Connector), t.family.Speaks(d)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.only[k] == nil {
		t.only[k] = t.choose(full, k)
	}

	return t.only[k]
}

// A kind of agent is what its tools follow from.
type kind struct {
	address.Type
	definition     string // of a sub-agent
	speaks, reacts bool   // of a user's agent: there is a chat; it takes reactions
	plans          bool   // before it changes anything
}

// choose makes the tools of a kind of agents; mu is held.
func (t *toolsets) choose(full *tools.Set, k kind) *tools.Set {
	set, _ := full.Only(t.names(full, k)...) // names of its own
	if more, err := set.With(ask.NewPlan()); err == nil && k.plans {
		set = more
	}
	if k.Type == address.Subagent && k.definition != "" {
		return set
	}
	list := slices.Concat(families, t.offered.Rare)
	if k.Type != address.User {
		list = append(list, inBackground...)
	}
	if k.Type != address.User || !t.offered.Small {
		list = append(list, t.offered.Servers...)
	}
	subs, _ := t.registry.List()
	if len(subs) > 0 {
		var names []string
		for _, def := range subs {
			names = append(names, def.Name)
		}
		list = append(list, tools.Family{Name: "sub-agents (" + strings.Join(names, ", ") + ")", Tools: names})
	}
	if behind, err := set.Behind(list...); err == nil { // only a sub-agent could be called like the search
		set = behind
	}

	return set
}

// each calls yield with every tool, and whose prompts have it: as control.ToolInfo says it.
func (t *toolsets) each(yield func(s tools.Spec, prompt string)) {
	full := t.all()
	t.mu.Lock()
	users := t.choose(full, kind{Type: address.User, speaks: true, reacts: true})
	others := t.choose(full, kind{Type: address.Permanent})
	t.mu.Unlock()
	told := map[string]string{}
	for s := range users.Told {
		told[s.Name] = "user"
	}
	for s := range others.Told {
		told[s.Name] = "all"
	}
	for s := range users.All() {
		yield(s, cmp.Or(told[s.Name], "search"))
	}
}

// families are the tools that an agent rarely needs: its model finds them by a search.
var families = []tools.Family{
	{Name: "scheduled tasks and reminders", Tools: []string{"add_cron", "cron_list", "cron_read_task", "cron_update", "cron_run",
		"cron_delete_task", "cron_read_memory", "cron_write_memory"}},
	{Name: "heartbeat", Tools: []string{"heartbeat_add", "heartbeat_list", "heartbeat_run", "heartbeat_remove"}},
	{Name: "patches", Tools: []string{"apply_patch"}},
	{Name: "notes", Tools: []string{"memory_get", "memory_list"}},
	{Name: "other agents and their sessions", Tools: []string{"spawn", "sessions_send", "agents_list", "agent_status", "agent_stop",
		"sessions_list", "sessions_history", "sessions_status", "subagents", "create_permanent_agent"}},
	{Name: "permissions", Tools: []string{"grant_permission"}},
}

// inBackground are those that agents in the background rarely need as well.
var inBackground = []tools.Family{
	{Name: "finding files and text (ls, glob, grep)", Tools: []string{"ls", "glob", "grep"}},
	{Name: "background processes", Tools: []string{"process"}},
	{Name: "web", Tools: []string{"web_fetch", "web_search"}},
	{Name: "notes", Tools: []string{"memory_search", "memory_write"}},
	{Name: "other agents and their sessions", Tools: []string{"start_background_agent"}},
	{Name: "permissions", Tools: []string{tools.RequestPermission}},
}

const reaction = "set_reaction"

// names are those of the tools that a kind of agent may have.
func (t *toolsets) names(full *tools.Set, k kind) []string {
	if k.Type == address.Subagent && k.definition != "" {
		def, _ := t.registry.Get(k.definition) // one that is gone leaves no tools
		if slices.ContainsFunc(def.Tools, func(name string) bool { return strings.HasPrefix(name, "mcp__") }) {
			return append(slices.Clone(def.Tools), mcp.AnswerTool)
		}
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
		case k.Type == address.User && (k.reacts || !slices.Contains(peers.ToChat, name)):
			names = append(names, name)
		case k.Type == address.User && name != reaction && k.speaks:
			names = append(names, name)
		case slices.Contains(peers.ToChat, name):
		case k.Type == address.Subagent && (agent[name] || subagent.Forbidden(name)):
		default:
			names = append(names, name)
		}
	}

	return names
}
