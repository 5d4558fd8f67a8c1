package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/connectors/terminal/transcript"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// daemon is a daemon in memory behind the real API: what the UI sees of it is what
// it would see of the real one. A test says what agents there are and what happens.
type daemon struct {
	mu       sync.Mutex
	agents   []event.Agent
	history  map[string][]json.RawMessage
	inbox    map[string][]event.Waiting
	drafts   map[string]event.Draft
	pending  []event.Ask
	got      []message.Incoming
	done     []string // what was asked of it, in order
	stream   *event.Stream
	down     bool
	setup    *Setup          // of the UI in front of it
	models   []event.Service // that it uses
	commands []control.CommandInfo
	rewound  []event.Rewound // files that turns wrote that are going to be rewound
	open     []io.Closer
	items    int
	asked    int // requests
}

func newDaemon() *daemon {
	return &daemon{history: map[string][]json.RawMessage{}, inbox: map[string][]event.Waiting{},
		drafts: map[string]event.Draft{}, stream: event.NewStream("boot"),
		models: []event.Service{{ID: "claude", Type: "anthropic", Key: true}}}
}

// dial is a client that loses its connections when the daemon goes down.
func (d *daemon) dial(context.Context) (*control.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return nil, control.ErrNotRunning
	}
	h := control.Handler(control.Backend{Agents: d, Permissions: d, Daemon: d, Events: d.stream,
		SubAgents: d, Catalog: d, Folders: folders{d: d}}, control.Options{})
	return control.NewClient(breakable{d, control.Local(h)}), nil
}

type breakable struct {
	d  *daemon
	rt http.RoundTripper
}

func (b breakable) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.rt.RoundTrip(r)
	b.d.mu.Lock()
	b.d.asked++
	b.d.mu.Unlock()
	if err == nil && strings.HasSuffix(r.URL.Path, "/events") {
		b.d.mu.Lock()
		b.d.open = append(b.d.open, resp.Body)
		b.d.mu.Unlock()
	}
	return resp, err
}

// requests is how many were made.
func (d *daemon) requests() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

// stop takes the daemon down; start brings it back.
func (d *daemon) stop() {
	d.mu.Lock()
	d.down = true
	open := d.open
	d.open = nil
	d.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

func (d *daemon) start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = false
}

// add makes an agent.
func (d *daemon) add(handle, name string, change func(*event.Agent)) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := "agent" + strings.NewReplacer("/", "x").Replace(handle) + strings.Repeat("z", 18)
	at := time.Now().Add(-time.Minute)
	a := event.Agent{ID: id, Handle: handle, Name: name, Type: "user", State: event.Idle, Model: "sonnet", LastAt: &at, Window: 200_000}
	if change != nil {
		change(&a)
	}
	d.agents = append(d.agents, a)
	return id
}

func (d *daemon) change(id string, f func(*event.Agent)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.agents {
		if d.agents[i].ID == id {
			f(&d.agents[i])
		}
	}
}

// record appends a line of history.
func (d *daemon) record(id, kind string, fields map[string]any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := map[string]any{"seq": len(d.history[id]) + 1, "at": time.Now(), "type": kind}
	for k, v := range fields {
		line[k] = v
	}
	data, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	d.history[id] = append(d.history[id], data)
}

// emit tells an event. The agent is in the state that the event tells of before
// anybody hears of it, as with the real daemon: a list that is read right after the
// event must not say something else.
func (d *daemon) emit(t event.Type, id, turn string, body event.Body) {
	d.change(id, func(a *event.Agent) { enter(a, t, body) })
	d.stream.Emit(event.Event{Type: t, At: time.Now(), Agent: id, Turn: turn, Body: body})
}

// enter puts an agent into the state that an event tells of.
func enter(a *event.Agent, t event.Type, body event.Body) {
	switch b := body.(type) {
	case event.Started:
		a.State, a.Detail = event.Thinking, ""
	case event.Tool:
		a.State, a.Detail = event.Thinking, ""
		if t == event.ToolStarted {
			a.State, a.Detail = event.UsingTool, strings.TrimSpace(b.Name+" "+transcript.Subject(b.Arguments))
		}
	case event.Attempt:
		a.State, a.Detail = event.Retrying, b.Reason
	case event.Delta:
		if a.State == event.Retrying {
			a.State, a.Detail = event.Thinking, ""
		}
	case event.Finished:
		a.State, a.Detail = event.Idle, ""
	}
}

func (d *daemon) call(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, fmt.Sprintf(format, args...))
}

func (d *daemon) calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.done)
}

