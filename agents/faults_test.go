package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

// effect is a tool that must not run twice, and notes that it ran.
type effect struct {
	b    **bench
	runs int
	// beside: results of deliveries are recorded while it runs, and may be what fails.
	beside bool
}

func (*effect) Spec() tools.Spec {
	return tools.Spec{Name: "effect", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.Once}
}

func (e *effect) Run(context.Context, tools.Call) (tools.Result, error) {
	e.runs++
	if err := (*e.b).vol.Err(); err != nil && !e.beside {
		(*e.b).t.Errorf("a tool ran although nothing can be recorded: %v", err)
	}
	return tools.Result{Text: strings.Repeat("worked ", 6000)}, nil // long: the whole goes to a file
}

const faultsScript = `
rules:
  - { contains: "act", round: 1, reply: [ { text: "one moment", calls: [ { name: effect, arguments: {} } ] } ] }
  - { contains: "ask", round: 1, reply: [ { calls: [ { name: request, arguments: {} } ] } ] }
  - { contains: "stop", round: 1, reply: [ { calls: [ { name: stop, arguments: {} }, { name: effect, arguments: {} } ] } ] }
  - { tool_result: "*", reply: [ { text: "it did" } ] }
  - { reply: [ { text: "heard {{.Text}}" } ] }
`

// brittle is an outbox that must get nothing once the disk has failed.
type brittle struct {
	*bench
	interim bool
}

func (o brittle) Send(p message.Promise) {
	if err := o.vol.Err(); err != nil {
		o.t.Errorf("%q was sent although nothing can be recorded: %v", p.Text, err)
	}
	o.bench.Send(p)
}

func (o brittle) Interim(message.Address) bool { return o.interim }

// until runs the agent until its items are done or it fails, and returns why it failed.
func (b *bench) until(items ...string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- b.opts.Run(ctx) }()
	done := make(chan error, 1)
	go func() {
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for _, id := range items {
			if err := b.box.Wait(wait, id); err != nil && ctx.Err() == nil {
				b.t.Errorf("item %s: %v, and the agent goes on", id, err)
			}
		}
		done <- nil
	}()

	select {
	case err := <-ended:
		cancel()
		<-done
		return err
	case <-done:
		cancel()
		return <-ended
	}
}

// A job is a piece of work whose steps fail.
type job struct {
	before string // what is said before the disk fails
	item   inbox.Item
	left   func(item string) []record.Record // what an earlier life recorded of it
	sent   string                            // how the answer begins; "": none
	may    bool                              // whether it is sent depends on where the life was cut
	words  bool                              // the chat wants the words beside calls, too
	rights bool                              // whether the agent may read /srv in the end
	hooks  moments                           // what hooks say
}

// excused are the steps whose failure need not be reported.
var excused = []string{
	"turn.called", "turn.taken", "turn.answered", "turn.closed", "tool.before", "tool.after", // places for a crash
	"state.kept.write", "state.kept.rename", "draft.write", "draft.rename", // may be lost
}

// triedAgain are the steps whose failure need not be reported where the disk continues: what
// they write is written again later, or was a second copy.
var triedAgain = []string{"state.rename", "state.dirsync", "blob.rename", "blob.dirsync", "mkdir.dirsync"}

