package agents

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

const goodState = `{"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":[]},"provider":{"id":"","model":"m1"}}`

// reads counts a text in the newest request of the model.
func (b *bench) reads(text string) int {
	b.t.Helper()
	return strings.Count(b.model.request(b.model.calls()-1), text)
}

// The model hears of a broken file once, also over a restart, and once that it is good
// again.
func TestTheModelHearsOfABrokenFileOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, hear)
	b.writeState(goodState)
	b.run()
	b.wait(b.say("one"))
	if n := b.reads("Broken file"); n != 0 {
		t.Errorf("a good file was told of: %s", b.model.request(0))
	}
	b.writeState("{\n  \"provider\": {\"id\": \"\", \"model\": 5}\n}")
	line := `Broken file "` + filepath.Join(b.dir, "state.json") + `": line 2, column `
	r, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.System, Origin: "x", Text: "two"})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(r.Item)
	if b.reads(line) != 1 || b.reads("its last valid version stays active") != 1 {
		t.Errorf("after the edit the model reads:\n%s", b.model.request(1))
	}
	b.wait(b.say("three"))
	if n := b.reads(line); n != 1 {
		t.Errorf("the next turn has %d lines on it:\n%s", n, b.model.request(2))
	}
	b.halt()
	b.openBox()
	b.run()
	b.wait(b.say("four"))
	if n := b.reads(line); n != 1 {
		t.Errorf("after a restart there are %d lines on it", n)
	}
	b.writeState(goodState)
	b.wait(b.say("five"))
	b.wait(b.say("six"))
	if n := b.reads("Mended file"); n != 1 || b.reads(line) != 1 {
		t.Errorf("after it was mended there are %d lines on that:\n%s", n, b.model.request(b.model.calls()-1))
	}
	b.writeState("{\n  \"provider\": {\"id\": \"\", \"model\": 5}\n}")
	b.wait(b.say("seven"))
	if n := b.reads(line); n != 2 {
		t.Errorf("broken again, there are %d lines on it, want a new one", n)
	}
}

// A line of history that cannot be read is told to users and to the model, and is
// over when it is mended.
func TestABrokenLineOfHistoryIsToldUntilItIsMended(t *testing.T) {
	b := newBench(t, hear)
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	b.wait(b.say("alpha"))
	b.wait(b.say("bravo"))
	path := filepath.Join(b.dir, "history.jsonl")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b.edit("history.jsonl", strings.Replace(string(before), `"text":"alpha"`, `"text":alpha`, 1))
	b.wait(b.say("charlie")) // sees it
	if f := told(t, events, event.FileInvalid, "invalid character"); f.Line == 0 || f.Column == 0 || f.File != path {
		t.Errorf("told of %+v, want the line and the column", f)
	}
	b.wait(b.say("delta"))
	if b.reads("Broken file") != 1 || b.reads("that part of it is ignored") != 1 || b.reads("<message>alpha") != 0 {
		t.Errorf("the model reads:\n%s", b.model.request(b.model.calls()-1))
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b.edit("history.jsonl", strings.Replace(string(now), `"text":alpha`, `"text":"alpha"`, 1))
	b.wait(b.say("echo"))
	told(t, events, event.FileEdited, "good again")
	b.wait(b.say("foxtrot"))
	if b.reads("Mended file") != 1 || b.reads("<message>alpha") == 0 {
		t.Errorf("after it was mended the model reads:\n%s", b.model.request(b.model.calls()-1))
	}
}

// Without a list of problems, an agent logs them.
func TestBrokenFilesWithoutABoard(t *testing.T) {
	t.Parallel()
	b := newBench(t, hear)
	var log bytes.Buffer
	b.opts.Problems, b.opts.Log = nil, slog.New(slog.NewTextHandler(&log, nil))
	b.run()
	b.wait(b.say("one"))
	b.writeState("{\n  \"provider\": 5\n}")
	b.wait(b.say("two"))
	b.halt()
	if n := strings.Count(log.String(), "file has a problem"); n != 1 || !strings.Contains(log.String(), "state.json:2:") {
		t.Errorf("the log says %d times that a file has a problem:\n%s", n, &log)
	}
}

// Files of others are told of as whoever runs the agent says, a few at a time.
func TestManyBrokenFiles(t *testing.T) {
	b := newBench(t, hear)
	b.opts.Broken = func() (found []finding.Finding) {
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			found = append(found, finding.Finding{ID: "x", Severity: finding.Error, File: "/cron/" + name + "/TASK.md", Reason: "no"})
		}
		return found
	}
	b.run()
	b.wait(b.say("one"))
	if b.reads("Broken file") != mostBroken || b.reads("and 2 more") != 1 {
		t.Errorf("the model reads:\n%s", b.model.request(0))
	}
}

// A state.json that was broken while the agent slept takes no right with it: the last good
// version applies, and users are told.
func TestAStateThatBrokeWhileTheAgentSlept(t *testing.T) {
	t.Parallel()
	b := newBench(t, rightsScript, look{})
	if err := record.UpdateState(b.vol, b.dir, func(s *record.State) {
		s.Permissions.ReadDirs, s.Provider.Model = []string{"/srv"}, "m1"
	}); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.outcome(b.say("look"))
	b.halt()
	if err := os.WriteFile(filepath.Join(b.dir, "state.json"), []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.openBox()
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	if o := b.outcome(b.say("look")); o.Text != "may read" {
		t.Errorf("the agent woke and %s, want the rights of the last good version", o.Text)
	}
	if m := b.model.asked[b.model.calls()-1].Model; m != "m1" {
		t.Errorf("it calls the model %q, want that of the last good version", m)
	}
	told(t, events, event.FileInvalid, "state.json")
}

// The end of a history that a power cut tore is told when the agent wakes, and the lines
// before it stay.
func TestATornHistoryIsToldWhenTheAgentWakes(t *testing.T) {
	b := newBench(t, hear)
	b.run()
	b.wait(b.say("alpha"))
	b.halt()
	b.edit("history.jsonl", b.history()+`{"seq":99,"type":"us`)
	b.openBox()
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	told(t, events, event.FileInvalid, "history.jsonl")
	b.wait(b.say("bravo"))
	if b.reads("alpha") == 0 {
		t.Errorf("the model reads:\n%s", b.model.request(1))
	}
}
