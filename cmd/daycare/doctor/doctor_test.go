package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/record"
	ws "daycare/engine/workspace"
)

// A ward is a workspace that tests plant faults in.
type ward struct {
	t    *testing.T
	root string // .daycare
}

func newWard(t *testing.T) *ward {
	t.Helper()
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, "") // the offline model answers
	}
	w := &ward{t, filepath.Join(t.TempDir(), ws.Home)}
	if err := os.Mkdir(w.root, 0o700); err != nil {
		t.Fatal(err)
	}

	return w
}

func (w *ward) path(name string) string { return filepath.Join(w.root, name) }

// file writes a file; lines are joined, each with its end.
func (w *ward) file(name string, lines ...string) {
	w.t.Helper()
	w.raw(name, strings.Join(lines, "\n")+"\n", 0o600)
}

func (w *ward) raw(name, text string, mode fs.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

// id is the id of the nth agent.
func id(n int) string { return fmt.Sprintf("agent%03dxxxxxxxxxxxxxxxx", n) }

// agent makes a healthy agent.
func (w *ward) agent(n int) string {
	w.t.Helper()
	dir := "agents/" + id(n) + "/"
	w.file(dir+"descriptor.json", `{ "type": "user", "connector": "terminal", "userId": "u", "channelId": "`+fmt.Sprint(n)+`" }`)
	return dir
}

// history writes records, numbered from 1, and what comes behind them.
func (w *ward) history(name string, tail string, recs ...record.Record) {
	w.t.Helper()
	var b bytes.Buffer
	for i, r := range recs {
		b.Write(record.Encode(&record.Entry{Seq: int64(i + 1), At: time.Date(2026, 11, 1, 12, 0, i, 0, time.UTC), Rec: r}))
	}
	w.raw(name, b.String()+tail, 0o600)
}

func (w *ward) examine() *doctor {
	w.t.Helper()
	d, err := examine(ws.At(filepath.Dir(w.root)))
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// found are the findings as "id file:line", sorted; notes that any workspace may
// have are left out.
func (w *ward) found(d *doctor) (all []string) {
	for _, a := range d.ailments {
		switch a.ID {
		case "disk-low", "disk-full", "watch-impossible", "watch-limit", "sandbox-none", "sandbox-narrow", "sandbox-uncounted":
			continue
		}
		place := fmt.Sprintf("%s %s", a.ID, strings.TrimPrefix(a.File, w.root+"/"))
		if a.Line > 0 {
			place += fmt.Sprintf(":%d", a.Line)
		}
		if a.Severity != finding.Info && a.Remedy == "" {
			w.t.Errorf("%s has no remedy: %s", place, a.Reason)
		}
		all = append(all, place)
	}

	slices.Sort(all)
	return all
}

// contents are all files with their modes and content.
func (w *ward) contents() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}

		text := info.Mode().String()
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}

		all[strings.TrimPrefix(path, w.root+"/")] = text
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}

	return all
}

// repairable plants what --fix repairs, and says what is to be found.
func (w *ward) repairable() []string {
	start := &record.Start{Session: "s", V: record.Version}
	dir := w.agent(1)
	w.history(dir+"history.jsonl", `{"seq":4,"at":"2026-11-0`, start, &record.TurnBegin{Turn: "t", Items: []string{"i1"}},
		&record.TurnEnd{Turn: "t", Items: []string{"i1"}, Outs: []record.Out{}, Reason: record.ReasonDone})
	w.raw(dir+"inbox.jsonl", `{"seq":1,"at":"2026-11-01T12:00:00.000Z","type":"message","id":"i1","text":"hello"}`+"\n"+
		`{"seq":2,"at":"2026-11-01T12:00:01.000Z","type":"message","id":"i2","text":"never acknow`, 0o600)
	dir = w.agent(2)
	w.history(dir+"history.jsonl", "", start)
	w.file(dir+"draft.json", `{"turn":"t","text":"half an ans"}`)
	w.raw(dir+"state.json", "{}\n", 0o644)
	w.file(dir+".tmp-state.json-123", "{")
	w.file("agents/.new-"+id(3)+"/descriptor.json", `{ "type"`)
	w.raw("auth.json", `{ "telegram": "1234567890" }`, 0o644)
	w.file("cron/queue/TASK.md", "---", "taskId: "+id(4), `every: 10m`, "---", "Look at the queue.")
	w.raw("cron/queue/runs.jsonl", `{"outcome":"ran"}`+"\n"+`{"slot":"2026-`, 0o600)
	if err := os.MkdirAll(w.path("usage"), 0o755); err != nil {
		w.t.Fatal(err)
	}

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: w.path("daycare.sock"), Net: "unix"})
	if err != nil {
		w.t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	a1, a2 := "agents/"+id(1)+"/", "agents/"+id(2)+"/"

	return []string{
		"agent-unfinished agents/.new-" + id(3), "auth-mode auth.json", "draft-leftover " + a2 + "draft.json:1",
		"file-mode " + a2 + "state.json", "file-mode usage", "history-torn " + a1 + "history.jsonl:4",
		"inbox-done-missing " + a1 + "inbox.jsonl:1", "inbox-torn " + a1 + "inbox.jsonl:2", "lines-torn cron/queue/runs.jsonl:2",
		"socket-stale daycare.sock", "temp-leftover " + a2 + ".tmp-state.json-123",
	}
}

