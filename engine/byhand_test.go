package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// moved makes an agent in another workspace with an item that waits, and returns where
// its folder is.
func moved(t *testing.T) (id, dir string) {
	t.Helper()
	s := newStill(t)
	id = s.colleague(t)
	_, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "from elsewhere"})
	must(t, err)
	return id, s.folder(id)
}

// An agent that comes with work that waits does it at once, whether its folder is copied
// in or it is imported.
func TestAnAgentThatComesWithWorkIsWoken(t *testing.T) {
	for name, bring := range map[string]func(h *house, id, dir string) error{
		"copied in": func(h *house, id, dir string) error { // under a name that is not an agent's, as copies are made
			temp := filepath.Join(h.root, "agents", ".copy")
			return errors.Join(os.CopyFS(temp, os.DirFS(dir)), os.Rename(temp, h.folder(id)))
		},
		"imported": func(h *house, id, dir string) error {
			var out bytes.Buffer
			if err := folders.Export(filepath.Dir(filepath.Dir(dir)), id, &out); err != nil {
				return err
			}
			_, err := h.Import(t.Context(), &out, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			h := newHouse(t, t.TempDir(), echo(func(agent string, it inbox.Item) { got <- agent + " " + it.Text }))
			waitFor(t, "agents are watched", func() bool { return os.MkdirAll(filepath.Join(h.root, "agents"), 0o700) == nil })
			id, dir := moved(t)
			must(t, bring(h, id, dir))

			select {
			case text := <-got:
				if text != id+" from elsewhere" {
					t.Errorf("done was %s", text)
				}
			case <-time.After(time.Minute):
				t.Error("its work was not done")
			}
		})
	}
}

// An agent whose folder is taken away has ended: it accepts nothing more, and whoever
// watches is told why.
func TestAFolderThatIsTakenAwayEndsItsAgent(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	r := h.deliver(from("one", "hello"))
	waitFor(t, "the agent to wake", func() bool { _, awake, _ := h.Counts(); return awake == 1 })
	h.problems.Add(r.Agent, finding.Finding{ID: "seeded", Severity: finding.Error, File: filepath.Join(h.folder(r.Agent), "state.json")})
	e, ok := h.awake(r.Agent)
	if !ok {
		t.Fatal("it is not awake")
	}
	must(t, os.RemoveAll(h.folder(r.Agent)))
	waitFor(t, "the end is told", func() bool {
		return slices.ContainsFunc(told(h), func(e event.Event) bool {
			return e.Type == event.AgentEnded && e.Agent == r.Agent && e.Body == (event.Reason{Reason: "its folder is gone"})
		})
	})
	if _, err := h.Deliver(t.Context(), message.Incoming{Agent: r.Agent, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("it was written to all the same: %v", err)
	}
	if _, err := e.open(); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("what still holds it can use it: %v", err)
	}
	waitFor(t, "the agent to end", func() bool { _, awake, _ := h.Counts(); return awake == 0 })
	if left := h.problems.Of(r.Agent); len(left) > 0 {
		t.Errorf("its problems are still shown: %+v", left)
	}
}

// awaiting waits for an item in the background, and returns when that has begun.
func awaiting(h *house, r message.Receipt) (ended chan error) {
	ended = make(chan error, 1)
	go func() {
		_, err := h.Await(context.Background(), r.Agent, r.Item)
		ended <- err
	}()
	waitFor(h.t, "someone waits", func() bool {
		e, ok := h.awake(r.Agent)
		if !ok {
			return false
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.users > 0
	})

	return ended
}

// Nobody waits for what an agent that is killed or removed was to do.
func TestTheEndOfAnAgentEndsTheWaitForItsWork(t *testing.T) {
	for name, end := range map[string]func(h *house, id string) error{
		"killed":  func(h *house, id string) error { return h.Kill(h.t.Context(), id) },
		"removed": func(h *house, id string) error { _, err := h.Remove(h.t.Context(), id, true); return err },
		"by hand": func(h *house, id string) error { return os.RemoveAll(h.folder(id)) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
				for ctx.Err() == nil && disk.Exists(rt.Dir) {
					time.Sleep(time.Millisecond)
				}
				return record.ErrGone
			})
			a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
			must(t, err)
			waits := awaiting(h, h.deliver(message.Incoming{Agent: a.ID, Text: "hello"}))
			must(t, end(h, a.ID))
			select {
			case err := <-waits:
				if !errors.Is(err, message.ErrUnknownAgent) {
					t.Errorf("the wait ended with %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("it is still waited for")
			}
		})
	}
}

