package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// Whoever saves a file while someone else does learns where the other version is.
func TestACopyOfAConflictIsReported(t *testing.T) {
	t.Parallel()
	h := newHouse(t, t.TempDir(), idle)
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	path := filepath.Join(h.folder(a.ID), "SYSTEM.md")
	writeFile(t, path, "old")
	editor, err := os.OpenFile(path, os.O_RDWR, 0) // it has the file open, and may write to the old one
	must(t, err)
	defer editor.Close()
	_, err = h.archive.vol.Exchange("state", path, []byte("new"), []byte("old"))
	must(t, err)
	copies, err := filepath.Glob(path + ".*")
	must(t, err)
	if len(copies) != 1 || readFile(t, copies[0]) != "old" || readFile(t, path) != "new" {
		t.Fatalf("kept are %v", copies)
	}
	if !slices.ContainsFunc(told(h), func(e event.Event) bool {
		f, ok := e.Body.(event.File)
		return ok && e.Agent == a.ID && f.File == path && strings.Contains(f.Text, "kept as "+filepath.Base(copies[0]))
	}) {
		t.Errorf("told is %+v", told(h))
	}
}

// An edit is looked at once, however often a watcher hints at it.
func TestHintsOfEditsAreTakenOnce(t *testing.T) {
	d := newEdits()
	d.hint("one")
	d.hint("one")
	if ids := d.take(); len(ids) != 1 || ids[0] != "one" || len(d.take()) != 0 {
		t.Errorf("taken are %v, and then more", ids)
	}
}

// A descriptor that is edited while its agent is in memory reaches the agent, and
// users are told what changed; a broken one is reported with its place and leaves
// the last good one in force.
func TestADescriptorEditReachesTheRunningAgent(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	seats := make(chan Runtime, 1)
	h := newHouse(t, root, func(ctx context.Context, s Runtime) error {
		seats <- s
		<-ctx.Done()
		return nil
	})
	events := h.events.Subscribe(t.Context())
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops", SystemPrompt: "old"})
	if err != nil {
		t.Fatal(err)
	}

	h.deliver(message.Incoming{Agent: a.ID, Text: "hello"})
	rt := <-seats
	save := func(text string) {
		t.Helper()
		path := filepath.Join(root, "agents", a.ID, address.File)
		if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
	}
	told := func(kind event.Type) event.File {
		for e := range events {
			if f, ok := e.Body.(event.File); ok && e.Type == kind {
				return f
			}
		}
		return event.File{}
	}

	save(`{"type":"permanent","id":"` + a.ID + `","name":"Ops","systemPrompt":"new"}`)
	if f := told(event.FileEdited); f.File != "descriptor.json" || !strings.HasPrefix(f.Text, "systemPrompt changed") {
		t.Errorf("told %+v, want what changed", f)
	}
	if got := rt.Identity().Descriptor.SystemPrompt; got != "new" {
		t.Errorf("the running agent sees %q, want the edit", got)
	}

	save("{\"type\":\"permanent\",\n\"name\":}")
	if f := told(event.FileInvalid); f.Line != 2 || f.Column == 0 {
		t.Errorf("told %+v, want the place", f)
	}
	if got := rt.Identity().Descriptor.SystemPrompt; got != "new" {
		t.Errorf("the running agent sees %q, want the last good version", got)
	}

	save(`{"type":"permanent","id":"` + a.ID + `","name":"Ops","systemPrompt":"newer"}`)
	told(event.FileEdited)
}

