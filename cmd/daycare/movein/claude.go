package movein

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"daycare/agents/subagent"
	"daycare/cmd/daycare/term"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/slash"
)

// A claudeHome is the folder of Claude Code.
type claudeHome struct{ *home }

// claude reads the user's folder of Claude Code (~/.claude), or a project that it worked in.
//
// The formats are those of its documentation: code.claude.com/docs/en/memory (CLAUDE.md and the
// notes below projects/NAME/memory), /en/slash-commands, /en/skills, /en/sub-agents, /en/settings.
// Conversations are not taken: /en/sessions calls their format internal, and it changes.
func claude(of *home) {
	h := claudeHome{of}
	at := "."
	if h.has(".claude") {
		at = ".claude"
	}

	from := []string{"CLAUDE.md", "CLAUDE.local.md"}
	if at != "." {
		from = slices.Insert(from, 1, path.Join(at, "CLAUDE.md"))
	}

	h.prompt("AGENTS.md", from...)
	h.commands(path.Join(at, "commands"))
	h.skills(path.Join(at, "skills"))
	for _, rel := range h.markdown("sub-agent", path.Join(at, "agents"), maxDepth) {
		h.subAgent(rel)
	}

	h.projects(path.Join(at, "projects"))
	h.notClaude(at)
}

// projects imports the notes of each project, and reports its conversations.
func (h claudeHome) projects(at string) {
	talks := 0
	for _, e := range h.list("memory", at) {
		if !e.IsDir() {
			continue
		}
		rel := path.Join(at, e.Name())
		for _, f := range h.list("memory", rel) {
			if strings.HasSuffix(f.Name(), ".jsonl") {
				talks++
			}
		}

		h.memory(path.Join(rel, "memory"), path.Join("claude", strings.Trim(e.Name(), "-")))
	}

	if talks > 0 {
		h.skip("conversation", at, "%s: the format is internal to the other program and changes",
			term.Plural(talks, "conversation", "conversations"))
	}
}

// notClaude tells what is never taken.
func (h claudeHome) notClaude(at string) {
	for _, f := range []struct{ name, why string }{
		{path.Join(at, "settings.json"), "permissions, hooks and environment: " + ownWay},
		{path.Join(at, "settings.local.json"), "permissions, hooks and environment: " + ownWay},
		{path.Join(at, ".credentials.json"), "keys: " + ownWay},
		{".mcp.json", "MCP servers: copy the file into the workspace, then daycare mcp trust .mcp.json"},
		{path.Join(at, "rules"), "rules for some files: put what you need into .daycare/AGENTS.md"},
		{path.Join(at, "hooks"), "programs that the other program runs on its own"},
		{path.Join(at, "plugins"), "plugins of the other program"},
	} {
		if h.has(f.name) {
			h.skip("settings", f.name, "%s", f.why)
		}
	}
}

// commands takes slash commands. One in a folder has both names: /git:fix.
func (h claudeHome) commands(at string) {
	for _, rel := range h.markdown("command", at, 2) {
		text, ok := h.text("command", rel, maxText)
		if !ok {
			continue
		}
		name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(rel, at+"/"), ".md"), "/", ":")
		if _, found := slash.Parse(name+".md", []byte(text)); finding.Join(found) != nil {
			h.skip("command", rel, "%s", within(rel, found))
			continue
		}

		i := item{what: "command", from: rel, put: file{dir: "commands", name: name, ext: ".md", content: text, beside: true}}
		if strings.Contains(text, "!`") {
			i.note = "the commands in it (!`…`) are plain text here and do not run"
		}
		h.add(i)
	}
}

// within is what is wrong with a file, under its name in the home.
func within(rel string, found []finding.Finding) string {
	for i := range found {
		found[i].File = rel
		found[i].Remedy = ""
	}

	return finding.Join(found).Error()
}

// toolNames are what daycare calls the tools of Claude Code.
var toolNames = map[string]string{"Read": "read", "Write": "write", "Edit": "edit", "MultiEdit": "edit", "Grep": "grep",
	"Glob": "glob", "LS": "ls", "Bash": "exec", "WebFetch": "web_fetch", "WebSearch": "web_search"}

// subAgent takes a sub-agent, with the tools that daycare has as well.
func (h claudeHome) subAgent(rel string) {
	text, ok := h.text("sub-agent", rel, maxText)
	if !ok {
		return
	}
	var keys subAgentFile
	f := subAgentKind.Front(rel, []byte(text))
	f.Read(&keys)
	if finding.Join(f.Found) != nil {
		h.skip("sub-agent", rel, "%s", within(rel, f.Found))
		return
	}

	names, missing := toolsOf(strings.Split(strings.Join(keys.Tools, ","), ","))
	description, _ := json.Marshal(strings.Join(strings.Fields(keys.Description), " ")) // a string; JSON is YAML, too
	content := fmt.Sprintf("---\nname: %s\ndescription: %s\ntools: [%s]\n---\n%s\n", keys.Name, description,
		strings.Join(names, ", "), strings.ReplaceAll(f.Body, "{{", `{{"{{"}}`))
	if _, found := subagent.Parse(rel, []byte(content)); finding.Join(found) != nil {
		h.skip("sub-agent", rel, "%s", within(rel, found))
		return
	}

	i := item{what: "sub-agent", from: rel, put: file{dir: "subagents", name: keys.Name, ext: ".md", content: content}}
	if len(missing) > 0 {
		i.note = "without the tools " + strings.Join(missing, ", ")
	}
	h.add(i)
}

// subAgentKind is how a sub-agent of Claude Code is read: it has more keys, which mean nothing
// here, and its tools are a list, or words with commas.
var subAgentKind = form.Kind{ID: "claude", Keys: true, Loose: true, Wrong: finding.Info, Unknown: finding.Info}

type subAgentFile struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
}

// toolsOf are the tools here by the names that they have there. Without any, those that only look.
func toolsOf(names []string) (tools, missing []string) {
	for _, name := range names {
		name = strings.TrimSpace(name)
		known, _, _ := strings.Cut(name, "(")
		switch tool := toolNames[known]; {
		case name == "":
		case tool == "":
			missing = append(missing, name)
		case !slices.Contains(tools, tool):
			tools = append(tools, tool)
		}
	}

	if len(tools) == 0 {
		tools = []string{"read", "grep", "glob", "ls"}
	}

	return tools, missing
}
