//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"daycare/cmd/daycare/doctor"
	"daycare/engine/freeport"
)

// busyScript has the model use what writes files.
const busyScript = `
model: demo
rules:
  - contains: many tools
    round: 1
    reply:
      - thinking: Hm.
      - calls:
          - { name: write, arguments: { path: made.txt, content: "made\n" } }
          - { name: exec, arguments: { command: "seq 1 20000" } }
          - { name: memory_write, arguments: { file: people.md, text: "Ada likes tea" } }
          - { name: add_cron, arguments: { name: Nightly look, prompt: look around, when: "0 3 * * *" } }
          - { name: heartbeat_add, arguments: { title: Disk, prompt: "is the disk full?" } }
          - { name: nosuch, arguments: { a: 1 } }
          - { name: read, rawArguments: "{no json" }
          - { name: create_permanent_agent, arguments: { name: Ops, description: operations, systemPrompt: You watch. } }
  - contains: children
    round: 1
    reply:
      - calls:
          - { name: spawn, arguments: { task: count things, label: counter } }
          - { name: CodeSearch, arguments: { query: where is main } }
          - { name: Look, arguments: { query: where is main } }
          - { name: send_agent_message, arguments: { text: hello ops, agentId: Ops } }
  - contains: '@'
    round: 1
    reply:
      - calls: [ { name: request_permission, arguments: { permission: "{{.Text}}", reason: to look } } ]
  - contains: fail now
    reply: [ { fault: { status: 400, message: bad request } } ]
  - reply:
      - text: "heard {{.Text}}"
      - usage: { input: 50, output: 10 }
`

