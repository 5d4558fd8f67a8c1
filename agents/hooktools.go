package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

// What hooks have to do with calls of tools, and with the approvals that these need.

// before asks the before_tool hooks of calls that stand side by side. Those of one call run
// one after the other, those of several calls too: a policy sees them in the model's order.
// A call that cannot run for another reason has none. If one ends the turn, the verdicts end
// with its own: the calls behind it are not run.
func (h *hooking) before(ctx context.Context, t *turn, calls []record.ToolCall) ([]hooks.Verdict, error) {
	asks := func(c record.ToolCall) bool {
		if !h.any(hooks.BeforeTool, c.Name) {
			return false
		}
		_, _, known := t.tools.Get(c.Name)
		return known && t.tools.Validate(c.Name, c.Arguments) == nil
	}
	if !slices.ContainsFunc(calls, asks) {
		return nil, nil
	}
	verdicts := make([]hooks.Verdict, len(calls))
	for i, c := range calls {
		if !asks(c) || ctx.Err() != nil {
			continue
		}
		m := h.moment(hooks.BeforeTool, t)
		m.ID, m.Tool, m.Input = c.ID, c.Name, c.Arguments
		var err error
		if verdicts[i], err = h.run(ctx, t, m); err != nil {
			return nil, err
		}
		if verdicts[i].Stop {
			return verdicts[:i+1], nil // the turn ends: what follows is not run
		}
	}

	return verdicts, nil
}

// hooked is a call as its before_tool hooks left it, or the result that the model reads instead.
func (t *turn) hooked(c record.ToolCall, v hooks.Verdict) (record.ToolCall, *tools.Result) {
	if v.Stop {
		t.stopped = v.Reason
	}
	if v.Decision == hooks.Deny || v.Stop {
		return c, &tools.Result{Status: tools.Denied, Text: "denied by a hook of the owner: " + v.Reason}
	}
	if v.Input == nil {
		return c, nil
	}
	tool, _, _ := t.tools.Get(c.Name)
	if _, widens := tool.(tools.Widens); widens { // the right would be that of the model's own words
		return c, &tools.Result{Status: tools.Denied, Text: "denied: a hook changed the input of " + c.Name +
			", which no hook may change"}
	}
	c.Arguments = v.Input
	return c, nil
}

// after asks the after_tool hooks of a call that ran, and adds what they say to its result.
// It touches nothing of the agent, so that calls beside each other can have it at once.
func (h *hooking) after(ctx context.Context, m hooks.Moment, r *record.ToolResult) (v hooks.Verdict) {
	if r.Status == record.StatusCanceled {
		return v // the turn is over
	}
	m.Response = &hooks.Response{Status: string(r.Status), Output: r.Output.Text}
	v = h.hooks.Run(ctx, m)
	var lines []string
	switch {
	case ctx.Err() != nil:
		lines = append(lines, "an after_tool hook was stopped before it ended")
	case v.Decision == hooks.Deny:
		lines = append(lines, v.Reason)
	}
	if v.Context != "" {
		lines = append(lines, v.Context)
	}
	for _, line := range lines {
		r.Output.Text = strings.TrimSuffix(r.Output.Text, "\n") + "\n[hook after_tool] " + line
	}

	return v
}

// A watching has the after_tool hooks of calls beside each other.
type watching struct {
	*hooking
	moments  []hooks.Moment // of each call; without an event: nothing runs
	verdicts []hooks.Verdict
}

// watching is of the calls that are about to run; nil: no hook is about any of them.
func (h *hooking) watching(t *turn, calls []record.ToolCall, prepared []prepared) *watching {
	var w *watching
	for i, c := range calls {
		if prepared[i].answer != nil || !h.any(hooks.AfterTool, c.Name) {
			continue
		}
		if w == nil {
			w = &watching{h, make([]hooks.Moment, len(calls)), make([]hooks.Verdict, len(calls))}
		}
		m := h.moment(hooks.AfterTool, t)
		m.Tool, m.ID, m.Input = c.Name, c.ID, prepared[i].call.Arguments
		w.moments[i] = m
	}

	return w
}

// after is called for each call, by the goroutine that ran it.
func (w *watching) after(ctx context.Context, i int, r *record.ToolResult) {
	if w != nil && w.moments[i].Event != "" {
		w.verdicts[i] = w.hooking.after(ctx, w.moments[i], r)
	}
}

// record records what they did.
func (w *watching) record(t *turn) error {
	if w == nil {
		return nil
	}
	for i, v := range w.verdicts {
		if v.Stop {
			t.stopped = v.Reason
		}
		if err := w.note(w.moments[i], v); err != nil {
			return err
		}
	}

	return nil
}

// lost has after_tool hooks see the results of calls that a crash cut and that are not run
// again: each call that began has been shown to them when its result is recorded.
func (h *hooking) lost(ctx context.Context, t *turn, calls []record.OpenCall, recs []record.Record) error {
	for _, rec := range recs {
		r, ok := rec.(*record.ToolResult)
		if !ok {
			continue
		}
		var arguments json.RawMessage
		for _, c := range calls {
			if c.Call.ID == r.ToolCallID {
				arguments = c.Call.Arguments
			}
		}
		if !h.any(hooks.AfterTool, r.Name) {
			continue
		}
		m := h.moment(hooks.AfterTool, t)
		m.Tool, m.ID, m.Input = r.Name, r.ToolCallID, arguments
		var v hooks.Verdict
		h.deliveries.meanwhile(func(sync.Locker) { v = h.after(ctx, m, r) })
		if v.Stop {
			t.stopped = v.Reason
		}
		if err := h.note(m, v); err != nil {
			return err
		}
	}

	return nil
}

// asked runs the approval hooks for a request.
func (h *hooking) asked(ctx context.Context, t *turn, token string, need permission.Request) error {
	if !h.any(hooks.Approval, "") {
		return nil
	}
	m := h.moment(hooks.Approval, t)
	m.Request = hooks.Request{Token: token, Permission: need.Tag, Reason: need.Reason, Detail: need.Detail.String()}
	_, err := h.run(ctx, t, m)
	return err
}

// asked is the request of a call that a hook wants a user to decide: what the call needs
// where each asks first, else the call itself. Nothing that was granted before answers it, but
// for an answer to exactly this.
func asked(p prepared, need *permission.Request) (*permission.Request, error) {
	if need == nil && p.call.Access.Changes() {
		strict := p
		strict.call.Access.Profile = permission.AskFirst
		var err error
		if need, err = needs(strict); err != nil {
			return nil, err
		}
	}
	if need == nil {
		text, err := spelled(p.call)
		if err != nil {
			return nil, err
		}
		dir := cmp.Or(p.call.Access.WorkingDir, "/")
		need = &permission.Request{Tag: permission.Read{Path: dir}.Tag(), Reason: "call " + p.spec.Name, Workdir: dir,
			Detail: permission.Detail{Command: text}}
	}
	forced := *need
	forced.AskAlways, forced.Prefix = true, ""
	forced.Reason = strings.TrimSuffix("a hook asks: "+p.hooked.Reason, ": ") + " (" + need.Reason + ")"
	return &forced, nil
}
