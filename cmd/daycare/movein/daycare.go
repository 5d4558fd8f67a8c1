package movein

import (
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/folders"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/schedule"
	"daycare/engine/slash"
	"daycare/engine/workspace"
)

// A otherHome is another workspace of daycare.
type otherHome struct{ *home }

// daycare reads another workspace of daycare (docs/files.md), or its .daycare folder.
func daycare(of *home) {
	h := otherHome{of}
	at := "."
	if h.has(workspace.Home) {
		at = workspace.Home
	}

	for _, name := range []string{"SOUL.md", "USER.md", "AGENTS.md"} {
		h.prompt(name, path.Join(at, name))
	}

	h.memory(path.Join(at, "memory"), "")
	h.skills(path.Join(at, "skills"))
	h.forms("command", path.Join(at, "commands"), "commands", func(name, text string) []finding.Finding {
		_, found := slash.Parse(name, []byte(text))
		return found
	})

	h.forms("sub-agent", path.Join(at, "subagents"), "subagents", nil)
	h.ownTasks(path.Join(at, "cron"))
	h.ownBeats(path.Join(at, "heartbeat"))
	h.ownAgents(path.Join(at, "agents"))

	for _, name := range []string{"settings.yaml", "auth.json", "tokens.json", "permissions", "folders.json"} {
		if rel := path.Join(at, name); h.has(rel) {
			h.skip("settings", rel, "keys, connectors, allow lists and permissions: %s", ownWay)
		}
	}
}

// forms takes the Markdown files of a folder as they are. check finds what is wrong in one.
func (h otherHome) forms(what, at, to string, check func(name, text string) []finding.Finding) {
	for _, rel := range h.markdown(what, at, 1) {
		text, ok := h.text(what, rel, maxText)
		if !ok {
			continue
		}
		if check != nil {
			if found := check(path.Base(rel), text); finding.Join(found) != nil {
				h.skip(what, rel, "%s", within(rel, found))
				continue
			}
		}

		h.add(item{what: what, from: rel, put: file{dir: to, name: strings.TrimSuffix(path.Base(rel), ".md"), ext: ".md",
			content: text, beside: check != nil}})
	}
}

// ownTasks takes tasks under their own ids, without gates: a gate is a command.
func (h otherHome) ownTasks(at string) {
	for _, e := range h.list("task", at) {
		rel := path.Join(at, e.Name(), "TASK.md")
		if !e.IsDir() || !schedule.ValidSlug(e.Name()) {
			continue
		}
		text, ok := h.text("task", rel, maxText)
		if !ok {
			continue
		}

		t, found := schedule.DecodeTask(rel, e.Name(), []byte(text), time.Local)
		if err := finding.Join(found); err != nil {
			h.skip("task", rel, "%s", within(rel, found))
			continue
		}
		if t.ID == "" {
			t.ID = idOf("daycare", "task/"+e.Name())
		}

		timing := t.When.Timing()
		change := schedule.Change{Name: &t.Name, Prompt: &t.Prompt, Timing: &timing, CatchUp: &t.CatchUp,
			DeleteAfterRun: &t.DeleteAfterRun}
		if t.Name == "" {
			t.Name = t.Slug
		}

		given := func(to **string, v string) {
			if v != "" {
				*to = &v
			}
		}
		given(&change.Description, t.Description)
		given(&change.Timezone, t.Timezone)
		given(&change.Agent, t.Agent)
		if len(t.Watch) > 0 {
			change.Watch = &t.Watch
		}

		i := item{what: "task", from: rel, put: task{id: t.ID, change: change, enabled: t.Enabled}}
		if t.Gate != nil || t.WatchCommand != "" {
			i.note = "without gate and watchCommand, which run commands: add them by hand"
		}
		h.add(i)
	}
}

// ownBeats takes items of the heartbeat, without gates.
func (h otherHome) ownBeats(at string) {
	for _, rel := range h.markdown("heartbeat", at, 1) {
		text, ok := h.text("heartbeat", rel, maxText)
		if !ok {
			continue
		}
		slug := strings.TrimSuffix(path.Base(rel), ".md")
		p, found := schedule.DecodePrompt(rel, slug, []byte(text))
		if finding.Join(found) != nil {
			h.skip("heartbeat", rel, "%s", within(rel, found))
			continue
		}
		if p.Title == "" {
			p.Title = slug
		}

		i := item{what: "heartbeat", from: rel, put: beat{name: p.Title, text: p.Text, enabled: p.Enabled}}
		if p.Gate != nil || p.WatchCommand != "" || len(p.Watch) > 0 || p.Hours != (schedule.Hours{}) {
			i.note = "without its gate, active hours and watches: add them by hand"
		}
		h.add(i)
	}
}

// ownAgents takes agents with their histories and inboxes, and the rights of a new agent.
func (h otherHome) ownAgents(at string) {
	for _, e := range h.list("agent", at) {
		if !e.IsDir() || !address.ValidID(e.Name()) {
			continue
		}
		rel := path.Join(at, e.Name())
		text, ok := h.text("agent", path.Join(rel, address.File), maxText)
		if !ok {
			continue
		}

		d, found := address.Decode(path.Join(rel, address.File), []byte(text))
		if finding.Join(found) != nil {
			h.skip("agent", rel, "%s", within(path.Join(rel, address.File), found))
			continue
		}
		if d.Type == address.Subagent || d.Type == address.Heartbeat {
			h.skip("agent", rel, "agents of type %s are created again when needed", d.Type)
			continue
		}

		other := schedule.Slug(address.NameOf(d) + " of " + filepath.Base(strings.TrimSuffix(h.dir, "/"+workspace.Home)))
		a := agent{id: e.Name(), descriptor: d, other: other}
		a.archive = func(w *here, d address.Descriptor, to io.Writer) error { return h.exported(w, at, e.Name(), d, to) }
		h.add(item{what: "agent", from: rel, put: a,
			note: fmt.Sprintf("agent %s, with the permissions of a new agent", address.NameOf(d))})
	}
}

// exported writes an agent of the home as an export does.
func (h otherHome) exported(w *here, at, id string, d address.Descriptor, to io.Writer) error {
	agents, err := beneath.Sub(h.root, at)
	if err != nil {
		return err
	}
	defer agents.Close()

	return folders.ExportFrom(agents, id, to, func(file string, data []byte) ([]byte, error) {
		switch file {
		case address.File:
			return address.Encode(d)
		case "state.json":
			return record.ChangeState(w.at, data, func(s *record.State) {
				rights := permission.Default(w.at.Dir)
				s.Permissions, s.Announced, s.Provider = rights, &rights, record.Model{}
			})
		}

		return data, nil
	})
}
