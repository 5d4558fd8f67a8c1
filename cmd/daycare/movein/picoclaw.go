package movein

import (
	"encoding/json"
	"path"
	"strings"
	"time"

	"daycare/engine/schedule"
)

// A picoHome is the folder of picoclaw.
type picoHome struct{ *home }

// picoclaw reads the folder of picoclaw (~/.picoclaw), or its workspace folder alone.
//
// The formats are those of its repository, github.com/sipeed/picoclaw: the README (the layout of
// a workspace), pkg/cron/service.go (cron/jobs.json), and pkg/memory/jsonl.go (sessions: a file
// of messages, one a line, and a .meta.json with a summary and how many lines it stands for).
func picoclaw(of *home) {
	h := picoHome{of}
	for _, at := range []string{".", "workspace"} {
		h.clawWorkspace(at, "picoclaw")
		h.jobs("picoclaw", path.Join(at, "cron/jobs.json"))
		h.picoSessions(path.Join(at, "sessions"))
	}

	h.skills("skills")

	for _, name := range []string{"config.json", ".security.yml", "auth.json"} {
		if h.has(name) {
			h.skip("settings", name, "keys, channels, allow lists and permissions: %s", ownWay)
		}
	}
}

// A picoMeta is what a session has beside its messages.
type picoMeta struct {
	Key     string `json:"key"`
	Summary string `json:"summary"`
	Skip    int    `json:"skip"` // how many lines the summary stands for
}

// A picoLine is one message of a session.
type picoLine struct {
	Role      string            `json:"role"`
	Content   words             `json:"content"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
	CreatedAt string            `json:"created_at"`
}

// picoSessions takes the conversations of a folder.
func (h picoHome) picoSessions(at string) {
	taken := 0
	for _, e := range h.list("conversation", at) {
		rel := path.Join(at, e.Name())
		id, isTalk := strings.CutSuffix(e.Name(), ".jsonl")
		switch {
		case e.IsDir():
		case isTalk && taken >= maxTalks:
			h.skip("conversation", at, "it has more than %d conversations", maxTalks)
			return
		case isTalk:
			taken++
			h.picoSession(at, id)
		case strings.HasSuffix(e.Name(), ".json") && !strings.HasSuffix(e.Name(), ".meta.json"):
			h.skip("conversation", rel, "an older format: start picoclaw once to convert it to .jsonl")
		}
	}
}

func (h picoHome) picoSession(at, id string) {
	rel := path.Join(at, id+".jsonl")
	meta := picoMeta{Key: id}
	if data, ok := h.read("conversation", path.Join(at, id+".meta.json"), maxJobs); ok {
		if err := json.Unmarshal(data, &meta); err != nil {
			h.skip("conversation", rel, "%s", jsonError(path.Join(at, id+".meta.json"), data, 0, err))
			return
		}
	}

	all, torn, ok := lines[picoLine](h.home, "conversation", rel)
	if !ok {
		return
	}
	if ofMachine(meta.Key) {
		h.skip("conversation", rel, "a run of a job, not a conversation")
		return
	}

	key := strings.TrimPrefix(meta.Key, "agent:main:")
	t := talk{id: idOf("picoclaw", "session/"+id), name: schedule.Slug("picoclaw " + key),
		summary: strings.TrimSpace(meta.Summary), torn: torn}
	for _, m := range all[min(max(meta.Skip, 0), len(all)):] {
		t.left += m.Content.left + len(m.ToolCalls)
		if text := strings.TrimSpace(m.Content.text); text != "" && (m.Role == "user" || m.Role == "assistant") {
			when, _ := time.Parse(time.RFC3339, m.CreatedAt) // zero: it does not say
			t.say(when, m.Role == "assistant", text)
		}
	}

	h.talk(rel, t)
}
