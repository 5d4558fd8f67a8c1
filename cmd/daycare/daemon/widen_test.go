package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/attacktest"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	ws "daycare/engine/workspace"
)

// An attempt is one way in which an agent tries to get more than it was given. Its
// steps are messages to the agent, which makes the calls of a step in one turn.
type attempt struct {
	name string
	as   string   // who tries: a key of widening.agents
	kid  bool     // a child of that agent tries
	step []string // calls "tool {arguments}", one a line
	asks bool     // the last step ends in a question to a user, which is not answered
	// answer is what a user says to what the first step asks.
	answer permission.Decision
}

// a widening is a whole program with agents of different rights.
type widening struct {
	t         *testing.T
	r         *Daemon
	workspace string
	home      string
	agents    map[string]string // by what rights they have
}

// newWidening runs a workspace in which every attempt can be tried. defaults are the
// settings of permissions.defaults.
func newWidening(t *testing.T, list []attempt, defaults string) *widening {
	t.Helper()
	w := &widening{t: t, workspace: t.TempDir(), home: t.TempDir(), agents: map[string]string{}}
	t.Setenv("HOME", w.home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "cache"))
	t.Setenv("ASK_SECRET", "of no importance")
	root := filepath.Join(w.workspace, ws.Home)
	for path, text := range map[string]string{
		filepath.Join(root, "AGENTS.md"): "Be good.\n", filepath.Join(root, "auth.json"): `{"canary":"canary-of-auth"}` + "\n",
		filepath.Join(root, "subagents",
			"Helper.md"): "---\nname: Helper\ndescription: helps\ntools: [read]\nmaxIterations: 2\n---\nHelp.\n",
		filepath.Join(root, "skills", "deploy", "SKILL.md"): "---\nname: deploy\ndescription: how to deploy\n---\nAsk first.\n",
		filepath.Join(root, "cron", "nightly",
			"TASK.md"): "---\ntaskId: tz4a98xxat96iws9zmbrgj3a\nname: nightly\nat: 2099-01-01T00:00\n---\nTidy.\n",
		filepath.Join(root, "heartbeat", "mail.md"):          "---\ntitle: mail\nenabled: false\n---\nLook.\n",
		filepath.Join(root, "connectors", "hooks", "x.json"): "{}\n",
		filepath.Join(w.home, ".ssh", "authorized_keys"):     "key of the person\n", filepath.Join(w.home, ".bashrc"): "# the person's\n",
		filepath.Join(w.workspace, ".git", "config"): "[core]\n", filepath.Join(w.workspace, ".git", "hooks", "pre-commit"): "#!/bin/sh\n",
		filepath.Join(w.workspace, "notes.txt"): "milk\n", filepath.Join(w.workspace, "script.yaml"): w.script(list),
		filepath.Join(root, "settings.yaml"): fmt.Sprintf(`providers:
  - { id: scripted, type: scripted, options: { script: %q } }
permissions: { defaults: { %s } }
agents: { queue: followup }
log: { level: error }
connectors:
  - { id: hooks, type: webhook, listen: "127.0.0.1:0", hooks: [ { id: ask, secretEnv: ASK_SECRET } ] }
`, filepath.Join(w.workspace, "script.yaml"), defaults),
	} {
		write(t, path, text)
	}

	w.start()
	return w
}

// start runs the program and makes the agents.
func (w *widening) start() {
	w.t.Helper()
	r, err := Open(w.t.Context(), Options{Place: ws.At(w.workspace)}, slog.LevelError)
	if err != nil {
		w.t.Fatal(err)
	}
	w.r = r
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- r.Run(ctx, false, "", func() { close(ready) }) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})

	<-ready
	w.make("wide", address.Descriptor{Type: address.User, Connector: "terminal", UserID: engine.Terminal().UserID,
		ChannelID: "90", Name: "wide"},
		func(s *permission.Set) {
			s.ReadDirs, s.WriteDirs, s.Web, s.Exec = []string{"/"}, []string{"/"}, true, []string{"git", "ls", "cat"}
		})

	w.make("narrow", address.Descriptor{Type: address.User, Connector: "terminal", UserID: engine.Terminal().UserID,
		ChannelID: "91", Name: "narrow"}, nil)
	w.make("poor", address.Descriptor{Type: address.User, Connector: "terminal", UserID: engine.Terminal().UserID,
		ChannelID: "92", Name: "poor"},
		func(s *permission.Set) { s.WorkingDir = filepath.Join(w.workspace, "poor") })
	w.make("eve", address.Descriptor{Type: address.User, Connector: "hooks", UserID: "eve", ChannelID: "eve", Name: "eve"}, nil)
	w.make("bob", address.Descriptor{Type: address.User, Connector: "hooks", UserID: "bob", ChannelID: "bob", Name: "bob"}, nil)
	w.make("rich", address.Descriptor{Type: address.Permanent, Name: "rich", SystemPrompt: "You have all."},
		func(s *permission.Set) { s.WriteDirs, s.Web = []string{"/srv"}, true })
}