// busyWorkspace makes a workspace by all features that write files, and stops what ran.
func busyWorkspace(t *testing.T) (root string) {
	t.Helper()
	callback := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer callback.Close()
	listen := freeport.Take(t)
	workspace := t.TempDir()
	root = filepath.Join(workspace, home)
	for name, content := range map[string]string{
		"script.yaml": busyScript, "notes.txt": "milk\n",
		home + "/settings.yaml": fmt.Sprintf("providers:\n  - { id: echo, type: scripted, options: { script: %q } "+
			"}\nconnectors:\n  - id: hooks\n    type: webhook\n    listen: %s\n"+
			"    hooks: [ { id: ci, secretEnv: EVERYWAY_SECRET, agentId: \"0/\", callback: %q } ]\n",
			filepath.Join(workspace, "script.yaml"), listen, callback.URL),
		home + "/auth.json": `{ "echo": "a key that nobody asks for" }`,
		home + "/tokens.json": `{ "phone": { "hash": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			"scopes": ["chat"], "created": "2026-11-20T18:22:00.000Z", "expires": "2026-12-20T18:22:00Z" } }`,
		home + "/pairing.json": `{ "requests": [ { "code": "ABCD2345", "from": { "connector": "telegram", "channelId": "7", "userId": "7" },
			"name": "Ada", "at": "2026-11-20T18:22:00.000Z" } ] }`,
		home + "/USER.md": "Ada.\n",
		home + "/subagents/Look.md": "---\nname: Look\ndescription: Looks.\ntools: [read]\ninputSchema: { type: " +
			"object, properties: { query: { type: string } } }\n---\nLook at {{.query}}.\n",
		home + "/skills/tidy/SKILL.md":    "---\nname: tidy\ndescription: How to tidy up.\n---\nTidy up.\n",
		home + "/drop/bad/old.md":         "nobody",
		home + "/files/.tmp-half-written": "x",
	} {
		write(t, filepath.Join(workspace, name), content)
	}
	t.Run("made", func(t *testing.T) { // what runs ends with it
		run := func(want int, args ...string) string {
			t.Helper()
			var out, said bytes.Buffer
			if code := execute(append([]string{"--no-input", "--workspace", workspace}, args...), strings.NewReader(""),
				&out, &said); code != want {
				t.Fatalf("daycare %s: exit code %d, want %d: %s%s", strings.Join(args, " "), code, want, out.String(), said.String())
			}
			return out.String()
		}
		startRuntime(t, workspace)
		histories := func() string {
			paths, err := filepath.Glob(filepath.Join(root, "agents", "*", "history.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, path := range paths {
				data, err := os.ReadFile(path)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				all.Write(data)
			}
			return all.String()
		}
		run(0, "chat", "run many tools")
		run(0, "chat", "children")
		run(1, "chat", "fail now")
		for _, tag := range []string{"@web:example.com", "@read:/usr/share", "@exec:git push", "@web:example.org"} {
			run(5, "chat", tag)
		}
		tokens := regexp.MustCompile(`"token":"([a-z0-9]+)"`).FindAllStringSubmatch(run(0, "permissions", "ls", "--json"), -1)
		if len(tokens) != 4 {
			t.Fatalf("%d requests wait, want 4", len(tokens))
		}
		run(0, "permissions", "allow", tokens[0][1])
		run(0, "permissions", "allow", tokens[1][1], "--once")
		run(0, "permissions", "deny", tokens[2][1])
		run(0, "permissions", "revoke", "0/", "@web:example.com")
		run(0, "send", "0/", "--wait", "--file", filepath.Join(workspace, "notes.txt"), "look at this")
		run(0, "send", "0/", "--as", "system", "--silent", "hush")
		write(t, filepath.Join(workspace, "letter"),
			`{"text":"a letter","dedupe":"x:1","files":[`+fmt.Sprintf("%q", filepath.Join(workspace, "notes.txt"))+`]}`)
		if err := os.Rename(filepath.Join(workspace, "letter"), filepath.Join(root, "drop", "0-__letter.json")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the letter", func() bool { return strings.Contains(histories(), "heard a letter") })
		if status := hook(t, listen, `{"text":"delta"}`, "delivery-1"); status != http.StatusAccepted {
			t.Fatalf("webhook: status %d", status)
		}
		waitFor(t, "the webhook's answer", func() bool { return strings.Contains(histories(), `"type":"delivery"`) })
		run(0, "agents", "mark", "0/", "before")
		run(0, "chat", "after the mark")
		run(0, "agents", "rewind", "0/", "--to", "before")
		run(0, "agents", "fork", "0/", "--name", "other")
		run(0, "agents", "compact", "0/")
		run(0, "agents", "reset", "0/")
		run(0, "chat", "a new conversation")
		run(0, "agents", "new", "--name", "Helper")
		run(0, "agents", "export", "0/", "-o", filepath.Join(workspace, "x.tar"))
		run(0, "agents", "import", filepath.Join(workspace, "x.tar"), "--name", "twin")
		run(0, "agents", "rm", "twin")
		gone := regexp.MustCompile(`"handle":"([^"]+)"`).FindStringSubmatch(run(0, "agents", "trash", "--json"))
		if gone == nil {
			t.Fatal("nothing is in the trash")
		}
		run(0, "agents", "restore", gone[1])
		run(0, "cron", "run", "nightly-look")
		run(0, "heartbeat", "run")
		waitFor(t, "the task", func() bool { return strings.Contains(run(0, "cron", "runs", "nightly-look"), " ran ") })
		waitFor(t, "the heartbeat", func() bool { return strings.Contains(run(0, "heartbeat", "runs"), " ran ") })
		waitFor(t, "all work to end", func() bool { return !strings.Contains(run(0, "agents", "ls"), "thinking") })
		if all := run(0, "validate"); all != "" { // also while it runs
			t.Errorf("found in a running workspace:\n%s", all)
		}
	})
	return root
}

// Everything that the program wrote has the form that its schema says, by our own
// checks and by a validator of JSON Schemas that knows nothing of us.
func TestBusyWorkspaceIsValid(t *testing.T) {
	t.Parallel()
	root := busyWorkspace(t)
	paths, err := doctor.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, path := range paths {
		found, err := doctor.CheckFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Errorf("%v", f)
		}
		kinds[doctor.PatternOf(path)]++
	}

	for _, pattern := range []string{"settings.yaml", "auth.json", "tokens.json", "pairing.json", "USER.md", "agents/*/descriptor.json",
		"agents/*/state.json", "agents/*/history.jsonl",
		"agents/*/inbox.jsonl", "agents/*/sessions.jsonl", "agents/handles.jsonl", "cron/*/TASK.md", "cron/*/runs.jsonl", "heartbeat/*.md",
		"subagents/*.md", "skills/*/SKILL.md", "memory/*.md", "files/*.json", "usage/*.jsonl", "logs/*.jsonl",
		"permissions/log.jsonl", "permissions/*.json", "daycare.lock"} {
		if kinds[pattern] == 0 {
			t.Errorf("the workspace has no %s, so this test proves nothing of it", pattern)
		}
	}

	known(t, root)
	byLibrary(t, root)
	planted(t, root)
}

// known looks for files that the daemon wrote and that no row of the table of kinds names.
func known(t *testing.T, root string) {
	n := 0
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		n++
		if err == nil && !doctor.Known(rel) && e.Name() != ".tmp-half-written" {
			t.Errorf("%s: no row of cmd/daycare/doctor/kinds.go names it", rel)
		}

		return err
	})
	if err != nil || n < 40 {
		t.Fatalf("looked at %d files: %v", n, err)
	}
}

