package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"daycare/agents"
	"daycare/agents/prompt"
	"daycare/agents/subagent"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/changes"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/message"
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
	rep.Settle = func(turn string) { worktrees{r.Daemon}.merge(meta, turn) }

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
	parent, err := r.family.State(context.Background(), by)
	if err != nil && !errors.Is(err, message.ErrUnknownAgent) { // of one that was removed nothing is inherited
		return s, err
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
	if w := (worktrees{r.Daemon}); w.wanted(d) {
		return w.in(d, s)
	}

	return s, nil
}

// known is the part of a system prompt that follows from the agent's tools and
// definition.
func (r factory) known(meta address.Meta, plans bool, p prompt.Definition) prompt.Definition {
	names := r.toolset.of(meta, plans).Names()
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

// worktrees let background agents work in copies of their parents' folders. What an agent changed there is merged into the
// folder when a turn of it is done, like an apply of a dry run: kill-safe, each file whole, texts that changed on both sides
// with both changes. What does not fit stays in the copy, where daycare changes shows it. No git runs for that: the folder
// may be any, and what agents can write in a repository, or a repository brings along, makes git run programs.
type worktrees struct{ *Daemon }

// wanted reports whether a new agent gets a worktree: one that was asked for, or any background agent if the settings say so.
func (w worktrees) wanted(d address.Descriptor) bool {
	return d.Worktree || w.settings.Current().Agents.Worktrees && d.Definition == ""
}

// in has a new agent work in a copy of its folder: the one that was made for it, if a crash cut its start.
func (w worktrees) in(d address.Descriptor, s record.State) (record.State, error) {
	if w.under(s.Permissions).Profile == permission.DryRun {
		return s, nil // its copy is its parent's
	}
	shelf, err := changes.List(w.at)
	if err != nil {
		return s, fmt.Errorf("make worktree: %w", err)
	}
	i := slices.IndexFunc(shelf.Copies, func(c changes.Copy) bool { return c.Agent == d.ID })
	if i >= 0 {
		s.Permissions.WorkingDir = shelf.Copies[i].Tree()
		return s, nil
	}
	made, err := changes.Make(context.Background(), w.at, s.Permissions.WorkingDir, d.ID, disk.StampOf(crash.Now()))
	if err != nil {
		return s, fmt.Errorf("make worktree: %w", err)
	}
	s.Permissions.WorkingDir = made.Tree()

	return s, nil
}

// of is the worktree of an agent, and that it has one.
func (w worktrees) of(id string) (c changes.Copy, ok bool) {
	state, _, err := record.CurrentState(w.vol, filepath.Join(w.at.Data, "agents", id))
	if err != nil || state.Permissions.Profile == permission.DryRun {
		return c, false
	}
	c, ok = changes.Of(state.Permissions.WorkingDir)

	return c, ok && c.Agent == id
}

// merge brings what an agent did in its worktree into the folder, and notifies its parent. Nothing is lost if that fails.
func (w worktrees) merge(meta address.Meta, turn string) {
	c, ok := w.of(meta.ID)
	if !ok {
		return
	}
	said, err := w.merged(c, meta)
	if err != nil {
		w.log.Warn("worktree not merged", "agent", meta.ID, "err", err)
		said = fmt.Sprintf("What %s changed could not be merged: %v", meta.Handle, err)
	}
	if said == "" {
		return
	}
	key := "worktree:" + meta.ID + ":" + turn
	if err := w.family.Note(context.Background(), meta.Descriptor.ParentAgentID, "agent "+meta.Handle, key, said); err != nil {
		w.log.Warn("an agent was not notified of a merge", "agent", meta.Descriptor.ParentAgentID, "err", err)
	}
}

// merged says what was merged and what was not; "": nothing differs.
func (w worktrees) merged(c changes.Copy, meta address.Meta) (string, error) {
	parent, err := w.family.Grants(context.Background(), meta.Descriptor.ParentAgentID)
	if err != nil {
		return "", err
	}
	if !w.under(parent).Allows(permission.Write{Path: c.Of}) {
		return "", fmt.Errorf("its parent must not write to %s", c.Of)
	}
	w.merging.Lock()
	defer w.merging.Unlock()
	var merged, left []string
	for range mergeTries {
		again := false
		more, not, err := w.apply(c)
		if err != nil {
			return "", err
		}
		merged, left = append(merged, more...), nil
		for _, r := range not {
			left = append(left, fmt.Sprintf("%s (%s)", r.Path, r.Why))
			again = again || r.Why == changes.Meanwhile
		}
		if !again {
			break
		}
	}

	var said []string
	if len(merged) > 0 {
		said = append(said, fmt.Sprintf("What %s changed is merged into %s: %s.", meta.Handle, c.Of, names(merged)))
	}
	if len(left) > 0 {
		said = append(said, fmt.Sprintf("Not merged: %s. It is in the worktree; the user sees it with: daycare changes --agent %s",
			names(left), meta.Handle))
	}

	return strings.Join(said, "\n"), nil
}

// mergeTries is how often a merge is tried again because a file changed in that moment.
const mergeTries = 3

// apply merges all that fits.
func (w worktrees) apply(c changes.Copy) (merged []string, left []changes.Result, err error) {
	ctx := context.Background()
	list, err := c.Changes(ctx)
	if err != nil {
		return nil, nil, err
	}
	list = slices.DeleteFunc(list, func(one changes.Change) bool {
		if one.Later {
			left = append(left, changes.Result{Step: changes.Step{Path: one.Path}, Outcome: changes.Refused,
				Why: "it runs something later, or tells programs what to run"})
		}
		return one.Later
	})
	results, err := c.Apply(ctx, list, true)
	for _, r := range results {
		if r.Outcome == changes.Refused {
			left = append(left, r)
		} else {
			merged = append(merged, r.Path)
		}
	}

	return merged, left, err
}

// names lists paths, not all of many.
func names(paths []string) string {
	const most = 50
	if more := len(paths) - most; more > 0 {
		return strings.Join(paths[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}

	return strings.Join(paths, ", ")
}

// drop removes the worktree of an agent that has ended, unless something in it is not merged.
func (w worktrees) drop(ctx context.Context, id string) {
	c, ok := w.of(id)
	if !ok {
		return
	}
	list, err := c.Changes(ctx)
	if err == nil && len(list) == 0 {
		err = c.Remove()
	}
	if err != nil {
		w.log.Warn("the worktree of an agent that has ended stays", "agent", id, "folder", c.Dir, "err", err)
	}
}
