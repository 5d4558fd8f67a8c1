package agents

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
)

// pen changes a file, and counts it.
type pen struct{ wrote *atomic.Int32 }

func (pen) Spec() tools.Spec {
	return tools.Spec{Name: "pen", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.Idempotent, Writes: true}
}
func (p pen) Run(context.Context, tools.Call) (tools.Result, error) {
	p.wrote.Add(1)
	return tools.Result{Text: "written"}, nil
}

// planner is submit_plan.
type planner struct{}

func (planner) Spec() tools.Spec {
	return tools.Spec{Name: "submit_plan", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.Idempotent}
}
func (planner) Needs(tools.Call) (*permission.Request, error) {
	return &permission.Request{Tag: "@plan", AskAlways: true, Detail: permission.Detail{Command: "write one line"}}, nil
}
func (planner) Widens(tools.Call) string { return "@plan" }
func (planner) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Text: "approved"}, nil
}

const profileScript = `
rules:
  - { after: permission, round: 1, reply: [ { calls: [ { name: submit_plan, arguments: {} } ] } ] }
  - { contains: "plan", round: 1, reply: [ { calls: [ { name: submit_plan, arguments: {} } ] } ] }
  - { tool_result: submit_plan, round: 2, reply: [ { calls: [ { name: pen, arguments: { text: "x" } } ] } ] }
  - { contains: "write", round: 1, reply: [ { calls: [ { name: pen, arguments: { text: "a\nname: b" } } ] } ] }
  - { contains: "look", round: 1, reply: [ { calls: [ { name: look, arguments: {} } ] } ] }
  - { reply: [ { text: "{{.Result}}" } ] }
`

// A profile says in a word what is done, asked for, and refused.
func TestProfiles(t *testing.T) {
	for profile, want := range map[permission.Profile]struct {
		text  string
		wrote int32
		asks  int
	}{
		permission.ReadOnly: {"only reads", 0, 0},
		permission.AskFirst: {"needs approval", 0, 1},
		permission.Auto:     {"written", 1, 0},
		permission.Planning: {"submit_plan", 0, 0},
		"":                  {"written", 1, 0},
	} {
		var wrote atomic.Int32
		b := newBench(t, profileScript, pen{&wrote}, planner{}, look{})
		b.opts.Settings.Profile = profile
		b.run()
		o := b.outcome(b.say("write"))
		list := b.opts.Permits.(*permission.Queue).List()
		if !strings.Contains(o.Text, want.text) || wrote.Load() != want.wrote || len(list) != want.asks {
			t.Errorf("profile %q: answered %q, wrote %d, %d wait; want %+v", profile, o.Text, wrote.Load(), len(list), want)
		}
		if len(list) == 1 && !strings.Contains(list[0].Request.Card(), "text: \n      │ a\n      │ name: b\n") {
			t.Errorf("the change is shown as\n%s", list[0].Request.Card())
		}
		if o := b.outcome(b.say("look")); !strings.Contains(o.Text, "may") {
			t.Errorf("profile %q does not read: %q", profile, o.Text)
		}
	}
}

// A plan that was approved lets the rest of that turn change things, and no later one.
func TestApprovedPlanIsForOneTurn(t *testing.T) {
	var wrote atomic.Int32
	b := newBench(t, profileScript, pen{&wrote}, planner{})
	b.opts.Settings.Profile = permission.Planning
	b.run()
	b.outcome(b.say("plan"))
	if wrote.Load() != 0 {
		t.Fatal("something was written before the plan was approved")
	}

	b.decide(permission.Once)
	waitFor(t, func() bool { return wrote.Load() == 1 })
	if o := b.outcome(b.say("write")); wrote.Load() != 1 || !strings.Contains(o.Text, "submit_plan") {
		t.Errorf("the next turn wrote, too: %q", o.Text)
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not come about within 5 s")
}