// byLibrary holds JSON files and lines against the printed schemas.
func byLibrary(t *testing.T, root string) {
	for name, patterns := range map[string][]string{
		"auth": {"auth.json"}, "tokens": {"tokens.json"}, "pairing": {"pairing.json"}, "descriptor": {"agents/*/descriptor.json"},
		"state": {"agents/*/state.json"}, "history": {"agents/*/history.jsonl"},
		"inbox": {"agents/*/inbox.jsonl"}, "session": {"agents/*/sessions.jsonl"}, "handle": {"agents/handles.jsonl"},
		"run":     {"cron/*/runs.jsonl", "heartbeat/runs.jsonl"},
		"request": {"permissions/*.json", "permissions/log.jsonl"}, "file": {"files/*.json"},
		"usage": {"usage/*.jsonl"}, "lock": {"daycare.lock"}, "log": {"logs/*.jsonl"},
	} {
		for _, pattern := range patterns {
			paths, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil || len(paths) == 0 {
				t.Fatalf("no %s (%v)", pattern, err)
			}

			for _, path := range paths {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}

				for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
					var one json.RawMessage
					if err := dec.Decode(&one); err != nil {
						t.Fatalf("%s: %v", path, err)
					}
					if err := check(t, name, string(one)); err != nil {
						t.Errorf("%s: %.200s: %v", path, one, err)
					}
				}
			}
		}
	}
}