// The API's side.

func (d *daemon) Agents(context.Context) ([]event.Agent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.agents), nil
}

func (d *daemon) Family(ctx context.Context, _ string) ([]event.Agent, error) { return d.Agents(ctx) }

func (d *daemon) Resolve(ref string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.agents {
		if a.ID == ref || a.Handle == ref {
			return a.ID, nil
		}
	}
	return "", message.ErrUnknownAgent
}

func (d *daemon) Agent(_ context.Context, id string) (event.Agent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.agents {
		if a.ID == id {
			return a, nil
		}
	}
	return event.Agent{}, message.ErrUnknownAgent
}

func (d *daemon) Create(ctx context.Context, n control.NewAgent) (event.Agent, error) {
	id := d.add(fmt.Sprintf("%d/", len(d.agents)), n.Name, nil)
	d.call("create %s", n.Name)
	return d.Agent(ctx, id)
}

func (d *daemon) Deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	if in.Agent == "" {
		in.Agent = d.add("0/", ownName, nil)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.items++
	item := fmt.Sprintf("item%d", d.items)
	d.got = append(d.got, in)
	d.inbox[in.Agent] = append(d.inbox[in.Agent],
		event.Waiting{ID: item, At: time.Now(), Type: "message", Text: in.Text, State: "waiting", Queue: string(in.Queue)})
	return message.Receipt{Agent: in.Agent, Item: item, Seq: int64(d.items)}, nil
}

func (d *daemon) Await(context.Context, string, string) (event.Outcome, error) {
	return event.Outcome{}, errors.New("not here")
}

// take moves the first waiting item of an agent into its history.
func (d *daemon) take(id, turn string) {
	d.mu.Lock()
	w := d.inbox[id][0]
	d.inbox[id] = d.inbox[id][1:]
	d.mu.Unlock()
	d.record(id, "turn_begin", map[string]any{"turn": turn, "items": []string{w.ID}, "attempt": 1})
	d.record(id, "user_message", map[string]any{"item": w.ID, "text": w.Text})
	d.emit(event.ItemTaken, id, turn, event.Item{Item: w.ID})
	d.emit(event.TurnStarted, id, turn, event.Started{Attempt: 1})
}

// say is a piece of the current answer.
func (d *daemon) say(id, turn string, offset int, text string) {
	d.emit(event.MessageDelta, id, turn, event.Delta{Offset: offset, Text: text})
}

// end closes a turn with its answer.
func (d *daemon) end(id, turn, text string) {
	d.record(id, "assistant_message", map[string]any{"turn": turn, "text": text, "finish": "end_turn", "model": "sonnet",
		"tokens": map[string]int{"input": 12000, "output": 400}})
	d.record(id, "turn_end", map[string]any{"turn": turn, "reason": "done"})
	now := time.Now()
	d.change(id, func(a *event.Agent) { a.LastAt = &now })
	d.emit(event.TurnFinished, id, turn, event.Finished{Reason: "done", Text: text})
}

func (d *daemon) History(_ context.Context, id string, before int64, limit int) (event.Page, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.history[id]
	if before > 0 {
		lines = lines[:before-1]
	}
	p := event.Page{Records: lines}
	if n := len(lines) - limit; n > 0 {
		seq := int64(n + 1)
		p.Records, p.Before = lines[n:], &seq
	}
	return p, nil
}

func (d *daemon) Inbox(_ context.Context, id string) ([]event.Waiting, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.inbox[id]), nil
}

func (d *daemon) Item(context.Context, string, string) (event.Posted, error) {
	return event.Posted{}, control.ErrNotRunning
}

func (d *daemon) Drop(_ context.Context, id, item string) error {
	d.call("drop %s", item)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inbox[id] = slices.DeleteFunc(d.inbox[id], func(w event.Waiting) bool { return w.ID == item })
	return nil
}

func (d *daemon) Front(_ context.Context, _, item string) error {
	d.call("front %s", item)
	return nil
}

func (d *daemon) Draft(_ context.Context, id string) (event.Draft, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drafts[id], nil
}

func (d *daemon) Stop(_ context.Context, id, _ string) (bool, error) {
	d.call("stop %s", id)
	return true, nil
}

func (d *daemon) Kill(_ context.Context, id string) error {
	d.call("kill %s", id)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agents = slices.DeleteFunc(d.agents, func(a event.Agent) bool { return a.ID == id || a.ParentAgentID == id })
	return nil
}

func (d *daemon) Remove(context.Context, string, bool) (string, error) {
	return "", errors.New("not here")
}

