package agents

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/agents/providers/scripted"
	"daycare/engine/address"
	"daycare/engine/crash/crashtest"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/disk/disktest"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
	"daycare/tools"
)

// A bench is one agent on real files with a scripted model, and a stage that the
// test stands in for.
type bench struct {
	t     testing.TB
	dir   string
	vol   *disk.Volume
	box   *inbox.File
	model *recording
	opts  world

	replica *disktest.Replica // of a part of TestOnAReplica

	mu   sync.Mutex
	sent []message.Promise
	stop context.CancelCauseFunc // of the current turn

	end  context.CancelFunc
	done chan error
}

// recording is the scripted model with a memory of what it was asked.
type recording struct {
	caller *providers.Caller
	mu     sync.Mutex
	asked  []*providers.Request
}

func (r *recording) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	r.mu.Lock()
	r.asked = append(r.asked, req)
	r.mu.Unlock()
	return r.caller.Call(ctx, req, watch)
}

func (r *recording) request(i int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, m := range r.asked[i].Messages {
		for _, p := range m.Parts {
			fmt.Fprintf(&b, "%s: %v\n", m.Role, p)
		}
	}
	return b.String()
}

func (r *recording) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

// TestMain has garbage collected seldom, which was a quarter of what these tests compute, and more tests beside each other than
// there are processors: they wait for pauses between tries.
func TestMain(m *testing.M) {
	os.Setenv("TMPDIR", crashtest.Memory())
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("16"); err != nil {
			panic(err)
		}
	}
	m.Run()
}

func newBench(t testing.TB, script string, list ...tools.Tool) *bench {
	t.Helper()
	root := t.TempDir()
	id := cuid.New()
	b := &bench{t: t, dir: filepath.Join(root, "agents", id), vol: disk.NewVolume(root)}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// As an agent is made: without it every test would wait for a file that may come back.
	state, err := record.EncodeState(workspace.At(root), record.State{})
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, "state.json"), state, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.replicate()
	p, err := scripted.New(scripted.Options{Source: []byte(script)})
	if err != nil {
		t.Fatal(err)
	}
	b.model = &recording{caller: &providers.Caller{Chain: []providers.Provider{p}}}
	set, err := tools.NewSet(list...)
	if err != nil {
		t.Fatal(err)
	}
	queue, _, err := permission.OpenQueue(b.vol, root, time.Now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { queue.Close() })
	events := event.NewStream("t")
	b.opts = world{Options: Options{Outbox: b, Stage: b, Deciders: Deciders{Permits: queue}, Place: Place{
		Dir: b.dir, Volume: b.vol, Events: events, Log: slog.New(slog.DiscardHandler),
		Problems: finding.NewProblems(func(agent string, f finding.Finding) {
			events.Emit(event.Event{Type: event.FileInvalid, Agent: agent,
				Body: event.File{File: f.File, Line: f.Line, Column: f.Column, Text: f.Reason}})
		}, func(agent, file string) {
			events.Emit(event.Event{Type: event.FileEdited, Agent: agent, Body: event.File{File: file, Text: "good again"}})
		})}},
		Meta: address.Meta{ID: id, Handle: "0/", Name: "test", Descriptor: address.Descriptor{
			Type: address.User, Connector: "chat", ChannelID: "c1", UserID: "u1"}},
		Tools:      set,
		Model:      func(record.Model) Model { return b.model },
		Definition: func(m address.Meta, _ record.State) prompt.Definition { return prompt.Definition{Name: m.Name} },
		Settings:   Settings{Rounds: 20, Parallel: 4, Queue: Steer, Idle: time.Hour, Stuck: time.Minute, Zone: "UTC"},
	}
	b.openBox()
	return b
}

func (b *bench) openBox() {
	b.t.Helper()
	b.takeOver()
	box, _, err := inbox.Open(b.vol, b.dir, inbox.NewQuota(1<<30), time.Now)
	if err != nil {
		b.t.Fatal(err)
	}
	seq, err := record.LastSeq(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	box.Reached(seq) // as the engine does
	b.box, b.opts.Inbox = box, box
}

func (b *bench) Send(p message.Promise) {
	b.mu.Lock()
	b.sent = append(b.sent, p)
	b.mu.Unlock()
	p.Report(message.Result{Out: p.ID, Parts: 1})
}
func (b *bench) Answers(to message.Address) bool { return to.Connector == "chat" }
func (b *bench) Interim(message.Address) bool    { return false }
func (b *bench) Show(event.State, string)        {}
func (b *bench) Ended([]string, record.Outcome)  {}
func (b *bench) Turn(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	b.mu.Lock()
	b.stop = cancel
	b.mu.Unlock()
	return ctx, func() { cancel(nil) }
}

// run starts the agent; it is ended with the test.
func (b *bench) run() {
	ctx, cancel := context.WithCancel(context.Background())
	b.end, b.done = cancel, make(chan error, 1)
	go func() { b.done <- b.opts.Run(ctx) }()
	b.t.Cleanup(func() { b.halt() })
}

// halt is an orderly stop.
func (b *bench) halt() {
	if b.end == nil {
		return
	}
	b.end()
	if err := <-b.done; err != nil {
		b.t.Errorf("agent: %v", err)
	}
	b.end = nil
	b.box.Close()
}

func (b *bench) say(text string) string {
	b.t.Helper()
	r, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Text, Text: text})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Item
}

func (b *bench) wait(items ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, id := range items {
		if err := b.box.Wait(ctx, id); err != nil {
			b.t.Fatalf("item %s: %v\n%s", id, err, b.history())
		}
	}
}

func (b *bench) outcome(item string) record.Outcome {
	b.t.Helper()
	b.wait(item)
	o, ok, err := record.Closing(b.dir, item)
	if err != nil || !ok {
		b.t.Fatalf("outcome of %s: %v, found %v\n%s", item, err, ok, b.history())
	}
	return o
}

// history is what was recorded; an agent that was only just started has no file of it yet.
func (b *bench) history() string {
	data, err := os.ReadFile(filepath.Join(b.dir, "history.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	return string(data)
}

// count is how many lines of history have a type.
func (b *bench) count(typ string) int {
	return strings.Count(b.history(), `"type":"`+typ+`"`)
}

// hold is a tool that runs until the test lets it go.
type hold struct {
	spec    tools.Spec
	running chan tools.Call
	release chan string
}

func newHold(name string, replay tools.Replay) *hold {
	return &hold{spec: tools.Spec{Name: name, Description: "waits", Schema: json.RawMessage(`{"type":"object"}`), Replay: replay},
		running: make(chan tools.Call, 10), release: make(chan string)}
}

func (h *hold) Spec() tools.Spec { return h.spec }
func (h *hold) Run(ctx context.Context, c tools.Call) (tools.Result, error) {
	h.running <- c
	select {
	case text := <-h.release:
		return tools.Result{Text: text}, nil
	case <-ctx.Done():
		return tools.Result{}, ctx.Err()
	}
}

const callHold = `
rules:
  - match: go
    round: 1
    reply: [ { calls: [ { name: hold, arguments: {} } ] } ]
  - tool_result: hold
    reply: [ { text: "result {{.Result}}" } ]
  - reply: [ { text: "heard: {{.Text}}" } ]
`
