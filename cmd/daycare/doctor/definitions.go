package doctor

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"daycare/agents/budget"
	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/agents/subagent"
	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/peers"
	"daycare/cmd/daycare/term"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/slash"
	"daycare/engine/unseen"
	"daycare/tools/skills"
)

// checkDefinitions looks at what users write for agents: sub-agents, skills, persona.
func checkDefinitions(d *doctor) error {
	subagent.NewRegistry(filepath.Join(d.at.Data, "subagents"), func(string) bool { return false },
		func(_ string, found []finding.Finding) { d.add(found...) }).List()
	folders := daemon.SkillFolders(d.at, permission.NewFolders(d.at.Dir).Writable)[:2] // those of the workspace
	skills.NewSet(func() []skills.Folder { return folders }, nil, func(_ string, found []finding.Finding) { d.add(found...) }).List()
	_, found := slash.List(d.at)
	d.add(found...)
	texts, found := prompt.Load(d.at, nil)
	d.add(found...)

	for i, text := range []string{texts.Soul, texts.User, texts.Rules, texts.Agents, texts.Claude} {
		if at, bad := notText([]byte(text)); bad {
			line, _ := finding.Position([]byte(text), at)
			d.report(finding.Warning, "persona-not-text", prompt.Paths(d.at)[i], line,
				"not UTF-8 text, but part of every prompt", "Save it as UTF-8.")
		}
	}

	return nil
}

// checkSkillFolders looks whether agents' folders are those that they were given.
func checkSkillFolders(d *doctor) error {
	folders, err := permission.OpenFolders(nil, d.at, func(string, error) {})
	if err != nil {
		d.report(finding.Error, "folders-unreadable", filepath.Join(d.at.Data, permission.FoldersFile), 0, err.Error(),
			"Delete it: daycare then pins every granted folder again.")
		return nil
	}

	for _, r := range folders.Check() {
		d.add(daemon.FolderReplaced(r.Path, r))
	}

	return nil
}

// checkUnseen looks for texts that agents' commands changed and nobody has seen.
func checkUnseen(d *doctor) error {
	texts, err := unseen.Open(nil, d.at)
	if err != nil {
		d.report(finding.Error, "unseen-unreadable", filepath.Join(d.at.Data, unseen.Dir), 0, err.Error(), "Delete the file it names.")
		return nil
	}

	waiting := texts.Waiting()
	for _, path := range slices.Sorted(maps.Keys(waiting)) {
		d.add(waiting[path].Finding(path))
	}

	return nil
}

// notText is where data stops being UTF-8 text.
func notText(data []byte) (at int64, bad bool) {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 || r == 0 {
			return int64(i), true
		}
		i += n
	}

	return 0, false
}

// checkUsage looks whether the budgets know of all that histories say was spent.
func checkUsage(d *doctor) error {
	if servers, err := peers.Membership(d.at.Data); d.conf.Cluster.On() || len(servers) > 0 || err != nil {
		return nil // histories have calls of other machines, which these count
	}
	dir := filepath.Join(d.at.Data, "usage")
	missing, err := budget.Missing(dir, readCalls(d))
	if err != nil {
		d.report(finding.Error, "file-unreadable", dir, 0, err.Error(), "Check who owns the file and its mode.")
		return nil
	}

	days := map[string][]budget.Call{}
	for _, c := range missing {
		days[budget.Day(c.At)] = append(days[budget.Day(c.At)], c)
	}

	for day, calls := range days {
		d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "usage-missing", Severity: finding.Info,
			File: filepath.Join(dir, day),
			Reason: fmt.Sprintf("%s of that day in histories but not here: budgets do not include them",
				term.Plural(len(calls), "request", "requests")),
			Remedy: "doctor --fix adds them from the histories."},
			fix: func(*repairer) error { return budget.Add(dir, calls) }})
	}

	return nil
}

// readCalls are the requests that agents made, as their histories say. What a fork took
// along from another, and what is in a copy too, was that other's.
func readCalls(d *doctor) (calls []budget.Call) {
	seen := map[string]bool{}
	for _, m := range d.index.All() {
		dir := filepath.Join(d.at.Data, "agents", m.ID)
		state, _, _, err := record.ReadState(dir)
		if err != nil {
			state.CreatedAt = disk.Stamp{} // told elsewhere
		}

		// The check of histories reports what cannot be read.
		_ = record.Spent(dir, state.CreatedAt.Time, func(s record.Spend) {
			if seen[s.Call] {
				return
			}
			seen[s.Call] = true
			calls = append(calls, budget.Call{At: s.At, Agent: m.ID, Above: agentsAbove(d, m.ID), Provider: s.Provider,
				Model: s.Model, Cost: s.Cost,
				Usage: providers.Usage{Input: s.Tokens.Input, Output: s.Tokens.Output, CacheRead: s.Tokens.CacheRead,
					CacheWrite: s.Tokens.CacheWrite, Estimated: s.Tokens.Estimated}})
		})
	}

	return calls
}

// agentsAbove are the ancestors of an agent, the oldest last.
func agentsAbove(d *doctor, id string) (line []string) {
	for m, ok := d.index.Get(id); ok && m.Descriptor.ParentAgentID != ""; m, ok = d.index.Get(m.Descriptor.ParentAgentID) {
		if slices.Contains(line, m.Descriptor.ParentAgentID) {
			return line // a circle, made by hand
		}
		line = append(line, m.Descriptor.ParentAgentID)
	}

	return line
}
