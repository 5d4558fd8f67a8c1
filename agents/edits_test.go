package agents

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/agents/prompt"
	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

const hear = `
rules:
  - reply: [ { text: "heard: {{.Text}}" } ]
`

func (b *bench) writeState(text string) {
	b.t.Helper()
	// As editors save: another file in its place.
	temp := filepath.Join(b.dir, ".state-by-hand")
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(b.dir, "state.json")); err != nil {
		b.t.Fatal(err)
	}
}

// told waits for an event of a kind whose text has all the words.
func told(t *testing.T, events <-chan event.Event, kind event.Type, words ...string) event.File {
	t.Helper()
	after := time.After(10 * time.Second)
next:
	for {
		select {
		case e := <-events:
			f, ok := e.Body.(event.File)
			if !ok || e.Type != kind {
				continue
			}
			for _, w := range words {
				if !strings.Contains(f.File+": "+f.Text, w) {
					continue next
				}
			}
			return f
		case <-after:
			t.Fatalf("no event %s with %q", kind, words)
		}
	}
}

func TestDescriptorAndPromptFilesCountFromTheNextTurn(t *testing.T) {
	b := newBench(t, hear)
	var edited atomic.Bool
	b.opts.Identity = func() address.Meta {
		m := b.opts.Meta
		if edited.Load() {
			m.Descriptor.SystemPrompt = "You are Ops."
		}
		return m
	}
	b.opts.Definition = func(m address.Meta, _ record.State) prompt.Definition {
		d := prompt.Definition{Name: m.Name, Prompt: m.Descriptor.SystemPrompt, Files: prompt.Files{Soul: "calm"}}
		if edited.Load() {
			d.Files.Soul = "cheerful"
		}
		return d
	}
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	b.wait(b.say("one"))
	b.wait(b.say("two"))
	edited.Store(true)
	b.wait(b.say("three"))
	told(t, events, event.FileEdited, "SOUL.md")
	if a, b := b.model.asked[0].System, b.model.asked[1].System; a != b {
		t.Error("the system prompt changed without an edit")
	}
	if s := b.model.asked[2].System; !strings.Contains(s, "cheerful") || !strings.Contains(s, "You are Ops.") {
		t.Errorf("the edit is not in the next turn's system prompt:\n%s", s)
	}
	b.halt()
	if n := b.count("note"); n != 1 {
		t.Errorf("%d notes of the edit in history, want 1\n%s", n, b.history())
	}
}

func TestRightsChangedByHandAreAnnounced(t *testing.T) {
	b := newBench(t, hear)
	b.writeState(`{"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":[]}}`)
	b.run()
	b.wait(b.say("one"))
	b.halt()
	if n := b.count("permission"); n != 0 {
		t.Fatalf("rights that nobody changed were announced:\n%s", b.history())
	}

	// While it sleeps.
	state, _, _, err := record.ReadState(b.dir)
	if err != nil || state.Announced == nil {
		t.Fatalf("what was announced is not kept: %v", err)
	}
	state.Permissions.Web = true
	data, err := record.EncodeState(state)
	if err != nil {
		t.Fatal(err)
	}
	b.writeState(string(data))
	events := b.opts.Events.Subscribe(t.Context())
	b.openBox()
	edited := make(chan struct{})
	b.opts.Edited = edited
	b.run()
	told(t, events, event.FileEdited, "permissions changed: +@web")

	// While it waits for work.
	state.Permissions.Exec = []string{"git push"}
	if data, err = record.EncodeState(state); err != nil {
		t.Fatal(err)
	}
	b.writeState(string(data))
	edited <- struct{}{}
	told(t, events, event.FileEdited, "+@exec:git push")
	b.halt()
	for _, want := range []string{`"event":"changed-by-hand","tag":"+@web"`, `"event":"changed-by-hand","tag":"+@exec:git push"`} {
		if strings.Count(b.history(), want) != 1 {
			t.Errorf("history does not have %s once:\n%s", want, b.history())
		}
	}
	if settled, err := record.Settled(b.dir); err != nil || !settled {
		t.Errorf("an announcement makes the agent owe something: settled %v, %v", settled, err)
	}
}

