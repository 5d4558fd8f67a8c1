package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// house is a fake of House whose sub-agents end as the test says.
type house struct {
	mu       sync.Mutex
	made     []address.Descriptor
	first    []message.Incoming
	outcome  event.Outcome
	block    bool // the sub-agent does not come to an end
	canceled []string
	asked    *permission.Pending
	err      error
	lost     error // why its outcome cannot be told
	during   func(child string)
}

func (h *house) Create(_ context.Context, d address.Descriptor, first message.Incoming) (event.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made, h.first = append(h.made, d), append(h.first, first)
	return event.Agent{ID: d.ID}, h.err
}

func (h *house) Await(ctx context.Context, child, item string) (event.Outcome, error) {
	if h.during != nil {
		h.during(child)
	}
	if h.block {
		<-ctx.Done()
		return event.Outcome{}, ctx.Err()
	}
	return h.outcome, h.lost
}

func (h *house) Cancel(_ context.Context, child string) { h.canceled = append(h.canceled, child) }

func (h *house) Asked(string) (permission.Pending, bool) {
	if h.asked == nil {
		return permission.Pending{}, false
	}
	return *h.asked, true
}

func (h *house) AtWork(child string, since time.Time) bool {
	return len(h.made) > 0 && child == h.made[0].ID && since.Before(noon)
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func toolOf(t *testing.T, h *house, events *event.Stream, text string) tools.Tool {
	t.Helper()
	d, found := Parse("t.md", []byte(text))
	if len(found) > 0 {
		t.Fatal(found)
	}
	return Tools([]Definition{d}, h, events)[0]
}

func run(t *testing.T, ctx context.Context, tool tools.Tool, args string) tools.Result {
	t.Helper()
	if err := tools.Validate(tool.Spec(), json.RawMessage(args)); err != nil {
		t.Fatal(err)
	}
	r, err := tool.Run(ctx, tools.Call{ID: "c1", Agent: "parent", Turn: "t1", Arguments: json.RawMessage(args), Hops: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const plain = "---\nname: Helper\ndescription: d\nmodel: small\n---\nHelp with {{.task}}."

func TestASubAgentIsAnAgentThatFollowsFromTheCall(t *testing.T) {
	h := &house{outcome: event.Outcome{Reason: "done", Text: "42", Cost: 0.5,
		Work: event.Work{Rounds: 2, ToolCalls: 3, Input: 10, Output: 5}}}
	tool := toolOf(t, h, event.NewStream("t"), plain)
	for range 2 { // again, as after a crash
		if r := run(t, t.Context(), tool, `{"task":"sums"}`); r.Text != "42" || r.Status != "" {
			t.Errorf("result %+v", r)
		}
	}
	id := address.ChildID("parent", "c1")
	d := address.Descriptor{Type: address.Subagent, ID: id, ParentAgentID: "parent", Name: "Helper", Definition: "Helper",
		CallID: "c1", SystemPrompt: "Help with sums.", Model: "small"}
	if diff := cmp.Diff([]address.Descriptor{d, d}, h.made); diff != "" {
		t.Errorf("descriptors (-want +got):\n%s", diff)
	}
	in := message.Incoming{Kind: message.System, ID: TaskItem(id), Origin: "parent", Dedupe: "call:parent/c1", Text: "sums", Hops: 1}
	if diff := cmp.Diff([]message.Incoming{in, in}, h.first); diff != "" {
		t.Errorf("first messages (-want +got):\n%s", diff)
	}
}

// A parent that is taken up again asks whether its sub-agent was at work.
func TestAtWork(t *testing.T) {
	h := &house{outcome: event.Outcome{Reason: "done"}}
	tool := toolOf(t, h, event.NewStream("t"), plain)
	run(t, t.Context(), tool, `{"task":"sums"}`)
	for call, want := range map[string]bool{"c1": true, "c2": false} {
		if got := tool.(tools.Waits).AtWork(tools.Call{ID: call, Agent: "parent"}, noon.Add(-time.Second)); got != want {
			t.Errorf("the agent of call %s at work: %v, want %v", call, got, want)
		}
	}
}

func TestResults(t *testing.T) {
	structured := strings.Replace(plain, "model: small", "summarize: structured", 1)
	waiting := &permission.Pending{Token: "tok"}
	paused := &permission.Pending{Token: "tok",
		Request: permission.Budget{Scope: permission.BudgetTotal, Unit: permission.USD, Limit: 1, More: 1}.Request("")}
	for name, tt := range map[string]struct {
		definition string
		outcome    event.Outcome
		asked      *permission.Pending
		err        error
		status     tools.Status
		want       string // part of the text
	}{
		"verbatim": {definition: plain, outcome: event.Outcome{Reason: "done", Text: "yes"}, want: "yes"},
		"structured": {definition: structured, outcome: event.Outcome{Reason: "done", Text: "yes", Cost: 1},
			want: `{"success":true,"output":"yes","toolCallCount":0,"iterations":0,"usage":{"input":0,"output":0},"cost":1}`},
		"limit": {definition: plain, outcome: event.Outcome{Reason: "limit", Text: "I stopped.", Work: event.Work{Said: "So far: a.go"}},
			status: tools.Failed, want: "So far: a.go\n\n[It was ended before it was finished: I stopped.]"},
		"failed": {definition: plain, outcome: event.Outcome{Reason: "error", Text: "The model refused."},
			status: tools.Failed, want: "The model refused."},
		"canceled": {definition: plain, outcome: event.Outcome{Reason: "canceled"}, status: tools.Failed, want: "canceled"},
		"waiting":  {definition: plain, outcome: event.Outcome{Reason: "waiting"}, asked: waiting, want: `"waiting":"tok"`},
		"paused": {definition: plain, outcome: event.Outcome{Reason: "budget", Text: "I paused."}, asked: paused,
			want: `"waiting":"tok"`},
		"stopped at a budget": {definition: plain, outcome: event.Outcome{Reason: "budget", Text: "I stopped."}, status: tools.Failed,
			want: "[It was ended before it was finished: I stopped.]"},
		"refused": {definition: plain, err: errors.New("the limit of agents.maxChildren"), status: tools.Failed, want: "maxChildren"},
	} {
		h := &house{outcome: tt.outcome, asked: tt.asked, err: tt.err}
		r := run(t, t.Context(), toolOf(t, h, event.NewStream("t"), tt.definition), `{"task":"x"}`)
		if r.Status != tt.status || !strings.Contains(r.Text, tt.want) {
			t.Errorf("%s: %q %q, want %q with %q", name, r.Status, r.Text, tt.status, tt.want)
		}
	}
}

func TestAStoppedCallStopsItsSubAgent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &house{block: true, during: func(string) { cancel() }}
	if r := run(t, ctx, toolOf(t, h, event.NewStream("t"), plain), `{"task":"x"}`); r.Status != tools.Canceled {
		t.Errorf("result %+v", r)
	}
	if len(h.canceled) != 1 || h.canceled[0] != address.ChildID("parent", "c1") {
		t.Errorf("stopped: %v", h.canceled)
	}
}

func TestItsEventsAreThoseOfItsCaller(t *testing.T) {
	events := event.NewStream("t")
	h := &house{outcome: event.Outcome{Reason: "done", Text: "ok"}}
	h.during = func(child string) {
		events.Emit(event.Event{Type: event.ToolStarted, Agent: child, Body: event.Tool{Name: "read"}})
		events.Emit(event.Event{Type: event.ToolStarted, Agent: "another", Body: event.Tool{Name: "read"}})
		events.Emit(event.Event{Type: event.MessageDelta, Agent: child, Body: event.Delta{Text: "x"}})
		passedOn := func() bool {
			all, _ := events.Since(0)
			return slices.ContainsFunc(all, func(e event.Event) bool { return e.Type == event.SubAgentProgress })
		}
		for end := time.Now().Add(time.Minute); !passedOn() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	run(t, t.Context(), toolOf(t, h, events, plain), `{"task":"x"}`)
	var got []string
	all, _ := events.Since(0)
	for _, e := range all {
		if b, ok := e.Body.(event.SubAgent); ok {
			inner := ""
			if b.Event != nil {
				inner = " " + string(b.Event.Type)
			}
			got = append(got, string(e.Type)+" "+e.Agent+" "+b.Name+inner)
		}
	}
	want := []string{"sub_agent_start parent Helper", "sub_agent_progress parent Helper tool.started", "sub_agent_end parent Helper"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestQuestion(t *testing.T) {
	tl := &tool{}
	for args, want := range map[string]string{
		`{"query":"where is main?"}`: "where is main?", `{"b":"2","a":1e3}`: "a: 1e3\nb: 2", `{}`: "Begin.",
		`{"n":7}`: "7", `{"x":""}`: "x: ",
	} {
		for range 20 { // a map has no order
			input, err := read(json.RawMessage(args))
			if err != nil {
				t.Fatal(err)
			}
			if got := tl.question(input); got != want {
				t.Fatalf("question of %s is %q, want %q", args, got, want)
			}
		}
	}
}

// A call that cannot begin, or whose outcome cannot be told, says so, and nobody is told of
// an end that is none.
func TestACallThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		definition, args string
		lost             error
		made             int
		want             string
	}{
		"no object": {plain, `["task"]`, nil, 0, "Helper: the arguments must be a JSON object"},
		"nothing":   {plain, `null`, nil, 0, "Helper: the arguments must be a JSON object"},
		"no prompt": {strings.Replace(plain, "{{.task}}", "{{.task.x.y}}", 1), `{"task":"x"}`, nil, 0,
			"Helper: its system prompt cannot be made"},
		"an outcome lost": {plain, `{"task":"x"}`, errors.New("history is gone"), 1, "Helper: its answer cannot be told: history is gone"},
	} {
		events := event.NewStream("t")
		h := &house{outcome: event.Outcome{Reason: "done", Text: "yes"}, lost: tt.lost}
		r, err := toolOf(t, h, events, tt.definition).Run(t.Context(),
			tools.Call{ID: "c1", Agent: "parent", Arguments: json.RawMessage(tt.args)})
		if err != nil || r.Status != tools.Failed || !strings.HasPrefix(r.Text, tt.want) || len(h.made) != tt.made {
			t.Errorf("%s: %+v, %v, %d made, want %q", name, r, err, len(h.made), tt.want)
		}
		all, _ := events.Since(0)
		if slices.ContainsFunc(all, func(e event.Event) bool { return e.Type == event.SubAgentEnd }) {
			t.Errorf("%s: an end is told", name)
		}
	}
}

// What a sub-agent read from outside is from outside for its caller.
func TestAResultKeepsItsSource(t *testing.T) {
	for _, untrusted := range [][]string{nil, {"https://example.com/"}} {
		h := &house{outcome: event.Outcome{Reason: "done", Text: "yes", Untrusted: untrusted}}
		r := run(t, t.Context(), toolOf(t, h, event.NewStream("t"), plain), `{"task":"x"}`)
		if (r.Source != "") != (untrusted != nil) || untrusted != nil && !strings.Contains(r.Source, untrusted[0]) {
			t.Errorf("of %q the source is %q", untrusted, r.Source)
		}
	}
}

// What the caller reads of a sub-agent that waits, is paused, or ended otherwise.
func TestWhatComesOfASubAgent(t *testing.T) {
	ask := &permission.Pending{Token: "tok", Request: permission.Request{Tag: "@web"}}
	budget := &permission.Pending{Token: "tok",
		Request: permission.Budget{Scope: permission.BudgetTotal, Unit: permission.USD, Limit: 1, More: 1}.Request("")}
	for name, tt := range map[string]struct {
		outcome event.Outcome
		asked   *permission.Pending
		want    Summary
	}{
		"waits":         {event.Outcome{Reason: "waiting"}, ask, Summary{Output: "It waits for an approval", Waiting: "tok"}},
		"waits no more": {event.Outcome{Reason: "waiting"}, nil, Summary{Output: "It waits for an approval"}},
		"is paused":     {event.Outcome{Reason: "budget"}, budget, Summary{Output: "It is paused because a budget", Waiting: "tok"}},
		"asks for more and all": {event.Outcome{Reason: "budget", Text: "b"}, ask,
			Summary{Output: "[It was ended before it was finished: b]"}},
		"went round": {event.Outcome{Reason: "loop", Text: "l", Work: event.Work{Said: "s"}}, nil,
			Summary{Output: "s\n\n[It was ended before it was finished: l]"}},
		"failed with words": {event.Outcome{Reason: "error", Text: "t", Error: "e"}, nil, Summary{Output: "t"}},
		"failed without":    {event.Outcome{Reason: "error", Error: "e"}, nil, Summary{Output: "It ended without an answer: error e"}},
		"is done":           {event.Outcome{Reason: "done", Text: "t"}, ask, Summary{Success: true, Output: "t"}},
	} {
		got := (&tool{house: &house{asked: tt.asked}}).summary("child", tt.outcome)
		if !strings.HasPrefix(got.Output, tt.want.Output) || got.Success != tt.want.Success || got.Waiting != tt.want.Waiting {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// What a sub-agent does after its call has ended is not its caller's any more.
func TestACallThatEndedFollowsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := event.NewStream("t")
		h := &house{outcome: event.Outcome{Reason: "done", Text: "ok"}}
		run(t, t.Context(), toolOf(t, h, events, plain), `{"task":"x"}`)
		events.Emit(event.Event{Type: event.ToolStarted, Agent: h.made[0].ID, Body: event.Tool{Name: "read"}})
		synctest.Wait()
		all, _ := events.Since(0)
		if slices.ContainsFunc(all, func(e event.Event) bool { return e.Type == event.SubAgentProgress }) {
			t.Error("it is passed on")
		}
	})
}
