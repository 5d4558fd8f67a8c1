package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/lazyregexp"
	"daycare/engine/permission"
	"daycare/tools"
)

const (
	// promptTool is the name of the tool that gets a prompt of a server.
	promptTool = "mcp_prompt"
	// promptRight is what stands for the name of a tool in the permission: @mcp:SERVER/prompts/get.
	promptRight = "prompts/get"
	// maxPrompts bounds the prompts of one server.
	maxPrompts = 200
)

// A Prompt is a text that a server offers to users, as it lists it. Users call it like a command,
// /SERVER:NAME, and the agent then gets the text as the result of a tool: it is a stranger's.
type Prompt struct {
	Name        string   `json:"name" check:"required"`
	Description string   `json:"description,omitempty"`
	Arguments   []string `json:"arguments,omitempty"` // their names
}

// promptName is what a prompt can be called to be a command.
var promptName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)

// prompts reads the prompts of a server that can be commands.
func (got *session) prompts(ctx context.Context) (list []Prompt, err error) {
	if got.InitializeResult().Capabilities.Prompts == nil {
		return nil, nil
	}
	for p, err := range got.Prompts(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list its prompts: %w", err)
		}
		if len(list) == maxPrompts {
			break
		}
		one := Prompt{Name: p.Name, Description: permission.VisibleLine(cleaned(p.Description, maxAbout))}
		for _, a := range p.Arguments {
			one.Arguments = append(one.Arguments, a.Name)
		}
		if promptName.MatchString(p.Name) {
			list = append(list, one)
		}
	}

	return list, nil
}

// A Command is a prompt of a server as a command.
type Command struct {
	Name, About, Arguments string
}

// Commands are the prompts of all servers that were seen.
func (p *Pool) Commands() (list []Command) {
	for _, s := range p.all() {
		c, _ := s.pages.current()
		if c == nil || !promptName.MatchString(s.conf.ID) {
			continue
		}
		for _, one := range c.Prompts {
			if promptName.MatchString(one.Name) { // someone may have written the file
				list = append(list, Command{s.conf.ID + ":" + one.Name, permission.VisibleLine(cleaned(one.Description, maxAbout)),
					permission.VisibleLine(strings.Join(one.Arguments, " "))})
			}
		}
	}

	return list
}

// Expand is what a user says with such a command; ok is false if there is none of that name. Words
// are the arguments in their order, the last one has the rest.
func (p *Pool) Expand(command, words string) (text string, ok bool) {
	id, name, _ := strings.Cut(command, ":")
	s := p.find(id)
	if s == nil {
		return "", false
	}
	c, _ := s.pages.current()
	if c == nil {
		return "", false
	}
	for _, one := range c.Prompts {
		if one.Name != name {
			continue
		}
		data, err := json.Marshal(promptArgs{id, name, one.fill(words)})
		if err != nil {
			return "", false
		}
		return fmt.Sprintf("Get the prompt %s of the MCP server %s with %s %s, and do for me what it says.",
			name, id, promptTool, data), true
	}

	return "", false
}

// fill gives words to arguments.
func (p Prompt) fill(words string) map[string]string {
	args := map[string]string{}
	words = strings.TrimSpace(words)
	for i, name := range p.Arguments {
		word, rest, _ := strings.Cut(words, " ")
		if i == len(p.Arguments)-1 {
			word = words
		}
		if word != "" {
			args[name] = word
		}
		words = strings.TrimSpace(rest)
	}

	return args
}

// A prompter is the tool that gets the text.
type prompter struct{ pool *Pool }

// Spec describes the tool.
func (p *prompter) Spec() tools.Spec {
	return tools.Spec{Name: promptTool, Replay: tools.Once, Writes: true,
		Description: "Get a prompt of an MCP server that the user asked for.",
		Schema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"},"prompt":{"type":"string"},` +
			`"arguments":{"type":"object","additionalProperties":{"type":"string"}}},` +
			`"required":["server","prompt"],"additionalProperties":false}`)}
}

type promptArgs struct {
	Server    string            `json:"server"`
	Prompt    string            `json:"prompt"`
	Arguments map[string]string `json:"arguments"`
}

// Needs is the permission of the server for prompts.
func (p *prompter) Needs(call tools.Call) (*permission.Request, error) {
	var args promptArgs
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return nil, fmt.Errorf("the arguments do not fit: %w", err)
	}
	right := permission.Mcp{Server: args.Server, Tool: promptRight}
	given, err := json.Marshal(args.Arguments)
	if err != nil {
		return nil, fmt.Errorf("show the arguments: %w", err)
	}
	text, err := spelled(permission.Mcp{Server: args.Server, Tool: "prompt " + permission.VisibleLine(args.Prompt)}, given)
	if err != nil {
		return nil, err
	}
	return &permission.Request{Tag: right.Tag(), Prefix: right.Tag(), Reason: "get a prompt of the MCP server " + args.Server,
		Detail: permission.Detail{Call: text}}, nil
}

// Run gets it. The runtime has asked for approval.
func (p *prompter) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	var args promptArgs
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return tools.Errorf("the arguments do not fit: %v", err), nil
	}
	var from *sdk.GetPromptResult
	said := p.pool.read(ctx, args.Server, func(ctx context.Context, got *session) (err error) {
		from, err = got.GetPrompt(ctx, &sdk.GetPromptParams{Name: args.Prompt, Arguments: args.Arguments})
		return err
	})
	if said != nil {
		return *said, nil
	}

	a := answer{tool: &tool{pool: p.pool, server: Server{ID: args.Server}}}
	for _, m := range from.Messages {
		if m != nil && m.Content != nil {
			a.text = append(a.text, "["+string(m.Role)+"]")
			a.add(m.Content)
		}
	}
	a.res.Text, a.res.Source = strings.Join(a.text, "\n"), permission.Mcp{Server: args.Server}.SourceOf()
	return a.res, nil
}
