package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// A Family is where sub-agents live: engine.Family.
type Family interface {
	// Create makes the agent of d with its first message, or finds the one that an
	// earlier try of the same call made.
	Create(ctx context.Context, d address.Descriptor, first message.Incoming) (event.Agent, error)
	// Await waits for the end of an item.
	Await(ctx context.Context, agent, item string) (event.Outcome, error)
	// Cancel ends the agent's turn, unless everything is being shut down.
	Cancel(ctx context.Context, agent string)
	// Asked is what the agent waits for a user to allow.
	Asked(agent string) (p permission.Pending, ok bool)
	// AtWork reports whether the agent had work at any time since then.
	AtWork(agent string, since time.Time) bool
}

// TaskItem is the id of the inbox item with the input of a sub-agent: the call waits for its turn, and the runtime
// does not report it.
func TaskItem(child string) string { return address.ChildID(child, "task") }

// Tools makes a tool of each definition.
func Tools(list []Definition, h Family, events *event.Stream) []tools.Tool {
	made := make([]tools.Tool, len(list))
	for i, d := range list {
		made[i] = &tool{d, h, events}
	}

	return made
}

type tool struct {
	Definition
	house  Family
	events *event.Stream
}

// Spec describes the tool. A call that a crash cut is made again and finds the
// agent that it had started.
func (t *tool) Spec() tools.Spec {
	return tools.Spec{Name: t.Name, Description: t.Description, Schema: t.InputSchema, Replay: tools.Idempotent, Parallel: true}
}

// AtWork reports whether the sub-agent of a call had work since a time.
func (t *tool) AtWork(call tools.Call, since time.Time) bool {
	return t.house.AtWork(address.ChildID(call.Agent, call.ID), since)
}

// A Summary is all that comes back from a sub-agent.
type Summary struct {
	Success       bool    `json:"success"`
	Output        string  `json:"output"`
	Waiting       string  `json:"waiting,omitempty"` // token of the request that it waits for
	ToolCallCount int     `json:"toolCallCount"`
	Iterations    int     `json:"iterations"`
	Usage         usage   `json:"usage"`
	Cost          float64 `json:"cost"` // US dollars
}

type usage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// Run starts the sub-agent, or finds it, and waits for its answer.
func (t *tool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	input, err := read(call.Arguments)
	if err != nil {
		return tools.Errorf("%s: %v", t.Name, err), nil
	}
	var prompt strings.Builder
	if err := t.body.Execute(&prompt, input); err != nil {
		return tools.Errorf("%s: its system prompt cannot be made: %v", t.Name, err), nil
	}

	d := address.Descriptor{Type: address.Subagent, ID: address.ChildID(call.Agent, call.ID), ParentAgentID: call.Agent, Name: t.Name,
		Definition: t.Name, CallID: call.ID, SystemPrompt: prompt.String(), Model: t.Model, Route: call.Route}
	first := message.Incoming{Kind: message.System, ID: TaskItem(d.ID), Origin: call.Agent, Hops: call.Hops,
		Dedupe: "call:" + call.Agent + "/" + call.ID, Text: t.question(input)}
	if _, err := t.house.Create(ctx, d, first); err != nil {
		return tools.Errorf("%s: %v", t.Name, err), nil
	}

	t.report(call, d.ID, event.SubAgentStart, event.SubAgent{Input: call.Arguments})
	unfollow := t.follow(call, d.ID)
	o, err := t.house.Await(ctx, d.ID, first.ID)
	unfollow()
	if ctx.Err() != nil {
		t.house.Cancel(context.WithoutCancel(ctx), d.ID)
		return tools.Result{Status: tools.Canceled, Text: "Cancelled"}, nil
	}
	if err != nil {
		return tools.Errorf("%s: its answer cannot be told: %v", t.Name, err), nil
	}

	s := t.summary(d.ID, o)
	data, err := json.Marshal(s)
	if err != nil {
		return tools.Result{}, fmt.Errorf("encode summary: %w", err)
	}

	t.report(call, d.ID, event.SubAgentEnd, event.SubAgent{Result: data})
	res := t.result(s, data)
	res.Source = message.Relayed(t.Name, o.Untrusted)

	return res, nil
}