// jobs are one piece of work of each kind.
func jobs(t *testing.T) map[string]job {
	order := func(kind message.Kind, text string) inbox.Item { return inbox.Item{Kind: kind, Text: text} }
	right := func(d permission.Decision) inbox.Item {
		r, err := permission.General("@read:/srv", "")
		if err != nil {
			t.Fatal(err)
		}
		return inbox.Item{Kind: message.Permission, Token: "t", Decision: string(d), Tag: r.Tag, By: "ada", Text: "read"}
	}

	all := map[string]job{
		"an answer":            {item: order(message.Text, "hello"), sent: "heard hello"},
		"a call of a tool":     {item: order(message.Text, "act"), sent: "it did"},
		"words beside a call":  {item: order(message.Text, "act"), sent: "it did", words: true},
		"a request":            {item: order(message.Text, "ask"), sent: "it did"},
		"a reset":              {before: "hello", item: order(message.Reset, "")},
		"a mark":               {before: "hello", item: order(message.Mark, "here")},
		"going back":           {before: "hello", item: order(message.Rewind, "")},
		"a summary":            {before: "hello", item: order(message.Compact, "")},
		"a silent message":     {item: inbox.Item{Kind: message.System, Origin: "system", Silent: true, Text: "for later"}},
		"a right for good":     {item: right(permission.Always), rights: true},
		"a right taken back":   {before: "may", item: right(permission.Revoked)},
		"a right that is left": {before: "may", item: order(message.Mark, "here"), rights: true},
		"a question":           {item: order(message.Text, "spend"), sent: "I paused: "},
		"a stop":               {item: order(message.Text, "stop"), sent: "it did", may: true},
		"hooks of a turn":      {item: order(message.Text, "act"), sent: "it did", hooks: everywhere(hooks.Verdict{Context: "Tuesday"})},
		"a hook that refuses": {item: order(message.Text, "act"), sent: "it did",
			hooks: moments{hooks.BeforeTool: always(hooks.Verdict{Decision: hooks.Deny, Reason: "not now"})}},
		"a hook that ends the turn": {item: order(message.Text, "act"), sent: "I stopped, because a hook", may: true,
			hooks: moments{hooks.AfterTool: always(hooks.Verdict{Stop: true, Reason: "enough"})}},
		"hooks of a request": {item: order(message.Text, "ask"), sent: "it did",
			hooks: moments{hooks.Approval: always(hooks.Verdict{})}},
		"a mark at the beginning": {item: order(message.Mark, "here")},
		"a hook that is not content": {item: order(message.Text, "hello"), sent: "heard hello", words: true,
			hooks: moments{hooks.TurnEnd: func(_ context.Context, m hooks.Moment) hooks.Verdict {
				if m.Again {
					return hooks.Verdict{}
				}
				return hooks.Verdict{Decision: hooks.Deny, Reason: "look again"}
			}}},
	}
	maps.Copy(all, cutJobs())

	return all
}

// cutJobs are pieces of work of which an earlier life has recorded a part.
func cutJobs() map[string]job {
	order := func(kind message.Kind, text string) inbox.Item { return inbox.Item{Kind: kind, Text: text} }

	return map[string]job{
		"a hook of a call that was cut": {item: order(message.Text, "act"), sent: "it did",
			hooks: moments{hooks.AfterTool: always(hooks.Verdict{Context: "checked"})}, left: func(item string) []record.Record {
				calls := []record.ToolCall{{ID: "c1", Name: "effect", Arguments: []byte("{}")}}
				return append(begun(item), &record.Assistant{Turn: "turn", Finish: record.FinishToolUse, ToolCalls: calls},
					&record.ToolStart{ToolCallID: "c1", Name: "effect"})
			}},
		"an answer without its end": {item: order(message.Text, "hello"), sent: "well", left: func(item string) []record.Record {
			return append(begun(item), &record.Assistant{Turn: "turn", Text: "well", Finish: record.FinishEndTurn,
				Out: &record.Out{ID: strings.Repeat("o", 24), To: message.Address{Connector: "chat", ChannelID: "c1"}}})
		}},
		"a turn that is set aside": {item: order(message.Text, "hello"), sent: "I could not answer: this message made me fail",
			may: true, left: func(item string) []record.Record {
				calls := []record.ToolCall{{ID: "c1", Name: "effect", Arguments: []byte("{}")},
					{ID: "c2", Name: "look", Arguments: []byte("{}")}}
				return append(begun(item), &record.Assistant{Turn: "turn", Finish: record.FinishToolUse, ToolCalls: calls},
					&record.ToolStart{ToolCallID: "c1", Name: "effect"},
					&record.TurnBegin{Turn: "turn", Items: []string{item}, Attempt: maxAttempts})
			}},
		"a hook that ends a turn that was cut": {item: order(message.Text, "act"), sent: "I stopped, because a hook", may: true,
			hooks: moments{hooks.AfterTool: always(hooks.Verdict{Stop: true, Reason: "enough"})}, left: func(item string) []record.Record {
				calls := []record.ToolCall{{ID: "c1", Name: "effect", Arguments: []byte("{}")},
					{ID: "c2", Name: "effect", Arguments: []byte("{}")}}
				return append(begun(item), &record.Assistant{Turn: "turn", Finish: record.FinishToolUse, ToolCalls: calls},
					&record.ToolStart{ToolCallID: "c1", Name: "effect"})
			}},
		"a summary of much": {item: order(message.Compact, ""), left: func(string) (recs []record.Record) {
			for n := range 10 {
				turn, words := fmt.Sprint("turn", n), strings.Repeat("long ago ", 1000)
				recs = append(recs, &record.TurnBegin{Turn: turn, Items: []string{turn}, Attempt: 1}, &record.User{Item: turn, Text: words},
					&record.Assistant{Turn: turn, Text: "well", Finish: record.FinishEndTurn},
					&record.TurnEnd{Turn: turn, Items: []string{turn}, Reason: record.ReasonDone})
			}
			return recs
		}},
	}
}

