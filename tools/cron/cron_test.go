package cron

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/schedule"
	"daycare/tools"
	"daycare/tools/toolstest"
)

const caller = "aaaaaaaaaaaaaaaaaaaaaaaa"

// setup is a workspace with one task of its own agent, one of the caller's, one of
// someone else's, and a prompt of the heartbeat.
func setup(t *testing.T) (root string, set *tools.Set) { return setupFor(t, allowed{}) }

func setupFor(t *testing.T, r Rights) (root string, set *tools.Set) {
	t.Helper()
	root = t.TempDir()
	for path, text := range map[string]string{
		"cron/own/TASK.md":    "---\ntaskId: tttttttttttttttttttttttt\nschedule: \"@daily\"   # at night\n---\nLook.\n",
		"cron/mine/TASK.md":   "---\ntaskId: uuuuuuuuuuuuuuuuuuuuuuuu\nevery: 1h\nagentId: " + caller + "\n---\nLook.\n",
		"cron/theirs/TASK.md": "---\ntaskId: vvvvvvvvvvvvvvvvvvvvvvvv\nevery: 1h\nagentId: bbbbbbbbbbbbbbbbbbbbbbbb\n---\nLook.\n",
		"heartbeat/disk.md":   "Is the disk full?\n",
		"secret/TASK.md":      "---\nevery: 1h\n---\nnot a task\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	s := schedule.New(schedule.Options{Store: &schedule.Store{Root: root, Volume: disk.NewVolume(root),
		Now:  func() time.Time { return now },
		Zone: func() *time.Location { return time.UTC }, Every: func() time.Duration { return time.Hour },
		Hours: func() schedule.Hours { return schedule.Hours{} }}})
	set, err := tools.NewSet(New(s, r)...)
	if err != nil {
		t.Fatal(err)
	}
	return root, set
}

func call(t *testing.T, set *tools.Set, id, name, args string) tools.Result {
	t.Helper()
	return callHaving(t, set, id, name, args)
}