// byHand is what a test's own inbox lines are, having no checksum.
func byHand(all []string) []string {
	return slices.DeleteFunc(all, func(s string) bool {
		return strings.HasPrefix(s, "inbox-by-hand ") || strings.HasPrefix(s, "history-by-hand ") || strings.HasPrefix(s, "provider-none ")
	})
}

// TestDoctorFinds plants faults of every kind in one workspace: each is found with
// its place, and --fix repairs what it can and touches nothing else.
func TestDoctorFinds(t *testing.T) {
	w := newWard(t)
	want := w.repairable()
	want = append(want, w.brokenAgents()...)
	want = append(want, w.brokenHistories()...)
	want = append(want, w.brokenFiles()...)
	slices.Sort(want)
	if len(want) < 40 {
		t.Errorf("only %d faults are planted", len(want))
	}

	d := w.examine()
	if diff := cmp.Diff(want, byHand(w.found(d))); diff != "" {
		t.Fatalf("%d planted faults (-want +found):\n%s", len(want), diff)
	}

	w.repairs(d, map[string]bool{"agents/.new-" + id(3) + "/descriptor.json": true})
	for _, a := range w.examine().ailments {
		if a.fix != nil {
			t.Errorf("%s is still there after the repair", a.Place())
		}
	}
}

// repairs has a doctor repair, and looks that no file was touched in which nothing was
// to be repaired, others aside.
func (w *ward) repairs(d *doctor, repaired map[string]bool) {
	w.t.Helper()
	before := w.contents()
	fixed, err := d.repair()
	if err != nil {
		w.t.Fatal(err)
	}

	repaired["daycare.lock"] = true
	for _, f := range fixed {
		repaired[strings.TrimPrefix(f.File, w.root+"/")] = true
	}
	after := w.contents()
	for name, text := range before {
		if now, ok := after[name]; !repaired[name] && (!ok || now != text) {
			w.t.Errorf("%s was changed although nothing was to be repaired in it (-before +after):\n%s", name, cmp.Diff(text, now))
		}
	}

	for name := range after {
		if _, ok := before[name]; !ok && !repaired[name] && !strings.Contains(name, ".torn-") &&
			!strings.Contains(name, kept) && !strings.HasPrefix(name, "trash/") {
			w.t.Errorf("%s was made", name)
		}
	}
}