func (d *daemon) Answered(context.Context, int) ([]event.Ask, error) { return nil, nil }

func (d *daemon) Asks(context.Context) ([]event.Ask, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.pending), nil
}

func (d *daemon) Decide(_ context.Context, token, decision, _ string) error {
	d.call("decide %s %s", token, decision)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = slices.DeleteFunc(d.pending, func(a event.Ask) bool { return a.Token == token })
	return nil
}

func (d *daemon) Status(context.Context) (event.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return event.Status{Running: true, Version: "test", Agents: 1, Providers: d.models}, nil
}

func (d *daemon) SubAgents(context.Context) ([]control.SubAgentInfo, error) {
	return []control.SubAgentInfo{
		{Name: "CodeSearch", Icon: "🔍", Description: "Finds where something is done in a code base.",
			Tools: []string{"read", "grep", "glob"}, MaxIterations: 20},
		{Name: "Planner", Icon: "🧭", Description: "Makes a plan of a change before anybody begins.",
			Tools: []string{"read"}, MaxIterations: 12, File: "/home/ada/project/.daycare/subagents/Planner.md"},
	}, nil
}

func (d *daemon) Skills(context.Context) ([]control.SkillInfo, error) {
	return []control.SkillInfo{{Name: "release", Icon: "📦", Tools: "read exec", File: "/home/ada/project/.daycare/skills/release/SKILL.md",
		Description: "How to make a release of this project, from the changelog to the tag."}}, nil
}

func (d *daemon) Providers(context.Context) ([]event.Service, error) { return d.models, nil }

func (d *daemon) Commands(context.Context) ([]control.CommandInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commands, nil
}

func (d *daemon) Expand(_ context.Context, name, arguments string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.commands {
		if c.Name == name {
			return "Review " + arguments + " with care.", nil
		}
	}
	return "", fault.NoCommand
}

func (d *daemon) Models(context.Context) ([]control.ModelInfo, error) {
	in, out := 3.0, 15.0
	return []control.ModelInfo{
		{Choice: "claude", Provider: "claude", Model: "sonnet", Window: 200_000, Input: &in, Output: &out, Images: true, Default: true},
		{Choice: "local", Provider: "local", Model: "qwen3-coder", Window: 32_000},
		{Choice: "claude/opus", Provider: "claude", Model: "opus", Window: 200_000, Images: true},
	}, nil
}

// folders is the part of the API of which only the model of an agent is used here.
type folders struct {
	control.Folders
	d *daemon
}

func (f folders) Switch(_ context.Context, id, model string) (control.Choice, error) {
	f.d.call("switch %s %s", id, model)
	f.d.change(id, func(a *event.Agent) { a.Model = model })
	return control.Choice{Provider: "claude", Model: model}, nil
}

// ReadFile is a descriptor; WriteFile gives the agent the name of the new one, as long as it replaces that.
func (folders) ReadFile(context.Context, string, string) ([]byte, string, error) {
	return []byte(`{"type":"user","name":"as before","channelId":"c"}`), "before", nil
}

func (f folders) WriteFile(_ context.Context, id, name string, content []byte, hash string) (string, error) {
	var as struct{ Name, ChannelID string }
	if err := json.Unmarshal(content, &as); err != nil || name != "descriptor.json" || hash != "before" || as.ChannelID != "c" {
		return "", fmt.Errorf("%s, hash %s: %s, %w", name, hash, content, err)
	}
	f.d.change(id, func(a *event.Agent) { a.Name = as.Name })
	f.d.emit(event.FileEdited, id, "", event.File{File: name})
	return "after", nil
}

func (folders) Rewindable(context.Context, string, string) error { return nil }

func (f folders) Undoable(context.Context, string, *string) ([]event.Rewound, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.rewound, nil
}

func (f folders) TakeBack(_ context.Context, id string, paths []string, merge bool) ([]event.TakenBack, error) {
	f.d.call("take back %s %q %v", id, paths, merge)
	return []event.TakenBack{{Path: "auth/login.go", Outcome: "done"},
		{Path: "auth/new.go", Outcome: "refused", Why: "it changed since"}}, nil
}

func (folders) Export(context.Context, string, io.Writer) error { return nil }

func (d *daemon) Reload(context.Context) ([]finding.Finding, error) { return nil, nil }
func (d *daemon) Shutdown(context.Context) error                    { return nil }
func (d *daemon) Config(context.Context) (any, error)               { return nil, nil }
func (d *daemon) Tools(context.Context) ([]control.ToolInfo, error) { return nil, nil }
