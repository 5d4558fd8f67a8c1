package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

// A program stands for the hooks of a test: functions by the moment.
type program struct {
	at map[hooks.Event]func(ctx context.Context, m hooks.Moment) hooks.Verdict

	mu  sync.Mutex
	ran []hooks.Moment
}

func (h *program) Any(event hooks.Event, _ string) bool { return h.at[event] != nil }

func (h *program) Run(ctx context.Context, m hooks.Moment) hooks.Verdict {
	h.mu.Lock()
	h.ran = append(h.ran, m)
	h.mu.Unlock()
	v := h.at[m.Event](ctx, m)
	v.Ran = append(v.Ran, hooks.Ran{Hook: hooks.Hook{Event: m.Event, Command: "./" + string(m.Event)}, Decision: v.Decision})
	return v
}

// times is how often the hooks of a moment ran.
func (h *program) times(event hooks.Event) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.ran {
		if m.Event == event {
			n++
		}
	}
	return n
}

// always is a hook that says the same each time.
func always(v hooks.Verdict) func(context.Context, hooks.Moment) hooks.Verdict {
	return func(context.Context, hooks.Moment) hooks.Verdict { return v }
}

// hooking gives the bench hooks.
func (b *bench) hooking(at map[hooks.Event]func(context.Context, hooks.Moment) hooks.Verdict) *program {
	h := &program{at: at}
	b.opts.Hooks = h
	return h
}

type moments = map[hooks.Event]func(context.Context, hooks.Moment) hooks.Verdict

// echo says what it was called with.
type echo struct{ spec tools.Spec }

