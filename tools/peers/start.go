package peers

import (
	"context"
	"strings"
	"unicode/utf8"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/tools"
)

// maxTask is how much of a task is quoted in the report about it, in characters.
const maxTask = 500

type startArgs struct {
	Prompt   string `json:"prompt"`
	Name     string `json:"name"`
	Model    string `json:"model"`
	Worktree bool   `json:"worktree"`
}

// worktree is how the tools that start an agent describe that it works in a copy.
const worktree = `"worktree":{"type":"boolean","description":"let it work in a copy of your folder, merged when it is done"}`

func (p *peers) startBackground() tools.Tool {
	return makeTool("start_background_agent",
		"Start an agent that works in the background while you continue. It sees only its prompt.",
		`"properties":{
			"prompt":{"type":"string","minLength":1},
			"name":{"type":"string","maxLength":60,"description":"such as log-reader"},
			"model":{"type":"string"},`+worktree+`},"required":["prompt"]`,
		func(ctx context.Context, call tools.Call, args startArgs) (tools.Result, error) {
			d := child(call, args.Name, args.Model)
			d.Worktree = args.Worktree
			a, err := p.agents.Create(ctx, d, text(call, "", args.Prompt))
			if err != nil {
				return tools.Result{}, err
			}
			return said("Started %s (id: %s, handle %s). It works on its own; its report comes as a system message.",
				a.Name, a.ID, a.Handle)
		})
}

type spawnArgs struct {
	Task     string `json:"task"`
	Label    string `json:"label"`
	Model    string `json:"model"`
	Worktree bool   `json:"worktree"`
}

func (p *peers) spawn() tools.Tool {
	return makeTool("spawn",
		"Start a sub-agent for one task. When it is done, you get its result under the label.",
		`"properties":{
			"task":{"type":"string","minLength":1},
			"label":{"type":"string","maxLength":60},
			"model":{"type":"string"},`+worktree+`},"required":["task"]`,
		func(ctx context.Context, call tools.Call, args spawnArgs) (tools.Result, error) {
			label := oneLine(args.Label)
			if label == "" {
				label = clip(oneLine(args.Task), 30)
			}
			d := child(call, label, args.Model)
			d.Label, d.Task, d.Worktree = label, clip(strings.TrimSpace(args.Task), maxTask), args.Worktree
			a, err := p.agents.Create(ctx, d, text(call, "", args.Task))
			if err != nil {
				return tools.Result{}, err
			}

			return said("Subagent [%s] started (id: %s). Its result comes as a system message; continue meanwhile.", label, a.ID)
		})
}

// child is the agent that a call starts.
func child(call tools.Call, name, model string) address.Descriptor {
	if name = oneLine(name); name == "" {
		name = "background"
	}
	return address.Descriptor{Type: address.Subagent, ID: address.ChildID(call.Agent, call.ID), ParentAgentID: call.Agent,
		Name: name, CallID: call.ID, Model: model, Route: call.Route}
}

type permanentArgs struct {
	Name         string `json:"name"`
	Description  string `json:"description"`
	SystemPrompt string `json:"systemPrompt"`
	WorkspaceDir string `json:"workspaceDir"`
}

func (p *peers) createPermanent() tools.Tool {
	return makeTool("create_permanent_agent",
		"Create a permanent agent, or change one that you created. Without systemPrompt and description: list them.",
		`"properties":{
			"name":{"type":"string","maxLength":60},
			"description":{"type":"string","maxLength":500,"description":"what it is for"},
			"systemPrompt":{"type":"string","maxLength":20000},
			"workspaceDir":{"type":"string","description":"a folder of the workspace"}}`,
		func(ctx context.Context, call tools.Call, args permanentArgs) (tools.Result, error) {
			all, err := p.agents.List(ctx, call.Agent)
			if err != nil {
				return tools.Result{}, err
			}
			id := address.ChildID(call.Agent, call.ID)
			name := oneLine(args.Name)
			description := oneLine(args.Description)
			if name == "" || args.SystemPrompt == "" && description == "" {
				return permanents(all), nil
			}

			for _, a := range all {
				if a.Name == name && a.ID != id {
					return p.updatePermanent(ctx, call, a, args)
				}
			}

			if args.SystemPrompt == "" {
				return tools.Errorf("there is no agent named %s yet: to make one, give it a systemPrompt", name), nil
			}

			d := address.Descriptor{Type: address.Permanent, ID: id, Name: name, Description: description,
				SystemPrompt: args.SystemPrompt, WorkspaceDir: args.WorkspaceDir, CreatedBy: call.Agent}
			a, err := p.agents.Create(ctx, d, message.Incoming{})
			if err != nil {
				return tools.Result{}, err
			}

			return said("Made %s (id: %s, handle %s). Write to it with send_agent_message or sessions_send.", a.Name, a.ID, a.Handle)
		})
}

// updatePermanent changes the agent that has the name of a call already.
func (p *peers) updatePermanent(ctx context.Context, call tools.Call, a event.Agent, args permanentArgs) (tools.Result, error) {
	switch {
	case a.Type != string(address.Permanent) || a.State == event.Ended:
		return tools.Errorf("there is another agent named %s (id: %s) already: choose another name", a.Name, a.ID), nil
	case args.WorkspaceDir != "":
		return tools.Errorf("there is an agent named %s (id: %s) already, and only a user can change its folder, in its descriptor.json. "+
			"Without workspaceDir, this call changes its description and systemPrompt", a.Name, a.ID), nil
	}

	a, err := p.agents.Update(ctx, call.Agent, a.ID, oneLine(args.Description), args.SystemPrompt)
	if err != nil {
		return tools.Result{}, err
	}

	return said("Changed %s (id: %s, handle %s); it takes effect with its next turn.", a.Name, a.ID, a.Handle)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// clip shortens s to n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}