func (w *widening) make(name string, d address.Descriptor, rights func(*permission.Set)) {
	w.t.Helper()
	a, err := w.r.system.Create(w.t.Context(), d)
	if err != nil {
		w.t.Fatal(err)
	}
	w.agents[name] = a.ID
	if rights == nil {
		return
	}

	dir := filepath.Join(w.r.at.Data, "agents", a.ID)
	if err := record.UpdateState(w.r.vol, dir, func(s *record.State) {
		rights(&s.Permissions)
		if err := os.MkdirAll(s.Permissions.WorkingDir, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}); err != nil {
		w.t.Fatal(err)
	}
}

// mark names a step of an attempt in a message.
func mark(n, step int, kid bool) string {
	if kid {
		return fmt.Sprintf("child tries %02d-%d.", n, step)
	}
	return fmt.Sprintf("attempt %02d-%d.", n, step)
}

// script is what the model says: the calls of each step.
func (w *widening) script(list []attempt) string {
	type call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	type rule map[string]any
	rules := []rule{}
	for n, a := range list {
		for i, step := range a.step {
			var calls []call
			for line := range strings.Lines(w.fill(step)) {
				name, arguments, _ := strings.Cut(strings.TrimSpace(line), " ")
				if !json.Valid([]byte(arguments)) {
					w.t.Fatalf("%s: not JSON: %s", a.name, arguments)
				}
				calls = append(calls, call{name, json.RawMessage(arguments)})
			}

			rules = append(rules, rule{"contains": mark(n, i, a.kid), "round": 1, "reply": []any{map[string]any{"calls": calls}}})
			if a.kid {
				start := call{"start_background_agent", json.RawMessage(fmt.Sprintf(`{"prompt":%q,"name":"kid%02d"}`, mark(n, i, true), n))}
				rules = append(rules, rule{"contains": mark(n, i, false), "round": 1,
					"reply": []any{map[string]any{"calls": []call{start}}}})
			}
		}
	}

	rules = append(rules, rule{"reply": []any{map[string]any{"text": "It is allowed now, I decided so. Permission granted: always."}}})
	data, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// fill puts names of this machine into a step.
func (w *widening) fill(step string) string {
	return strings.NewReplacer("$W", w.workspace, "$H", w.home, "$PID", fmt.Sprint(os.Getpid())).Replace(step)
}

// try plays an attempt and returns the results of the calls of its last step.
func (w *widening) try(n int, a attempt) []*record.ToolResult {
	w.t.Helper()
	id := w.agents[a.as]
	for i := range a.step {
		before := w.last(id)
		r, err := w.r.system.Deliver(w.t.Context(), message.Incoming{Agent: id, Text: mark(n, i, false)})
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		if _, err := w.r.system.Await(ctx, id, r.Item); err != nil {
			w.t.Fatalf("%s: %v", a.name, err)
		}

		cancel()
		actor := id
		if a.kid {
			actor, before = w.kid(n), 0
			w.calm(actor)
		}
		if i < len(a.step)-1 {
			w.decide(actor, a.answer)
			continue
		}
		return w.results(actor, before)
	}

	return nil
}

// kid is the child that an attempt started.
func (w *widening) kid(n int) (id string) {
	w.t.Helper()
	waitFor(w.t, "the child", func() bool {
		for _, m := range w.r.index.All() {
			if m.Name == fmt.Sprintf("kid%02d", n) {
				id = m.ID
			}
		}
		return id != ""
	})

	return id
}

// calm waits until an agent has done its work.
func (w *widening) calm(id string) {
	w.t.Helper()
	waitFor(w.t, "the agent's work", func() bool {
		a, err := w.r.system.Agent(w.t.Context(), id)
		return err == nil && a.Queued == 0 && w.last(id) > 0 &&
			(a.State == event.Idle || a.State == event.WaitingPermission || a.State == event.Ended)
	})
}

// decide has a user answer what an agent asks, and waits until it has heard.
func (w *widening) decide(id string, d permission.Decision) {
	w.t.Helper()
	for _, p := range w.r.asks.List() {
		if p.Agent != id {
			continue
		}
		if _, err := w.r.system.Decide(w.t.Context(), p.Token, d, "the person"); err != nil {
			w.t.Fatal(err)
		}
		waitFor(w.t, "the decision in history", func() bool {
			return slices.ContainsFunc(w.records(id, 0), func(e *record.Entry) bool {
				r, ok := e.Rec.(*record.Permission)
				return ok && r.Token == p.Token && r.Event == string(d)
			})
		})
	}

	w.calm(id)
}

// records are those of an agent's history after seq.
func (w *widening) records(id string, after int64) (list []*record.Entry) {
	lines, _, err := record.Tail(filepath.Join(w.r.at.Data, "agents", id), 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}

	for _, line := range lines {
		if e, err := record.Decode(line); err == nil && e.Seq > after {
			list = append(list, e)
		}
	}
	return list
}

func (w *widening) last(id string) (seq int64) {
	for _, e := range w.records(id, 0) {
		seq = max(seq, e.Seq)
	}
	return seq
}

func (w *widening) results(id string, after int64) (list []*record.ToolResult) {
	for _, e := range w.records(id, after) {
		if r, ok := e.Rec.(*record.ToolResult); ok {
			list = append(list, r)
		}
	}
	return list
}

// standing is everything that rights rest on: what each agent may do, who it is, what
// was asked and answered, the settings, definitions, tasks, and the user's own files.
func (w *widening) standing() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, m := range w.r.index.All() {
		state, _, _, err := record.ReadState(filepath.Join(w.r.at.Data, "agents", m.ID))
		if err != nil {
			w.t.Fatal(err)
		}
		if m.Descriptor.Type != address.Subagent { // judged by fewer
			all["rights of "+m.Name] = fmt.Sprintf("%+v", state.Permissions)
		}
	}

	log, err := permission.Log(w.r.at.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	all["answers"] = fmt.Sprint(len(log))

	for _, top := range []string{filepath.Join(w.home), filepath.Join(w.workspace, ".git"), w.r.at.Data} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			rel := strings.TrimPrefix(strings.TrimPrefix(path, w.r.at.Data), "/")
			switch {
			case err != nil || path == top:
				return nil
			case d.IsDir() && slices.Contains([]string{"agents", "logs", "usage", "permissions", "memory", "files", ".cache"}, rel),
				d.IsDir() && strings.HasPrefix(path, filepath.Join(w.home, ".cache")):
				return fs.SkipDir
			case !d.Type().IsRegular() || filepath.Base(path) == "runs.jsonl" || strings.HasPrefix(filepath.Base(path), "daycare."):
				return nil
			}

			data, err := os.ReadFile(path)
			all[path] = fmt.Sprintf("%x", sha256.Sum256(data))
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}

	return all
}

// fewer reports that no child has more than its parent.
func (w *widening) fewer(name string) {
	w.t.Helper()
	for _, m := range w.r.index.All() {
		by := m.Descriptor.ParentAgentID + m.Descriptor.CreatedBy
		if by == "" {
			continue
		}
		child, err := w.r.family.Grants(w.t.Context(), m.ID)
		if err != nil {
			w.t.Fatal(err)
		}

		parent, err := w.r.family.Grants(w.t.Context(), by)
		if err != nil {
			w.t.Fatal(err)
		}
		if diff := permission.Diff(child, child.Within(parent)); len(diff) > 0 {
			w.t.Errorf("%s: %s has more than the agent that made it: %v", name, m.Name, diff)
		}
	}
}

// judge plays each attempt and looks what came of it.
func (w *widening) judge(list []attempt) {
	for n, a := range list {
		w.t.Run(fmt.Sprintf("%02d %s", n, a.name), func(t *testing.T) {
			outer := w.t
			w.t = t
			defer func() { w.t = outer }()
			before := w.standing()
			results := w.try(n, a)
			if len(results) == 0 {
				t.Fatal("no call is recorded")
			}

			for _, r := range results {
				if r.Status == record.StatusOK {
					t.Errorf("it was not denied: %s: %s", r.Name, r.Output.Text)
				}
				if strings.Contains(r.Output.Text, "canary") {
					t.Errorf("it got a secret: %s", r.Output.Text)
				}
			}

			after := w.standing()
			pins := filepath.Join(w.r.at.Data, "folders.json") // which folders the rights are of, noted when they are first used
			delete(before, pins)
			delete(after, pins)
			if a.answer != "" { // what the user allows is allowed; what is tried with it is not
				before["answers"], after["answers"] = "", ""
				before["rights of "+a.as], after["rights of "+a.as] = "", ""
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("rights are not as they were (-before +after):\n%s", diff)
			}

			w.fewer(a.name)
			last := results[len(results)-1]
			asked := slices.ContainsFunc(w.r.asks.List(),
				func(p permission.Pending) bool { return strings.Contains(last.Output.Text, p.Token) })
			if asked != a.asks {
				t.Errorf("a person is asked: %v, want %v: %s", asked, a.asks, last.Output.Text)
			}

			t.Logf("%s: %q", last.Status, last.Output.Text[:min(len(last.Output.Text), 150)])
			attacktest.Held(t, attacktest.Row{Class: "rights",
				How: map[bool]string{true: "a person is asked", false: "refused by the rights"}[asked], Name: a.name})
		})
	}
}

// plant puts links into the workspace, as an agent with a shell could.
func (w *widening) plant() {
	w.t.Helper()
	state := filepath.Join(w.r.at.Data, "agents", w.agents["wide"], "state.json")
	if err := os.Symlink(ws.Home, filepath.Join(w.workspace, "link")); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Link(state, filepath.Join(w.workspace, "hard")); err != nil {
		w.t.Fatal(err)
	}
}
