package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"daycare/engine/permission"
	"daycare/tools"
)

// AnswerTool is the name of the tool with which a model answers questions of servers. Whoever has
// a tool of a server needs it.
const AnswerTool = "mcp_answer"

// An answerer is that tool.
type answerer struct{ pool *Pool }

// Spec describes the tool.
func (a *answerer) Spec() tools.Spec {
	return tools.Spec{Name: AnswerTool, Replay: tools.Once, Writes: true,
		Description: "Answer what an MCP server asked the user in a call, and make the call again.",
		Schema: json.RawMessage(`{"type":"object","properties":{
			"question":{"type":"string","description":"its id"},
			"content":{"type":"object","description":"the answer, by its fields"},
			"decline":{"type":"boolean"}},
			"required":["question"],"additionalProperties":false}`)}
}

// An answering is the arguments of a call.
type answering struct {
	Question string          `json:"question"`
	Content  json.RawMessage `json:"content"`
	Decline  bool            `json:"decline"`

	fields map[string]any // of the content
}

// read finds the question and the tool that asked it, and checks the answer.
func (a *answerer) read(call tools.Call) (args answering, q Question, t *tool, err error) {
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return args, q, nil, fmt.Errorf("the arguments do not fit: %w", err)
	}
	if q, err = a.pool.questions.find(call.Agent, args.Question); err != nil {
		return args, q, nil, err
	}
	if t = a.pool.tool(q.Server, q.Tool); t == nil {
		return args, q, nil, fmt.Errorf("the MCP server %s does not have the tool %s any more", q.Server, q.Tool)
	}
	if args.Decline || q.URL != "" {
		args.Content = nil
		return args, q, t, nil
	}
	if len(args.Content) == 0 {
		args.Content = json.RawMessage(`{}`)
	}
	if err := tools.Validate(tools.Spec{Name: AnswerTool, Schema: q.Schema}, args.Content); err != nil {
		return args, q, t, fmt.Errorf("the server does not take this answer: %w", err)
	}
	if args.fields, err = exactly(args.Content); err != nil {
		return args, q, t, fmt.Errorf("the content does not fit: %w", err)
	}

	return args, q, t, nil
}

// Needs is the approval of the answer: all that is sent, with the question and the call. To
// decline tells the server nothing, and needs what the call needs.
func (a *answerer) Needs(call tools.Call) (*permission.Request, error) {
	args, q, t, err := a.read(call)
	if err != nil {
		return nil, err
	}
	if args.Decline {
		call.Arguments = q.Arguments
		return t.Needs(call)
	}
	shown := map[string]json.RawMessage{"question": quoted(cleaned(q.Message, maxDescription)), "call": q.Arguments}
	if q.URL != "" {
		shown["open this address yourself, then allow"] = quoted(q.URL)
	} else {
		shown["answer"] = args.Content
	}
	lines, err := json.Marshal(shown)
	if err != nil {
		return nil, fmt.Errorf("show the answer: %w", err)
	}
	text, err := spelled(t.right(), lines)
	if err != nil {
		return nil, err
	}
	return &permission.Request{Tag: t.right().Tag(), Reason: "answer a question of the MCP server " + q.Server, AskAlways: true,
		Detail: permission.Detail{Call: text}}, nil
}

// quoted is a text as JSON.
func quoted(text string) json.RawMessage {
	data, _ := json.Marshal(text) // a string
	return data
}

// Run makes the call again. The runtime has asked for approval, and recorded the start.
func (a *answerer) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	args, q, t, err := a.read(call)
	if err != nil {
		return tools.Errorf("%v", err), nil
	}
	g := &given{fits: func(now Question) bool { return now.ID == q.ID }, action: "accept", content: args.fields}
	if args.Decline {
		g.action = "decline"
	}
	call.Name, call.Arguments = t.name, q.Arguments
	res, err := t.call(ctx, call, g)
	if err == nil && !strings.Contains(res.Text, q.ID) { // it does not ask the same again
		if err := a.pool.questions.keep(q, true); err != nil {
			res.Text += "\n" + err.Error()
		}
	}

	return res, err
}

// exactly reads the fields of an answer so that the server gets the numbers that the user approved: as a float64, a whole
// number of more than 15 digits would be another one.
func exactly(content json.RawMessage) (fields map[string]any, err error) {
	in := json.NewDecoder(bytes.NewReader(content))
	in.UseNumber()
	if err := in.Decode(&fields); err != nil {
		return nil, err
	}

	for name, value := range fields {
		n, ok := value.(json.Number)
		if !ok {
			continue // a text, true or false, or a list of texts: the protocol has no others
		}
		if fields[name], err = n.Int64(); err == nil {
			continue
		}
		if strings.Trim(n.String(), "-0123456789") == "" {
			return nil, fmt.Errorf("%s: %s is too large", name, n)
		}
		if fields[name], err = n.Float64(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}

	return fields, nil
}