func newEcho(replay tools.Replay) echo {
	return echo{tools.Spec{Name: "echo", Description: "says it", Replay: replay, Parallel: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}`)}}
}

func (e echo) Spec() tools.Spec { return e.spec }
func (e echo) Run(_ context.Context, c tools.Call) (tools.Result, error) {
	return tools.Result{Text: "echo " + string(c.Arguments)}, nil
}

const callEcho = `
rules:
  - round: 1
    reply: [ { calls: [ { name: echo, arguments: { text: one } } ] } ]
  - tool_result: echo
    reply: [ { text: "it said {{.Result}}" } ]
  - reply: [ { text: "heard: {{.Text}}" } ]
`

// What before_tool says of a call: it runs, runs otherwise, does not run, or ends the turn.
func TestHooksBeforeATool(t *testing.T) {
	for name, tt := range map[string]struct {
		verdict hooks.Verdict
		told    string // part of the answer
		reason  string
		starts  int
	}{
		"nothing to say": {hooks.Verdict{}, `echo {"text":"one"}`, record.ReasonDone, 1},
		"allow":          {hooks.Verdict{Decision: hooks.Allow}, `echo {"text":"one"}`, record.ReasonDone, 1},
		"deny": {hooks.Verdict{Decision: hooks.Deny, Reason: "no echoes here"},
			"denied by a hook of the owner: no echoes here", record.ReasonDone, 0},
		"another input":      {hooks.Verdict{Input: json.RawMessage(`{"text":"two"}`)}, `echo {"text":"two"}`, record.ReasonDone, 1},
		"an input of no use": {hooks.Verdict{Input: json.RawMessage(`{"words":"two"}`)}, "words", record.ReasonDone, 0},
		"the turn ends":      {hooks.Verdict{Stop: true, Reason: "out of hours"}, "ended the turn: out of hours", record.ReasonError, 0},
	} {
		b := newBench(t, callEcho, newEcho(tools.Once))
		h := b.hooking(moments{hooks.BeforeTool: always(tt.verdict)})
		b.run()
		out := b.outcome(b.say("go"))
		if !strings.Contains(out.Text, tt.told) || out.Reason != tt.reason || b.count("tool_started") != tt.starts {
			t.Errorf("%s: %+v, %d calls started\n%s", name, out, b.count("tool_started"), b.history())
		}
		if h.times(hooks.BeforeTool) != 1 || !strings.Contains(b.history(), "before_tool hook for echo: ./before_tool") {
			t.Errorf("%s: ran %d times, or history does not say so\n%s", name, h.times(hooks.BeforeTool), b.history())
		}
		if m := h.ran[0]; m.Tool != "echo" || string(m.Input) != `{"text":"one"}` || m.ID == "" || m.Turn == "" || m.Agent.Session == "" {
			t.Errorf("%s: it was told %+v", name, m)
		}
		b.halt()
	}
}

// What a hook says to its owner is told to those who watch, once.
func TestHooksSpeakToTheirOwner(t *testing.T) {
	b := newBench(t, callEcho, newEcho(tools.Once))
	b.hooking(moments{hooks.AfterTool: always(hooks.Verdict{Notices: []string{"the build is red"}})})
	told := b.watched()
	b.run()
	b.outcome(b.say("go"))
	within(t, "the owner is told", func() bool { return len(told.of(event.HookSaid)) == 1 })
	if e := told.of(event.HookSaid)[0]; e.Body != (event.Reason{Reason: "the build is red"}) || e.Turn == "" {
		t.Errorf("%+v", e)
	}
}

// A hook that asks makes a user decide what the agent could do without; what its hook may
// approve needs no user; and what a user denied stays denied.
func TestHooksAskAndApprove(t *testing.T) {
	b := newBench(t, callEcho, newEcho(tools.Once))
	b.hooking(moments{hooks.BeforeTool: always(hooks.Verdict{Decision: hooks.Ask, Reason: "is that wise?"})})
	b.run()
	if out := b.outcome(b.say("go")); out.Reason != record.ReasonWaiting || b.count("tool_started") != 0 ||
		!strings.Contains(b.history(), `"event":"asked"`) {
		t.Errorf("asked: %+v\n%s", out, b.history())
	}
	b.halt()

	need := permission.Request{Tag: "@web:example.com", Reason: "look", Detail: permission.Detail{Command: "look"}}
	for _, approved := range []string{"", "./policy"} {
		b := newBench(t, callEcho, needing{newEcho(tools.Once), need})
		b.hooking(moments{hooks.BeforeTool: always(hooks.Verdict{Decision: hooks.Allow, Approved: approved})})
		b.run()
		out := b.outcome(b.say("go"))
		if waits := out.Reason == record.ReasonWaiting; waits == (approved != "") ||
			strings.Contains(out.Text, "with the approval of "+need.Tag) == waits {
			t.Errorf("approved by %q: %+v", approved, out)
		}
		b.halt()
	}
}

// needing is a tool whose calls need an approval.
type needing struct {
	echo
	need permission.Request
}

func (n needing) Needs(tools.Call) (*permission.Request, error) { return &n.need, nil }

func (n needing) Run(ctx context.Context, c tools.Call) (tools.Result, error) {
	r, err := n.echo.Run(ctx, c)
	r.Text += " with the approval of " + c.Approved
	return r, err
}

// A hook cannot change the input of what widens rights: the right would be that of the words
// of the model, which nobody approved.
func TestHooksCannotChangeWhatWidens(t *testing.T) {
	b := newBench(t, callEcho, widening{newEcho(tools.Once)})
	b.hooking(moments{hooks.BeforeTool: always(hooks.Verdict{Input: json.RawMessage(`{"text":"two"}`)})})
	b.run()
	if out := b.outcome(b.say("go")); !strings.Contains(out.Text, "which no hook may change") || b.count("tool_started") != 0 {
		t.Errorf("%+v", out)
	}
}

type widening struct{ echo }

func (widening) Widens(tools.Call) string { return "@web:example.com" }

// What after_tool says is part of the result; the call is done whatever it says.
func TestHooksAfterATool(t *testing.T) {
	for name, tt := range map[string]struct {
		verdict hooks.Verdict
		want    string
		reason  string
	}{
		"nothing": {hooks.Verdict{}, `it said echo {"text":"one"}`, record.ReasonDone},
		"context": {hooks.Verdict{Context: "formatted 2 files"}, "[hook after_tool] formatted 2 files", record.ReasonDone},
		"block": {hooks.Verdict{Decision: hooks.Deny, Reason: "it does not compile"}, "[hook after_tool] it does not compile",
			record.ReasonDone},
		"stop": {hooks.Verdict{Stop: true, Reason: "enough"}, "ended the turn: enough", record.ReasonError},
	} {
		b := newBench(t, callEcho, newEcho(tools.Once))
		h := b.hooking(moments{hooks.AfterTool: always(tt.verdict)})
		b.run()
		out := b.outcome(b.say("go"))
		if !strings.Contains(out.Text, tt.want) || out.Reason != tt.reason || b.count("tool_result") != 1 {
			t.Errorf("%s: %+v\n%s", name, out, b.history())
		}
		if m := h.ran[0]; m.Response == nil || m.Response.Status != "ok" || m.Response.Output != `echo {"text":"one"}` {
			t.Errorf("%s: it was told %+v", name, m)
		}
		b.halt()
	}
}

// A message that is refused never reaches the model, and its sender reads why; one that is
// not can get context.
func TestHooksOnMessages(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "heard: {{.Text}}" } ] } ]`)
	h := b.hooking(moments{hooks.OnMessage: func(_ context.Context, m hooks.Moment) hooks.Verdict {
		if strings.Contains(m.Message.Text, "secret") {
			return hooks.Verdict{Decision: hooks.Deny, Reason: "no secrets"}
		}
		return hooks.Verdict{Context: "it is Tuesday"}
	}})
	b.run()
	refused := b.outcome(b.say("my secret is 4711"))
	if b.model.calls() != 0 || !strings.Contains(refused.Text, "refused this: no secrets") || strings.Contains(b.history(), "4711") {
		t.Errorf("%d calls of the model: %+v\n%s", b.model.calls(), refused, b.history())
	}
	if out := b.outcome(b.say("hello")); out.Reason != record.ReasonDone {
		t.Errorf("%+v", out)
	}
	asked := b.model.request(0)
	if strings.Contains(asked, "4711") || !strings.Contains(asked, "it is Tuesday") ||
		!strings.Contains(asked, `origin="hook on_message"`) {
		t.Errorf("the model was asked\n%s", asked)
	}
	silent, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Text, Text: "a secret aside", Silent: true,
		Route: &message.Address{Connector: "chat", ChannelID: "team", UserID: "ada"}})
	if err != nil {
		t.Fatal(err)
	}
	system, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.System, Text: "a secret of daycare", Origin: "system"})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(silent.Item, system.Item)
	if strings.Contains(b.history(), "secret aside") || !strings.Contains(b.history(), "secret of daycare") ||
		h.times(hooks.OnMessage) != 3 {
		t.Errorf("hooks ran %d times\n%s", h.times(hooks.OnMessage), b.history())
	}
	if h.ran[0].Origin != "" || h.ran[2].Origin != "chat/team/ada" {
		t.Errorf("hooks were told that messages came from %q and %q", h.ran[0].Origin, h.ran[2].Origin)
	}
}

