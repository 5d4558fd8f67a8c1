package prompt

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
)

// grower makes random histories as the runtime and its crashes make them.
type grower struct {
	history
	calls int
	open  []record.ToolCall // calls of the newest answer without a result
}

// step appends one random record.
func (g *grower) step(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1, 2:
		u := asks(rapid.StringN(0, 20, 40).Draw(t, "text"))
		u.Item = fmt.Sprint("i", len(g.ctx.Entries))
		u.Joins = rapid.Bool().Draw(t, "joins")
		if rapid.Bool().Draw(t, "file") {
			u.Files = []message.File{file("cat.png", "image/png", 10)}
		}
		g.add(u)
	case 3, 4, 5:
		g.answer(t)
	case 6, 7:
		if len(g.open) == 0 {
			return
		}
		i := rapid.IntRange(0, len(g.open)-1).Draw(t, "which")
		status := rapid.SampledFrom([]record.Status{"ok", "error", "denied", "interrupted", "odd"}).Draw(t, "status")
		g.add(gave(g.open[i].ID, "read", status, rapid.StringN(0, 9, -1).Draw(t, "output")))
	case 8:
		reason := rapid.SampledFrom([]string{"done", "canceled", "poison"}).Draw(t, "reason")
		g.add(&record.TurnEnd{Turn: "t", Items: []string{fmt.Sprint("i", len(g.ctx.Entries)-1)}, Reason: reason})
	case 9:
		event := rapid.SampledFrom([]string{"asked", "once", "deny"}).Draw(t, "event")
		g.add(&record.Permission{Token: "p", Event: event, Tag: "@web"})
	}
}

func (g *grower) answer(t *rapid.T) {
	finish := rapid.SampledFrom([]record.Finish{"end_turn", "tool_use", "canceled", "interrupted", "error"}).Draw(t, "finish")
	a := &record.Assistant{Turn: "t", Text: rapid.StringN(0, 5, -1).Draw(t, "answer"), Finish: finish}
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		g.calls++
		a.ToolCalls = append(a.ToolCalls, call(fmt.Sprint("c", g.calls), "read", `{"a":1}`))
	}
	a.Tokens.Input = rapid.Int64Range(0, 500).Draw(t, "tokens")
	g.open = a.ToolCalls
	g.add(a)
}

// wire is the request as bytes, up to the newest answer and in all.
func wire(req *providers.Request) (answered, all []byte) {
	for _, m := range req.Messages {
		all = append(all, m.Encoded("test", encode)...)
		if m.Role == providers.Assistant {
			answered = all[:len(all):len(all)]
		}
	}
	return answered, all
}

// checkShape checks what every wire wants: the model never begins nor ends, roles
// alternate, each call has one result directly after it.
func checkShape(t *rapid.T, messages []*providers.Message) {
	role := func(i int) providers.Role {
		if i < 0 || i >= len(messages) {
			return ""
		}
		return messages[i].Role
	}
	for i, m := range messages {
		if len(m.Parts) == 0 {
			t.Fatalf("message %d has no parts", i)
		}
		switch m.Role {
		case providers.Assistant:
			if prev := role(i - 1); prev == "" || prev == providers.Assistant || role(i+1) == "" {
				t.Fatalf("message %d of the model stands after %q and before %q", i, prev, role(i+1))
			}
			checkCalls(t, m, messages[i+1])
		case providers.Results:
			if role(i-1) != providers.Assistant {
				t.Fatalf("results %d come after %q", i, role(i-1))
			}
		case providers.User:
			if role(i-1) == providers.User {
				t.Fatalf("two user messages in a row at %d", i)
			}
		}
	}
}

func checkCalls(t *rapid.T, m, next *providers.Message) {
	var calls, results []string
	for _, p := range m.Parts {
		if c, ok := p.(providers.Call); ok {
			calls = append(calls, c.ID)
		}
	}

	if next.Role == providers.Results {
		for _, p := range next.Parts {
			results = append(results, p.(providers.Result).CallID)
		}
	}
	if fmt.Sprint(calls) != fmt.Sprint(results) {
		t.Fatalf("calls %v have the results %v", calls, results)
	}
}

// longTalk is a conversation of n messages whose newest is a question.
func longTalk(n int) *record.Context {
	h := &history{ctx: record.Context{Session: "s1", Generation: 1}}
	for i := 0; len(h.ctx.Entries) < n-1; i++ {
		id := fmt.Sprint("c", i)
		h.add(asks("question"), says("", call(id, "read", `{"path":"a"}`)), gave(id, "read", record.StatusOK, "text"), says("answer"))
	}
	return h.add(asks("the newest question"))
}

// extend appends a round (answer with a call, its result) and builds.
func extend(tb testing.TB, b *Builder, ctx *record.Context) {
	n := len(ctx.Entries)
	id := fmt.Sprint("n", n)
	for _, r := range []record.Record{says("", call(id, "read", `{}`)), gave(id, "read", record.StatusOK, "text")} {
		ctx.Entries = append(ctx.Entries, &record.Entry{Seq: int64(len(ctx.Entries) + 1), At: noon, Rec: r})
	}
	if _, err := b.Build(ctx, "SYSTEM", nil, Options{}); err != nil {
		tb.Fatal(err)
	}
	b.Tokens()
}

// TestExtendingCostsWhatIsNew counts messages that are made, by allocations: as
// many in a long conversation as in a short one.
func TestExtendingCostsWhatIsNew(t *testing.T) {
	allocs := func(n int) float64 {
		ctx, b := longTalk(n), NewBuilder(Sources{})
		extend(t, b, ctx)
		return testing.AllocsPerRun(100, func() { extend(t, b, ctx) })
	}
	if short, long := allocs(10), allocs(5000); long > short+2 {
		t.Errorf("a round costs %v allocations at 10 messages and %v at 5000", short, long)
	}
}

// The pointers stay, so that what providers encoded stays, too.
func TestMessagesAreKept(t *testing.T) {
	h := &history{ctx: record.Context{Session: "s1"}}
	h.add(asks("Hi."))
	b := NewBuilder(Sources{})
	first := build(t, b, &h.ctx)
	h.add(says("Hi!"), asks("More."))
	second := build(t, b, &h.ctx)
	if first.Messages[0] != second.Messages[0] {
		t.Error("an answered message was made a second time")
	}
	if third := build(t, b, &h.ctx); third.Messages[2] != second.Messages[2] {
		t.Error("a retried call made its last message a second time")
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{10, 500, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ctx, builder := longTalk(n), NewBuilder(Sources{})
			extend(b, builder, ctx)
			b.ReportAllocs()
			for b.Loop() {
				extend(b, builder, ctx)
			}
		})
	}
}