// An agent whose folder was away while it was at work takes messages when that is back, and does what waited.
func TestAFolderThatComesBack(t *testing.T) {
	release, done := make(chan struct{}), make(chan string, 9)
	h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return echo(func(_ string, it inbox.Item) { done <- it.Text })(ctx, rt)
	})
	r := h.deliver(from("one", "first"))
	awaiting(h, r)
	must(t, os.Rename(h.folder(r.Agent), h.folder(r.Agent)+"-away"))
	waitFor(t, "the agent is gone", func() bool { _, known := h.index.Get(r.Agent); return !known })
	must(t, os.Rename(h.folder(r.Agent)+"-away", h.folder(r.Agent)))
	waitFor(t, "the agent takes messages again", func() bool {
		_, err := h.Deliver(t.Context(), message.Incoming{Agent: r.Agent, Text: "second"})
		return err == nil
	})
	close(release)
	for _, want := range []string{"first", "second"} {
		if got := <-done; got != want {
			t.Errorf("it did %q, want %q", got, want)
		}
	}
}

// An agent is shown with the model that answers for it, what it may cost and how it takes what
// comes, as the settings say it, unless its own state does.
func TestWhatTheSettingsSayOfAnAgent(t *testing.T) {
	h := newHouseWith(t, t.TempDir(), idle, Options{AgentDefaults: AgentDefaults{
		Answers: func(_ address.Type, own record.Model) (string, int) { return "for " + own.Model, 7 },
		Budget: func(_ address.Descriptor, own *record.Budget) float64 {
			if own != nil {
				return own.USD
			}
			return 5
		},
		Queue: func(connector string) string { return "of " + connector }}})
	id := h.deliver(from("one", "hello")).Agent
	a, err := h.Agent(t.Context(), id)
	if err != nil || a.Model != "for " || a.Window != 7 || a.Budget != 5 || a.Queue != "of c" {
		t.Errorf("%+v, %v", a, err)
	}
	must(t, record.UpdateState(h.vol, h.folder(id), func(s *record.State) {
		s.Provider.Model, s.Budget, s.Queue = "own", &record.Budget{USD: 2}, "collect"
	}))
	a, err = h.Agent(t.Context(), id)
	if err != nil || a.Model != "for own" || a.Budget != 2 || a.Queue != "collect" {
		t.Errorf("with a state of its own: %+v, %v", a, err)
	}
	h.directory.answers = nil
	if a, err = h.Agent(t.Context(), id); err != nil || a.Model != "own" || a.Window != 0 {
		t.Errorf("where nobody knows the models: %+v, %v", a, err)
	}
}

// A drop folder that cannot be read is reported until it can be.
func TestADropFolderThatCannotBeRead(t *testing.T) {
	s := newStill(t)
	drop := filepath.Join(s.System.root, "drop")
	must(t, errors.Join(os.RemoveAll(drop), os.WriteFile(drop, nil, 0o600)))
	must(t, s.TakeDropped(t.Context()))
	var reported []string
	for _, f := range s.problems.Of("") {
		reported = append(reported, f.Reason)
	}
	all := strings.Join(reported, "\n")
	if !strings.Contains(all, "dropped messages cannot be delivered now") ||
		!strings.Contains(all, "the drop folder cannot be delivered now") {
		t.Errorf("reported are %q", reported)
	}
	must(t, errors.Join(os.Remove(drop), os.MkdirAll(filepath.Join(drop, ".taken"), 0o700)))
	must(t, s.TakeDropped(t.Context()))
	if left := s.problems.Of(""); len(left) != 0 {
		t.Errorf("still reported are %+v", left)
	}
}

// A descriptor that cannot be read is reported as it is now, and the agent keeps the one that it has.
func TestADescriptorThatCannotBeRead(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	path := filepath.Join(h.folder(a.ID), address.File)
	must(t, os.Remove(path))
	h.reread(a.ID, true)
	must(t, os.Mkdir(path, 0o700))
	h.reread(a.ID, true)
	if all := h.problems.Of(a.ID); len(all) != 1 || all[0].File != path || !strings.Contains(all[0].Reason, "cannot be read") {
		t.Errorf("reported are %+v", all)
	}
	if m, ok := h.index.Get(a.ID); !ok || m.Name != "Ops" {
		t.Errorf("it is %+v, %v", m, ok)
	}
}

// told is all events so far.
func told(h *house) []event.Event {
	list, _ := h.events.Since(0)
	return list
}

