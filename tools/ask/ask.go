// Package ask is how an agent gets more permissions and passes on those it has:
// request_permission puts a question to a user, grant_permission shares a permission
// with an agent that this one started. Neither can widen anything by itself: the
// runtime asks the user, and only what the giver holds is given.
//
// To add a tool: a type with Spec and Run, its name in New, toolstest.Run on it.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"daycare/engine/permission"
	"daycare/tools"
)

// An Asker passes rights on between agents.
type Asker interface {
	// Share gives agent to, which from started, a right that from holds. key is
	// the same at every try.
	Share(ctx context.Context, from, to, tag, key string) error
}

// New makes the tools.
func New(a Asker) []tools.Tool { return []tools.Tool{request{}, grant{a}} }

type arguments struct {
	Permission string `json:"permission"`
	Reason     string `json:"reason"`
	AgentID    string `json:"agentId"`
}

func read(call tools.Call) (args arguments, err error) {
	if err = json.Unmarshal(call.Arguments, &args); err != nil {
		return args, fmt.Errorf("the arguments do not fit: %w", err)
	}
	args.Permission = absolute(args.Permission, call.Access.WorkingDir)
	return args, nil
}

// absolute lets a model name paths as it names them to other tools.
func absolute(tag, workingDir string) string {
	kind, path, ok := strings.Cut(tag, ":")
	if !ok || kind != "@read" && kind != "@write" || path == "" || filepath.IsAbs(path) || workingDir == "" {
		return tag
	}

	return kind + ":" + filepath.Join(workingDir, path)
}

// request is request_permission. Its call needs the very right that it asks for: the
// runtime puts the question, and runs the call once the answer is yes.
type request struct{}

// NewPlan makes the tool of agents that plan before they change anything.
func NewPlan() tools.Tool { return plan{} }

// plan is submit_plan. Like request_permission its call needs what it asks for: that a
// person approves the plan.
type plan struct{}

// Spec describes the tool.
func (plan) Spec() tools.Spec {
	return tools.Spec{Name: "submit_plan", Replay: tools.Idempotent,
		Description: "Ask the user to approve your plan: every step, file and command. Once it is approved, carry it " +
			"out in the same turn.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
			"plan":{"type":"string","minLength":1,"maxLength":20000}},"required":["plan"]}`)}
}

// Needs is the question.
func (plan) Needs(call tools.Call) (*permission.Request, error) {
	var args struct {
		Plan string `json:"plan"`
	}
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return nil, fmt.Errorf("the arguments do not fit: %w", err)
	}

	return &permission.Request{Tag: permission.Plan{}.Tag(), Reason: "carry out this plan", AskAlways: true,
		Detail: permission.Detail{Command: args.Plan}, Workdir: call.Access.WorkingDir}, nil
}

// Widens lets the rest of the turn change things.
func (plan) Widens(tools.Call) string { return permission.Plan{}.Tag() }

// Run is reached when the plan is approved.
func (plan) Run(ctx context.Context, _ tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	return tools.Result{Text: "The plan is approved. Carry it out now, in this turn, and nothing else."}, nil
}

// Spec describes the tool.
func (request) Spec() tools.Spec {
	return tools.Spec{Name: tools.RequestPermission, Replay: tools.Idempotent,
		Description: "Ask the user for a permission: @read:/path, @write:/path, @web, @web:host, " +
			"@lan:host:port (in the owner's network) or @exec:command.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
			"permission":{"type":"string","minLength":1,"maxLength":4096},
			"reason":{"type":"string","minLength":1,"maxLength":500}},"required":["permission","reason"]}`)}
}

// Needs is the question.
func (request) Needs(call tools.Call) (*permission.Request, error) {
	args, err := read(call)
	if err != nil {
		return nil, err
	}
	r, err := permission.General(args.Permission, args.Reason)
	if err != nil {
		return nil, err
	}

	return &r, nil
}

// Widens is the right that an answer "once" gives for the rest of the turn.
func (request) Widens(call tools.Call) string {
	args, err := read(call)
	if err != nil {
		return ""
	}

	return args.Permission
}

// Run is reached when the right is there.
func (request) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	args, err := read(call)
	if err != nil {
		return tools.Errorf("request_permission: %v", err), nil
	}

	access, err := permission.Parse(args.Permission)
	if err != nil {
		return tools.Errorf("request_permission: %v", err), nil
	}
	if call.Access.Allows(access) {
		return tools.Result{Text: "You have " + access.Tag() + " already."}, nil
	}

	return tools.Result{Text: "You have " + access.Tag() + " until the end of this turn."}, nil
}

// grant is grant_permission.
type grant struct{ asker Asker }

// Spec describes the tool.
func (grant) Spec() tools.Spec {
	return tools.Spec{Name: "grant_permission", Replay: tools.Idempotent,
		Description: "Give one of your permissions to an agent that you started.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
			"agentId":{"type":"string","minLength":1},
			"permission":{"type":"string","minLength":1,"maxLength":4096,` +
			`"description":"as in request_permission"}},"required":["agentId","permission"]}`)}
}

// Run shares the right.
func (g grant) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	args, err := read(call)
	if err == nil {
		err = holds(call, args.Permission)
	}
	if err == nil {
		err = g.asker.Share(ctx, call.Agent, args.AgentID, args.Permission, "call:"+call.Agent+"/"+call.ID)
	}
	if err != nil {
		return tools.Errorf("grant_permission: %v", err), nil
	}

	return tools.Result{Text: args.AgentID + " has " + args.Permission + " now."}, nil
}

// holds is an error unless the call has the right: one that was taken away a moment ago
// may still be in the agent's file.
func holds(call tools.Call, tag string) error {
	access, err := permission.Parse(tag)
	if err == nil && !call.Access.Allows(access) {
		err = errors.New("you do not have that permission yourself; ask for it with request_permission")
	}

	return err
}
