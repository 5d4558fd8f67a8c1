package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/permission"
	"daycare/engine/plain"
	"daycare/tools"
)

// A tool is a tool of a server as agents have it.
type tool struct {
	pool   *Pool
	server Server
	def    Definition
	name   string          // for models
	schema json.RawMessage // likewise
}

// maxName is how long a name may be that models are given.
const maxName = 64

// newTool makes a tool with a name that is not taken yet.
func newTool(p *Pool, s Server, d Definition, taken map[string]bool) *tool {
	t := &tool{pool: p, server: s, def: d, name: modelName(s.ID, d.Name), schema: d.shown()}
	if taken[t.name] {
		t.name = t.name[:min(len(t.name), maxName-9)] + "_" + d.SHA256[:8]
	}
	taken[t.name] = true
	return t
}

// modelName is mcp__SERVER__TOOL in the characters that every vendor allows.
func modelName(server, tool string) string {
	name := "mcp__" + server + "__" + tool
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)]
}

// tokens is about what the tool costs in each prompt.
func (t *tool) tokens() int { return (len(t.name)+len(t.def.told(t.server.ID))+len(t.schema))/4 + 10 }

// right is what a call needs.
func (t *tool) right() permission.Mcp { return permission.Mcp{Server: t.server.ID, Tool: t.def.Name} }

// Spec describes the tool. Whatever the server says of it, a call that was started must not run
// twice.
func (t *tool) Spec() tools.Spec {
	return tools.Spec{Name: t.name, Description: t.def.told(t.server.ID), Schema: t.schema, Replay: tools.Once, Writes: true}
}

// Needs is the approval for a call: whole, whatever the server claims of the tool.
func (t *tool) Needs(call tools.Call) (*permission.Request, error) {
	text, err := spelled(t.right(), call.Arguments)
	if err != nil {
		return nil, err
	}
	tag := t.right().Tag()
	return &permission.Request{Tag: tag, Prefix: tag, Reason: "call a tool of the MCP server " + t.server.ID,
		Detail: permission.Detail{Call: text}}, nil
}

// spelled is a call as people read it: the tool, and a line for each argument. The lines of a
// long one are marked so that none can pass for another argument.
func spelled(right permission.Mcp, arguments json.RawMessage) (string, error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &args); err != nil {
		return "", fmt.Errorf("the arguments do not fit: %w", err)
	}
	var b strings.Builder
	b.WriteString(right.Server + "/" + right.Tool)
	for _, name := range slices.Sorted(maps.Keys(args)) {
		var text string
		if json.Unmarshal(args[name], &text) != nil {
			text = string(plain.Indented(args[name]))
		}
		if strings.Contains(text, "\n") {
			text = "\n  │ " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  │ ")
		}
		b.WriteString("\n" + permission.VisibleLine(name) + ": " + text)
	}

	return b.String(), nil
}

// Run calls the tool. The runtime has asked for approval, and recorded the start.
func (t *tool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	return t.call(ctx, call, nil)
}

