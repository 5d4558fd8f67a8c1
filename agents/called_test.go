package agents

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"daycare/agents/providers"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

// A model calls echo through tool_call, then finds it, then calls it by its name.
const callBehind = `
rules:
  - match: through
    round: 1
    reply: [ { calls: [ { name: tool_call, arguments: { tool: echo, arguments: { text: "one" } } } ] } ]
  - match: wrong
    round: 1
    reply: [ { calls: [ { name: tool_call, arguments: { tool: echo, arguments: { text: 1 } } } ] } ]
  - match: unknown
    round: 1
    reply: [ { calls: [ { name: tool_call, arguments: { tool: shout, arguments: {} } } ] } ]
  - match: find
    round: 1
    reply: [ { calls: [ { name: tool_search, arguments: { query: say it } } ] } ]
  - match: named
    round: 1
    reply: [ { calls: [ { name: echo, arguments: { text: named } } ] } ]
  - tool_result: "*"
    reply: [ { text: "result {{.Result}}" } ]
  - reply: [ { text: "heard: {{.Text}}" } ]
`

// hide puts the tools of a bench behind a search.
func (b *bench) hide(names ...string) {
	b.t.Helper()
	set, err := b.opts.Tools.Behind(tools.Family{Name: "echoes", Tools: names})
	if err != nil {
		b.t.Fatal(err)
	}
	b.opts.Tools = set
}

// A tool behind a search is called like any other, whichever way; everything but the model sees
// the call of the tool itself.
func TestToolsBehindASearchAreCalled(t *testing.T) {
	b := newBench(t, callBehind, newEcho(tools.Once))
	b.hide("echo")
	h := b.hooking(moments{hooks.BeforeTool: always(hooks.Verdict{}), hooks.AfterTool: always(hooks.Verdict{})})
	b.run()
	for _, tt := range []struct{ say, want string }{
		{"go through", `result echo {"text":"one"}`},
		{"wrong", `its arguments: {"type":"object"`},
		{"unknown", `there is no tool "shout"; find one with tool_search`},
		{"find it", "echo\nsays it\narguments: "},
		{"named", `result echo {"text":"named"}`},
	} {
		if out := b.outcome(b.say(tt.say)); !strings.Contains(out.Text, tt.want) {
			t.Errorf("%s: %q", tt.say, out.Text)
		}
	}
	if n := strings.Count(b.history(), `"name":"echo","arguments":{"text":"one"},"via":"tool_call"`); n != 1 {
		t.Errorf("history has %d calls of echo through tool_call\n%s", n, b.history())
	}
	if n := b.count("tool_started"); n != 2 {
		t.Errorf("%d calls started that must not run twice, want 2", n)
	}
	if len(h.ran) < 2 || h.ran[0].Tool != "echo" || string(h.ran[0].Input) != `{"text":"one"}` || h.ran[1].Tool != "echo" {
		t.Errorf("hooks saw %+v", h.ran)
	}
	for _, tool := range b.model.asked[0].Tools {
		if tool.Name == "echo" {
			t.Error("the model was told of a tool behind the search")
		}
	}
}

// written is a request as a wire would have it: all that its beginning depends on.
func written(t *testing.T, req *providers.Request) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(req.System)
	for _, list := range []any{req.Tools, parts(req)} {
		data, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
		b.WriteByte('\n')
	}
	return b.String()
}

func parts(req *providers.Request) (all [][]any) {
	for _, m := range req.Messages {
		one := []any{m.Role}
		for _, p := range m.Parts {
			one = append(one, p)
		}
		all = append(all, one)
	}
	return all
}

// prefixes checks that each request begins with the one before, and returns the last one.
func prefixes(t *testing.T, list []*providers.Request) (last string) {
	t.Helper()
	for i, req := range list {
		now := written(t, req)
		if base := strings.TrimSuffix(last, "]\n"); !strings.HasPrefix(now, base) {
			t.Errorf("request %d does not begin with the one before:\n%s\n---\n%s", i, base, now)
		}
		last = now
	}
	return last
}

// fixedPart is what every request of a session begins with.
func fixedPart(t *testing.T, req *providers.Request) string {
	t.Helper()
	text, _, _ := strings.Cut(written(t, req), "\n[[")
	return text
}

