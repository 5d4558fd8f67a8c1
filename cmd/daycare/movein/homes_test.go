package movein

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/address"
	"daycare/engine/record"
	"daycare/engine/schedule"
	"daycare/engine/workspace"
)

// many are as many files as n, of names with a number.
func many(n int, name, text string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf(name, i)] = text
	}

	return files
}

const (
	skillText = "---\nname: x\ndescription: d\n---\nx\n"
	hi        = `{"type":"message","id":"1","message":{"role":"user","content":"hi"}}` + "\n"
	picoHi    = `{"role":"user","content":"hi"}` + "\n"
)

// What is taken of a home, and why something is not, is in the table.
func TestWhatIsTaken(t *testing.T) {
	root, long := newWorkspace(t), strings.Repeat("x", 197)
	for name, tt := range map[string]struct {
		of    string
		files map[string]string
		want  []string // lines of the table; after ! what is not in it
	}{
		"notes": {"openclaw", map[string]string{"SOUL.md": "x", "memory/a:b.md": "x", "memory/" + long + ".md": "x",
			"memory/x" + long + ".md": "x",
			"memory/empty.md":         " \n", "memory/bad.md": "a\nb\xff", "memory/nul.md": "a\x00", "memory/a.txt": "x",
			"memory/.hidden.md":         "x",
			"memory/202611/20261120.md": "x", "memory/notes/2026-11-21.md": "x", "memory/a/b/c/d/e.md": "x",
			"memory/a/b/c/e.md": "\ufeffx"},
			[]string{"a:b.md .+ a note cannot have this name", "memory/" + long + ".md .+ new",
				"memory/x" + long + ".md .+ cannot have this name",
				"empty.md .+ it is empty", "memory/bad.md:2:2: not UTF-8 text", "memory/nul.md:1:2: not UTF-8 text", "!a.txt",
				"!hidden",
				"memory/daily/2026-11-20.md +new", "memory/daily/2026-11-21.md +new",
				"memory/a/b/c/d .+ nested more than 4 folders deep",
				"memory/a/b/c/e.md +new"}},
		"a file for a folder": {"openclaw", map[string]string{"SOUL.md": "x", "memory": "x"}, []string{"memory .+ it is not a folder"}},
		"too many names": {"openclaw", many(maxNames+1, "skills/%d", ""),
			[]string{"skill +skills .+ it has 5001 entries; only the first 5000 are read"}},
		"prompts": {"openclaw", map[string]string{"AGENTS.md": strings.Repeat("x", maxPrompt), "SOUL.md": strings.Repeat("x", maxPrompt-1),
			"USER.md": " ", "IDENTITY.md": "---\nk: v\n---\n", "BOOT.md": "x"},
			[]string{"prompt +AGENTS.md .+ agents see only its first 16 KiB", "prompt +SOUL.md +.daycare/SOUL.md +new\n", "!USER.md",
				"!IDENTITY.md",
				"BOOT.md .+ only when it starts"}},
		"a heartbeat of nothing": {"openclaw", map[string]string{"SOUL.md": "x", "HEARTBEAT.md": "# Work\n<!-- x -->\n- [ ] \n* \n"},
			[]string{"HEARTBEAT.md .+ it has no text"}},
		"a heartbeat": {"openclaw", map[string]string{"SOUL.md": "x", "HEARTBEAT.md": "- [ ] look\n"}, []string{"HEARTBEAT.md .+ new"}},
		"skills": {"openclaw", map[string]string{"skills/a:b/SKILL.md": skillText, "skills/file/SKILL.md": skillText,
			"skills/file/c:d":      "x",
			"skills/none/SKILL.md": "no description", "skills/bytes/SKILL.md": "\xff", "skills/deep/SKILL.md": skillText,
			"skills/deep/a/b/c/d/e/f/x": "x", "skills/flat/skill.md": skillText, "skills/flat/a/b/c/d/e/x": "x",
			"skills/flat/.git/x":         "x",
			"skills/flat/node_modules/x": "x", "skills/flat/__pycache__/x": "x", "skills/note.md": "x",
			"skills/twice/SKILL.md": skillText,
			"workspace/SOUL.md":     "x", "workspace/skills/twice/SKILL.md": skillText},
			[]string{"skills/a:b .+ a skill cannot have this name", `"skills/file/c:d": a file cannot have this name`,
				"skills/none .+ skills/none/SKILL.md",
				"skills/bytes/SKILL.md:1:1: not UTF-8", "skills/deep/a/b/c/d/e/f: it is nested more than 4 folders deep",
				"skills/flat .+ new: 2 files\n", "!note.md", "workspace/skills/twice .+ new\n",
				" skills/twice .+ another one with this name is imported"}},
		"a skill of many files": {"openclaw", many(maxSkillFiles+1, "skills/a/%d",
			"x"), []string{"skills/a .+ it has more than 500 files"}},
		"a skill of as many as it is": {"openclaw", many(maxSkillFiles, "skills/a/%d",
			"x"), []string{"skills/a .+ it has no SKILL.md"}},
		"a large skill": {"openclaw", many(5, "skills/a/%d", strings.Repeat("x", maxSkillFile)),
			[]string{"skills/a .+ it is too large: more than 20 MiB"}},
		"no jobs": {"openclaw", map[string]string{"cron/jobs.json": "{\n\"jobs\": x"}, []string{"cron/jobs.json:2:9: invalid character"}},
		"incomplete jobs": {"openclaw", map[string]string{"cron/jobs.json": `{"jobs": [`},
			[]string{"cron/jobs.json:1:11: the file is incomplete"}},
		"jobs": {"openclaw", map[string]string{"cron/jobs.json": `{"jobs": [{"name": 7},
			{"id":"1","name":"no text","payload":{"kind":"agentTurn"}}, {"name":"no id","schedule":{"kind":"every","everyMs":60000},` +
			`"payload":{"kind":"agentTurn","message":"x"}},
			{"jobId":"2","schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"systemEvent","text":" one two three four five "},
			"delivery":null},
			{"id":"3","name":"mail","schedule":{"kind":"every","everyMs":60000},
				"payload":{"kind":"agent_turn","message":"x","deliver":true}},
			{"id":"4","name":"other","schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"other","message":"x"}},
			{"id":"5","name":"zone","schedule":{"kind":"cron","expr":"0 9 * * *","tz":"Moon/Base"},
				"payload":{"kind":"agentTurn","message":"x"}},
			{"id":"6","name":"when","payload":{"kind":"agentTurn","message":"x"}}]}`},
			[]string{"job 1 .+ cron/jobs.json:1:2[0-9]: name is a JSON number, which does not fit", "job 2 .+ it has no text",
				"no id .+ it has no id",
				"jobs.json: one two three four +.daycare/cron/one-two-three-four +new\n",
				"jobs.json: mail .+ its answers go to its own agent",
				`other .+ it has no message to an agent \(kind "other"\)`, "zone .+ want a name such as",
				`when .+ does not support schedules of kind ""`}},
		"too many jobs": {"openclaw", map[string]string{"cron/jobs.json": `{"jobs":[` +
			strings.Repeat(`{"id":"1","schedule":{"kind":"every","everyMs":60000},`+
				`"payload":{"kind":"agentTurn","message":"x"}},`, maxTasks) + "7]}"},
			[]string{"there are 1001 jobs; only the first 1000 are imported"}},
		"jobs that are alike": {"openclaw", map[string]string{"cron/jobs.json": `{"jobs":[7,7,7]}`},
			[]string{"jobs.json:1:11", "jobs.json:1:13", "jobs.json:1:15"}},
		"a workspace elsewhere": {"openclaw", map[string]string{"openclaw.json": "{}", "credentials/x": "x", ".env": "x",
			"workspace-two/SOUL.md": "x",
			"workspace-3":           "x", "agents/x": "x"},
			[]string{"openclaw.json .+ the workspace is in another folder", "secrets +credentials", "secrets +.env",
				"workspace-two .+ another agent",
				"!workspace-3", "!agents"}},
		"conversations": {"openclaw", map[string]string{"agents/ops/sessions/sessions.json": "{", "agents/ops/sessions/a.jsonl": hi,
			"agents/ops/sessions/empty.jsonl": "\n", "agents/ops/sessions/torn.jsonl": hi + `{"ty`,
			"agents/ops/sessions/broken.jsonl": hi + "x\n" + hi,
			"agents/ops/sessions/last.jsonl":   hi + `{"type":7}`, "agents/ops/sessions/notes.txt": "x",
			"agents/two/sessions/sessions.json": `{"hook:a":{"sessionId":"b"},"x:cron:y":{"sessionId":"c"},` +
				`"agent:two:subagent:z":{"sessionId":"d"},` +
				`"agent:two:mail":{"sessionId":"e"},"later":{"sessionId":"e"},"nothing":{}}`,
			"agents/two/sessions/b.jsonl": hi, "agents/two/sessions/c.jsonl": hi, "agents/two/sessions/d.jsonl": hi,
			"agents/two/sessions/e.jsonl":   hi,
			"agents/two/sessions/old.jsonl": hi, "agents/two/sessions/older.jsonl": hi},
			[]string{"sessions.json:1:2: the file is incomplete", "a.jsonl .+ new: agent openclaw-ops-a, 1 message\n",
				"empty.jsonl .+ the conversation is empty", "torn.jsonl .+ 1 message; without its last line, which is incomplete",
				"broken.jsonl:2:1: invalid character", "last.jsonl:2:[0-9]+: type is a JSON number", "!notes",
				"e.jsonl .+ new: agent openclaw-two-mail, 1 message", "2 conversations not listed in sessions.json", "3 runs of jobs",
				"!two/sessions/b"}},
		"too many conversations": {"openclaw", many(maxTalks+1, "agents/main/sessions/%d.jsonl", hi),
			[]string{"it has more than 200 conversations", "… and 180 more .+ new"}},
		"of picoclaw": {"picoclaw", map[string]string{
			"sessions/a.jsonl": picoHi + `{"role":"assistant","content":"","tool_calls":[{},{}]}` + "\n",
			"sessions/b.jsonl": picoHi, "sessions/b.meta.json": "{",
			"sessions/c.jsonl": picoHi, "sessions/c.meta.json": `{"key":"agent:main:cron-1:cron:x"}`,
			"sessions/old.json": "{}",
			"sessions/d.jsonl":  picoHi, "sessions/d.meta.json": `{"key":"agent:main:mail","skip":9,"summary":" s "}`,
			"sessions/e.jsonl": picoHi, "sessions/e.meta.json": `{"skip":-9}`, "sessions/f.jsonl/x": "x",
			"sessions/g.jsonl": "x\n" + picoHi,
			"config.json":      "{}", "auth.json": "{}"},
			[]string{"a.jsonl .+ agent picoclaw-a, 1 message; without 2 tool calls and pictures",
				"b.jsonl .+ sessions/b.meta.json:1:2: the file is incomplete",
				"c.jsonl .+ a run of a job", "old.json .+ an older format", "d.jsonl .+ agent picoclaw-mail, 0 messages",
				"e.jsonl .+ agent picoclaw-e, 1 message",
				"!f.jsonl", "g.jsonl:1:1: invalid", "settings +config.json", "settings +auth.json"}},
		"too many of picoclaw": {"picoclaw", many(maxTalks+1, "sessions/%d.jsonl", picoHi), []string{"it has more than 200 conversations"}},
		"of a project": {"claude", map[string]string{"CLAUDE.md": "x", "CLAUDE.local.md": "x", ".claude/CLAUDE.md": "x",
			".mcp.json":               "{}",
			".claude/commands/run.md": "!`ls`", ".claude/commands/bad.md": "---\n: [\n---\nx", ".claude/commands/\xff.md": "x",
			".claude/commands/a/b/c.md": "x",
			".claude/agents/odd.md":     "---\nname: odd\ndescription: d\ntools: Read, Task, Bash(git:*), Read\n---\nx {{y}}",
			".claude/agents/bad.md":     "x", ".claude/agents/none.md": "---\nname: none\ndescription: d\n---\nx", ".claude/rules/x": "x",
			".claude/settings.local.json": "{}", ".claude/projects/p/memory/a/b/x.md": "x", ".claude/projects/p/memory/a/b/c/x.md": "x",
			".claude/projects/file": "x", ".claude/projects/p/1.jsonl": "x", ".claude/projects/p/2.jsonl": "x"},
			[]string{"CLAUDE.md, .claude/CLAUDE.md, CLAUDE.local.md", "run.md .+ plain text here",
				"commands/bad.md .+ .claude/commands/bad.md:",
				"commands/a/b .+ nested", "odd.md .+ new: without the tools Task\n", "agents/bad.md .+ skipped", "none.md .+ new\n",
				"settings +.mcp.json", "settings +.claude/rules", "settings +.claude/settings.local.json",
				"memory/claude/p/a/b/x.md +new",
				"memory/a/b/c/x.md .+ a note cannot have this name", "2 conversations: the format"}},
		"of daycare": {"daycare", map[string]string{".daycare/SOUL.md": "x", ".daycare/commands/bad.md": "---\n: [\n---\nx",
			".daycare/commands/\xff.md": "x", ".daycare/subagents/a.md": "x", ".daycare/settings.yaml": "x",
			".daycare/tokens.json":    "{}",
			".daycare/cron/a/TASK.md": "---\nschedule: \"0 9 * * *\"\nwatchCommand: date\n---\nx", ".daycare/cron/bad/TASK.md": "x",
			".daycare/cron/b/TASK.md": "---\nschedule: \"0 9 * * *\"\nname: Bee\n---\nx", ".daycare/cron/file": "x",
			".daycare/cron/A B/TASK.md": "x",
			".daycare/heartbeat/a.md":   "look\n", ".daycare/heartbeat/b.md": "---\nwatchCommand: date\n---\nlook\n",
			".daycare/heartbeat/bad.md": "---\n: [\n---\nx", ".daycare/agents/x/descriptor.json": "{}",
			".daycare/agents/abcdefghijklmnopqrstuvwx/descriptor.json": "{", ".daycare/agents/abcdefghijklmnopqrstuvwy/x": "x"},
			[]string{"prompt +.daycare/SOUL.md", "commands/bad.md:", "subagents/a.md +.daycare/subagents/a.md +new",
				"settings +.daycare/settings.yaml",
				"settings +.daycare/tokens.json", "cron/a/TASK.md .+ new: without gate and watchCommand", "cron/bad/TASK.md .+ skipped",
				"cron/b/TASK.md +.daycare/cron/bee +new\n", "!cron/file", "!A B", "heartbeat/a.md .+ new\n",
				"heartbeat/b.md .+ new: without its gate",
				"heartbeat/bad.md .+ skipped", "!agents/x", "agents/abcdefghijklmnopqrstuvwx .+descriptor.json:1:1: not JSON",
				"!uvwy"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for rel, text := range tt.files {
				write(t, filepath.Join(dir, rel), text)
			}
			table, said, err := imported(t, root, tt.of, dir, options{dry: true})
			if err != nil || !strings.Contains(said, "nothing was changed") {
				t.Fatalf("%v %s", err, said)
			}
			for _, want := range tt.want {
				want, not := strings.CutPrefix(want, "!")
				if matches(table, want) == not {
					t.Errorf("the table has %q: %v, want %v\n%s", want, not, !not, table)
				}
			}
		})
	}
}