// planted puts one fault into each kind of file and looks for it at its place.
func planted(t *testing.T, root string) {
	line := func(text string) func(string) string { return func(old string) string { return old + text + "\n" } }
	all := func(text string) func(string) string { return func(string) string { return text } }
	swap := func(from, to string) func(string) string {
		return func(old string) string { return strings.Replace(old, from, to, 1) }
	}
	for _, tt := range []struct {
		pattern string
		spoil   func(string) string
		want    string // of FILE:LINE:COLUMN: the end, and the reason; N is the last line
	}{
		{"settings.yaml", swap("scripted", "scribbled"), `:2:23: .*"scribbled"`},
		{"auth.json", all("{\n  \"echo\": 5\n}"), `:2:11: echo: found something else, allowed: a text`},
		{"tokens.json", swap("chat", "talk"), `:1:\d+: token "phone": scopes: found "talk", allowed: read`},
		{"pairing.json", swap("ABCD2345", "abc"), `:1:\d+: requests\[0\].code: `},
		{"USER.md", all("Ada\n\xff"), `:2:1: .*UTF-8`},
		{"memory/*.md", all("tea \xff"), `:1:5: .*UTF-8`},
		{"agents/*/descriptor.json", all("{\n  \"type\": \"usr\"\n}"), `:2:\d+: .*"usr"`},
		{"agents/*/state.json", swap(`"seq": `, `"queue": "later", "seq": `), `:\d+:12: .*"later", allowed: steer, followup`},
		{"agents/*/history.jsonl", line(`{"type":"user_message"}`), `:N:1: text is missing`},
		{"agents/*/history.jsonl", line(`{"type":"user_message","text":"x","zone":7}`), `:N:\d+: .*zone`},
		{"agents/*/history.jsonl", line(`{"type":"assistant_message","text":"x","finish":"tired"}`),
			`:N:49: finish: found the text "tired", allowed: end_turn`},
		{"agents/*/history.jsonl", line(`{"type":"user_massage"}`), `:N(:\d+)?: .*user_massage`},
		{"agents/*/history.jsonl", line(`{"type":"note",}`), `:N:\d+: `},
		{"agents/*/inbox.jsonl", line(`{"type":"message","text":"x"}`), `:N:\d+: .*id`},
		{"agents/*/inbox.jsonl", line(`{"type":"message","id":"aaaabbbbccccddddeeeeffff","txt":"x"}`), `:N:51: unknown member "txt"`},
		{"agents/*/sessions.jsonl", line(`{"id":"x","messages":"many"}`),
			`:N:22: messages: found the text "many", allowed: a whole number`},
		{"agents/handles.jsonl", line(`{"handle":"0/x","id":"aaaabbbbccccddddeeeeffff"}`), `:N:11: handle: `},
		{"cron/*/TASK.md", swap("0 3", "0 33"), `:\d+:\d+: .*0 33`},
		{"cron/*/runs.jsonl", line(`{"slot":"yesterday","at":"2026-11-20T18:22:00.000Z"}`), `:N:9: slot: .*a time such as`},
		{"heartbeat/runs.jsonl", line(`[]`), `:N:1: found a list, allowed: one JSON object`},
		{"heartbeat/*.md", swap("---\n", "---\nactiveHours: never\n"), `:2:\d+: .*never`},
		{"subagents/*.md", swap("tools: [read]", "tools: read all"), `:4(:\d+)?: .*tools`},
		{"skills/*/SKILL.md", swap("name: tidy", "name: Not Tidy"), `:2(:\d+)?: .*Not Tidy`},
		{"drop/0-__x.json", all("{\n  \"text\": \"x\",\n  \"type\": \"telegram\"\n}"), `:3:11: type: found the text "telegram"`},
		{"drop/0-__x.json", all(`{"text": ""}`), `:1:1: .*text is missing`},
		{"files/*.json", swap(`"size": `, `"size": "big", "was": `), `:\d+:\d+: size: found the text "big"`},
		{"usage/*.jsonl", line(`{"at":"2026-11-20T18:22:00.000Z","agent":"x"}`), `:N:1: tokens is missing`},
		{"logs/*.jsonl", line(`not json`), `:N:\d+: not JSON`},
		{"permissions/*.json", swap(`"decision": null`, `"decision": "maybe"`),
			`:\d+:15: decision: found the text "maybe", allowed: once, always, prefix, deny`},
		{"permissions/*.json", swap(`"host": "example.org"`, `"host": "example.net"`), `.*sha256`},
		{"permissions/log.jsonl", line(`{"token":"x"}`), `:N:1: agentId is missing`},
		{"daycare.lock", all(`{"pid":"me"}`), `:1:8: pid: `},
	} {
		paths, err := filepath.Glob(filepath.Join(root, tt.pattern))
		if len(paths) == 0 {
			paths = []string{filepath.Join(root, tt.pattern)}
		}
		old, rerr := os.ReadFile(paths[0])
		if err != nil || rerr != nil && !strings.HasPrefix(tt.pattern, "drop/") {
			t.Fatal(tt.pattern, err, rerr)
		}
		text := tt.spoil(string(old))
		if text == string(old) {
			t.Errorf("%s was not spoiled: %s", tt.pattern, old)
		}
		write(t, paths[0], text)
		found, err := doctor.CheckFile(paths[0])
		if err != nil {
			t.Error(err)
		}
		want := regexp.MustCompile(regexp.QuoteMeta(filepath.Base(paths[0])) +
			strings.Replace(tt.want, ":N", fmt.Sprintf(":%d", strings.Count(text, "\n")), 1))
		hit := false
		for _, f := range found {
			place := f.Place() + ": " + f.Reason
			hit = hit || want.MatchString(place) && (f.Remedy != "" || f.Severity == "info")
		}
		if !hit {
			t.Errorf("%s: want %s with a remedy, found %+v", tt.pattern, want, found)
		}
		if write(t, paths[0], string(old)); rerr != nil {
			os.Remove(paths[0])
		}
	}
}