// What a user changes in the descriptor of an agent that sleeps counts, and is told by
// the names of the members.
func TestADescriptorThatIsEditedWhileItsAgentSleeps(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops", SystemPrompt: "be calm"})
	must(t, err)
	path := filepath.Join(h.folder(a.ID), address.File)
	was := "be calm"
	for now, looks := range map[string][]string{"be quick": {a.ID}, "be slow": nil} { // at this agent, and at all
		before := len(told(h))
		writeFile(t, path, strings.Replace(readFile(t, path), was, now, 1))
		h.rescan(looks...)
		if m, _ := h.index.Get(a.ID); m.Descriptor.SystemPrompt != now {
			t.Errorf("the descriptor is %+v", m.Descriptor)
		}
		if !slices.ContainsFunc(told(h)[before:], func(e event.Event) bool {
			f, ok := e.Body.(event.File)
			return ok && e.Agent == a.ID && f.File == address.File && strings.HasPrefix(f.Text, "systemPrompt changed")
		}) {
			t.Errorf("nobody is told of the change to %q: %+v", now, told(h)[before:])
		}
		was = now
	}
}

// What a person changed in a descriptor stays in use when a later change is broken, over a
// restart too.
func TestTheLastGoodDescriptorIsTheEditedOne(t *testing.T) {
	for name, edit := range map[string]func(h *house, id, path, text string) error{
		"in an editor": func(h *house, id, path, text string) error {
			writeFile(h.t, path, text)
			h.rescan(id)
			return nil
		},
		"in an editor, looked at once": func(h *house, id, path, text string) error {
			writeFile(h.t, path, text)
			h.reread(id, false)
			return nil
		},
		"by the API": func(h *house, id, _, text string) error {
			v, err := h.ReadFile(h.t.Context(), id, address.File)
			if err == nil {
				_, err = h.WriteFile(h.t.Context(), id, address.File, []byte(text), v.Hash)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			h := newHouse(t, root, idle)
			a, err := h.Create(t.Context(), address.Descriptor{Type: address.User, Connector: "terminal", UserID: "u"}) // asleep
			must(t, err)
			time.Sleep(20 * time.Millisecond) // a tick of the file system's clock
			id, path := a.ID, filepath.Join(h.folder(a.ID), address.File)
			must(t, edit(h, id, path, strings.Replace(readFile(t, path), "{", `{"name": "Ada",`, 1)))
			must(t, h.end())
			writeFile(t, path, "{")
			h = newHouse(t, root, idle)
			if m, ok := h.index.Get(id); !ok || m.Descriptor.Name != "Ada" {
				t.Errorf("after a broken change it is %+v, %v; want the name of the change before", m.Descriptor, ok)
			}
		})
	}
}

// A descriptor that is broken, of another agent, or with the address of another one is
// refused with the reason, and the file stays as it was.
func TestDescriptorsThatAreRefused(t *testing.T) {
	s := newStill(t)
	terminal := func() string {
		a, err := s.System.Create(t.Context(), address.Descriptor{Type: address.User, Connector: "terminal", UserID: "u"})
		must(t, err)
		return a.ID
	}
	id, other := terminal(), terminal()
	v, err := s.ReadFile(t.Context(), id, address.File)
	must(t, err)
	theirs, err := s.ReadFile(t.Context(), other, address.File)
	must(t, err)

	for content, reason := range map[string]string{
		"{":                    "",
		string(theirs.Content): "has the same address",
	} {
		_, err := s.WriteFile(t.Context(), id, address.File, []byte(content), v.Hash)
		if !errors.As(err, new(finding.Finding)) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%.30q: %v, want a finding with %q", content, err, reason)
		}
	}

	if now, err := s.ReadFile(t.Context(), id, address.File); err != nil || now.Hash != v.Hash {
		t.Errorf("the file was changed: %v", err)
	}
	if _, err := s.WriteFile(t.Context(), id, address.File, v.Content, v.Hash); err != nil {
		t.Errorf("its own address: %v", err)
	}
}

// spend writes an answer that cost something into an agent's history.
func spend(t *testing.T, s *System, id string, cost float64) {
	t.Helper()
	hist, _, err := record.Open(s.vol, s.folder(id), time.Now, slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, hist.Begin("session"))
	_, err = hist.Append(&record.Assistant{Turn: "t", Finish: record.FinishEndTurn, Provider: "p", Model: "m", Cost: cost})
	must(t, errors.Join(err, hist.Close()))
}