// When a job is due is said in the words of daycare.
func TestTimesOfJobs(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	for want, s := range map[string]when{
		"cron 0 9 * * * Europe/Oslo": {Kind: "cron", Expr: " 0 9 * * * ", TZ: "Europe/Oslo"}, "its schedule": {Kind: "cron"},
		"every 2h": {Kind: "every", EveryMS: ms(7_200_000)}, "every 90m": {Kind: "every", EveryMS: ms(5_400_000)},
		"every 1m1s": {Kind: "every", EveryMS: ms(61_000)}, "interval": {Kind: "every"}, "interval 0": {Kind: "every", EveryMS: ms(0)},
		"interval most":           {Kind: "every", EveryMS: ms(schedule.MaxEvery.Milliseconds() + 1)},
		"at 2030-01-02T03:04:05Z": {Kind: "at", At: "2030-01-02T05:04:05+02:00"},
		"at 2030-01-02T03:04:00Z": {Kind: "at", At: "2030-01-02T03:04"},
		"at 2030-01-02T00:00:00Z": {Kind: "at", At: "2030-01-02"}, "at 2029-01-02T00:00:00Z": {Kind: "at", AtMS: ms(1_862_006_400_000)},
		`time "soon"`: {Kind: "at", At: "soon"},
	} {
		timing, zone, err := s.timing()
		got := strings.TrimSpace(fmt.Sprint(map[bool]string{true: "cron " + timing.Cron}[timing.Cron != ""],
			map[bool]string{true: "every " + timing.Every}[timing.Every != ""],
			map[bool]string{true: "at " + timing.At}[timing.At != ""], " ", zone))
		if wrong := map[string]string{"its schedule": "it has no schedule",
			`time "soon"`: `its time "soon" is not a date and time`}[want]; wrong != "" ||
			strings.HasPrefix(want, "interval") {
			if err == nil || wrong != "" && err.Error() != wrong || wrong == "" && err.Error() != "its interval is missing or too long" {
				t.Errorf("%+v: %v", s, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%+v is %q, %v, want %q", s, got, err, want)
		}
	}
}

// All that is read of a home together is bounded.
func TestABoundForAHome(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.md"), "12345")
	write(t, filepath.Join(dir, "b.md"), "12345")
	h, err := openHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	h.left = 5
	if text, ok := h.text("memory", "a.md", maxText); !ok || text != "12345" {
		t.Errorf("the first is %q, %v", text, ok)
	}
	if _, ok := h.text("memory", "b.md", maxText); ok || len(h.items) != 1 || h.items[0].skip != "the folder has more than 512 MiB" {
		t.Errorf("the second: %v, %+v", ok, h.items)
	}
}

// What an import makes of a home is in the files: prompts without the keys of the other program,
// and tasks and heartbeats that are on if they were and it is said.
func TestWhatAnImportMakes(t *testing.T) {
	root, dir := newWorkspace(t), t.TempDir()
	for rel, text := range map[string]string{"SOUL.md": "---\nk: v\n---\nBe brief.\n", "IDENTITY.md": "A cat.", "HEARTBEAT.md": "look",
		"cron/jobs.json": `{"jobs":[{"id":"1","name":"on","schedule":{"kind":"every","everyMs":60000},` +
			`"payload":{"kind":"agentTurn","message":"x"}},{"id":"2","name":"off","enabled":false,"description":"d",` +
			`"schedule":{"kind":"cron","expr":"0 9 * * *","tz":"Europe/Oslo"},` +
			`"payload":{"kind":"agentTurn","message":"x"}}]}`} {
		write(t, filepath.Join(dir, rel), text)
	}
	if _, said, err := imported(t, root, "openclaw", dir, options{yes: true, enable: true}); err != nil ||
		!strings.Contains(said, "cron ls") {
		t.Fatal(err, said)
	}
	for rel, wants := range map[string][]string{"SOUL.md": {"Be brief.\n\nA cat.\n"}, "heartbeat/openclaw.md": {"enabled: true",
		"look"},
		"cron/on/TASK.md": {"enabled: true"}, "cron/off/TASK.md": {"enabled: false", "Europe/Oslo", "description: d"}} {
		data, err := os.ReadFile(filepath.Join(root, ".daycare", rel))
		for _, want := range wants {
			if err != nil || !strings.Contains(string(data), want) {
				t.Errorf("%s is %q, %v, want %q in it", rel, data, err, want)
			}
		}
		if strings.Contains(string(data), "k: v") {
			t.Errorf("%s has the keys of the other program", rel)
		}
	}
}

// An agent of another workspace whose chat has an agent here is reached from the terminal.
func TestAgentsOfOneChat(t *testing.T) {
	chat := address.Descriptor{Type: address.User, Connector: "telegram", UserID: "7", ChannelID: "7"}
	of := func(root, id string, d address.Descriptor) {
		t.Helper()
		folder := filepath.Join(root, ".daycare", "agents", id)
		descriptor, err := address.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		state, err := record.EncodeState(workspace.At(root), record.State{})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, address.File), string(descriptor))
		write(t, filepath.Join(folder, "state.json"), string(state))
		write(t, filepath.Join(folder, "history.jsonl"), "")
	}
	here, there := newWorkspace(t), newWorkspace(t)
	of(here, "abcdefghijklmnopqrstuvwx", chat)
	named := chat
	named.Name = "ada"
	of(there, "bbcdefghijklmnopqrstuvwx", named)
	of(there, "cbcdefghijklmnopqrstuvwx", address.Descriptor{Type: address.Heartbeat, ID: "cbcdefghijklmnopqrstuvwx"})
	table, said, err := imported(t, here, "daycare", there, options{yes: true})
	if err != nil || !matches(table, "agents/cb.+ agents of type .+ are created again") ||
		!strings.Contains(said, "do not run the other workspace as well") {
		t.Fatal(err, table, said)
	}
	data, err := os.ReadFile(filepath.Join(here, ".daycare", "agents", "bbcdefghijklmnopqrstuvwx", address.File))
	var d address.Descriptor
	if err := json.Unmarshal(data, &d); err != nil {
		t.Error(err)
	}
	if err != nil || d.Connector != "terminal" || d.Name != "ada" {
		t.Errorf("it is %s, %v", data, err)
	}
	if _, err := record.ContextOf(filepath.Join(here, ".daycare", "agents", "bbcdefghijklmnopqrstuvwx")); err != nil {
		t.Error(err)
	}
}
