package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/cuid"
	"daycare/engine/permission"
	"daycare/tools/hooks"
	toolshell "daycare/tools/shell"
)

// hookHome is whose home the programs of hooks have: no agent's, so that none can put there
// what a hook would read.
const hookHome = "hooks"

// A hooked is the hooks of the settings, made again when those change. It is the agents.Hooks
// of all agents.
type hooked struct{ *Daemon }

// A hookSet is the hooks of one reading of the settings.
type hookSet struct {
	of  *config.Config
	set *hooks.Set
}

// current is the hooks of the settings now. What runs continues with those it began with.
func (r hooked) current() *hooks.Set {
	c := r.settings.Current()
	if known := r.hookSet.Load(); known != nil && known.of == c {
		return known.set
	}
	set, err := hooks.New(hookList(c.Hooks), config.Matching)
	if err != nil { // the settings were checked when they were read
		r.log.Error("hooks of the settings not used", "err", err)
	}
	r.hookSet.Store(&hookSet{c, set})
	return set
}

// hookList is the hooks of the settings as tools/hooks has them.
func hookList(h config.Hooks) (list []hooks.Hook) {
	for _, m := range h.Moments() {
		for _, k := range m.Hooks {
			timeout := k.Timeout
			if timeout == 0 {
				timeout = config.DefaultHookTimeout
			}
			list = append(list, hooks.Hook{Event: hooks.Event(m.Name), Matcher: k.Matcher, Command: k.Command, Timeout: timeout,
				OnError: k.OnError, Bare: k.Sandbox != nil && !*k.Sandbox, Approves: k.Approve})
		}
	}

	return list
}

// Any reports whether a hook would run.
func (r hooked) Any(event hooks.Event, tool string) bool { return r.current().Any(event, tool) }

// Run runs the hooks of a moment.
func (r hooked) Run(ctx context.Context, m hooks.Moment) hooks.Verdict {
	if m.Agent.Dir == "" {
		m.Agent.Dir = r.at.Dir
	}
	return r.current().Run(ctx, m, r.program)
}

// program runs one hook as a command of the workspace.
func (r hooked) program(ctx context.Context, j hooks.Job) (hooks.End, error) {
	tool, _, ok := r.tools.Get("exec")
	exec, isExec := tool.(*toolshell.Exec)
	if !ok || !isExec {
		return hooks.End{}, errors.New("this build runs no commands")
	}
	out, errs := beginning{most: hooks.MaxOut}, beginning{most: hooks.MaxErr}
	access := permission.Default(r.at.Dir)
	if more, err := access.Grant(permission.Grant{Tag: permission.Write{Path: j.Dir}.Tag()}); err == nil {
		access = more
	}
	end, err := toolshell.Program{Command: j.Hook.Command, Stdin: string(j.Stdin), Dir: j.Dir,
		Timeout: j.Hook.Timeout, Mark: cuid.New(), Agent: j.Agent, As: hookHome, Access: access, Bare: j.Hook.Bare,
		Env: []string{"DAYCARE_WORKSPACE=" + r.at.Dir, "DAYCARE_DATA=" + r.at.Data, "DAYCARE_HOOK=" + string(j.Hook.Event),
			"CLAUDE_PROJECT_DIR=" + r.at.Dir}, Out: &out, Err: &errs}.Run(ctx, exec)
	if errors.Is(err, toolshell.ErrNoSandbox) {
		return hooks.End{}, fmt.Errorf("%w; to run it without, set sandbox: false for this hook", err)
	}
	return hooks.End{Code: end.Code, Signal: end.Signal, TimedOut: end.TimedOut, Out: out.kept, Err: errs.kept,
		Cut: out.cut}, err
}

// guarding are the commands of the hooks that run before a tool.
func (r hooked) guarding(tool string) (commands []string) {
	for _, h := range r.current().Matching(hooks.BeforeTool, tool) {
		commands = append(commands, h.Command)
	}
	return commands
}

// Hooks returns the active hooks.
func (r hooked) Hooks(context.Context) (list []control.HookInfo, _ error) {
	for _, h := range hookList(r.settings.Current().Hooks) {
		list = append(list, control.HookInfo{Event: string(h.Event), Matcher: h.Matcher, Command: h.Command,
			TimeoutMS: h.Timeout.Milliseconds(), OnError: h.IfItFails(), Sandbox: !h.Bare, Approve: h.Approves})
	}

	return list, nil
}

// TestHooks runs the hooks of a moment with a sample.
func (r hooked) TestHooks(ctx context.Context, s control.HookSample) (t control.HookTest, err error) {
	event := hooks.Event(s.Event)
	if !slices.Contains(hooks.Events, event) {
		return t, &control.Invalid{Field: "event", Reason: fmt.Sprintf("found %q, allowed: %v", s.Event, hooks.Events)}
	}
	input := s.Input
	if input == nil && s.Tool != "" {
		input = json.RawMessage("{}")
	}
	v := r.Run(ctx, hooks.Moment{Event: event, Agent: hooks.Agent{ID: "sample", Handle: "0/", Name: "Sample", Session: "sample"},
		Turn: "sample", Call: hooks.Call{ID: "sample", Tool: s.Tool, Input: input, Response: &hooks.Response{Status: "ok", Output: s.Text}},
		Message: hooks.Message{Item: "sample", Text: s.Text}, Answer: s.Text, Source: "startup",
		Request: hooks.Request{Token: "sample", Permission: "@web:example.com", Reason: s.Text}})
	t = control.HookTest{Decision: string(v.Decision), Reason: v.Reason, Context: v.Context, Input: v.Input}
	if v.Stop {
		t.Decision = "stop"
	}
	for _, ran := range v.Ran {
		t.Runs = append(t.Runs, control.HookRun{Command: ran.Hook.Command, Code: ran.End.Code, Signal: ran.End.Signal,
			Output: string(ran.End.Out), Errors: string(ran.End.Err), Decision: string(ran.Decision), Failed: ran.Error,
			MS: ran.Took.Milliseconds()})
	}

	return t, nil
}

// hookFolder is where programs of hooks are kept: no agent can write there.
func (r workbench) hookFolder() string { return filepath.Join(r.at.Data, "hooks") }

// A beginning keeps the first bytes of what is written to it, at most so many.
type beginning struct {
	kept []byte
	most int
	cut  bool
}

func (b *beginning) Write(p []byte) (int, error) {
	keep := min(len(p), b.most-len(b.kept))
	b.kept, b.cut = append(b.kept, p[:keep]...), b.cut || keep < len(p)
	return len(p), nil
}
