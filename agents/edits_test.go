package agents

import (
	"context"
	"daycare/agents/providers"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"daycare/agents/prompt"
	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
	"daycare/tools"
)

const hear = `
rules:
  - reply: [ { text: "heard: {{.Text}}" } ]
`

func (b *bench) writeState(text string) {
	b.t.Helper()
	b.edit("state.json", text)
}

// edit saves a file as editors do: another file in its place.
func (b *bench) edit(name, text string) {
	b.t.Helper()
	temp := filepath.Join(b.dir, ".by-hand")
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

// told waits for an event of a kind whose text has all the words.
func told(t *testing.T, events <-chan event.Event, kind event.Type, words ...string) event.File {
	t.Helper()
	after := time.After(time.Minute)
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
	data, err := record.EncodeState(workspace.Of(b.dir), state)
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
	if data, err = record.EncodeState(workspace.Of(b.dir), state); err != nil {
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

// A grant that the runtime writes is no edit of a user.
func TestOwnGrantsAreNotAnnounced(t *testing.T) {
	b := newBench(t, hear)
	b.writeState(`{"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":[]}}`)
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if err := a.journal.begin(); err != nil {
		t.Fatal(err)
	}
	if err := a.lookAround(); err != nil {
		t.Fatal(err)
	}
	if err := a.files.saveState(func(s *record.State) {
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
	t.Parallel()
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
		t.Errorf("the model in use is %q, want the last good one", m)
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
		t.Errorf("the model in use is %q, want the corrected one", m)
	}
}

// A file that an editor writes in pieces is read again until it is whole: nothing is reported, and what it says counts.
func TestAStateThatIsWrittenInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const state = `{"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":[]},` +
			`"provider":{"id":"","model":"m%d"}}`
		b := newBench(t, hear)
		b.writeState(fmt.Sprintf(state, 1))
		told := b.watched()
		b.run()
		b.outcome(b.say("one"))
		whole := fmt.Sprintf(state, 2)
		b.writeState(whole[:40])
		time.AfterFunc(600*time.Millisecond, func() { b.writeState(whole) })
		b.outcome(b.say("two"))
		b.halt()

		synctest.Wait()
		if list := told.of(event.FileInvalid); len(list) != 0 {
			t.Errorf("told is %+v", list)
		}
		if m := b.model.asked[1].Model; m != "m2" {
			t.Errorf("the model in use is %q, want that of the whole file", m)
		}
	})
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
// the last good version stays active and is written again.
func TestAStateThatIsGoneIsWrittenAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, hear)
	b.writeState(`{"permissions":{"workingDir":"/w","readDirs":[],"writeDirs":[],"web":false,"exec":["git push"]},"provider":{"id":"",` +
		`"model":"m1"}}`)
	b.run()
	b.wait(b.say("one"))
	if err := os.Remove(filepath.Join(b.dir, "state.json")); err != nil {
		t.Fatal(err)
	}

	b.wait(b.say("two"))
	if m := b.model.asked[1].Model; m != "m1" {
		t.Errorf("the model in use is %q, want the last good one", m)
	}
	b.halt()
	s, raw, _, err := record.ReadState(b.dir)
	if err != nil || raw == nil || len(s.Permissions.Exec) != 1 || s.Provider.Model != "m1" || s.Stats == nil {
		t.Errorf("state.json is %s, %v", raw, err)
	}
}

// A state.json that cannot be read is reported with what to do, and the last good one stays in use until it can be.
func TestAStateThatCannotBeRead(t *testing.T) {
	b := newBench(t, hear)
	b.writeState(`{"provider":{"id":"","model":"m1"}}`)
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	b.wait(b.say("one"))
	path := filepath.Join(b.dir, "state.json")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	b.wait(b.say("two"))
	told(t, events, event.FileInvalid, "state.json")
	if m := b.model.asked[1].Model; m != "m1" {
		t.Errorf("the model in use is %q, want the last good one", m)
	}
	if found := b.opts.Problems.Of(b.opts.Meta.ID); len(found) != 1 || found[0].ID != "state-unreadable" || found[0].File != path ||
		found[0].Remedy == "" {
		t.Errorf("the problems are %+v", found)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.writeState(`{"provider":{"id":"","model":"m2"}}`)
	b.wait(b.say("three"))
	if m := b.model.asked[2].Model; m != "m2" || len(b.opts.Problems.Of(b.opts.Meta.ID)) != 0 {
		t.Errorf("the model in use is %q, and the problems are %+v", m, b.opts.Problems.Of(b.opts.Meta.ID))
	}
}

// A state.json that is gone when the agent wakes took the rights with it: users are
// told so, once, but not of an agent that is new.
func TestAStateThatIsMissingIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, hear)
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	b.wait(b.say("one"))
	b.halt()
	if err := os.Remove(filepath.Join(b.dir, "state.json")); err != nil {
		t.Fatal(err)
	}

	b.openBox()
	b.run()
	b.wait(b.say("two"))
	item := b.say("three")
	b.wait(item)
	n := 0
	for e := range events {
		if f, ok := e.Body.(event.File); ok && e.Type == event.FileInvalid && strings.Contains(f.Text, "has no permissions now") {
			n++
		}
		if i, ok := e.Body.(event.Item); ok && e.Type == event.ItemDone && i.Item == item {
			break
		}
	}

	if n != 1 {
		t.Errorf("it was told %d times, want once", n)
	}
}

// summarizer summarises only when it is let, so that a test can edit meanwhile.
type summarizer struct {
	*windowed
	asked chan string // what it was to summarise
	write chan struct{}
}