// everywhere is hooks that say the same at every moment.
func everywhere(v hooks.Verdict) moments {
	at := moments{}
	for _, e := range []hooks.Event{hooks.SessionStart, hooks.OnMessage, hooks.BeforePrompt, hooks.BeforeTool, hooks.AfterTool,
		hooks.TurnEnd} {
		at[e] = always(v)
	}
	return at
}

// begun is what a life recorded that began a turn with an item.
func begun(item string) []record.Record {
	return []record.Record{&record.TurnBegin{Turn: "turn", Items: []string{item}, Attempt: 1}, &record.User{Item: item, Text: "hello"}}
}

// stopper is a tool during which somebody stops the turn.
type stopper struct{ b **bench }

func (stopper) Spec() tools.Spec {
	return tools.Spec{Name: "stop", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.ReadOnly}
}

func (s stopper) Run(ctx context.Context, _ tools.Call) (tools.Result, error) {
	b := *s.b
	b.mu.Lock()
	b.stop(errors.New("stopped"))
	b.mu.Unlock()
	<-ctx.Done()
	return tools.Result{}, ctx.Err()
}

// spender is a model whose budget is used up for one message.
type spender struct{ Model }

func (m spender) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	if strings.Contains(textOf(req), "spend") {
		return nil, &providers.Failure{Kind: providers.Budget, Provider: "p",
			Err: reached{permission.Budget{Scope: permission.BudgetTotal, Unit: permission.Tokens, Limit: 10, More: 10}}}
	}
	return m.Model.Call(ctx, req, watch)
}

// begin makes an agent that has a job to do.
func (j job) begin(t *testing.T) (b *bench, tool *effect, item string) {
	t.Helper()
	tool = &effect{b: &b, beside: j.words}
	b = newBench(t, faultsScript, tool, general{}, look{}, stopper{&b})
	m := spender{b.model}
	b.opts.Model = func(record.Model) Model { return m }
	b.opts.Outbox = brittle{b, j.words}
	if j.hooks != nil {
		b.hooking(j.hooks)
	}
	if j.before == "may" {
		give := func(s *record.State) { s.Permissions.ReadDirs = []string{"/srv"} }
		if err := record.UpdateState(b.vol, b.dir, give); err != nil {
			t.Fatal(err)
		}
	}
	if j.before != "" {
		if err := b.until(b.say(j.before)); err != nil {
			t.Fatal(err)
		}
	}

	b.sent = nil
	r, err := b.box.Accept(t.Context(), j.item)
	if err != nil {
		t.Fatal(err)
	}
	if j.left != nil {
		b.cutAfter(j.left(r.Item)...)
	}

	return b, tool, r.Item
}

// fail runs a life of the agent in which the disk may fail, then one in which it works,
// and returns what the first one reported.
func (j job) fail(b *bench, tool *effect, item string) error {
	b.t.Helper()
	failed := b.until(item)
	disks := b.vol.Err() // of the last delivery, which is synced beside the work, it alone reports
	if failed != nil && disks != nil && !errors.Is(failed, disk.ErrFailed) {
		b.t.Errorf("the disk failed, and the agent ends with %v", failed)
	}

	crash.Arm(b.t, "")
	b.reopen()
	if err := b.until(item); err != nil {
		b.t.Errorf("the next life: %v", err)
	}
	b.box.Close()
	b.finished(item, j)
	if tool.runs > 1 {
		b.t.Errorf("the call that must not run twice ran %d times", tool.runs)
	}

	return errors.Join(failed, disks)
}