func (w *ward) brokenAgents() []string {
	w.file("agents/handles.jsonl", `{"handle":"0/","id":"`+id(1)+`"}`, `not a handle`, `{"handle":"0/","id":"`+id(2)+`"}`)
	w.file(w.agent(20)+"descriptor.json", "{", `  "type": "user",`, `  "connector": }`)
	w.file("agents/" + id(21) + "/history.jsonl")
	w.file(w.agent(22)+"descriptor.json", `{ "type": "permanent", "id": "`+id(99)+`", "name": "Ops" }`)
	w.file(w.agent(23)+"descriptor.json", `{ "type": "user", "connector": "terminal", "userId": "u", "channelId": "1" }`) // as agent 1
	w.file(w.agent(24)+"descriptor.json", "{", `  "type": "subagent",`, `  "id": "`+id(24)+`",`,
		`  "parentAgentId": "`+id(98)+`",`, `  "name": "reader"`, "}")
	w.file("agents/notes.txt", "mine")
	w.file(w.agent(25)+"state.json", "{", `  "queue": 7`, "}")
	w.file(w.agent(26)+"sessions.jsonl", `{"id":"s"}`, "[1]", `{"id":"t"}`)
	w.file("agents/"+id(26)+"/state.json.conflict-20261101T120000", "{}")

	return []string{
		"handle-invalid agents/handles.jsonl:2", "handle-invalid agents/handles.jsonl:3",
		"descriptor-syntax agents/" + id(20) + "/descriptor.json:3", "descriptor-missing agents/" + id(21) + "/descriptor.json",
		"descriptor-id agents/" + id(22) + "/descriptor.json:1", "descriptor-duplicate agents/" + id(23) + "/descriptor.json",
		"descriptor-parent-missing agents/" + id(24) + "/descriptor.json:4", "agent-folder-name agents/notes.txt",
		"state-wrong-type agents/" + id(25) + "/state.json:2", "lines-bad agents/" + id(26) + "/sessions.jsonl:2",
		"conflict-kept agents/" + id(26) + "/state.json.conflict-20261101T120000:1",
	}
}

func (w *ward) brokenHistories() []string {
	start := &record.Start{Session: "s", V: record.Version}
	call := &record.Assistant{Turn: "t", Finish: record.FinishToolUse,
		ToolCalls: []record.ToolCall{{ID: "c1", Name: "read", Arguments: []byte("{}")}}}
	result := &record.ToolResult{ToolCallID: "c1", Name: "read", Status: record.StatusOK, Output: record.Output{Text: "x"}}
	at := "2026-11-01T12:00:00.000Z"
	dir := w.agent(30)
	w.history(dir+"history.jsonl", `{"seq":9,"at":"`+at+`","type":"note","text":}`+"\n"+`{"seq":10,"at":"`+at+`","type":"dream"}`+"\n"+
		`{"seq":2,"at":"`+at+`","type":"note","text":"copied"}`+"\n"+
		`{"seq":11,"at":"2099-01-01T00:00:00.000Z","type":"note","text":"later"}`+"\n",
		start, &record.TurnBegin{Turn: "t"}, call, result, result,
		&record.ToolResult{ToolCallID: "nobody", Name: "read", Status: record.StatusOK, Output: record.Output{Blob: "0123"}},
		&record.Delivery{Out: "nothing", Part: 1, Parts: 1}, &record.TurnEnd{Turn: "other", Reason: record.ReasonDone})
	w.history(w.agent(31)+"history.jsonl", "", &record.Start{Session: "s", V: record.Version, Continues: "history/000001.jsonl"})
	dir = w.agent(32)
	w.file(dir+"inbox.jsonl", `{"seq":1,"at":"`+at+`","type":"message","id":"i1","text":"a"}`, `{"seq":2,"type":`,
		`{"seq":3,"at":"`+at+`","type":"message","id":"i1","text":"b"}`)
	h, i := "agents/"+id(30)+"/history.jsonl", "agents/"+id(32)+"/inbox.jsonl"

	return []string{
		"history-bad-line " + h + ":9", "history-unknown-type " + h + ":10", "history-seq-twice " + h + ":11",
		"history-future " + h + ":12", "clock-behind " + h + ":12",
		"history-result-twice " + h + ":5", "history-orphan-result " + h + ":6", "blob-missing " + h + ":6",
		"history-orphan-delivery " + h + ":7", "history-orphan-turn " + h + ":8",
		"history-part-missing agents/" + id(31) + "/history.jsonl:1",
		"inbox-broken-line " + i + ":2", "inbox-id-twice " + i + ":3",
	}
}