// Of two messages of one turn, a hook that refuses one does not refuse the turn; a silent one that it lets pass does not
// save the turn of one that it refuses.
func TestARefusedMessageBesideAnother(t *testing.T) {
	for name, tt := range map[string]struct {
		silent bool
		calls  int
	}{"beside one that asks": {false, 1}, "beside a silent one": {true, 0}} {
		b := newBench(t, `rules: [ { reply: [ { text: "heard" } ] } ]`)
		b.hooking(moments{hooks.OnMessage: func(_ context.Context, m hooks.Moment) hooks.Verdict {
			if strings.Contains(m.Message.Text, "secret") {
				return hooks.Verdict{Decision: hooks.Deny, Reason: "no secrets"}
			}
			return hooks.Verdict{}
		}})
		secret := b.say("a secret")
		r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "hello", Silent: tt.silent})
		if err != nil {
			t.Fatal(err)
		}
		b.run()
		b.wait(secret, r.Item)
		b.outcome(secret)
		b.halt()
		if b.model.calls() != tt.calls || tt.calls > 0 && strings.Contains(b.model.request(0), "a secret") {
			t.Errorf("%s: %d calls, want %d\n%s", name, b.model.calls(), tt.calls, b.history())
		}
	}
}

// What begins a session and a turn is added between the messages: the system prompt and what
// the model has answered stay as they were, byte for byte.
func TestHooksAddContextBehindThePrefix(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "heard" } ] } ]`)
	n := 0
	h := b.hooking(moments{
		hooks.SessionStart: always(hooks.Verdict{Context: "the branch is main"}),
		hooks.BeforePrompt: func(_ context.Context, m hooks.Moment) hooks.Verdict {
			n++
			return hooks.Verdict{Context: fmt.Sprintf("note %d on %s", n, m.Message.Text)}
		}})
	b.run()
	b.outcome(b.say("one"))
	b.outcome(b.say("two"))
	first, second := b.model.asked[0], b.model.asked[1]
	if first.System != second.System || !strings.HasPrefix(b.model.request(1), b.model.request(0)) {
		t.Errorf("the prefix changed:\n%s\n---\n%s", b.model.request(0), b.model.request(1))
	}
	if got := b.model.request(1); strings.Count(got, "the branch is main") != 1 || !strings.Contains(got, "note 1 on one") ||
		!strings.Contains(got, "note 2 on two") {
		t.Errorf("the model was asked\n%s", got)
	}
	reset, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Reset})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(reset.Item)
	b.outcome(b.say("three"))
	if h.times(hooks.SessionStart) != 2 || h.times(hooks.BeforePrompt) != 3 {
		t.Errorf("session_start ran %d times, before_prompt %d", h.times(hooks.SessionStart), h.times(hooks.BeforePrompt))
	}
}

// A hook that has nothing to say adds nothing to the conversation.
func TestHooksWithoutWordsAddNothing(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "hi" } ] } ]`)
	h := b.hooking(moments{hooks.BeforePrompt: always(hooks.Verdict{}), hooks.SessionStart: always(hooks.Verdict{})})
	b.run()
	b.outcome(b.say("hello"))
	b.halt()
	if ran := h.times(hooks.BeforePrompt) + h.times(hooks.SessionStart); ran != 2 || b.count("user_message") != 1 {
		t.Errorf("they ran %d times, and there are %d messages\n%s", ran, b.count("user_message"), b.history())
	}
}

// wordless hooks leave no note of what they did, so that nothing is written after them.
type wordless struct{ *program }

func (h wordless) Run(ctx context.Context, m hooks.Moment) hooks.Verdict {
	v := h.program.Run(ctx, m)
	v.Ran = nil
	return v
}

