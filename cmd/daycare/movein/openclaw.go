package movein

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/schedule"
)

// A clawHome is the folder of OpenClaw.
type clawHome struct{ *home }

// openclaw reads the state folder of OpenClaw (~/.openclaw), or a workspace folder alone.
//
// The formats are those of its documentation: docs.openclaw.ai/concepts/agent-workspace (the
// files of a workspace), /automation/cron-jobs (cron/jobs.json), /reference/session-management-compaction
// (agents/ID/sessions: sessions.json and transcripts), /tools/skills.
func openclaw(of *home) {
	h := clawHome{of}
	found := false
	for _, at := range []string{".", "workspace"} {
		if h.has(path.Join(at, "SOUL.md")) || h.has(path.Join(at, "AGENTS.md")) || h.has(path.Join(at, "MEMORY.md")) {
			h.clawWorkspace(at, "openclaw")
			h.note(path.Join(at, "MEMORY.md"), "MEMORY.md")
			found = true
		}
	}

	h.skills("skills")
	h.jobs("openclaw", "cron/jobs.json")
	for _, e := range h.list("conversation", "agents") {
		if e.IsDir() {
			h.transcripts(e.Name())
		}
	}

	h.notOpenclaw(found)
}

// clawWorkspace takes the files that a workspace of OpenClaw and one of picoclaw have in common.
func (h *home) clawWorkspace(at, program string) {
	in := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, path.Join(at, name))
		}
		return all
	}
	h.prompt("SOUL.md", in("SOUL.md", "IDENTITY.md")...)
	h.prompt("USER.md", in("USER.md")...)
	h.prompt("AGENTS.md", in("AGENT.md", "AGENTS.md", "TOOLS.md")...)
	h.heartbeat(path.Join(at, "HEARTBEAT.md"), program)
	h.memory(path.Join(at, "memory"), "")
	if at != "." {
		h.skills(path.Join(at, "skills"))
	}

	for _, name := range in("BOOT.md", "BOOTSTRAP.md") {
		if h.has(name) {
			h.skip("prompt", name, "the other program uses it only when it starts")
		}
	}
}

// notOpenclaw tells what is never taken of OpenClaw's folder.
func (h clawHome) notOpenclaw(found bool) {
	if h.has("openclaw.json") {
		h.skip("settings", "openclaw.json", "keys, channels, allow lists and permissions: "+ownWay)
		if !found {
			h.skip("prompt", "openclaw.json", "the workspace is in another folder: import that folder as well")
		}
	}

	for _, name := range []string{"credentials", "identity", "devices", ".env"} {
		if h.has(name) {
			h.skip("secrets", name, ownWay)
		}
	}

	for _, e := range h.list("prompt", ".") {
		if e.IsDir() && strings.HasPrefix(e.Name(), "workspace-") {
			h.skip("prompt", e.Name(), "the workspace of another agent: import it into a separate workspace")
		}
	}
}

// ownWay is how to set what is never taken.
const ownWay = "set yours with daycare auth set and in .daycare/settings.yaml"

// A session is a value of sessions.json.
type session struct {
	SessionID string `json:"sessionId"`
}

// transcripts takes the conversations of an agent: those that sessions.json names, else all.
func (h clawHome) transcripts(agent string) {
	dir := path.Join("agents", agent, "sessions")
	if !h.has(dir) {
		return
	}
	keys, indexed := h.sessionKeys(path.Join(dir, "sessions.json"))
	taken, over, machine := 0, 0, 0
	for _, e := range h.list("conversation", dir) {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || e.IsDir() {
			continue
		}
		key, named := keys[id]
		switch {
		case indexed && !named:
			over++
			continue
		case ofMachine(key):
			machine++
			continue
		case taken >= maxTalks:
			h.skip("conversation", dir, "it has more than %d conversations", maxTalks)
			return
		}
		taken++
		h.transcript(path.Join(dir, e.Name()), id, talkName(agent, key, id))
	}

	if over > 0 {
		h.skip("conversation", dir, "%s not listed in sessions.json (ended)",
			term.Plural(over, "conversation", "conversations"))
	}
	if machine > 0 {
		h.skip("conversation", dir, "%s of jobs, hooks and sub-agents", term.Plural(machine, "run", "runs"))
	}
}

