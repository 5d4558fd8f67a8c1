package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// A bareTool does what a test says.
type bareTool struct {
	spec tools.Spec
	run  func(ctx context.Context) (tools.Result, error)
}

func (p bareTool) Spec() tools.Spec {
	if p.spec.Schema == nil {
		p.spec.Schema, p.spec.Description = json.RawMessage(`{"type":"object"}`), "d"
	}
	return p.spec
}
func (p bareTool) Run(ctx context.Context, _ tools.Call) (tools.Result, error) { return p.run(ctx) }

// However a tool ends, its call has a result that says so.
func TestHowACallEnds(t *testing.T) {
	type running = func(ctx context.Context) (tools.Result, error)
	says := func(text string, err error) running {
		return func(context.Context) (tools.Result, error) { return tools.Result{Text: text}, err }
	}

	// until runs until it is stopped.
	until := func(text string, err error) running {
		return func(ctx context.Context) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{Text: text}, err
		}
	}
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		run     running
		timeout time.Duration
		stop    bool // somebody stops the turn after a second
		want    tools.Result
	}{
		"well":          {says("x", nil), time.Minute, false, tools.Result{Text: "x"}},
		"with an error": {says("x", broken), time.Minute, false, tools.Errorf("broken")},
		"with a panic":  {nil, 0, false, tools.Result{Status: tools.Failed}},
		"too late": {until("x", broken), time.Minute, false,
			tools.Result{Status: tools.TimedOut, Text: "timed out after 1m0s"}},
		"well, at the last moment": {until("x", nil), time.Minute, false, tools.Result{Text: "x"}},
		"stopped":                  {until("x", broken), time.Minute, true, tools.Result{Status: tools.Canceled, Text: "x\nCancelled"}},
		"stopped, without a limit": {until("x", broken), 0, true, tools.Result{Status: tools.Canceled, Text: "x\nCancelled"}},
		"stopped when it was done": {until("", nil), 0, true, tools.Result{Status: tools.Canceled, Text: "Cancelled"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.stop {
					time.AfterFunc(time.Second, cancel)
				}
				tool := bareTool{tools.Spec{Name: "t", Timeout: tt.timeout}, tt.run}
				got := run(ctx, prepared{tool: tool, spec: tool.Spec(), call: tools.Call{Name: "t"}}, slog.New(slog.DiscardHandler))
				if tt.run == nil && strings.HasPrefix(got.Text, "the tool t crashed: ") {
					got.Text = "" // the rest is the runtime's
				}
				if diff := gocmp.Diff(tt.want, got); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// An orderly stop keeps the results that are final: a call that was cut and may be run again
// has none, so that it is run again.
func TestWhichResultsAStopKeeps(t *testing.T) {
	s := withTools(t, tools.Spec{Name: "once", Replay: tools.Once}, tools.Spec{Name: "read", Replay: tools.ReadOnly})
	result := func(name string, status record.Status) record.Record {
		return &record.ToolResult{Name: name, Status: status}
	}
	all := []record.Record{result("once", record.StatusCanceled), result("read", record.StatusCanceled),
		result("read", record.StatusOK), result("read", record.StatusError), result("unknown", record.StatusCanceled)}
	want := []record.Record{all[0], all[2], all[3], all[4]}
	if got := s.keep(slices.Clone(all)); !slices.Equal(got, want) {
		t.Errorf("%d results are kept, want those that are final: %d", len(got), len(want))
	}
}

// withTools is an agent that has some tools.
func withTools(t *testing.T, specs ...tools.Spec) *self {
	t.Helper()
	var list []tools.Tool
	for _, spec := range specs {
		spec.Replay = cmp.Or(spec.Replay, tools.ReadOnly)
		list = append(list, bareTool{spec: spec})
	}
	set, err := tools.NewSet(list...)
	if err != nil {
		t.Fatal(err)
	}

	return &self{tools: set}
}

// As many of the first calls run beside each other as may and as are allowed to.
func TestHowManyCallsRunBesideEachOther(t *testing.T) {
	s := withTools(t, tools.Spec{Name: "p", Parallel: true}, tools.Spec{Name: "a"})
	for _, tt := range []struct {
		calls string
		most  int
		want  int
	}{{"p", 4, 1}, {"ppp", 4, 3}, {"ppppp", 4, 4}, {"ppap", 4, 2}, {"app", 4, 1}, {"pp", 0, 1}, {"pxp", 4, 1}} {
		var calls []record.ToolCall
		for _, c := range tt.calls {
			calls = append(calls, record.ToolCall{Name: string(c)})
		}
		s.settings.Parallel = tt.most
		if got := s.beside(calls); got != tt.want {
			t.Errorf("of %s with at most %d beside each other %d run, want %d", tt.calls, tt.most, got, tt.want)
		}
	}
}

// A call that a crash cut is lost only if it was started and must not run twice. An agent
// that no longer has the tool cannot run it again.
func TestWhichCallsADeathLoses(t *testing.T) {
	s := withTools(t, tools.Spec{Name: "once", Replay: tools.Once}, tools.Spec{Name: "again", Replay: tools.Idempotent})
	for name, want := range map[string][2]bool{"once": {true, false}, "again": {false, false}, "gone": {true, false}} {
		call := record.OpenCall{Call: record.ToolCall{ID: "id", Name: name}, Started: true}
		waits := call
		waits.Started = false
		if got := [2]bool{s.lost(call), s.lost(waits)}; got != want {
			t.Errorf("%s, started or not, is lost: %v, want %v", name, got, want)
		}
		lost, aside := s.interrupted([]record.OpenCall{call}), s.setAside([]record.OpenCall{call})
		if len(lost)+len(aside) != 1 || (len(lost) == 1) != want[0] {
			t.Errorf("%s has %d results as lost and %d as set aside, want one", name, len(lost), len(aside))
		}
	}
}

// Only deaths without any progress count.
func TestWhichAttemptComesNext(t *testing.T) {
	s := withTools(t, tools.Spec{Name: "p"})
	for name, tt := range map[string]struct {
		open record.OpenTurn
		want int
	}{
		"a death":                {record.OpenTurn{Attempt: 2}, 3},
		"an orderly stop":        {record.OpenTurn{Attempt: 2, Suspended: true}, 2},
		"a death after progress": {record.OpenTurn{Attempt: 3, Progress: true}, 2},
		"a death with a call": {record.OpenTurn{Attempt: 2,
			ToolWork: record.ToolWork{Calls: []record.OpenCall{{Call: record.ToolCall{Name: "p"}}}}}, 3},
	} {
		if got := s.nextAttempt(&tt.open); got != tt.want {
			t.Errorf("after %s comes attempt %d, want %d", name, got, tt.want)
		}
	}
}

// Arguments that are no JSON object stay readable in a line of history.
func TestArgumentsThatAreNoJSONAreKept(t *testing.T) {
	for _, tt := range []struct {
		call providers.ResponseCall
		want string
	}{
		{providers.ResponseCall{Arguments: []byte(`{"a":1}`), Valid: true}, `{"a":1}`},
		{providers.ResponseCall{Arguments: []byte(`{oops "x"`)}, `"{oops \"x\""`},
	} {
		if got := string(arguments(tt.call)); got != tt.want {
			t.Errorf("%s became %s, want %s", tt.call.Arguments, got, tt.want)
		}
	}
}

// asks is a tool that needs what a test says.
type asks struct {
	bareTool
	need *permission.Request
	err  error
}

func (a asks) Needs(tools.Call) (*permission.Request, error) { return a.need, a.err }

// confined is a tool whose calls something holds, or not.
type confined struct {
	bareTool
	held bool
}

func (c confined) Held(tools.Call) bool { return c.held }

// What an agent that changes nothing may call all the same: what only reads, what changes
// nothing outside of it, an agent of its own, and what something holds.
func TestWhatAProfileRefuses(t *testing.T) {
	pen := tools.Spec{Name: "pen", Replay: tools.Idempotent, Writes: true}
	for name, tt := range map[string]struct {
		tool    tools.Tool
		refuses bool
	}{
		"changes":                     {bareTool{spec: pen}, true},
		"only reads":                  {bareTool{spec: tools.Spec{Name: "look", Replay: tools.ReadOnly}}, false},
		"a message":                   {bareTool{spec: tools.Spec{Name: "message", Replay: tools.Once}}, false},
		"waits for an agent":          {waiting{hold: newHold("w", tools.Once)}, false},
		"runs commands, held":         {confined{bareTool{spec: pen}, true}, false},
		"runs commands, nothing held": {confined{bareTool{spec: pen}, false}, true},
	} {
		for profile, applies := range map[permission.Profile]bool{permission.ReadOnly: true, permission.Planning: true,
			permission.AskFirst: false, permission.Auto: false, "": false} {
			p := prepared{tool: tt.tool, spec: tt.tool.Spec(), call: tools.Call{Access: permission.Set{Profile: profile}}}
			got := refusedBy(p)
			if (got != nil) != (tt.refuses && applies) {
				t.Errorf("a tool that %s is refused under %q: %v", name, profile, got != nil)
			}
			planning := profile == permission.Planning
			if got != nil && (got.Status != tools.Denied || strings.Contains(got.Text, "submit_plan") != planning) {
				t.Errorf("a tool that %s is refused under %q with %+v", name, profile, got)
			}
		}
	}
}

// A call needs the approval that its tool says, and under the profile ask one for each
// change of a file, with its arguments spelled out.
func TestWhichCallsNeedAnApproval(t *testing.T) {
	own := &permission.Request{Tag: "@web"}
	pen := bareTool{spec: tools.Spec{Name: "pen", Writes: true}}
	for name, tt := range map[string]struct {
		tool    tools.Tool
		profile permission.Profile
		args    string
		want    string // tag; "": none
		fails   bool
	}{
		"its own":                    {asks{pen, own, nil}, permission.AskFirst, `{}`, "@web", false},
		"its own, under another":     {asks{pen, own, nil}, permission.Auto, `{}`, "@web", false},
		"it cannot say":              {asks{pen, nil, errors.New("no")}, permission.Auto, `{}`, "", true},
		"a change, asked":            {asks{pen, nil, nil}, permission.AskFirst, `{}`, "@write:/w", false},
		"a change, not asked":        {pen, permission.Auto, `{}`, "", false},
		"no change":                  {bareTool{spec: tools.Spec{Name: "look"}}, permission.AskFirst, `{}`, "", false},
		"arguments that are no JSON": {pen, permission.AskFirst, `{`, "", true},
	} {
		set := permission.Set{Profile: tt.profile, WorkingDir: "/w"}
		call := tools.Call{Name: "pen", Arguments: []byte(tt.args), Access: set}
		need, err := needs(prepared{tool: tt.tool, spec: tt.tool.Spec(), call: call})
		tag := ""
		if need != nil && err == nil {
			tag = need.Tag
		}
		if (err != nil) != tt.fails || tag != tt.want {
			t.Errorf("%s: needs %q, %v; want %q", name, tag, err, tt.want)
		}
	}

	got, err := spelled(tools.Call{Name: "pen", Arguments: []byte(`{"text":"a\nb\n","n":3,"list":[1,2],"flag":true}`)})
	want := "pen\nflag: true\nlist: \n  │ [\n  │   1,\n  │   2\n  │ ]\nn: 3\ntext: \n  │ a\n  │ b"
	if got != want || err != nil {
		t.Errorf("a call is spelled\n%s\n%v, want\n%s", got, err, want)
	}
}