func (w *ward) brokenFiles() []string {
	w.file("settings.yaml", "providers:", "  - { id: main, type: anthropic }", "  - { id: odd, type: anthropic, model: claude-sonet-5-5 }",
		"connectors:", "  - { id: hook, type: webhook, listen: \"127.0.0.1:0\", agentId: "+id(97)+", "+
			"hooks: [{ id: a, secretEnv: NO_SUCH_SECRET }] }",
		"  - { id: irc, type: irc, server: 127.0.0.1:1, nick: d, channels: [c] }", "modles: []")
	w.file("cron/daily/TASK.md", "---", "taskId: "+id(4), "schedule: \"61 * * * *\"", "---", "Do it.")
	w.file("cron/other/TASK.md", "---", "taskId: "+id(5), "agentId: "+id(96), "every: 1h", "---", "Do it.")
	w.file("heartbeat/look.md", "---", "activeHours: always", "---", "Look around.")
	w.file("heartbeat/Disk Check.md", "Is the disk full?")
	w.file("heartbeat/disk.txt", "Is the disk full?")
	w.file("permissions/tok1.json", "{ broken")
	w.file("files/f1.json", `{"id":"f1","name":"a.txt"}`)
	w.file("cron/Not A Slug/TASK.md", "---", "taskId: "+id(6), "every: 1h", "---", "Do it.")
	w.file("subagents/broken.md", "---", "name: Broken", "description: of no use", "tools: 7", "---", "Work.")
	w.file("skills/talk/SKILL.md", "---", "name: Loud Talk", "description: talks", "---", "Talk.")
	w.raw("SOUL.md", "Be kind.\nBe \xff.\n", 0o600)
	w.file("drop/bad/letter.md", "hello")
	w.file("drop/bad/letter.md.reason.txt", "no agent of that name")
	w.file("usage/2026-11-01.jsonl", "{}", "what is this", "{}")
	w.file("permissions/log.jsonl.torn-7", "{")
	if err := syscall.Mkfifo(w.path("pipe"), 0o600); err != nil {
		w.t.Fatal(err)
	}

	return []string{
		"provider-no-key settings.yaml:2", "provider-no-key settings.yaml:3", "provider-model settings.yaml:3",
		"settings-unknown-key settings.yaml:7", "settings-agent-missing settings.yaml:5", "connector-broken settings.yaml:5",
		"settings-bad-value settings.yaml:6",
		"schedule-timing cron/daily/TASK.md:3", "schedule-id-twice cron/queue/TASK.md:2", "schedule-agent-missing cron/other/TASK.md:3",
		"schedule-wrong-value heartbeat/look.md:2", "permission-file permissions/tok1.json:1",
		"file-missing files/f1.json:1", "letter-refused drop/bad/letter.md:1",
		"lines-bad usage/2026-11-01.jsonl:2", "torn-kept permissions/log.jsonl.torn-7:1", "file-special pipe",
		"schedule-name cron/Not A Slug/TASK.md", "schedule-name heartbeat/Disk Check.md",
		"schedule-stray heartbeat/disk.txt", "subagent-invalid subagents/broken.md:4",
		"skill-name skills/talk/SKILL.md:2", "persona-not-text SOUL.md:2",
		"connector-nobody settings.yaml:6",
	}
}

// A pipe in the place of a file is reported, and waited for by none of those who read it.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	w := newWard(t)
	names := []string{"settings.yaml", "auth.json", "models.json", "cron/pipe/TASK.md", "heartbeat/pipe.md", "usage/2026-11-01.jsonl",
		"files/f1.json"}
	for n, name := range []string{"state.json", "history.jsonl", "inbox.jsonl", "draft.json", "descriptor.json"} {
		dir := w.agent(n + 1)
		w.file(dir + "history.jsonl")
		names = append(names, dir+name)
	}
	for _, name := range names {
		w.file(name)
		if err := errors.Join(os.Remove(w.path(name)), syscall.Mkfifo(w.path(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}

	looked := make(chan map[string]bool, 1)
	go func() {
		reported := map[string]bool{}
		for _, name := range names {
			_, err := CheckFile(w.path(name))
			reported[name] = errors.Is(err, beneath.ErrKind)
		}
		if d, err := examine(ws.At(filepath.Dir(w.root))); err == nil {
			reported["by the doctor"] = len(d.ailments) > len(names)/2
		}
		looked <- reported
	}()
	select {
	case reported := <-looked:
		for _, name := range append(names, "by the doctor") {
			if !reported[name] {
				t.Errorf("%s: the pipe is not reported", name)
			}
		}
	case <-time.After(time.Minute):
		t.Fatal("something waits for a writer")
	}
}

// With a daemon running the doctor looks, and repairs only what nobody is using.
func TestDoctorBesideDaemon(t *testing.T) {
	w := newWard(t)
	w.repairable()
	lock, _, err := disk.TryLock(w.path("daycare.lock"), disk.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	fixed, err := w.examine().repair()
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, f := range fixed {
		got = append(got, f.ID)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"auth-mode", "file-mode", "file-mode"}, got); diff != "" {
		t.Errorf("repaired beside a daemon (-want +got):\n%s", diff)
	}
}