// A history that is taken away from a folder which stays does not end the agent: what
// waits is worked on with a new one.
func TestAnAgentGoesOnWithoutItsHistory(t *testing.T) {
	t.Parallel()
	var failed atomic.Bool
	handled := echo(func(string, inbox.Item) {})
	h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		if failed.CompareAndSwap(false, true) {
			return fmt.Errorf("%w: history.jsonl", record.ErrGone)
		}
		return handled(ctx, rt)
	})
	events := h.events.Subscribe(t.Context())
	r := h.deliver(from("someone", "x"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := h.Await(ctx, r.Agent, r.Item); err != nil {
		t.Fatalf("the message was not worked on: %v", err)
	}

	for e := range events {
		if f, ok := e.Body.(event.File); ok && e.Type == event.FileInvalid && strings.Contains(f.Text, "starting a new one") {
			break
		}
	}
}

// What the runtime itself writes into an agent's folder is not an edit of a user: the agent does
// not read its files again for it.
func TestWhatTheRuntimeWritesIsNoEdit(t *testing.T) {
	root := t.TempDir()
	awake := make(chan Runtime, 1)
	h := newHouse(t, root, func(ctx context.Context, rt Runtime) error {
		awake <- rt
		<-ctx.Done()
		return nil
	})
	events := h.events.Subscribe(t.Context())
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops", SystemPrompt: "old"})
	must(t, err)
	h.deliver(message.Incoming{Agent: a.ID, Text: "hello"})
	rt := <-awake
	dir := filepath.Join(root, "agents", a.ID)
	edit := func(prompt string) {
		made := filepath.Join(dir, ".new")
		must(t, os.WriteFile(made, []byte(`{"type":"permanent","id":"`+a.ID+`","name":"Ops","systemPrompt":"`+prompt+`"}`), 0o600))
		must(t, os.Rename(made, filepath.Join(dir, address.File)))
		for e := range events {
			if e.Type == event.FileEdited {
				break
			}
		}
	}

	// An agent that wakes before the watcher runs gets a hint to look once it does. That hint has come when the second edit is reported.
	edit("first")
	edit("second")
	select {
	case <-rt.Edited():
	default:
	}
	for _, name := range []string{"draft.json", "sessions.jsonl", "SYSTEM.md"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	edit("third") // a watcher that saw these saw them before, or with it
	select {
	case <-rt.Edited():
		t.Error("the agent is told that a user edited its files")
	default:
	}
}

// What the runtime alone writes is no edit; what users edit is.
func TestWhatIsAnEdit(t *testing.T) {
	for name, want := range map[string]bool{"draft.json": false, "inbox.jsonl": false, "sessions.jsonl": false, "SYSTEM.md": false,
		".state.json.tmp": false, "state.json": true, address.File: true, "history.jsonl": true, "queue": true} {
		if runtimeOnly(name) == want {
			t.Errorf("a change of %s is an edit: %v", name, !want)
		}
	}
}

// A file that someone else saves in the folder of an agent that is awake reaches the agent; so does all that may have
// changed while the folder was away.
func TestAnEditReachesItsAgent(t *testing.T) {
	awake := make(chan Runtime, 1)
	h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		awake <- rt
		<-ctx.Done()
		return nil
	})
	h.deliver(from("one", "hello"))
	rt := <-awake
	edited := func(what string) {
		t.Helper()
		select {
		case <-rt.Edited():
		case <-time.After(time.Minute):
			t.Fatalf("%s: the agent is not notified", what)
		}
	}
	writeFile(t, filepath.Join(rt.Dir, "state.json"), `{"model":"x"}`)
	edited("a saved file")
	must(t, os.Rename(rt.Dir, rt.Dir+"-away"))
	must(t, os.Rename(rt.Dir+"-away", rt.Dir))
	edited("the folder is back")
}

// An agent that wakes has what was written into its descriptor while it slept, although nothing watches its folder.
func TestAnAgentWakesWithItsEdits(t *testing.T) {
	awake := make(chan string, 1)
	h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		awake <- rt.Meta.Descriptor.SystemPrompt
		<-ctx.Done()
		return nil
	})
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops", SystemPrompt: "old"})
	must(t, err)
	path := filepath.Join(h.folder(a.ID), address.File)
	writeFile(t, path, strings.Replace(readFile(t, path), "old", "{", 1)+"}")
	h.deliver(message.Incoming{Agent: a.ID, Text: "hello"})
	<-awake
	if all := h.problems.Of(a.ID); len(all) != 1 || all[0].File != path {
		t.Errorf("a broken descriptor is found when its agent wakes: reported are %+v", all)
	}
}

// A descriptor that is broken for a moment is not reported; one that stays broken is, whatever else is edited.
func TestADescriptorThatIsBrokenForAMoment(t *testing.T) {
	t.Parallel()
	s := newStill(t)
	ds := s.System.descriptors
	moment, stays, other := s.colleague(t), s.colleague(t), s.colleague(t)
	path := func(id string) string { return filepath.Join(s.System.folder(id), address.File) }
	was := readFile(t, path(moment))
	hint := func(id string) {
		ds.edits.hint(id)
		waitFor(t, "the look", func() bool {
			ds.edits.mu.Lock()
			defer ds.edits.mu.Unlock()
			return len(ds.edits.ids) == 0
		})
		time.Sleep(20 * time.Millisecond) // it was taken, and is looked at
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { ds.watchEdits(ctx); close(ended) }()
	for _, id := range []string{moment, stays} {
		writeFile(t, path(id), "{")
		hint(id)
	}
	writeFile(t, path(moment), was)
	hint(other)
	waitFor(t, "its report", func() bool { return len(s.System.problems.Of(stays)) == 1 })
	if all := s.System.problems.Of(moment); len(all) > 0 {
		t.Errorf("reported are %+v", all)
	}
	writeFile(t, path(stays), strings.Replace(was, moment, stays, 1))
	hint(stays)
	waitFor(t, "its mending", func() bool { return len(s.System.problems.Of(stays)) == 0 })
	stop()
	<-ended
}