// endsAtEachFailedStep plays a job once for each of its steps and each fault, at which the
// disk fails.
func endsAtEachFailedStep(t *testing.T, name string) {
	j := jobs(t)[name]
	for fault, excused := range map[string][]string{"eio": excused, "emfile": slices.Concat(excused, triedAgain)} {
		t.Run(name, func(t *testing.T) {
			crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
				b, tool, item := j.begin(t)
				return func() error { return j.fail(b, tool, item) }
			}, excused...)
		})
	}
}

// cut is begin with a life before that was cut by a disk that failed at a step; false:
// the work was done all the same. met are the points that failed.
func (j job) cut(t *testing.T, step int) (b *bench, tool *effect, item string, met []string, was bool) {
	t.Helper()
	b, tool, item = j.begin(t)
	points := crash.Arm(t, fmt.Sprintf("eio@#%d", step))
	_ = b.until(item) // whether it says so is for the test above
	met = points()
	crash.Arm(t, "")
	b.reopen()

	return b, tool, item, met, b.box.Len() > 0
}

// reopen opens the files anew, as a restart does.
func (b *bench) reopen() {
	b.t.Helper()
	b.box.Close()
	root := filepath.Dir(filepath.Dir(b.dir))
	b.vol = disk.NewVolume(root)
	if b.replica != nil {
		b.vol.Replicate(b.replica, true)
	}
	b.opts.Volume = b.vol
	b.openBox()
	queue, _, err := permission.OpenQueue(b.vol, root, time.Now, time.Hour)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { queue.Close() })
	b.opts.Permits = queue
}

// finished fails the test unless an item was done once, and has its answer.
func (b *bench) finished(item string, j job) {
	b.t.Helper()
	text := b.history()
	if n := strings.Count(text, `"item":"`+item+`"`); n != 1 {
		b.t.Errorf("the item is in history %d times, want once\n%s", n, text)
	}
	answers := map[string]bool{}
	for _, p := range b.sent {
		if j.sent != "" && strings.HasPrefix(p.Text, j.sent) {
			answers[p.ID] = true
		}
	}

	if want := min(len(j.sent), 1); len(answers) != want && (!j.may || len(answers) > want) {
		b.t.Errorf("%d answers %q were sent, want %d\n%s", len(answers), j.sent, want, text)
	}
	s, _, _, err := record.ReadState(b.dir)
	if err != nil || s.Permissions.Allows(permission.Read{Path: "/srv"}) != j.rights {
		b.t.Errorf("state.json allows %v (%v), want that reading /srv is %v", s.Permissions, err, j.rights)
	}
}

// The places between two steps at which a crash is tried are where they say: what is durable by then, and what is not
// done yet.
func TestWhereATurnMayDie(t *testing.T) {
	j := jobs(t)["a call of a tool"]
	for point, there := range map[string]func(b *bench, ran int) bool{
		"turn.taken":    func(b *bench, _ int) bool { return b.count("turn_begin") == 1 && b.model.calls() == 0 },
		"turn.called":   func(b *bench, _ int) bool { return b.model.calls() == 1 && b.count("assistant") == 0 },
		"tool.before":   func(b *bench, ran int) bool { return b.count("tool_started") == 1 && ran == 0 },
		"tool.after":    func(b *bench, ran int) bool { return ran == 1 && b.count("tool_result") == 0 },
		"turn.answered": func(b *bench, _ int) bool { return b.count("turn_end") == 1 && b.box.Len() == 1 && len(b.sent) == 0 },
		"turn.closed":   func(b *bench, _ int) bool { return b.box.Len() == 0 && len(b.sent) == 0 },
	} {
		b, tool, item := j.begin(t)
		passed := 0
		crash.Meanwhile(t, point, func(k int) {
			if passed = k; k == 1 && !there(b, tool.runs) {
				t.Errorf("%s is elsewhere: the tool ran %d times, %d items wait\n%.3000s", point, tool.runs, b.box.Len(), b.history())
			}
		})
		if err := b.until(item); err != nil || passed == 0 {
			t.Errorf("%s was passed %d times, %v", point, passed, err)
		}
	}
}
