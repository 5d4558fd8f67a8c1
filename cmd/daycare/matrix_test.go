package main

import (
	"bytes"
	"context"
	"daycare/engine/event"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/control"
)

// ops is a daemon with one agent, Ops. All of its files have the word word00.
type ops struct {
	root, dir string // .daycare; the agent's folder
	client    *control.Client
}

func newOps(t *testing.T) ops {
	t.Helper()
	workspace := t.TempDir()
	script := filepath.Join(workspace, "script.yaml")
	write(t, script, `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`)

	for name, text := range map[string]string{
		"settings.yaml": fmt.Sprintf("providers:\n  - { id: echo, type: scripted, options: { script: %q } }\n"+
			"permissions: { defaults: { hosts: [ word00.example ] } }\n", script),
		"SOUL.md": "soul word00\n", "USER.md": "user word00\n", "AGENTS.md": "rules word00\n",
		"cron/watch/TASK.md":   "---\ntaskId: tz4a98xxat96iws9zmbrgj3a\nname: task word00\nschedule: \"0 3 1 1 *\"\n---\nLook.\n",
		"heartbeat/morning.md": "---\ntitle: title word00\nenabled: false\n---\nLook.\n",
		"subagents/reader.md": "---\nname: Reader\ndescription: reads word00\ntools: [read]\nmaxIterations: " +
			"3\ninputSchema: {type: object, properties: {query: {type: string}}, required: [query]}\n---\nRead.\n",
	} {
		path := filepath.Join(workspace, home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}

	o := ops{root: startRuntime(t, workspace)}
	var err error
	if o.client, err = control.Dial(o.root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.client.Close)
	a, err := o.client.Create(t.Context(), control.NewAgent{Type: "permanent", Name: "Ops", SystemPrompt: "prompt word00"})
	if err != nil {
		t.Fatal(err)
	}

	o.dir = filepath.Join(o.root, "agents", a.ID)
	o.ask(t, "begin word00")
	content, hash, err := o.client.Folders().ReadFile(t.Context(), "Ops", "state.json")
	if err == nil {
		content = bytes.Replace(content, []byte(`"exec": []`), []byte(`"exec": ["word00"]`), 1)
		err = o.client.Folders().WriteFile(t.Context(), "Ops", "state.json", content, hash)
	}
	if err != nil {
		t.Fatal(err)
	}

	return o
}

func (o ops) ask(t *testing.T, text string) {
	t.Helper()
	done, err := o.client.Stream(t.Context(), "Ops", control.Message{Text: text}, nil)
	if err != nil || done.Reason != "done" {
		t.Fatalf("%q: %+v, %v", text, done, err)
	}
}

func (o ops) text(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(o.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// edited are the files of the matrix.
func (o ops) edited() []string {
	paths := []string{}
	for _, name := range []string{"descriptor.json", "state.json", "history.jsonl"} {
		paths = append(paths, filepath.Join(o.dir, name))
	}
	for _, name := range []string{"SOUL.md", "USER.md", "AGENTS.md", "settings.yaml", "cron/watch/TASK.md",
		"heartbeat/morning.md", "subagents/reader.md"} {
		paths = append(paths, filepath.Join(o.root, name))
	}

	return paths
}

// checkTurn looks at what the newest turn was made of.
func (o ops) checkTurn(t *testing.T, word string, turns int) {
	t.Helper()
	history, system := o.text(t, "history.jsonl"), o.text(t, "SYSTEM.md")
	for _, want := range []string{"prompt ", "soul ", "user ", "rules "} {
		if !strings.Contains(system, want+word) {
			t.Errorf("%q is not in force:\n%s", want+word, system)
		}
	}

	// The right given at the beginning may be told together with the first edit.
	if n := strings.Count(history, `"changed-by-hand"`); n < turns || n > turns+1 || !strings.Contains(history, `+@exec:`+word) {
		t.Errorf("%d changes of rights were announced in %d edits", n, turns)
	}
	if !strings.Contains(history, "begin "+word) || strings.Contains(history, "begin word00") {
		t.Error("the edit of history was lost")
	}

	for i := range turns {
		if n := strings.Count(history, fmt.Sprintf(`"text":"turn %d"`, i)); n != 1 {
			t.Errorf("message %d stands in history %d times, want once", i, n)
		}
	}
	if state := o.text(t, "state.json"); !strings.Contains(state, word) {
		t.Errorf("the edit of state.json was overwritten:\n%s", state)
	}
}

// checkShared waits until the files that are not the agent's own are active.
func (o ops) checkShared(t *testing.T, word string) {
	t.Helper()
	waitFor(t, "settings.yaml to be in force", func() bool {
		c, err := o.client.Config(t.Context())
		return err == nil && bytes.Contains(c, []byte(word+".example"))
	})
	waitFor(t, "TASK.md to be in force", func() bool {
		task, err := o.client.Schedule().Task(t.Context(), "watch")
		return err == nil && task.Name == "task "+word
	})

	waitFor(t, "heartbeat/morning.md to be in force", func() bool {
		h, err := o.client.Schedule().Heartbeat(t.Context())
		return err == nil && len(h.Prompts) == 1 && h.Prompts[0].Title == "title "+word
	})
	waitFor(t, "subagents/reader.md to be in force", func() bool {
		list, err := o.client.SubAgents(t.Context())
		for _, d := range list {
			if d.Name == "Reader" && d.Description == "reads "+word {
				return true
			}
		}
		return err != nil
	})
}

// A mistake in any of the files is told with its place, and the last good version
// stays active.
func TestMistakesAreTold(t *testing.T) {
	t.Parallel()
	o := newOps(t)
	events := make(chan string, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := make(chan struct{})
	go func() {
		var once sync.Once
		o.client.Events(ctx, control.Filter{Types: []event.Type{event.FileInvalid, event.ConfigInvalid,
			event.FileEdited}}, "", func(e control.RawEvent) error {
			once.Do(func() { close(ready) })
			if e.Type != event.FileEdited {
				events <- string(e.Data)
			}
			return nil
		})
	}()
	waitFor(t, "the first event", func() bool { // the stream is open when an edit is heard
		write(t, filepath.Join(o.root, "SOUL.md"), fmt.Sprintf("soul word00\n%d\n", time.Now().UnixNano()))
		o.ask(t, "are you there?")
		select {
		case <-ready:
			return true
		default:
			return false
		}
	})
	for _, m := range []struct{ path, old, new string }{
		{filepath.Join(o.dir, "descriptor.json"), `"name"`, `"nam`},
		{filepath.Join(o.dir, "state.json"), `"web": false`, `"web": "no"`},
		{filepath.Join(o.dir, "history.jsonl"), `"type":"turn_end"`, `"type":"turn_end`},
		{filepath.Join(o.root, "settings.yaml"), "type: scripted", "type: nonsense"},
		{filepath.Join(o.root, "cron/watch/TASK.md"), "1 1 *", "1 99 *"},
		{filepath.Join(o.root, "heartbeat/morning.md"), "enabled: false", "enabled: perhaps"},
		{filepath.Join(o.root, "subagents/reader.md"), "maxIterations: 3", "maxIterations: many"},
	} {
		name := filepath.Base(m.path)
		good, err := replaced(m.path, m.old, m.new)
		if err != nil || !bytes.Contains(good, []byte(m.new)) {
			t.Fatalf("%s: %v; it has no %q", name, err, m.old)
		}
		was := readOr(m.path)
		write(t, m.path, string(good))
		o.ask(t, "go on with "+name)
		waitFor(t, "the mistake in "+name+" to be told", func() bool {
			o.client.SubAgents(t.Context()) // they are looked at when someone asks
			for {
				select {
				case told := <-events:
					if strings.Contains(told, name) && strings.Contains(told, `"line":`) {
						t.Logf("%s", told)
						return true
					}
				default:
					return false
				}
			}
		})
		if got := readOr(m.path); name != "history.jsonl" && got != string(good) {
			t.Errorf("%s is not as the person left it:\n%s", name, got)
		}
		write(t, m.path, was)
	}
}

func replaced(path, old, new string) ([]byte, error) {
	data, err := os.ReadFile(path)
	return bytes.ReplaceAll(data, []byte(old), []byte(new)), err
}