// A grant that the runtime writes is no edit of a person.
func TestOwnGrantsAreNotAnnounced(t *testing.T) {
	b := newBench(t, hear)
	b.writeState(`{"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":[]}}`)
	a := &agent{Options: b.opts, log: b.opts.Log}
	var err error
	if a.history, _, err = record.Open(b.vol, b.dir, time.Now, b.opts.Log); err != nil {
		t.Fatal(err)
	}
	defer a.history.Close()
	if err := a.history.Begin("s"); err != nil {
		t.Fatal(err)
	}
	if err := a.lookAround(); err != nil {
		t.Fatal(err)
	}
	if err := a.saveState(func(s *record.State) {
		s.Permissions.Grants = append(s.Permissions.Grants, permission.Grant{Tag: "@web", SHA256: "1"})
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.lookAround(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.history(), "changed-by-hand") {
		t.Errorf("a grant was announced as an edit:\n%s", b.history())
	}
}

func TestABrokenStateIsToldOnceAndTheLastGoodOneStays(t *testing.T) {
	b := newBench(t, hear)
	b.writeState(`{"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":[]},"provider":{"id":"","model":"m1"}}`)
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	b.wait(b.say("one"))
	b.writeState("{\n  \"provider\": {\"id\": \"\", \"model\": 5}\n}")
	b.wait(b.say("two"))
	f := told(t, events, event.FileInvalid, "model")
	if f.Line != 2 || f.Column == 0 {
		t.Errorf("told at %d:%d, want line 2 and a column", f.Line, f.Column)
	}
	b.wait(b.say("three"))
	if m := b.model.asked[2].Model; m != "m1" {
		t.Errorf("the model in force is %q, want the last good one", m)
	}
	b.writeState(`{"provider":{"id":"","model":"m2"},"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":[]}}`)
	b.wait(b.say("four"))
	for {
		e := <-events
		if e.Type == event.FileInvalid {
			t.Errorf("told twice: %+v", e.Body)
		}
		if f, ok := e.Body.(event.File); ok && e.Type == event.FileEdited && strings.HasPrefix(f.Text, "provider changed") {
			break
		}
	}
	if m := b.model.asked[3].Model; m != "m2" {
		t.Errorf("the model in force is %q, want the corrected one", m)
	}
}

func TestAnEditOfHistoryCountsInTheMiddleOfATurn(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, callHold, h)
	b.run()
	b.wait(b.say("the sky is green"))
	item := b.say("go")
	<-h.running
	path := filepath.Join(b.dir, "history.jsonl")
	text := strings.ReplaceAll(b.history(), "the sky is green", "the sky is blue")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	h.release <- "r"
	b.wait(item)
	last := b.model.request(b.model.calls() - 1)
	if strings.Contains(last, "green") || !strings.Contains(last, "the sky is blue") {
		t.Errorf("the next request does not have the edit:\n%s", last)
	}
}

// A state.json that goes away, with an editor or for good, takes no rights with it:
// the last good version stays in force and is written again.
func TestAStateThatIsGoneIsWrittenAgain(t *testing.T) {
	b := newBench(t, hear)
	b.writeState(`{"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":["git push"]},"provider":{"id":"","model":"m1"}}`)
	b.run()
	b.wait(b.say("one"))
	if err := os.Remove(filepath.Join(b.dir, "state.json")); err != nil {
		t.Fatal(err)
	}
	b.wait(b.say("two"))
	if m := b.model.asked[1].Model; m != "m1" {
		t.Errorf("the model in force is %q, want the last good one", m)
	}
	b.halt()
	s, raw, _, err := record.ReadState(b.dir)
	if err != nil || raw == nil || len(s.Permissions.Exec) != 1 || s.Provider.Model != "m1" || s.Stats == nil {
		t.Errorf("state.json is %s, %v", raw, err)
	}
}