// sessionKeys reads which conversation each transcript is. ok is false without the file.
func (h clawHome) sessionKeys(rel string) (keys map[string]string, ok bool) {
	data, ok := h.read("conversation", rel, maxJobs)
	if !ok {
		return nil, false
	}
	var all map[string]session
	if err := json.Unmarshal(data, &all); err != nil {
		h.skip("conversation", rel, "%s", jsonError(rel, data, 0, err))
		return nil, false
	}

	keys = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if id := all[key].SessionID; id != "" && keys[id] == "" {
			keys[id] = key
		}
	}

	return keys, true
}

// ofMachine reports a conversation that no user has.
func ofMachine(key string) bool {
	for _, part := range strings.Split(key, ":") {
		if part == "cron" || part == "hook" || part == "subagent" || part == "acp" || part == "heartbeat" {
			return true
		}
	}

	return false
}

// talkName is what the agent of a conversation is called.
func talkName(agent, key, id string) string {
	rest := strings.TrimPrefix(key, "agent:"+agent+":")
	if rest == "" {
		rest = id
	}
	if agent != "main" {
		rest = agent + " " + rest
	}

	return schedule.Slug("openclaw " + rest)
}

// An entry is a line of a transcript: a node of a tree of messages.
type entry struct {
	Type      string          `json:"type"` // session, message, compaction, custom, …
	ID        string          `json:"id"`
	ParentID  string          `json:"parentId"`
	Timestamp string          `json:"timestamp"`
	Message   *transcriptLine `json:"message"`
	Summary   string          `json:"summary"`          // of a compaction
	FirstKept string          `json:"firstKeptEntryId"` // of a compaction
}

type transcriptLine struct {
	Role    string `json:"role"`
	Content words  `json:"content"`
}

// transcript takes one conversation: the branch that its newest message is on.
func (h clawHome) transcript(rel, id, name string) {
	all, torn, ok := lines[entry](h.home, "conversation", rel)
	if !ok {
		return
	}
	t := talk{id: idOf("openclaw", "session/"+id), name: name, torn: torn}
	branch := branchOf(all)
	for _, e := range branch {
		if e.Type == "compaction" {
			t.summary = e.Summary
			t.said, t.left = nil, 0
			t.take(keptBefore(branch, e))
		}
		t.take([]entry{e})
	}

	h.talk(rel, t)
}

// take adds what was said in those entries that are messages.
func (t *talk) take(entries []entry) {
	for _, e := range entries {
		if e.Type != "message" || e.Message == nil {
			continue
		}
		t.left += e.Message.Content.left
		text := strings.TrimSpace(e.Message.Content.text)
		if role := e.Message.Role; text == "" || role != "user" && role != "assistant" {
			continue
		}

		at, _ := time.Parse(time.RFC3339, e.Timestamp) // zero: it does not say
		t.say(at, e.Message.Role == "assistant", text)
	}
}

// keptBefore are the entries before a compaction that it left as they are.
func keptBefore(branch []entry, compaction entry) []entry {
	end := slices.IndexFunc(branch, func(e entry) bool { return e.ID == compaction.ID })
	begin := slices.IndexFunc(branch, func(e entry) bool { return e.ID == compaction.FirstKept })
	if compaction.FirstKept == "" || begin < 0 || begin > end {
		return nil
	}

	return branch[begin:end]
}

// branchOf is the way from the first entry to the newest one. Without ids it is all entries.
func branchOf(all []entry) (branch []entry) {
	byID := map[string]int{}
	newest := -1
	for n, e := range all {
		if e.ID != "" && e.Type != "session" {
			byID[e.ID] = n
			newest = n
		}
	}

	if newest < 0 {
		return all
	}
	seen := map[int]bool{}
	for at, ok := newest, true; ok && !seen[at]; at, ok = byID[all[at].ParentID] {
		seen[at] = true
		branch = append(branch, all[at])
	}

	slices.Reverse(branch)
	return branch
}