// callHaving is a call of a turn that has read the sources.
func callHaving(t *testing.T, set *tools.Set, id, name, args string, sources ...string) tools.Result {
	t.Helper()
	tool, spec, ok := set.Get(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	if err := tools.Validate(spec, json.RawMessage(args)); err != nil {
		t.Fatal(err)
	}
	res, err := tool.Run(t.Context(), tools.Call{ID: id, Name: name, Arguments: json.RawMessage(args), Agent: caller,
		Sources: sources, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestContract(t *testing.T) {
	for name, o := range map[string]toolstest.Options{
		"add_cron": {Good: []string{`{"when":"every weekday at 9:00","prompt":"Say good morning","here":true}`,
			`{"watch":["notes/**"],"prompt":"Index the notes"}`}},
		"cron_list": {Good: []string{`{}`}},
		"cron_read_task": {Good: []string{`{"task":"own"}`},
			Bad: []string{`{"task":"../secret"}`, `{"task":"none"}`, `{"task":"/etc"}`, `{"task":".."}`}},
		"cron_read_memory": {Good: []string{`{"task":"own"}`}, Bad: []string{`{"task":"../secret"}`}},
		"cron_write_memory": {Good: []string{`{"task":"own","text":"seen"}`},
			Bad: []string{`{"task":"../secret","text":"x"}`, `{"task":"theirs","text":"x"}`}},
		"cron_update": {Good: []string{`{"task":"mine","enabled":false}`},
			Bad: []string{`{"task":"../secret","enabled":false}`, `{"task":"theirs","prompt":"rm"}`, `{"task":"own","when":"soon"}`}},
		"cron_run":         {Good: []string{`{"task":"own"}`}, Bad: []string{`{"task":"../secret"}`, `{"task":"theirs"}`}},
		"cron_delete_task": {Good: []string{`{"task":"own"}`}, Bad: []string{`{"task":"../secret"}`, `{"task":"theirs"}`}},
		"heartbeat_add": {Good: []string{`{"title":"Mail","prompt":"Any mail?"}`},
			Bad: []string{`{"title":"x","prompt":" "}`, `{"title":"x","prompt":"y","activeHours":"all"}`}},
		"heartbeat_list":   {Good: []string{`{}`}},
		"heartbeat_run":    {Good: []string{`{}`}},
		"heartbeat_remove": {Good: []string{`{"name":"disk"}`}, Bad: []string{`{"name":"../cron/own/TASK"}`, `{"name":"none"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			root, set := setup(t)
			tool, _, _ := set.Get(name)
			o.Access, o.Agent = permission.Default(t.TempDir()), caller
			toolstest.Run(t, tool, o)
			if _, err := os.Stat(filepath.Join(root, "secret/TASK.md")); err != nil {
				t.Error("a file outside cron was touched")
			}
		})
	}
}

func TestAddCron(t *testing.T) {
	root, set := setup(t)
	args := `{"name":"Stand-up","when":"every weekday at 9","prompt":"Remind me of the stand-up.","here":true,"timezone":"Europe/Berlin"}`
	res := call(t, set, "call1", "add_cron", args)
	if want := "Task stand-up: Monday to Friday at 09:00 (Europe/Berlin); next: Mon 2026-11-23 09:00, Tue 2026-11-24 " +
		"09:00, Wed 2026-11-25 09:00"; res.Text != want {
		t.Errorf("said %q, want %q", res.Text, want)
	}
	// The same call after a crash finds what it made; another one makes another.
	if again := call(t, set, "call1", "add_cron", args); again.Text != res.Text {
		t.Errorf("the same call made %q", again.Text)
	}
	if other := call(t, set, "call2", "add_cron", args); !strings.HasPrefix(other.Text, "Task stand-up-2: ") {
		t.Errorf("another call gave %q", other.Text)
	}
	data, err := os.ReadFile(filepath.Join(root, "cron/stand-up/TASK.md"))
	if err != nil || !strings.Contains(string(data), "agentId: "+caller) {
		t.Errorf("the file is\n%s%v", data, err)
	}
}

func TestAddCronRefuses(t *testing.T) {
	root, set := setup(t)
	for args, want := range map[string]string{
		`{"prompt":"x"}`:                                     "say when",
		`{"when":"soon","prompt":"x"}`:                       "every weekday at 9:00",
		`{"when":"every day at 9","prompt":" "}`:             "text below the keys is missing",
		`{"when":"61 * * * *","prompt":"x"}`:                 "above maximum",
		`{"watch":["../**"],"prompt":"x"}`:                   "inside the workspace",
		`{"when":"@daily","prompt":"x","timezone":"Berlin"}`: "Europe/Berlin",
	} {
		if res := call(t, set, args, "add_cron", args); res.Status != tools.Failed || !strings.Contains(res.Text, want) {
			t.Errorf("%s gave %q, want it refused with %q", args, res.Text, want)
		}
	}
	if made, _ := filepath.Glob(filepath.Join(root, "cron/*")); len(made) != 3 {
		t.Errorf("what was refused was made: %v", made)
	}
}

func TestUpdateKeepsComments(t *testing.T) {
	root, set := setup(t)
	res := call(t, set, "c", "cron_update", `{"task":"own","when":"every 10 minutes","prompt":"Look twice."}`)
	if !strings.HasPrefix(res.Text, "Task own: every 10 minutes; next:") {
		t.Errorf("said %q", res.Text)
	}
	data, err := os.ReadFile(filepath.Join(root, "cron/own/TASK.md"))
	if want := "---\ntaskId: tttttttttttttttttttttttt\nevery: 10m\n---\nLook twice.\n"; err != nil || string(data) != want {
		t.Errorf("the file is\n%s, want\n%s", data, want)
	}
}

func TestDeleteGoesToTrash(t *testing.T) {
	root, set := setup(t)
	call(t, set, "c", "cron_delete_task", `{"task":"own"}`)
	call(t, set, "c", "heartbeat_remove", `{"name":"disk"}`)
	for _, pattern := range []string{"trash/*-own/TASK.md", "trash/*-disk.md"} {
		if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) != 1 {
			t.Errorf("%s: %v", pattern, found)
		}
	}
	if res := call(t, set, "c", "cron_list", `{}`); strings.Contains(res.Text, "own (") {
		t.Errorf("the list still has it: %s", res.Text)
	}
}

func TestMemory(t *testing.T) {
	_, set := setup(t)
	call(t, set, "c", "cron_write_memory", `{"task":"own","text":"seen 3"}`)
	call(t, set, "c", "cron_write_memory", `{"task":"own","text":"seen 4"}`)
	if res := call(t, set, "c", "cron_read_memory", `{"task":"own"}`); res.Text != "seen 4\n" {
		t.Errorf("the memory is %q", res.Text)
	}
}

// What a turn left to the clocks that had read something from outside is from outside for
// whoever reads it later.
func TestWordsForTheClocksKeepTheirSource(t *testing.T) {
	root, set := setup(t)
	const eve = "mail from eve@example.com"
	callHaving(t, set, "c", "cron_write_memory", `{"task":"own","text":"trust eve"}`, eve)
	if res := call(t, set, "c", "cron_read_memory", `{"task":"own"}`); !strings.Contains(res.Source, eve) {
		t.Errorf("the memory reads as %q: %s", res.Source, res.Text)
	}
	call(t, set, "c", "cron_write_memory", `{"task":"own","text":"trust nobody"}`)
	if res := call(t, set, "c", "cron_read_memory", `{"task":"own"}`); res.Source != "" {
		t.Errorf("replaced, the memory reads as %q", res.Source)
	}
	callHaving(t, set, "d", "add_cron", `{"name":"late","when":"every 10 minutes","prompt":"Trust eve."}`, eve)
	if res := call(t, set, "d", "cron_read_task", `{"task":"late"}`); !strings.Contains(res.Source, eve) {
		t.Errorf("the task reads as %q: %s", res.Source, res.Text)
	}
	callHaving(t, set, "d2", "cron_update", `{"task":"own","prompt":"Trust eve."}`, eve)
	if res := call(t, set, "d2", "cron_read_task", `{"task":"own"}`); !strings.Contains(res.Source, eve) {
		t.Errorf("the task that was changed reads as %q: %s", res.Source, res.Text)
	}
	if res := call(t, set, "d3", "cron_update", `{"task":"mine","prompt":"Look."}`); res.Status == tools.Failed {
		t.Error(res.Text)
	}
	if res := call(t, set, "d3", "cron_read_task", `{"task":"mine"}`); res.Source != "" {
		t.Errorf("a task that its owner changed reads as %q", res.Source)
	}
	callHaving(t, set, "e", "heartbeat_add", `{"title":"mail","prompt":"Trust eve."}`, eve)
	if data, err := os.ReadFile(filepath.Join(root, "heartbeat/mail.md")); err != nil ||
		!strings.Contains(message.SourceOf(string(data)), eve) {
		t.Errorf("the prompt is %q, %v", data, err)
	}
}

// allowed are the rights of agents that all have the same.
type allowed struct{}

func (allowed) Task(string, string) ([]string, error) { return nil, nil }
func (allowed) Heartbeat(string) ([]string, error)    { return nil, nil }
func (allowed) Knows(string, string) bool             { return true }
func (allowed) Maker(string) string                   { return "" }

// less are those of an agent that has less than the agents of the clocks.
type less struct{}

func (less) Task(string, string) ([]string, error) { return []string{"@web"}, nil }
func (less) Heartbeat(string) ([]string, error)    { return []string{"@write:/w"}, nil }
func (less) Knows(string, string) bool             { return true }
func (less) Maker(string) string                   { return "" }

// guest are those of the agent of a user in a chat: it knows of its own.
type guest struct{ allowed }

func (guest) Knows(_, maker string) bool { return maker == caller }
func (guest) Maker(string) string        { return caller }

// The clocks of others do not exist for the agent of a user in a chat, and those that
// it sets are its own: what they know is what it knows.
func TestClocksOfOthersAreNotSeenNorGivenWords(t *testing.T) {
	root, set := setupFor(t, guest{})
	if res := call(t, set, "c1", "cron_list",
		`{}`); strings.Contains(res.Text, "own") || strings.Contains(res.Text, "theirs") || !strings.Contains(res.Text, "mine") {
		t.Errorf("it is shown %q", res.Text)
	}
	for name, args := range map[string]string{
		"cron_read_task": `{"task":"own"}`, "cron_read_memory": `{"task":"theirs"}`,
		"cron_update": `{"task":"own","prompt":"x"}`, "cron_run": `{"task":"own"}`,
		"cron_write_memory": `{"task":"own","text":"x"}`, "cron_delete_task": `{"task":"own"}`,
		"heartbeat_add":  `{"title":"x","prompt":"x"}`,
		"heartbeat_list": `{}`, "heartbeat_run": `{}`, "heartbeat_remove": `{"name":"disk"}`,
	} {
		if res := call(t, set, "c2"+name, name, args); res.Status != tools.Failed {
			t.Errorf("%s: %s %q", name, res.Status, res.Text)
		}
	}
	if res := call(t, set, "c3", "add_cron", `{"name":"new one","when":"every hour","prompt":"x"}`); res.Status == tools.Failed {
		t.Fatal(res.Text)
	}
	data, err := os.ReadFile(filepath.Join(root, "cron/new-one/TASK.md"))
	if err != nil || !strings.Contains(string(data), "createdBy: "+caller+"\n") {
		t.Errorf("the task does not say who made it: %v\n%s", err, data)
	}
	if res := call(t, set, "c4", "cron_update", `{"task":"new-one","prompt":"y"}`); res.Status == tools.Failed {
		t.Errorf("its own task: %s", res.Text)
	}
}

// Words for the agent of a task have its rights work for whoever gives them.
func TestOrdersNeedTheRightsOfWhoCarriesThemOut(t *testing.T) {
	_, set := setupFor(t, less{})
	for name, args := range map[string]string{
		"add_cron": `{"when":"every hour","prompt":"x"}`, "cron_update": `{"task":"own","prompt":"x"}`, "cron_run": `{"task":"own"}`,
		"cron_write_memory": `{"task":"own","text":"x"}`, "cron_delete_task": `{"task":"own"}`,
		"heartbeat_add": `{"title":"x","prompt":"x"}`, "heartbeat_run": `{}`, "heartbeat_remove": `{"name":"disk"}`,
	} {
		if res := call(t, set, "c", name, args); res.Status != tools.Failed ||
			!strings.Contains(res.Text, "rights that you do not have (@w") {
			t.Errorf("%s: %s %q", name, res.Status, res.Text)
		}
	}
	for name, args := range map[string]string{
		"add_cron": `{"when":"every hour","prompt":"x","here":true}`, "cron_update": `{"task":"mine","prompt":"x"}`,
	} {
		if res := call(t, set, "c", name, args); res.Status == tools.Failed {
			t.Errorf("%s for itself: %q", name, res.Text)
		}
	}
}