// read takes the arguments apart. Numbers stay as they are written.
func read(arguments json.RawMessage) (map[string]any, error) {
	dec := json.NewDecoder(strings.NewReader(string(arguments)))
	dec.UseNumber()
	var input map[string]any
	if err := dec.Decode(&input); err != nil || input == nil {
		return nil, errors.New("the arguments must be a JSON object")
	}

	return input, nil
}

// question is the input as the sub-agent reads it: the text of the only field, or
// a line for each.
func (t *tool) question(input map[string]any) string {
	var names []string
	for name := range input {
		names = append(names, name)
	}
	slices.Sort(names)
	var lines []string
	for _, name := range names {
		text, ok := input[name].(string)
		if !ok {
			data, err := json.Marshal(input[name])
			if err != nil {
				continue // it came out of JSON
			}
			text = string(data)
		}
		if len(names) == 1 && strings.TrimSpace(text) != "" {
			return text
		}

		lines = append(lines, name+": "+text)
	}

	if len(lines) == 0 {
		return "Begin."
	}

	return strings.Join(lines, "\n")
}

// summary is the result of a sub-agent.
func (t *tool) summary(child string, o event.Outcome) Summary {
	s := Summary{Success: o.Reason == "done", Output: o.Text, ToolCallCount: o.Work.ToolCalls, Iterations: o.Work.Rounds,
		Usage: usage{o.Work.Input, o.Work.Output}, Cost: o.Cost}
	asked, asks := t.house.Asked(child)
	_, budget := permission.BudgetOf(asked.Request.Tag)
	switch {
	case o.Reason == "done":
	case o.Reason == "waiting", o.Reason == "budget" && asks && budget:
		s.Output = "It waits for an approval by the user. Then it continues by itself, and you get its report as a system message."
		if budget {
			s.Output = "It is paused because a budget is used up; the user was asked to raise it. Then it continues " +
				"by itself, and you get its report as a system message."
		}
		if asks {
			s.Waiting = asked.Token
		}
	case o.Reason == "limit", o.Reason == "loop", o.Reason == "budget": // what there is
		s.Output = strings.TrimSpace(o.Work.Said + "\n\n[It was ended before it was finished: " + o.Text + "]")
	default:
		if s.Output == "" {
			s.Output = "It ended without an answer: " + o.Reason + " " + o.Error
		}
	}

	return s
}

// result is the summary as the caller's model reads it.
func (t *tool) result(s Summary, data []byte) tools.Result {
	r := tools.Result{Text: s.Output}
	if t.Summarize == Structured || s.Waiting != "" {
		r.Text = string(data)
	}
	if !s.Success && s.Waiting == "" {
		r.Status = tools.Failed
	}

	return r
}

func (t *tool) report(call tools.Call, child string, kind event.Type, body event.SubAgent) {
	body.Name, body.Call, body.Agent = t.Name, call.ID, child
	t.events.Emit(event.Event{Type: kind, Agent: call.Agent, Turn: call.Turn, Body: body})
}

// followed is how many events of a sub-agent may wait to be passed on; what comes beyond them is not.
const followed = 64

// follow passes on what the sub-agent does, as events of its caller, until the
// returned function is called. Pieces of its text are left out.
func (t *tool) follow(call tools.Call, child string) (stop func()) {
	events, done := make(chan event.Event, followed), make(chan struct{})
	_, end := t.events.Watch(&event.Watch{Agent: child, See: func(e event.Event) {
		select {
		case events <- e:
		default: // an agent never waits for who watches it
		}
	}})
	go func() {
		defer close(done)
		for e := range events {
			t.report(call, child, event.SubAgentProgress, event.SubAgent{Event: &e})
		}
	}()

	return func() {
		end()
		close(events)
		<-done
	}
}