// What a model found and called stays in its conversation as it wrote it: each request begins
// with the one before, also after a restart; and after a compaction, system prompt and tools are
// the same bytes as ever.
func TestCallsThroughASearchKeepThePrefix(t *testing.T) {
	b := newBench(t, callBehind, newEcho(tools.ReadOnly))
	b.hide("echo")
	b.run()
	for _, text := range []string{"find it", "go through", "hello"} {
		b.outcome(b.say(text))
	}
	b.halt()
	b.openBox()
	b.run()
	b.outcome(b.say("again"))

	last := prefixes(t, b.model.asked)
	want := `{"ID":"` // the vendor's own id is another in each wire
	if !strings.Contains(last, want) || !strings.Contains(last, `"Name":"tool_call","Arguments":{"tool":"echo","arguments":{"text":`) {
		t.Errorf("the model reads another call than it made:\n%s", last)
	}
	for _, part := range b.model.asked[len(b.model.asked)-1].Messages {
		for _, p := range part.Parts {
			if r, ok := p.(providers.Result); ok && r.Name == "echo" {
				t.Error("a result has a name that was not called")
			}
		}
	}
}

// A summing model writes summaries beside its script.
type summing struct{ *recording }

func (s summing) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	if strings.HasPrefix(req.System, "You write the memory") {
		return &providers.Response{Finish: providers.EndTurn, Text: (&windowed{}).summary(textOf(req))}, nil
	}
	return s.recording.Call(ctx, req, watch)
}

// A compaction takes what was found out of the conversation, and changes nothing of what requests
// begin with.
func TestACompactionLeavesWhatRequestsBeginWith(t *testing.T) {
	b := newBench(t, callBehind, newEcho(tools.ReadOnly))
	b.hide("echo")
	b.opts.Model = func(record.Model) Model { return summing{b.model} }
	b.opts.Window = func(record.Model) int { return 32_000 }
	b.run()
	long := strings.Repeat("lorem ipsum ", 2000)
	for _, text := range []string{"find it", "go through", long, long, long, "hello", "so"} {
		b.outcome(b.say(text))
	}
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Compact})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(r.Item)
	before := b.model.calls()
	b.outcome(b.say("go through"))
	if b.count("summary") == 0 {
		t.Fatalf("not compacted\n%s", b.history())
	}
	first, now := fixedPart(t, b.model.asked[0]), fixedPart(t, b.model.asked[before])
	if first != now || !strings.Contains(now, "tool_call") {
		t.Errorf("after a compaction requests begin with\n%s\nand not with\n%s", now, first)
	}
}

// A tool behind a search needs the same approval as one that is told.
func TestCallsThroughASearchAreApproved(t *testing.T) {
	b := newBench(t, callBehind, asking{newEcho(tools.Once)})
	b.hide("echo")
	b.run()
	if out := b.outcome(b.say("go through")); out.Reason != record.ReasonWaiting || b.count("tool_started") != 0 {
		t.Errorf("%+v\n%s", out, b.history())
	}
}

// A call of a tool whose arguments look like a call through the search is one of that tool.
func TestArgumentsThatLookLikeACallAreNone(t *testing.T) {
	b := newBench(t, `
rules:
  - match: go
    round: 1
    reply: [ { calls: [ { name: hand, arguments: { tool: echo, arguments: { text: one } } } ] } ]
  - reply: [ { text: "said {{.Result}}" } ]
`, echo{tools.Spec{Name: "hand", Description: "takes anything", Replay: tools.Once,
		Schema: json.RawMessage(`{"type":"object"}`)}}, newEcho(tools.Once))
	b.hide("echo")
	b.run()
	b.outcome(b.say("go"))
	b.halt()
	want := `"name":"hand","arguments":{"arguments":{"text":"one"},"tool":"echo"}`
	if text := b.history(); !strings.Contains(text, want) || strings.Contains(text, `"via"`) {
		t.Errorf("history has another call\n%s", text)
	}
}

// asking is an echo that asks.
type asking struct{ echo }

func (asking) Needs(tools.Call) (*permission.Request, error) {
	return &permission.Request{Tag: "@web:example.com", Reason: "echo"}, nil
}