// A family is an agent and those below it that have not ended. Each costs what it and
// all below it have cost, those that have ended too.
func TestTheFamilyOfAnAgent(t *testing.T) {
	h := newHousehold(t, Limits{})
	one, two := h.person("one"), h.person("two")
	var children []string
	for _, name := range []string{"a", "b"} {
		child, err := h.child(one, name, false)
		must(t, err)
		children = append(children, child.ID)
	}

	other, err := h.child(two, "c", false)
	must(t, err)
	for i, id := range []string{one, children[0], children[1], two, other.ID} {
		spend(t, h.System, id, math.Pow(10, float64(i)))
	}
	must(t, h.Kill(t.Context(), children[1]))
	family, err := h.System.Family(t.Context(), one)
	must(t, err)
	got := map[string]float64{}
	for _, a := range family {
		got[a.ID] = a.Cost
	}

	if len(family) != 2 || family[0].ID != one || got[one] != 111 || got[children[0]] != 10 {
		t.Errorf("the family is %v, want the parent first with 111 and the child that lives with 10", got)
	}
}

// Who works for the house knows all colleagues; a user in a chat their own first, then
// those of the house. Those that ended are nobody's.
func TestColleaguesAreListedUpToANumber(t *testing.T) {
	s := newStill(t)
	made := func(name, by string) string {
		a, err := s.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: name, CreatedBy: by})
		must(t, err)
		return a.ID
	}
	ada, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	mine, err := s.Deliver(t.Context(), message.Incoming{From: Terminal(), Text: "hello"})
	must(t, err)
	hers, house, ended := made("hers", ada.Agent), made("house", ""), made("ended", "")
	must(t, s.Kill(t.Context(), ended))

	for _, tt := range []struct {
		asker string
		most  int
		want  []string
		more  bool
	}{
		{mine.Agent, 5, []string{hers, house}, false}, {mine.Agent, 1, nil, true},
		{ada.Agent, 5, []string{hers, house}, false}, {ada.Agent, 1, []string{hers}, true}, {ada.Agent, 2, []string{hers, house}, false},
	} {
		list, more := s.Colleagues(tt.asker, tt.most)
		var ids []string
		for _, m := range list {
			ids = append(ids, m.ID)
		}
		if len(ids) != min(tt.most, 2) || more != tt.more || tt.asker == ada.Agent && !slices.Equal(ids, tt.want) ||
			tt.most > 1 && !slices.Equal(sorted(ids), sorted(tt.want)) {
			t.Errorf("%v and more %v of at most %d, want %v and %v", ids, more, tt.most, tt.want, tt.more)
		}
	}
}

// An agent that ended before the last start is nobody's colleague either.
func TestAnEndedColleagueStaysUnlisted(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	var ids []string
	for _, name := range []string{"gone", "here"} {
		a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: name})
		must(t, err)
		ids = append(ids, a.ID)
	}
	must(t, h.Kill(t.Context(), ids[0]))
	must(t, h.end())

	h = newHouse(t, root, echo(func(string, inbox.Item) {}))
	r := h.deliver(message.Incoming{From: Terminal(), Text: "hello"})
	list, more := NewFamily(h.System, func() Limits { return Limits{} }).Colleagues(r.Agent, 5)
	if len(list) != 1 || list[0].ID != ids[1] || more {
		t.Errorf("the colleagues are %v (more: %v), want the one that lives", list, more)
	}
}

// An agent is at work while it says so, also where no item waits: a turn may follow from
// a decision.
func TestAnAgentThatShowsWorkIsAtWork(t *testing.T) {
	show, shown := make(chan event.State), make(chan struct{})
	root := t.TempDir()
	h := newHouse(t, root, func(ctx context.Context, rt Runtime) error {
		if err := echo(func(string, inbox.Item) {})(ctx, rt); err != nil || rt.Meta.Descriptor.Type != address.Subagent {
			return err
		}
		for state := range show {
			rt.Show(state, "")
			shown <- struct{}{}
		}

		return nil
	})
	f := NewFamily(h.System, func() Limits { return Limits{} })
	parent := h.deliver(from("one", "hello")).Agent
	child, err := f.Create(t.Context(), address.Descriptor{Type: address.Subagent, ID: address.ChildID(parent, "c"),
		ParentAgentID: parent, Name: "c", CallID: "c"}, message.Incoming{Origin: parent, Text: "do it", Dedupe: "k"})
	must(t, err)

	for _, tt := range []struct {
		state event.State
		works int
	}{{event.Thinking, 1}, {event.Idle, 0}, {event.UsingTool, 1}} {
		show <- tt.state
		<-shown
		if n := len(f.Running(t.Context(), parent)); n != tt.works {
			t.Errorf("while it shows %s, %d are at work, want %d", tt.state, n, tt.works)
		}
		if a, err := h.Agent(t.Context(), child.ID); err != nil || a.State != tt.state {
			t.Errorf("it is %s, want %s: %v", a.State, tt.state, err)
		}
	}

	close(show)
}