// spent is what each summary of a summarizer uses.
var spent = providers.Usage{Input: 100, Output: 10, CacheRead: 3, CacheWrite: 2}

func (s summarizer) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	if strings.HasPrefix(req.System, "You write the memory") {
		s.asked <- textOf(req)
		select {
		case <-s.write:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r, err := s.windowed.Call(ctx, req, watch)
		if err == nil {
			r.Usage = spent
		}
		return r, err
	}

	return s.windowed.Call(ctx, req, watch)
}

// Lines that are edited while they are summarised are in the summary as they are
// then; lines that are edited afterwards are under it, and the user is told.
func TestAnEditOfLinesUnderASummary(t *testing.T) {
	t.Parallel()
	w := summarizer{&windowed{window: 2_000_000}, make(chan string, 10), make(chan struct{})}
	b := newWindowed(t, w.windowed, &bigTool{})
	b.opts.Model = func(record.Model) Model { return w }
	events := b.opts.Events.Subscribe(t.Context())
	edited := make(chan struct{})
	b.opts.Edited = edited
	b.run()
	for n := 1; n <= 3; n++ {
		b.wait(b.say(fmt.Sprintf("this is turn %d: the code of turn %d is owl%d", n, n, n)))
	}
	edit := func(old, new string) {
		t.Helper()
		path := filepath.Join(b.dir, "history.jsonl")
		text := strings.ReplaceAll(b.history(), old, new)
		if text == b.history() {
			t.Fatalf("history has no %q", old)
		}
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Compact})
	if err != nil {
		t.Fatal(err)
	}
	if first := <-w.asked; !strings.Contains(first, "owl1") {
		t.Fatalf("summarised was\n%s", first)
	}
	edit("owl1", "crow1")
	w.write <- struct{}{}
	if second := <-w.asked; strings.Contains(second, "owl1") || !strings.Contains(second, "crow1") {
		t.Errorf("the summary was not made again of what stands there now:\n%s", second)
	}
	w.write <- struct{}{}
	b.wait(r.Item)
	c, err := record.ContextOf(b.dir)
	if n := b.count("summary"); n != 1 || err != nil || c.Summary == nil {
		t.Fatalf("history has %d summaries, want 1; %v", n, err)
	}
	if got := c.Summary.Rec.(*record.Summary).Tokens; got.Input != 2*spent.Input || got.Output != 2*spent.Output ||
		got.CacheRead != 2*spent.CacheRead || got.CacheWrite != 2*spent.CacheWrite {
		t.Errorf("it is said to have used %+v, want what both used", got)
	}
	edit("crow1", "raven1")
	edited <- struct{}{}
	if f := told(t, events, event.FileInvalid, "lines covered by the summary of record"); f.Line == 0 {
		t.Errorf("told without its line: %+v", f)
	}
	// With the summary's line taken out the model reads the lines again.
	var kept []string
	for line := range strings.Lines(b.history()) {
		if !strings.Contains(line, `"type":"summary"`) {
			kept = append(kept, line)
		}
	}
	path := filepath.Join(b.dir, "history.jsonl")
	if err := errors.Join(os.WriteFile(path+".new", []byte(strings.Join(kept, "")), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
	if o := b.outcome(b.say("what is the code of turn 1?")); !strings.Contains(o.Text, "raven1") &&
		!strings.Contains(b.history(), "raven1") {
		t.Errorf("without the summary: %q", o.Text)
	}
}

// Where history cannot be read, what it says is not counted: state.json stays as it was, and a change that
// should have been durable with it is an error.
func TestWhatCannotBeCountedIsNotWritten(t *testing.T) {
	turn := []record.Record{&record.TurnBegin{Turn: "turn", Items: []string{"i"}, Attempt: 1}, &record.User{Item: "i", Text: "hello"},
		&record.Assistant{Turn: "turn", Text: "well", Finish: record.FinishEndTurn, Provider: "p", Model: "m", Cost: 1},
		&record.TurnEnd{Turn: "turn", Items: []string{"i"}, Reason: record.ReasonDone}}
	for name, tt := range map[string]struct {
		later bool // the session has begun in an older file
		seq   int64
	}{"the session": {true, 6}, "the totals": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, hear)
			if tt.later {
				turn = append([]record.Record{&record.Start{Session: "session", V: record.Version, Continues: "000001.jsonl"}}, turn...)
			}
			b.cutAfter(turn...)
			if _, rest, _ := strings.Cut(b.history(), "\n"); tt.later {
				if err := os.WriteFile(filepath.Join(b.dir, "history.jsonl"), []byte(rest), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := record.UpdateState(b.vol, b.dir, func(s *record.State) { s.Seq, s.Session.ID = tt.seq, "another" }); err != nil {
				t.Fatal(err)
			}
			a, err := open(t.Context(), b.opts.options())
			if err != nil {
				t.Fatal(err)
			}
			defer a.close()
			if err := a.lookAround(); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(filepath.Join(b.dir, "state.json"))
			if err == nil {
				err = os.MkdirAll(filepath.Join(b.dir, "history", "000001.jsonl"), 0o700) // no file: it cannot be read
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := a.files.saveState(func(s *record.State) { s.Permissions.Web = true }); err == nil {
				t.Error("a change is taken for durable")
			}
			if now, err := os.ReadFile(filepath.Join(b.dir, "state.json")); err != nil || string(now) != string(before) {
				t.Errorf("state.json was\n%s\nand is now\n%s%v", before, now, err)
			}
		})
	}
}
