package agents

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// teller is a tool that tells somebody something, or fails to.
type teller struct{ status tools.Status }

func (t teller) Spec() tools.Spec {
	return tools.Spec{Name: "tell", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.Idempotent}
}

func (t teller) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Text: "x", Status: t.status}, nil
}

// asker needs a permission that nobody gives.
type asker struct{ teller }

func (asker) Needs(tools.Call) (*permission.Request, error) {
	return &permission.Request{Tag: "@exec:rm", Detail: permission.Detail{Command: "rm"}}, nil
}

const reportScript = `
rules:
  - { contains: quiet, reply: [ { text: NO_MESSAGE } ] }
  - { contains: fail, reply: [ { fault: { kind: rejected, message: broken } } ] }
  - { tool_result: tell, reply: [ { text: told } ] }
  - { contains: tell, reply: [ { calls: [ { name: tell, arguments: {} } ] } ] }
  - { reply: [ { text: "the result" } ] }
`

func TestWhichTurnsAreReported(t *testing.T) {
	told := func(c record.ToolCall) bool { return c.Name == "tell" }
	label := func(r *Reports) { r.Always = true }
	for name, tt := range map[string]struct {
		say   string
		tool  tools.Tool
		set   func(*Reports)
		want  string // text of the report, "-" for none
		fails bool
	}{
		"said nothing itself":    {say: "work", want: "the result"},
		"told its parent":        {say: "tell", want: "-"},
		"could not tell":         {say: "tell", tool: teller{status: tools.Failed}, want: "told"},
		"nothing to say":         {say: "quiet", want: "-"},
		"failed":                 {say: "fail", want: "The model service refused the request (scripted: broken).", fails: true},
		"label, told":            {say: "tell", set: label, want: "told"},
		"label, nothing to say":  {say: "quiet", set: label, want: "NO_MESSAGE"},
		"waits for a permission": {say: "tell", tool: asker{}, set: label, want: "-"},
		"waits for its children": {say: "work", set: func(r *Reports) { r.Waits = func() bool { return true } }, want: "-"},
		"awaited by a call":      {say: "fail", set: func(r *Reports) { r.Awaited = "the-item" }, want: "-"},
		"has no parent":          {say: "work", set: func(r *Reports) { r.To = "" }, want: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := tt.tool
			if tool == nil {
				tool = teller{}
			}
			b := newBench(t, reportScript, tool)
			b.opts.Meta.Descriptor = address.Descriptor{Type: address.Subagent}
			b.opts.Reports = Reports{To: "parent", Told: told, Waits: func() bool { return false }}
			if tt.set != nil {
				tt.set(&b.opts.Reports)
			}
			if _, err := b.box.Accept(t.Context(),
				inbox.Item{ID: "the-item", Kind: message.System, Origin: "parent", Hops: 2, Text: tt.say}); err != nil {
				t.Fatal(err)
			}

			b.run()
			turn := b.outcome("the-item").Turn
			b.halt()
			got := "-"
			for _, p := range b.sent {
				got = p.Text
				want := message.Outgoing{ID: "report:" + b.opts.Meta.ID + ":" + turn, Text: got,
					To:     message.Address{Connector: message.ToAgent, ChannelID: "parent"},
					Report: &message.Report{From: b.opts.Meta.ID, Hops: 3, Failed: tt.fails}}
				if diff := cmp.Diff(want, p.Outgoing); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
			}

			if got != tt.want || len(b.sent) > 1 {
				t.Errorf("reported %q in %d messages, want %q in one", got, len(b.sent), tt.want)
			}
		})
	}
}

// A crash between the turn's end and the report leaves the promise in history.
func TestAReportIsPromisedWithTheTurnsEnd(t *testing.T) {
	b := newBench(t, reportScript)
	b.opts.Meta.Descriptor = address.Descriptor{Type: address.Subagent}
	b.opts.Reports = Reports{To: "parent", Told: func(record.ToolCall) bool { return false }, Waits: func() bool { return false }}
	silent := &mute{bench: b}
	b.opts.Outbox = silent
	item := b.say("work")
	b.run()
	b.outcome(item)
	b.halt()
	if n := strings.Count(b.history(), `"type":"delivery"`); n != 0 {
		t.Fatalf("%d deliveries were recorded by an outbox that delivers nothing", n)
	}

	b.opts.Outbox = b
	b.openBox()
	b.run()
	b.outcome(b.say("work")) // what was owed from before leaves first
	b.halt()
	if p := b.sent[0]; !p.Retry || p.Text != "the result" || p.Report == nil {
		t.Errorf("after the restart: %+v", p)
	}
}