// What a before_prompt hook changes in the history is in the request that follows.
func TestAnEditByAHookIsInTheNextRequest(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "hi" } ] } ]`)
	path := filepath.Join(b.dir, "history.jsonl")
	b.opts.Hooks = wordless{b.hooking(moments{hooks.BeforePrompt: func(context.Context, hooks.Moment) hooks.Verdict {
		text := strings.ReplaceAll(b.history(), "the sky is green", "the sky is blue.")
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Error(err)
		}
		return hooks.Verdict{}
	}})}
	b.run()
	b.wait(b.say("the sky is green"))
	if got := b.model.request(0); strings.Contains(got, "green") || !strings.Contains(got, "the sky is blue.") {
		t.Errorf("the request does not have the edit:\n%s", got)
	}
}

// before_prompt can end a turn before the model is called.
func TestHooksRefuseAPrompt(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "heard" } ] } ]`)
	b.hooking(moments{hooks.BeforePrompt: always(hooks.Verdict{Decision: hooks.Deny, Reason: "closed on Sundays"})})
	b.run()
	out := b.outcome(b.say("one"))
	if !strings.Contains(out.Text, "closed on Sundays") || !strings.Contains(out.Error, "refused by a hook: closed on Sundays") ||
		b.model.calls() != 0 {
		t.Errorf("%+v after %d calls", out, b.model.calls())
	}
}

// turn_end can have the model continue, not forever; the answer that counts is the last.
func TestHooksHaveATurnGoOn(t *testing.T) {
	for name, tt := range map[string]struct {
		rounds int // that a turn may have
		blocks int // how often it is not content
		calls  int
		ran    int
	}{"content": {20, 0, 1, 1}, "once": {20, 1, 2, 2}, "always": {20, 99, maxGoOn + 1, maxGoOn + 1},
		"for the rounds of a turn": {2, 99, 2, 2}} {
		b := newBench(t, `rules: [ { reply: [ { text: "done: {{.Text}}" } ] } ]`)
		b.opts.Settings.Rounds = tt.rounds
		n := 0
		h := b.hooking(moments{hooks.TurnEnd: func(_ context.Context, m hooks.Moment) hooks.Verdict {
			if m.Again != (n > 0) {
				t.Errorf("%s: stop_hook_active is %v at the %d. time", name, m.Again, n+1)
			}
			if n++; n <= tt.blocks {
				return hooks.Verdict{Decision: hooks.Deny, Reason: "run the tests first"}
			}
			return hooks.Verdict{}
		}})
		b.run()
		out := b.outcome(b.say("build it"))
		if out.Reason != record.ReasonDone || b.model.calls() != tt.calls || h.times(hooks.TurnEnd) != tt.ran {
			t.Errorf("%s: %+v after %d calls and %d hooks\n%s", name, out, b.model.calls(), h.times(hooks.TurnEnd), b.history())
		}
		if tt.calls > 1 && !strings.Contains(b.model.request(1), "run the tests first") {
			t.Errorf("%s: the model was asked\n%s", name, b.model.request(1))
		}
		b.halt()
		if len(b.sent) != 1 {
			t.Errorf("%s: %d answers were sent, want one", name, len(b.sent))
		}
	}
}

// interim is an outbox of a chat that also gets what the model said before its last answer.
type interim struct{ *bench }

func (interim) Interim(message.Address) bool { return true }

// What the model says beside a call is sent before that is done, where a chat wants such.
func TestWordsBesideACallAreSentBeforeItIsDone(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, strings.Replace(callHold, "{ calls: [", "{ text: one moment, calls: [", 1), h)
	b.opts.Outbox = interim{b}
	b.run()
	item := b.say("go")
	<-h.running
	if got := b.texts(); !slices.Equal(got, []string{"one moment"}) {
		t.Errorf("sent is %q beside the call", got)
	}
	h.release <- "r"
	b.outcome(item)
	b.halt()
	if got := b.texts(); !slices.Equal(got, []string{"one moment", "result r"}) {
		t.Errorf("sent is %q in the end", got)
	}
}

