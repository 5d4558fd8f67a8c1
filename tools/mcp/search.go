package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/permission"
	"daycare/tools"
)

// Beyond a budget of tokens agents have two tools in the place of all those of servers:
// mcp_search finds some of them, with their schemas, and mcp_call calls one. What a prompt
// begins with then stays the same, however many there are.

// tokens is about what tools cost in each prompt.
func tokens(list []*tool) (n int) {
	for _, t := range list {
		n += (len(t.name)+len(t.def.told(t.server.ID))+len(t.schema))/4 + 10
	}
	return n
}

// behindSearch are the two tools that stand for a list.
func behindSearch(list []*tool) []tools.Tool {
	c := &caller{by: make(map[string]*tool, len(list))}
	counts := map[string]int{}
	for _, t := range list {
		c.by[t.name] = t
		counts[t.server.ID]++
	}
	var servers []string
	for id, n := range counts {
		servers = append(servers, fmt.Sprintf("%s (%d)", id, n))
	}
	slices.Sort(servers)
	return []tools.Tool{&searcher{list, servers}, c}
}

// A searcher is the tool mcp_search.
type searcher struct {
	list    []*tool
	servers []string
}

// Spec describes the tool.
func (s *searcher) Spec() tools.Spec {
	return tools.Spec{Name: "mcp_search", Replay: tools.ReadOnly, Parallel: true,
		Description: "Find tools of MCP servers by words, then call them with mcp_call. Servers: " + some(s.servers),
		Schema: json.RawMessage(`{"type":"object","properties":{
			"query":{"type":"string","description":"words; empty lists all names"}},
			"required":["query"],"additionalProperties":false}`)}
}

const (
	// mostFound is how many tools one search describes.
	mostFound = 8
	// mostShown bounds the schemas of one search, in bytes.
	mostShown = 16_000
)

// Run searches.
func (s *searcher) Run(_ context.Context, call tools.Call) (tools.Result, error) {
	var a struct{ Query string }
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return tools.Errorf("the arguments do not fit: %v", err), nil
	}
	words := strings.Fields(strings.ToLower(a.Query))
	if len(words) == 0 {
		return tools.Result{Text: "Names only; search by words for descriptions and schemas.\n" + s.names()}, nil
	}
	type hit struct {
		t     *tool
		score int
	}
	var hits []hit
	for _, t := range s.list {
		if n := t.score(words); n > 0 {
			hits = append(hits, hit{t, n})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var b strings.Builder
	for i, h := range hits {
		text := fmt.Sprintf("%s\n%s\narguments: %s\n\n", h.t.name, h.t.def.told(h.t.server.ID), h.t.schema)
		if i == mostFound || b.Len()+len(text) > mostShown && i > 0 {
			fmt.Fprintf(&b, "%d more fit; search by more words.", len(hits)-i)
			break
		}
		b.WriteString(text)
	}
	if len(hits) == 0 {
		return tools.Result{Text: "No tool of an MCP server fits. Servers: " + strings.Join(s.servers, ", ")}, nil
	}
	return tools.Result{Text: strings.TrimSpace(b.String())}, nil
}

// names are all names.
func (s *searcher) names() string {
	var names []string
	for _, t := range s.list {
		names = append(names, t.name)
	}
	return strings.Join(names, "\n")
}

// score is how well a tool fits words: those of its name count more.
func (t *tool) score(words []string) (n int) {
	name, text := strings.ToLower(t.name), strings.ToLower(t.def.Description)
	for _, w := range words {
		if strings.Contains(name, w) {
			n += 3
		}
		if strings.Contains(text, w) {
			n++
		}
	}
	return n
}

// A caller is the tool mcp_call.
type caller struct{ by map[string]*tool }

// Spec describes the tool.
func (c *caller) Spec() tools.Spec {
	return tools.Spec{Name: "mcp_call", Replay: tools.Once, Writes: true,
		Description: "Call a tool that mcp_search found.",
		Schema: json.RawMessage(`{"type":"object","properties":{
			"tool":{"type":"string","description":"its name, such as mcp__server__tool"},
			"arguments":{"type":"object"}},
			"required":["tool","arguments"],"additionalProperties":false}`)}
}

// A relayed call is the arguments of mcp_call.
type relayed struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Inner is the tool that a call is for, with its arguments; "" if it names none.
func (c *caller) Inner(arguments json.RawMessage) (name string, inner json.RawMessage) {
	var a relayed
	if json.Unmarshal(arguments, &a) != nil {
		return "", nil
	}
	return a.Tool, a.Arguments
}

// Outer are arguments for the same tool with others of its own.
func (c *caller) Outer(arguments, inner json.RawMessage) (json.RawMessage, error) {
	name, _ := c.Inner(arguments)
	data, err := json.Marshal(relayed{name, inner})
	if err != nil {
		return nil, fmt.Errorf("change the arguments of %s: %w", name, err)
	}
	return data, nil
}

// inner is the tool that a call is for, and the call of it.
func (c *caller) inner(call tools.Call) (*tool, tools.Call, error) {
	var a relayed
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return nil, call, fmt.Errorf("the arguments do not fit: %w", err)
	}
	t := c.by[a.Tool]
	if t == nil {
		return nil, call, fmt.Errorf("there is no tool %q; find one with mcp_search", a.Tool)
	}
	if err := tools.Validate(t.Spec(), a.Arguments); err != nil {
		return nil, call, err
	}
	call.Name, call.Arguments = t.name, a.Arguments
	return t, call, nil
}

// Needs is the approval that the tool needs.
func (c *caller) Needs(call tools.Call) (*permission.Request, error) {
	t, inner, err := c.inner(call)
	if err != nil {
		return nil, err
	}
	return t.Needs(inner)
}

// Run calls the tool.
func (c *caller) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	t, inner, err := c.inner(call)
	if err != nil {
		return tools.Errorf("%v", err), nil
	}
	return t.Run(ctx, inner)
}
