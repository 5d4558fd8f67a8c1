// Package toolstest is the contract of tools.Tool as a test. Every tool runs it:
//
//	toolstest.Run(t, tool, toolstest.Options{Access: permission.Default(t.TempDir()), Good: []string{`{"path":"."}`}})
package toolstest

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
)

// Options say how a tool is called.
type Options struct {
	Access permission.Set
	Agent  string
	// Good are arguments that the tool takes. They are run, so they must do no
	// harm.
	Good []string
	// Bad are arguments that fit the schema and still make no sense: the result
	// must not be OK.
	Bad []string
	// Slow are arguments of a call that would take long: it must end soon after
	// its context.
	Slow string
}

// Soon is how long after its context ended a call may still take.
const Soon = 7 * time.Second

// MaxDescription bounds a description, in characters: it is sent with each call
// of a model.
const MaxDescription = 300

var name = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Run checks that a tool keeps the contract.
func Run(t *testing.T, tool tools.Tool, o Options) {
	t.Helper()
	spec := tool.Spec()
	t.Run("spec", func(t *testing.T) { checkSpec(t, tool) })
	t.Run("good", func(t *testing.T) {
		for _, args := range o.Good {
			if err := tools.Validate(spec, json.RawMessage(args)); err != nil {
				t.Errorf("the schema refuses arguments that are good: %v", err)
			}
			if res := call(t, t.Context(), tool, o, args); status(res) != tools.OK {
				t.Errorf("%s(%s) gave %q: %s", spec.Name, args, res.Status, res.Text)
			}
		}
	})

	t.Run("bad", func(t *testing.T) {
		for _, args := range o.Bad {
			res := call(t, t.Context(), tool, o, args)
			if status(res) == tools.OK || res.Text == "" {
				t.Errorf("%s(%s) is OK with %q; it must tell the model what is wrong", spec.Name, args, res.Text)
			}
		}
	})

	t.Run("garbage", func(t *testing.T) { checkGarbage(t, tool, o) })
	t.Run("cancel", func(t *testing.T) { checkCancel(t, tool, o) })
}

func checkSpec(t *testing.T, tool tools.Tool) {
	spec := tool.Spec()
	if !name.MatchString(spec.Name) {
		t.Errorf("name %q must match %s", spec.Name, name)
	}
	if d := strings.TrimSpace(spec.Description); d == "" || d != spec.Description || len([]rune(d)) > MaxDescription {
		t.Errorf("the description has %d characters; it must have 1 to %d and no space around", len([]rune(d)), MaxDescription)
	}
	if _, err := tools.NewSet(tool); err != nil {
		t.Error(err)
	}
	if _, err := tools.NewChecker(spec); err != nil {
		t.Error(err)
	}
	if spec.Parallel && spec.Replay != tools.ReadOnly {
		t.Errorf("a tool that runs beside others must be %s, it is %s", tools.ReadOnly, spec.Replay)
	}
	if again := tool.Spec(); string(again.Schema) != string(spec.Schema) || again.Description != spec.Description {
		t.Error("two calls of Spec differ: the beginning of a prompt must stay the same")
	}
}

// checkGarbage gives the tool what a model may write that has lost its thread.
// What does not pass the schema never reaches a tool, but must not kill it either.
func checkGarbage(t *testing.T, tool tools.Tool, o Options) {
	for _, args := range append(garbage(tool.Spec()), `{}`, `null`, `[]`, `"text"`, `7`, `{`, ``, `{"":""}`, "\x00",
		`{"a":{"a":{"a":[]}}}`) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if asks, ok := tool.(tools.Asks); ok {
			_, _ = asks.Needs(newCall(tool, o, args)) // must not panic; an error is fine
		}
		call(t, ctx, tool, o, args)
		cancel()
	}
}

// garbage sets each property to values of every type.
func garbage(spec tools.Spec) []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		return nil
	}

	var all []string
	for _, value := range []string{`null`, `-1`, `1e300`, `0.5`, `""`, `"\u0000"`, `"../../../../etc/passwd"`, `[]`,
		`{}`, `true`, `"` + strings.Repeat("x", 5000) + `"`} {
		for name := range schema.Properties {
			all = append(all, `{"`+name+`":`+value+`}`)
		}
		members := make([]string, 0, len(schema.Properties))
		for name := range schema.Properties {
			members = append(members, `"`+name+`":`+value)
		}
		all = append(all, "{"+strings.Join(members, ",")+"}")
	}

	return all
}

func checkCancel(t *testing.T, tool tools.Tool, o Options) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range o.Good {
		start := time.Now()
		if res := call(t, ctx, tool, o, args); status(res) == tools.OK {
			t.Errorf("%s(%s) is OK though its context had ended", tool.Spec().Name, args)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s took %v after its context had ended", tool.Spec().Name, took)
		}
	}

	if o.Slow == "" {
		return
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if res := call(t, ctx, tool, o, o.Slow); status(res) == tools.OK {
		t.Errorf("%s(%s) is OK though it was cancelled", tool.Spec().Name, o.Slow)
	}
	if took := time.Since(start); took > Soon {
		t.Errorf("%s took %v; after its context it may take %v", tool.Spec().Name, took, Soon)
	}
}

func newCall(tool tools.Tool, o Options, args string) tools.Call {
	agent := o.Agent
	if agent == "" {
		agent = "tz4a98xxat96iws9zmbrgj3a"
	}
	return tools.Call{ID: "pfh0haxfpzowht3oi213cqos", Name: tool.Spec().Name, Arguments: json.RawMessage(args),
		Agent: agent, Turn: "t1", Access: o.Access, Progress: func(string) {}}
}

// call runs the tool; a panic fails the test with the arguments that caused it.
func call(t *testing.T, ctx context.Context, tool tools.Tool, o Options, args string) tools.Result {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s(%.200s) panicked: %v", tool.Spec().Name, args, p)
		}
	}()

	res, err := tool.Run(ctx, newCall(tool, o, args))
	if err != nil && ctx.Err() == nil {
		t.Errorf("%s(%.200s): %v; what the model can mend is a Result", tool.Spec().Name, args, err)
	}
	if err != nil {
		res.Status = tools.Canceled
	}

	return res
}

func status(r tools.Result) tools.Status {
	if r.Status == "" {
		return tools.OK
	}
	return r.Status
}