// An answer that a turn_end hook was not content with is sent where a chat wants such, before the last one; what the
// agent did is brought in once, when the turn is done.
func TestAnAnswerBeforeTheLastIsSent(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "done: {{.Text}}" } ] } ]`)
	b.opts.Outbox = interim{b}
	var settled []string
	b.opts.Reports.Settle = func(turn string) { settled = append(settled, turn) }
	asked := false
	b.hooking(moments{hooks.TurnEnd: func(context.Context, hooks.Moment) hooks.Verdict {
		if asked {
			return hooks.Verdict{}
		}
		asked = true
		return hooks.Verdict{Decision: hooks.Deny, Reason: "run the tests first"}
	}})
	b.run()
	out := b.outcome(b.say("build it"))
	b.halt()
	if got := b.texts(); !slices.Equal(got, []string{"done: build it", "done: run the tests first"}) {
		t.Errorf("sent are %q", got)
	}
	if len(settled) != 1 || settled[0] != out.Turn {
		t.Errorf("brought in for the turns %q, want %s once", settled, out.Turn)
	}
}

// Only a turn_end hook that denies has the model continue; what another says, or one that stops, lets the turn end.
func TestHooksThatLetATurnEnd(t *testing.T) {
	for name, v := range map[string]hooks.Verdict{"allowed": {Decision: hooks.Allow, Reason: "well done"},
		"no decision": {Reason: "well done"}, "stopped": {Stop: true, Decision: hooks.Deny, Reason: "enough"}} {
		b := newBench(t, `rules: [ { reply: [ { text: "done" } ] } ]`)
		b.hooking(moments{hooks.TurnEnd: always(v)})
		b.run()
		if out := b.outcome(b.say("go")); out.Reason != record.ReasonDone || b.model.calls() != 1 {
			t.Errorf("%s: %+v after %d calls", name, out, b.model.calls())
		}
		b.halt()
	}
}

// A stop of the turn while one of its hooks runs ends it, whatever the hook wanted.
func TestAStopDuringAHookEndsTheTurn(t *testing.T) {
	for at, want := range map[hooks.Event]string{hooks.OnMessage: record.ReasonCanceled, hooks.BeforePrompt: record.ReasonCanceled,
		hooks.TurnEnd: record.ReasonDone} { // which is behind the answer
		asked := map[hooks.Event]int{hooks.BeforePrompt: 1, hooks.TurnEnd: 1}[at] // the first one in vain
		t.Run(string(at), func(t *testing.T) {
			b := newBench(t, `rules: [ { reply: [ { text: "done" } ] } ]`)
			b.hooking(moments{at: func(ctx context.Context, _ hooks.Moment) hooks.Verdict {
				b.mu.Lock()
				b.stop(nil)
				b.mu.Unlock()
				<-ctx.Done()
				return hooks.Verdict{Decision: hooks.Deny, Reason: "run the tests first"}
			}})
			b.run()
			out := b.outcome(b.say("go"))
			b.halt()
			if out.Reason != want || strings.Contains(out.Text+out.Error, "run the tests") || b.count("turn_end") != 1 ||
				b.model.calls() != asked || at == hooks.TurnEnd && strings.Contains(b.history(), "run the tests") {
				t.Errorf("%+v after %d calls\n%s", out, b.model.calls(), b.history())
			}
		})
	}
}

// Hooks have bounds of their own: a turn that waits for one is not stuck.
func TestASlowHookIsNoTurnThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, `rules: [ { reply: [ { text: "done" } ] } ]`)
		b.hooking(moments{hooks.BeforePrompt: func(ctx context.Context, _ hooks.Moment) hooks.Verdict {
			select {
			case <-time.After(2 * b.opts.Settings.Stuck):
			case <-ctx.Done():
			}
			return hooks.Verdict{}
		}})
		b.run()
		item := b.say("go")
		if err := b.box.Wait(t.Context(), item); err != nil {
			t.Fatal(err)
		}
		if out := b.outcome(item); out.Reason != record.ReasonDone {
			t.Errorf("%+v", out)
		}
		b.halt()
	})
}

// Approval hooks run once for a request, however often the model asks for it.
func TestHooksAreToldOfRequests(t *testing.T) {
	need := permission.Request{Tag: "@web:example.com", Reason: "look", Detail: permission.Detail{Command: "look"}}
	b := newBench(t, `rules: [ { round: 1, reply: [ { calls: [ { name: echo, arguments: {} } ] } ] }, { reply: [ { text: waiting } ] } ]`,
		needing{newEcho(tools.Once), need})
	h := b.hooking(moments{hooks.Approval: always(hooks.Verdict{})})
	b.run()
	b.outcome(b.say("go"))
	b.outcome(b.say("go"))
	if h.times(hooks.Approval) != 1 || h.ran[0].Request.Permission != "@web:example.com" || h.ran[0].Request.Token == "" {
		t.Errorf("%d times: %+v", h.times(hooks.Approval), h.ran)
	}
}

// An orderly stop while a before_tool hook runs leaves the call for the next start, where the
// hook runs again: no call runs without its hook, and none is begun behind its back.
func TestAStopDuringAHookLeavesTheCall(t *testing.T) {
	b := newBench(t, callEcho, newEcho(tools.Once))
	running := make(chan bool)
	b.hooking(moments{hooks.BeforeTool: func(ctx context.Context, _ hooks.Moment) hooks.Verdict {
		close(running)
		<-ctx.Done()
		return hooks.Verdict{Decision: hooks.Deny, Reason: "stopped"}
	}})
	b.run()
	item := b.say("go")
	<-running
	b.halt()
	if b.count("tool_started") != 0 || b.count("tool_result") != 0 {
		t.Fatalf("the call was begun or answered\n%s", b.history())
	}
	h := b.hooking(moments{hooks.BeforeTool: always(hooks.Verdict{})})
	b.openBox()
	b.run()
	if out := b.outcome(item); !strings.Contains(out.Text, `echo {"text":"one"}`) || h.times(hooks.BeforeTool) != 1 {
		t.Errorf("after the start: %+v, hook ran %d times\n%s", out, h.times(hooks.BeforeTool), b.history())
	}
}

// A stop while an on_message hook runs leaves the message in the inbox, unread.
func TestAStopDuringAHookLeavesTheMessage(t *testing.T) {
	for _, torn := range []bool{false, true} {
		stopDuringAHook(t, torn)
	}
}

// stopDuringAHook: with torn a write before was cut behind the begin of the message's turn.
func stopDuringAHook(t *testing.T, torn bool) {
	b := newBench(t, `rules: [ { reply: [ { text: "heard: {{.Text}}" } ] } ]`)
	running := make(chan bool)
	begun := sync.OnceFunc(func() { close(running) })
	b.hooking(moments{hooks.OnMessage: func(ctx context.Context, _ hooks.Moment) hooks.Verdict {
		begun()
		<-ctx.Done()
		return hooks.Verdict{Decision: hooks.Deny, Reason: "stopped"}
	}})
	item := b.say("hello")
	if torn {
		b.cutAfter(&record.TurnBegin{Turn: "t", Items: []string{item}, Attempt: 1})
	}
	b.run()
	<-running
	b.halt()
	if b.count("user_message") != 0 {
		t.Fatalf("the message entered the conversation\n%s", b.history())
	}
	h := b.hooking(moments{hooks.OnMessage: always(hooks.Verdict{})})
	b.openBox()
	b.run()
	if out := b.outcome(item); !strings.Contains(out.Text, "heard: hello") || h.times(hooks.OnMessage) != 1 {
		t.Errorf("%+v, hook ran %d times", out, h.times(hooks.OnMessage))
	}
}

// A write that is torn between an answer and what a hook wants done first leaves a turn that
// continues: the answer is not lost, and not taken for the end.
func TestATornWriteBehindAnAnswerGoesOn(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "done: {{.Text}}" } ] } ]`)
	inboxFile, blocks := filepath.Join(b.dir, "inbox.jsonl"), 1
	var waiting []byte
	at := moments{hooks.TurnEnd: func(context.Context, hooks.Moment) hooks.Verdict {
		if blocks--; blocks < 0 {
			return hooks.Verdict{}
		}
		waiting, _ = os.ReadFile(inboxFile)
		return hooks.Verdict{Decision: hooks.Deny, Reason: "run the tests first"}
	}}
	b.hooking(at)
	b.run()
	item := b.say("build it")
	b.outcome(item)
	b.halt()

	history, _, ok := strings.Cut(b.history(), "run the tests first")
	if !ok || waiting == nil {
		t.Fatalf("the hook was not asked\n%s", b.history())
	}
	torn := history[:strings.LastIndex(history, "\n")+1]
	if err := errors.Join(os.WriteFile(inboxFile, waiting, 0o600),
		os.WriteFile(filepath.Join(b.dir, "history.jsonl"), []byte(torn), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.hooking(at)
	b.openBox()
	b.run()
	out := b.outcome(item)
	asked := b.model.request(b.model.calls() - 1)
	if out.Reason != record.ReasonDone || !strings.Contains(asked, "A hook asked you to continue before the turn ends") ||
		!strings.Contains(asked, "done: ") {
		t.Errorf("%+v; the model was asked\n%s\n%s", out, asked, b.history())
	}
}

// Of calls beside each other each hook is recorded, and one that ends the turn ends it, whichever call it is of.
func TestAHookOfTheSecondCallEndsTheTurn(t *testing.T) {
	b := newBench(t, `
rules:
  - round: 1
    reply: [ { calls: [ { name: echo, arguments: { text: one } }, { name: echo, arguments: { text: two } } ] } ]
  - reply: [ { text: "it went on" } ]
`, newEcho(tools.ReadOnly))
	b.hooking(moments{hooks.AfterTool: func(_ context.Context, m hooks.Moment) hooks.Verdict {
		if strings.Contains(string(m.Input), "two") {
			return hooks.Verdict{Stop: true, Reason: "enough", Notices: []string{"the second"}}
		}
		return hooks.Verdict{Context: "the first"}
	}})
	b.run()
	out := b.outcome(b.say("go"))
	b.halt()
	if out.Reason != record.ReasonError || b.model.calls() != 1 || b.count("note") != 2 {
		t.Errorf("%+v after %d calls of the model, with %d notes\n%s", out, b.model.calls(), b.count("note"), b.history())
	}
}

// A call that a stop of the turn cut is shown to no hook: the turn is over.
func TestAHookSeesNoCallThatWasStopped(t *testing.T) {
	h := newHold("hold", tools.ReadOnly)
	b := newBench(t, callHold, h)
	seen := b.hooking(moments{hooks.AfterTool: always(hooks.Verdict{Context: "checked"})})
	b.run()
	item := b.say("go")
	<-h.running
	b.mu.Lock()
	b.stop(nil)
	b.mu.Unlock()
	out := b.outcome(item)
	b.halt()
	if out.Reason != record.ReasonCanceled || seen.times(hooks.AfterTool) != 0 || strings.Contains(b.history(), "hook") {
		t.Errorf("%+v, hooks ran %d times\n%s", out, seen.times(hooks.AfterTool), b.history())
	}
}

// Of a call that cannot run, hooks are not asked.
func TestNoHookIsAskedOfACallThatCannotRun(t *testing.T) {
	for name, call := range map[string]string{"bad arguments": "{ name: echo, arguments: { text: 1 } }",
		"no such tool": "{ name: shout, arguments: {} }"} {
		b := newBench(t, `
rules:
  - round: 1
    reply: [ { calls: [ `+call+` ] } ]
  - reply: [ { text: "it said {{.Result}}" } ]
`, newEcho(tools.Once))
		h := b.hooking(moments{hooks.BeforeTool: always(hooks.Verdict{Decision: hooks.Deny, Reason: "not today"})})
		b.run()
		out := b.outcome(b.say("go"))
		b.halt()
		if h.times(hooks.BeforeTool) != 0 || strings.Contains(out.Text, "not today") || b.count("tool_started") != 0 {
			t.Errorf("%s: %+v, hooks were asked %d times", name, out, h.times(hooks.BeforeTool))
		}
	}
}

// What a crash cut and must not run twice is shown to the after_tool hooks as interrupted.
func TestHooksSeeWhatACrashCut(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, callHold, h)
	b.run()
	item := b.say("go")
	<-h.running
	files := map[string][]byte{}
	for _, name := range []string{"inbox.jsonl", "history.jsonl"} { // as a kill would leave them
		data, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	h.release <- "ran"
	b.outcome(item)
	b.halt()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(b.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := b.hooking(moments{hooks.AfterTool: always(hooks.Verdict{Context: "checked the files"})})
	b.openBox()
	b.run()
	b.outcome(item)
	if seen.times(hooks.AfterTool) != 1 || seen.ran[0].Response.Status != "interrupted" || seen.ran[0].Tool != "hold" ||
		string(seen.ran[0].Input) != "{}" || !strings.Contains(b.history(), "[hook after_tool] checked the files") {
		t.Errorf("%d times: %+v\n%s", seen.times(hooks.AfterTool), seen.ran, b.history())
	}
}

// A hook that ends the turn at a call which a crash cut ends it: the model is not asked again, and the
// calls behind that one are not run.
func TestAHookEndsATurnThatWasCut(t *testing.T) {
	b := newBench(t, callEcho, newEcho(tools.Once))
	b.hooking(moments{hooks.AfterTool: always(hooks.Verdict{Stop: true, Reason: "out of hours"})})
	item := b.say("go")
	b.cutAfter(append(begun(item), &record.Assistant{Turn: "turn", Finish: record.FinishToolUse, ToolCalls: []record.ToolCall{
		{ID: "c1", Name: "echo", Arguments: []byte("{}")}, {ID: "c2", Name: "echo", Arguments: []byte("{}")}}},
		&record.ToolStart{ToolCallID: "c1", Name: "echo"})...)
	b.run()
	out := b.outcome(item)
	if b.model.calls() != 0 || out.Reason != record.ReasonError || !strings.Contains(out.Text, "ended the turn: out of hours") ||
		b.count("tool_started") != 1 || !strings.Contains(b.history(), `"toolCallId":"c2","name":"echo","status":"canceled"`) {
		t.Errorf("%d calls of the model: %+v\n%s", b.model.calls(), out, b.history())
	}
}

// A call that cannot run, and one of a turn that is over, has no hooks beside one that has.
func TestCallsThatHaveNoHooks(t *testing.T) {
	b := newBench(t, callEcho, newEcho(tools.Once))
	p := b.hooking(moments{hooks.BeforeTool: always(hooks.Verdict{})})
	b.cutAfter(&record.User{Item: "before", Text: "hello"})
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if err := a.lookAround(); err != nil {
		t.Fatal(err)
	}
	work := &turn{self: a.files.self, id: "turn"}
	_, work.clock = watchProgress(t.Context(), time.Minute)
	defer work.clock.stop()

	var calls []record.ToolCall
	for name, arguments := range map[string]string{"echo": `{"text":"one"}`, "none": "{}", "bad echo": `{"text":5}`} {
		calls = append(calls, record.ToolCall{ID: name, Name: strings.TrimPrefix(name, "bad "), Arguments: json.RawMessage(arguments)})
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), over} {
		if verdicts, err := a.worker.hooks.before(ctx, work, calls); err != nil || len(verdicts) != len(calls) {
			t.Errorf("%v, %v", verdicts, err)
		}
	}
	if len(p.ran) != 1 || p.ran[0].ID != "echo" {
		t.Errorf("hooks ran for %+v", p.ran)
	}
}

// A hook that asks has a call that changes something asked for as the profile does that asks first;
// any other call is named whole.
func TestWhatAHookAsksFor(t *testing.T) {
	access := permission.Set{WorkingDir: "/srv"}
	for _, tt := range []struct {
		writes bool
		want   permission.Request
	}{
		{true, permission.Request{Tag: "@write:/srv", Reason: "a hook asks: why (change files with echo)"}},
		{false, permission.Request{Tag: "@read:/srv", Reason: "a hook asks: why (call echo)"}},
	} {
		p := prepared{tool: newEcho(tools.Once), spec: tools.Spec{Name: "echo", Writes: tt.writes}, hooked: hooks.Verdict{Reason: "why"},
			call: tools.Call{Name: "echo", Arguments: json.RawMessage(`{"text":"one"}`), Access: access}}
		got, err := asked(p, nil)
		if err != nil || got.Tag != tt.want.Tag || got.Reason != tt.want.Reason || !got.AskAlways || got.Workdir != "/srv" ||
			!strings.Contains(got.Detail.Command, "text: one") {
			t.Errorf("writes %v: %+v, %v", tt.writes, got, err)
		}

		own := permission.Request{Tag: "@web:a.example", Reason: "fetch", Prefix: "@web"}
		if got, err := asked(p, &own); err != nil || got.Tag != own.Tag || got.Reason != "a hook asks: why (fetch)" || !got.AskAlways ||
			got.Prefix != "" || own.AskAlways {
			t.Errorf("writes %v, with a request of its own: %+v, %v", tt.writes, got, err)
		}
		p.call.Arguments = json.RawMessage(`[`)
		if got, err := asked(p, nil); err == nil {
			t.Errorf("arguments that cannot be shown: %+v", got)
		}
	}
}

// What is called through another tool has the hooks of the tool that is called: a policy
// cannot be passed by.
func TestHooksSeeTheToolThatIsMeant(t *testing.T) {
	script := strings.ReplaceAll(callEcho, "name: echo, arguments: { text: one }",
		"name: tool_call, arguments: { tool: echo, arguments: { text: one } }")
	script = strings.ReplaceAll(script, "tool_result: echo", "tool_result: tool_call")
	for name, tt := range map[string]struct {
		verdict hooks.Verdict
		told    string
		starts  int
	}{
		"nothing to say": {hooks.Verdict{}, `echo {"text":"one"}`, 1},
		"deny":           {hooks.Verdict{Decision: hooks.Deny, Reason: "no echoes here"}, "no echoes here", 0},
		"another input":  {hooks.Verdict{Input: json.RawMessage(`{"text":"two"}`)}, `echo {"text":"two"}`, 1},
	} {
		b := newBench(t, script, newEcho(tools.Once))
		b.hide("echo")
		h := b.hooking(moments{hooks.BeforeTool: always(tt.verdict), hooks.AfterTool: always(hooks.Verdict{})})
		b.run()
		out := b.outcome(b.say("go"))
		if !strings.Contains(out.Text, tt.told) || b.count("tool_started") != tt.starts || h.times(hooks.AfterTool) != tt.starts {
			t.Errorf("%s: %+v, %d calls started\n%s", name, out, b.count("tool_started"), b.history())
		}
		for _, m := range h.ran {
			if m.Tool != "echo" || !strings.HasPrefix(string(m.Input), `{"text":"`) {
				t.Errorf("%s: %s was told of %s %s", name, m.Event, m.Tool, m.Input)
			}
		}
		b.halt()
	}
}

// A hook that ends the turn at one call leaves those behind it unrun, also where they would
// have run beside it.
func TestNothingRunsBehindACallThatEndsTheTurn(t *testing.T) {
	script := strings.ReplaceAll(callEcho, "{ name: echo, arguments: { text: one } }",
		"{ name: echo, arguments: { text: one } }, { name: echo, arguments: { text: two } }, { name: echo, arguments: { text: three } }")
	b := newBench(t, script, newEcho(tools.Once))
	h := b.hooking(moments{hooks.BeforeTool: func(_ context.Context, m hooks.Moment) hooks.Verdict {
		return hooks.Verdict{Stop: string(m.Input) == `{"text":"two"}`, Reason: "out of hours"}
	}})
	b.run()
	out := b.outcome(b.say("go"))
	b.halt()

	if !strings.Contains(out.Text, "ended the turn: out of hours") || b.count("tool_started") != 1 || b.count("tool_result") != 3 {
		t.Errorf("%+v, %d calls started\n%s", out, b.count("tool_started"), b.history())
	}
	if n := h.times(hooks.BeforeTool); n != 2 {
		t.Errorf("hooks looked at %d calls, want the first two", n)
	}
	for text, ran := range map[string]bool{"one": true, "two": false, "three": false} {
		if strings.Contains(b.history(), `echo {\"text\":\"`+text) != ran {
			t.Errorf("%s ran: %t\n%s", text, !ran, b.history())
		}
	}
}
