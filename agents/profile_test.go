package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/engine/record"
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

// named is a tool of a name and a kind, which does nothing.
type named struct{ spec tools.Spec }

func (n named) Spec() tools.Spec                                    { return n.spec }
func (named) Run(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }

// commander runs commands, which something may hold.
type commander struct {
	named
	held bool
}

func (c commander) Held(tools.Call) bool { return c.held }

// waiter waits for an agent of its own.
type waiter struct{ named }

func (waiter) AtWork(tools.Call, time.Time) bool { return false }

// Under a profile that changes nothing a call is made if it cannot change anything; a dry run makes
// those that the copy of its folder holds, and records the others.
func TestWhatAProfileMakesOfACall(t *testing.T) {
	const made, recorded, denied = "", record.NotDone, "denied"
	of := func(name string, replay tools.Replay, writes bool) named {
		return named{tools.Spec{Name: name, Replay: replay, Writes: writes}}
	}
	for name, tt := range map[string]struct {
		tool       tools.Tool
		dry, reads string // what becomes of it in a dry run, and under a profile that only reads
	}{
		"one that reads":          {of("x", tools.ReadOnly, false), made, made},
		"one that writes a file":  {of("x", tools.Idempotent, true), made, denied},
		"one that sends":          {of("x", tools.Once, false), recorded, denied},
		"a list of agents":        {of("agents_list", tools.Idempotent, false), made, made},
		"a message to the user":   {of("message", tools.Idempotent, false), recorded, made},
		"a reaction":              {of("set_reaction", tools.Idempotent, false), recorded, made},
		"an agent of its own":     {waiter{of("x", tools.Once, false)}, made, made},
		"a command in a sandbox":  {commander{of("exec", tools.Once, false), true}, made, made},
		"a command without one":   {commander{of("exec", tools.Once, false), false}, denied, denied},
		"a command that it reads": {commander{of("exec", tools.ReadOnly, false), false}, made, made},
	} {
		for profile, want := range map[permission.Profile]string{permission.DryRun: tt.dry, permission.ReadOnly: tt.reads,
			permission.Planning: tt.reads, permission.Auto: made, permission.AskFirst: made} {
			p := prepared{tool: tt.tool, spec: tt.tool.Spec()}
			p.call.Access = permission.Set{Profile: profile, WorkingDir: "/ws"}
			got, status := "", tools.OK
			if r := refusedBy(p); r != nil {
				got, status = r.Text, cmp.Or(r.Status, tools.OK)
			}
			if (got == "") != (want == "") || !strings.HasPrefix(got, want) || (status == tools.Denied) != (want == denied) {
				t.Errorf("%s under %q: %s %q, want %q", name, profile, status, got, want)
			}
			if profile == permission.Planning && want == denied && !strings.Contains(got, "submit_plan") {
				t.Errorf("%s under %q: %q does not say what to do", name, profile, got)
			}
		}
	}
}

// A dry run writes in its copy, and no approval allows more; other profiles ask.
func TestADryRunOverreaches(t *testing.T) {
	for path, want := range map[string]bool{"/copy": false, "/copy/a": false, "/copies": true, "/": true} {
		set := permission.Set{Profile: permission.DryRun, WorkingDir: "/copy"}
		if overreaches(set, permission.Write{Path: path}) != want || overreaches(set, permission.Read{Path: path}) {
			t.Errorf("a dry run that writes %s: %v", path, !want)
		}
		if set.Profile = permission.Auto; overreaches(set, permission.Write{Path: path}) {
			t.Errorf("another profile that writes %s overreaches", path)
		}
	}
}

// A call is spelled a line for each argument, in their order; what is no JSON is an error.
func TestHowACallIsSpelled(t *testing.T) {
	got, err := spelled(tools.Call{Name: "pen", Arguments: []byte(`{"b":"x\ny: z\n","a":"one","c":{"d":1},"e":2}`)})
	want := "pen\na: one\nb: \n  │ x\n  │ y: z\nc: \n  │ {\n  │   \"d\": 1\n  │ }\ne: 2"
	if err != nil || got != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
	}
	for _, broken := range []string{"", "[]", "{"} {
		if got, err := spelled(tools.Call{Name: "pen", Arguments: []byte(broken)}); err == nil || got != "" {
			t.Errorf("%q is spelled %q", broken, got)
		}
	}
}

// Under the profile ask every change of a file needs an approval, with the whole call in it.
func TestWhatAskFirstAsks(t *testing.T) {
	p := prepared{tool: named{}, spec: tools.Spec{Name: "pen", Writes: true}}
	p.call = tools.Call{Name: "pen", Arguments: []byte(`{"a":"one"}`),
		Access: permission.Set{Profile: permission.AskFirst, WorkingDir: "/ws"}}
	need, err := needs(p)
	if err != nil || need == nil || !need.AskAlways || need.Workdir != "/ws" || need.Detail.Command != "pen\na: one" ||
		need.Tag != (permission.Write{Path: "/ws"}).Tag() {
		t.Errorf("%+v, %v", need, err)
	}
	p.call.Arguments = []byte("{")
	if _, err := needs(p); err == nil {
		t.Error("a call that cannot be spelled is asked for")
	}
	p.spec.Writes = false
	if need, err := needs(p); need != nil || err != nil {
		t.Errorf("of a tool that writes nothing: %+v, %v", need, err)
	}
	p.spec.Writes, p.call.Access.Profile = true, permission.Auto
	if need, err := needs(p); need != nil || err != nil {
		t.Errorf("under another profile: %+v, %v", need, err)
	}
}