// call calls the tool; g answers a question that the server asked in an earlier call.
func (t *tool) call(ctx context.Context, call tools.Call, g *given) (tools.Result, error) {
	s := t.pool.find(t.server.ID)
	if s == nil {
		return tools.Errorf("the MCP server %s is not in the settings any more", t.server.ID), nil
	}
	got, done, err := s.use(ctx)
	if err != nil {
		return t.server.words(tools.Errorf("not called: %v", err), err), nil
	}
	defer done()
	if is := s.is(got, t.def.Name); is != t.def.SHA256 {
		return t.withheld(is), nil
	}

	limited, cancel := context.WithTimeout(ctx, s.conf.Timeout)
	defer cancel()
	forget := s.progress.watch(call.ID, call.Progress)
	defer forget()
	c := &calling{given: g, end: cancel,
		of: Question{Agent: call.Agent, Server: t.server.ID, Tool: t.def.Name, Arguments: call.Arguments}}
	defer s.calls.begin(got.ClientSession, c)()
	params := &sdk.CallToolParams{Name: t.def.Name, Arguments: call.Arguments}
	params.SetProgressToken(call.ID)
	answer, err := got.CallTool(context.WithValue(limited, callingKey{}, c), params)
	c.wanted(err)
	open, why := c.left()
	switch {
	case ctx.Err() != nil:
		return tools.Result{Text: "Cancelled: the server was told so; what it did until then is unknown", Status: tools.Canceled}, nil
	case why != "":
		return tools.Errorf("the MCP server %s asked the user something, and was refused: %s. Whether the call took effect is unknown.",
			t.server.ID, why), nil
	case open != nil:
		return t.asks(*open), nil
	case err == nil:
		s.works()
		res := t.result(answer)
		res.Source = t.right().SourceOf()
		return res, nil
	case limited.Err() != nil:
		s.pool.begin(func() { s.drop(got) })
		return tools.Result{Status: tools.TimedOut, Text: fmt.Sprintf("no answer within %s (timeout of the MCP server %s in the "+
			"settings); whether it did anything is unknown", s.conf.Timeout, t.server.ID)}, nil
	}

	return t.server.words(t.broken(s, err), err), nil
}

// words marks a result that quotes an error: what the server said in it is a stranger's, as an answer is.
func (s Server) words(res tools.Result, err error) tools.Result {
	_, refused := errors.AsType[*jsonrpc.Error](err)
	if _, login := errors.AsType[*loginError](err); refused || login {
		res.Source = permission.Mcp{Server: s.ID}.SourceOf()
	}

	return res
}

// asks is the result of a call in which the server asked the user something.
func (t *tool) asks(q Question) tools.Result {
	if err := t.pool.questions.keep(q, false); err != nil {
		return tools.Errorf("not done: the MCP server %s asked the user something: %v", t.server.ID, err)
	}
	return tools.Result{Text: q.told(), Status: tools.Failed, Source: t.right().SourceOf()}
}

// withheld is the result of a call of a tool that the server describes differently by now.
func (t *tool) withheld(is string) tools.Result {
	if is == "" {
		return tools.Errorf("not called: the MCP server %s does not have the tool %s any more", t.server.ID, t.def.Name)
	}
	return tools.Result{Status: tools.Denied, Text: fmt.Sprintf("not called: the MCP server %s describes the tool %s differently "+
		"now, and the user has not reviewed that (daycare mcp trust %s)", t.server.ID, t.def.Name, t.server.ID)}
}

// rejected is the code of the SDK for a request that could not be sent.
const rejected = -32005

// broken is the result of a call that has no answer, or one that is an error of the protocol.
func (t *tool) broken(s *server, err error) tools.Result {
	var login *loginError
	if errors.As(err, &login) {
		return tools.Errorf("not called: the MCP server %s: %v", t.server.ID, login)
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code != rejected && !errors.Is(err, sdk.ErrConnectionClosed) {
		s.works()
		return tools.Errorf("the MCP server %s refused the call: %s", t.server.ID, refused.Message)
	}
	return tools.Errorf("the MCP server %s gave no answer to the call: %v\nWhether the call took effect is unknown: check before "+
		"you call again.", t.server.ID, err)
}

// watchers receive the progress of calls.
type watchers struct {
	mu sync.Mutex
	by map[string]func(string) // by token
}

// watch has tell hear of the progress of a call until forget is called.
func (w *watchers) watch(token string, tell func(string)) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string]func(string){}
	}
	w.by[token] = tell
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.by, token)
	}
}

// tell passes progress on.
func (w *watchers) tell(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	w.mu.Lock()
	tell := w.by[token]
	w.mu.Unlock()
	if tell == nil {
		return
	}
	text := fmt.Sprintf("%v", p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %v", p.Total)
	}
	if p.Message != "" {
		text += ": " + permission.VisibleLine(p.Message)
	}
	tell(text + "\n")
}
