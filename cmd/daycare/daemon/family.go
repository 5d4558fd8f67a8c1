package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"daycare/agents"
	"daycare/agents/prompt"
	"daycare/agents/subagent"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools/peers"
)

// This file ties agents to each other: who reports to whom, what a child inherits,
// what the agent of a user is shown of those that work for it.

// reports is how a child's turns are reported to its parent.
func (r factory) reports(meta address.Meta) agents.Reports {
	d := meta.Descriptor
	rep := agents.Reports{To: d.ParentAgentID, Always: d.Label != "",
		Told: func(c record.ToolCall) bool {
			ref, ok := peers.Target(c.Name, c.Arguments)
			if !ok {
				return false
			}
			to, err := r.family.Target(meta.ID, ref)

			return err == nil && to == d.ParentAgentID
		},
		Waits: func() bool { return len(r.family.Running(context.Background(), meta.ID)) > 0 },
	}
	if d.Definition != "" {
		rep.Awaited = subagent.TaskItem(meta.ID)
	}

	return rep
}

// preface tells a user's agent of those that work for it, as one line each. It
// is part of the message, not of the system prompt, because it varies.
func (r factory) preface(id string) string {
	var lines []string
	for _, a := range r.family.Running(context.Background(), id) {
		lines = append(lines, fmt.Sprintf("Your running agent: %s %q (id: %s), %s", a.Handle, a.Name, a.ID, a.State))
	}
	const most = 20
	colleagues, more := r.family.Colleagues(id, max(0, most-len(lines)))
	for _, m := range colleagues {
		about := m.Descriptor.Description
		if about != "" {
			about = ": " + about
		}
		lines = append(lines, fmt.Sprintf("Permanent colleague: %q (id: %s)%s", m.Name, m.ID, about))
	}

	if more || len(lines) > most {
		lines = append(lines[:min(most, len(lines))], "and more; list them with agents_list")
	}
	return strings.Join(lines, "\n")
}

// inherit is the first state of an agent that another one made: its model, and at
// most its rights. What a user allowed the parent for one exact request stays
// the parent's.
func (r factory) inherit(d address.Descriptor, s record.State) (record.State, error) {
	by := cmp.Or(d.ParentAgentID, d.CreatedBy)
	if by == "" {
		return s, nil
	}
	parent, _, err := record.CurrentState(r.vol, filepath.Join(r.root, "agents", by))
	if err != nil {
		return s, fmt.Errorf("read permissions of the parent: %w", err)
	}
	if d.Type != address.Subagent {
		s.Permissions = s.Permissions.Within(parent.Permissions)
		return s, nil
	}

	s.Permissions, s.Provider = parent.Permissions, parent.Provider
	s.Permissions.Grants = nil
	for _, g := range parent.Permissions.Grants {
		if g.SHA256 == "" {
			s.Permissions.Grants = append(s.Permissions.Grants, g)
		}
	}

	switch {
	case d.Model != "":
		s.Provider.Model = d.Model
	case r.settings.Current().Routing.Subagent != "":
		s.Provider.ID, s.Provider.Model = "", "" // as the settings say, not as its parent
	}

	if def, ok := r.toolset.definition(d); ok && def.Temperature != nil {
		s.Provider.Temperature = def.Temperature
	}
	return s, nil
}

// known is the part of a system prompt that follows from the agent's tools and
// definition.
func (r factory) known(meta address.Meta, p prompt.Definition) prompt.Definition {
	names := r.toolset.of(meta).Names()
	p.Peers = slices.Contains(names, "send_agent_message")
	if !slices.Contains(names, "skill") {
		p.Skills = nil
	}
	if meta.Descriptor.Definition != "" { // it works for an agent, not for the user
		p.Files.Soul, p.Files.User = "", ""
	}

	return p
}

// limits are those of the active settings.
func (r *conf) limits() engine.Limits {
	a := r.settings.Current().Agents
	return engine.Limits{Children: a.MaxChildren, Running: a.MaxRunningChildren, Spawned: a.MaxSpawned, TTL: a.SubagentTTL}
}

// overseer is the agent of the user who answers for an agent in the background.
type overseer struct {
	parts *Daemon
	id    string // of the agent in the background
}

// Owner is who may answer in a chat.
func (o overseer) Owner() permission.Owner {
	meta, ok := o.parts.family.Overseer(o.id)
	if !ok {
		return permission.Owner{}
	}
	return permission.Owner{Connector: meta.Descriptor.Connector, UserID: meta.Descriptor.UserID}
}

// Note tells the user's agent.
func (o overseer) Note(key, text string) error {
	meta, ok := o.parts.family.Overseer(o.id)
	if !ok {
		return nil // nobody to tell yet; the request is shown where users look
	}
	return o.parts.family.Note(context.Background(), meta.ID, o.id, key, text)
}
