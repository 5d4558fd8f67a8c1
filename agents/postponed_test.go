package agents

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// obstacles keep state.json from being written.
var obstacles = map[string]func(path string) error{
	"broken by hand": func(path string) error { return os.WriteFile(path, []byte("{\n"), 0o600) },
	"a folder in its place": func(path string) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
	},
}

// A right that is taken away while state.json cannot be written stays away, over a
// restart too, and is taken out of the file as soon as that is possible.
func TestRevocationSurvivesAStateThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, obstruct := range obstacles {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, rightsScript, general{}, look{})
			path := filepath.Join(b.dir, "state.json")
			give := func(s *record.State) { s.Permissions.ReadDirs = []string{"/srv"} }
			if err := record.UpdateState(b.vol, b.dir, give); err != nil {
				t.Fatal(err)
			}

			reports := b.reports()
			b.run()
			b.outcome(b.say("look"))
			good, err := os.ReadFile(path)
			if err := errors.Join(err, obstruct(path)); err != nil {
				t.Fatal(err)
			}

			r, err := b.box.Accept(t.Context(),
				inbox.Item{Kind: message.Permission, Token: "t", Decision: string(permission.Revoked), Tag: "@read:/srv", By: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			within(t, "it is reported that the file cannot be written", func() bool { return reports.has("@read:/srv") })
			b.outcome(b.say("look"))
			b.halt()
			if b.openBox(); b.box.Len() != 1 {
				t.Fatalf("%d items are open, want the revocation", b.box.Len())
			}
			if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, good, 0o600)); err != nil {
				t.Fatal(err)
			}

			b.run()
			b.wait(r.Item)
			b.outcome(b.say("look"))
			b.halt()
			if got := b.texts(); got[0] != "may read" || got[1] != "may not read" || got[2] != "may not read" {
				t.Errorf("the agent said %q, want that it may read before the revocation alone", got)
			}
			if s, _, _, err := record.ReadState(b.dir); err != nil || s.Permissions.Allows(permission.Read{Path: "/srv"}) {
				t.Errorf("state.json still allows it, or %v", err)
			}
			if n := b.count("permission"); n != 1 {
				t.Errorf("%d steps of permissions in history, want the one revocation\n%s", n, b.history())
			}
		})
	}
}

// A right that is given for good while state.json cannot be written is stored later, in
// the same life, and the agent works on other messages meanwhile.
func TestAlwaysIsStoredWhenStateCanBeWrittenAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, rightsScript, general{}, look{})
	edited := make(chan struct{}, 1)
	b.opts.Edited = edited
	path := filepath.Join(b.dir, "state.json")
	if err := record.UpdateState(b.vol, b.dir, func(*record.State) {}); err != nil {
		t.Fatal(err)
	}

	reports := b.reports()
	b.run()
	b.outcome(b.say("ask"))
	good, err := os.ReadFile(path)
	if err := errors.Join(err, obstacles["broken by hand"](path)); err != nil {
		t.Fatal(err)
	}

	p := b.opts.Permits.(*permission.Queue).List()[0]
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Dedupe: p.DedupeKey(), Token: p.Token,
		Decision: string(permission.Always), By: "ada", Tag: p.Request.Tag, SHA256: p.SHA256, Text: p.Request.Detail.String()})
	if err != nil {
		t.Fatal(err)
	}

	within(t, "it is reported that the file cannot be written", func() bool { return reports.has("@read:/srv") })
	b.outcome(b.say("hello"))
	if b.box.Len() != 1 {
		t.Fatalf("%d items are open, want the decision", b.box.Len())
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}

	edited <- struct{}{}
	b.wait(r.Item)
	within(t, "the turn of the decision", func() bool { return b.count("turn_end") == 3 })
	b.halt()
	if s, _, _, err := record.ReadState(b.dir); err != nil || !s.Permissions.Allows(permission.Read{Path: "/srv"}) {
		t.Errorf("state.json does not allow it, or %v", err)
	}
}

// An unreadable decision may be a revocation: no tool runs until it can be read. One that a user
// dropped meanwhile is in the way of nothing.
func TestNoToolRunsWhileADecisionCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		err error
		ran bool
	}{"unreadable": {errors.New("input/output error"), false}, "dropped": {inbox.ErrUnknown, true}} {
		b := newBench(t, rightsScript, general{}, look{})
		if err := record.UpdateState(b.vol, b.dir, func(s *record.State) { s.Permissions.ReadDirs = []string{"/srv"} }); err != nil {
			t.Fatal(err)
		}
		b.opts.Inbox = unreadable{b.box, tt.err}
		b.run()
		item := b.say("look")
		within(t, "the answer", func() bool { return b.count("turn_end") == 1 })
		b.halt()
		o, _, err := record.Closing(b.dir, item)
		if ran := o.Text == "may read"; err != nil || ran != tt.ran || o.Text == "may not read" {
			t.Errorf("%s: the answer is %+v, %v; want that the tool runs: %v", name, o, err, tt.ran)
		}
	}
}

// unreadable is a mailbox in which a decision waits that cannot be read.
type unreadable struct {
	inbox.Mailbox
	err error
}

func (u unreadable) Open() []inbox.Head {
	heads := u.Mailbox.Open()
	for _, h := range heads {
		if h.Taken {
			return append(heads, inbox.Head{ID: "unreadable", Kind: message.Permission})
		}
	}
	return heads
}

func (u unreadable) Read(id string) (inbox.Item, error) {
	if id == "unreadable" {
		return inbox.Item{}, u.err
	}
	return u.Mailbox.Read(id)
}

// reports collects what is reported of the agent's files.
func (b *bench) reports() *reported {
	r := &reported{}
	events := b.opts.Events.Subscribe(b.t.Context())
	go func() {
		for e := range events {
			if f, ok := e.Body.(event.File); ok {
				r.add(f.Text)
			}
		}
	}()

	return r
}

type reported struct {
	mu    sync.Mutex
	texts []string
}

func (r *reported) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, text)
}

func (r *reported) has(word string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(text, word) })
}

// count is how many reports say something.
func (r *reported) count(words string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.texts {
		if strings.Contains(text, words) {
			n++
		}
	}

	return n
}