// mute keeps every promise for the next start.
type mute struct{ *bench }

func (m *mute) Send(p message.Promise) { p.Report(message.Result{Out: p.ID, Kept: true}) }

func TestAReportIsAnsweredWhereTheWorkWasAskedFor(t *testing.T) {
	b := newBench(t, reportScript)
	elsewhere := message.Address{Connector: "chat", ChannelID: "elsewhere"}
	b.run()
	b.outcome(b.say("hello"))
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.System, Origin: "child", Text: "done", Route: &elsewhere})
	if err != nil {
		t.Fatal(err)
	}

	b.outcome(r.Item)
	b.outcome(b.say("hello again"))
	b.halt()
	var chats []string
	for _, p := range b.sent {
		chats = append(chats, p.To.ChannelID)
	}

	if diff := cmp.Diff([]string{"c1", "elsewhere", "c1"}, chats); diff != "" {
		t.Errorf("answers went to (-want +got):\n%s", diff)
	}
}

func TestThePrefaceStandsInTheMessage(t *testing.T) {
	b := newBench(t, reportScript)
	b.opts.Preface = func() string { return "Your agent at work: 0/0" }
	b.run()
	b.outcome(b.say("hello"))
	b.halt()
	if got := b.model.request(0); !strings.Contains(got, "<notice>Your agent at work: 0/0</notice>") {
		t.Errorf("the model read:\n%s", got)
	}
}

// Somebody in the terminal joins a turn that a service waits for: the service gets
// its answer all the same. A message from the agent's own chat takes it there.
func TestWhoReadsAlongTakesNoAnswerAway(t *testing.T) {
	for own, want := range map[string]message.Address{
		"terminal": {Connector: "chat", ChannelID: "hook"},
		"chat":     {Connector: "chat", ChannelID: "c1", UserID: "u1"},
	} {
		t.Run(own, func(t *testing.T) {
			tool := newHold("hold", tools.Once)
			b := newBench(t, callHold, tool)
			b.opts.Meta.Descriptor.Connector = own
			b.run()
			r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "go",
				Route: &message.Address{Connector: "chat", ChannelID: "hook"}, Context: message.Context{MessageID: "m1"}})
			if err != nil {
				t.Fatal(err)
			}

			<-tool.running
			joined := b.say("by the way")
			tool.release <- "ok"
			b.wait(r.Item, joined)
			b.halt()
			if len(b.sent) != 1 || b.sent[0].To != want {
				t.Errorf("sent %+v, want one answer to %+v", b.sent, want)
			}
		})
	}
}

// A turn that was stopped while a tool ran, or before the model said a word, ends with an
// answer that says so: the newest one is not one that waits for its tools.
func TestAStoppedTurnEndsWithACanceledAnswer(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, callHold, h)
	b.run()
	item := b.say("go")
	<-h.running
	b.mu.Lock()
	b.stop(errors.New("stopped"))
	b.mu.Unlock()
	if o := b.outcome(item); o.Reason != record.ReasonCanceled {
		t.Errorf("the turn ended %q, want canceled", o.Reason)
	}

	var finishes []record.Finish
	for line := range strings.Lines(b.history()) {
		e, err := record.Decode([]byte(strings.TrimSpace(line)))
		if err != nil {
			t.Fatal(err)
		}
		if as, ok := e.Rec.(*record.Assistant); ok {
			finishes = append(finishes, as.Finish)
		}
	}

	if want := []record.Finish{record.FinishToolUse, record.FinishCanceled}; !slices.Equal(finishes, want) {
		t.Errorf("the answers finished %q, want %q", finishes, want)
	}
	b.outcome(b.say("hello"))
	if r := b.model.request(1); !strings.Contains(r, "Cancelled") || !strings.Contains(r, "hello") {
		t.Errorf("the next request:\n%s", r)
	}
}

// The session of an agent that another one started names it.
func TestASessionNamesTheParent(t *testing.T) {
	b := newBench(t, callHold)
	b.opts.Meta.Descriptor = address.Descriptor{Type: address.Subagent, ParentAgentID: "theparent"}
	b.opts.Reports = Reports{Waits: func() bool { return false }}
	b.run()
	b.outcome(b.say("hello"))
	b.halt()
	if s, _, _, err := record.ReadState(b.dir); err != nil || s.Session.Parent != "theparent" {
		t.Errorf("session %+v, %v", s.Session, err)
	}
}
