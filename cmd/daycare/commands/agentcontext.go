package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"daycare/agents/prompt"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/record"
)

// A contextSize is what the model of an agent is sent, in tokens, about.
type contextSize struct {
	prompt.Parts
	Total int `json:"total"`
	Room  int `json:"room,omitempty"` // what fits; 0: not known
}

// SizeOf is what the model of an agent is sent; nil: it was never asked anything.
func SizeOf(ctx context.Context, client *control.Client, home, id string) (any, error) {
	a, err := client.Agent(ctx, id)
	if err != nil {
		return nil, err
	}
	size, err := measure(ctx, client, shown{Agent: a, Paths: map[string]string{"folder": filepath.Join(home, "agents", a.ID)}})
	if size == nil {
		return nil, err
	}

	return size, err
}

// measure tells what an agent's context is made of, from its files and the list of
// tools. It works with the daemon stopped.
func measure(ctx context.Context, client *control.Client, s shown) (*contextSize, error) {
	dir := s.Paths["folder"]
	context, err := record.ContextOf(dir)
	if err != nil {
		return nil, fmt.Errorf("read context of %s: %w", s.Handle, err)
	}

	sys, err := os.ReadFile(filepath.Join(dir, "SYSTEM.md"))
	if err != nil {
		return nil, nil // it has never been asked anything
	}

	size := &contextSize{Parts: prompt.Measure(context, string(sys))}
	if size.Tools, err = toolTokens(ctx, client, dir, s.Type); err != nil {
		return nil, err
	}
	size.Total, size.Room = size.Parts.Total(), int(s.Window)

	return size, nil
}

// conversation is how many tokens the messages of an agent take, about.
func conversation(ctx context.Context, c *term.App, client *control.Client, a event.Agent) (int, error) {
	f, err := filesOf(ctx, c, client, a)
	if err != nil {
		return 0, err
	}
	defer f.close()
	context, err := record.ContextOf(filepath.Join(f.home, "agents", a.ID))
	if err != nil {
		return 0, fmt.Errorf("read context of %s: %w", a.Handle, err)
	}

	return prompt.Measure(context, "").Total(), nil
}

// toolTokens is what telling an agent's model of its tools costs.
func toolTokens(ctx context.Context, client *control.Client, dir, kind string) (int, error) {
	all, err := client.Tools(ctx)
	if err != nil {
		return 0, fmt.Errorf("list tools: %w", err)
	}
	subs, err := client.SubAgents(ctx)
	if err != nil {
		return 0, fmt.Errorf("list sub-agents: %w", err)
	}

	told := func(t control.ToolInfo) bool { return t.Prompt == "all" || t.Prompt == "user" && kind == "user" }
	if definition := definitionOf(dir); kind == "subagent" && definition != "" {
		i := slices.IndexFunc(subs, func(s control.SubAgentInfo) bool { return s.Name == definition })
		told = func(t control.ToolInfo) bool { return i >= 0 && slices.Contains(subs[i].Tools, t.Name) }
	}
	sum := 0
	for _, t := range all {
		if told(t) {
			sum += t.Tokens
		}
	}

	return sum, nil
}

// definitionOf is the definition that a sub-agent was made of, "" for none.
func definitionOf(dir string) string {
	var d struct {
		Definition string `json:"definition"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "descriptor.json"))
	if err != nil || json.Unmarshal(data, &d) != nil {
		return ""
	}

	return d.Definition
}

func showContext(c *term.App, s *contextSize) {
	if s == nil {
		return
	}
	total := fmt.Sprintf("about %s tokens", thousands(s.Total))
	if s.Room > 0 {
		total += fmt.Sprintf(" of %s (%d %%)", thousands(s.Room), s.Total*100/s.Room)
	}

	pairs := []string{"context", total}
	for _, part := range []struct {
		name   string
		tokens int
	}{{"  system prompt", s.System}, {"  tools", s.Tools}, {"  summary", s.Summary}, {"  messages", s.Messages}, {"  answers", s.Answers},
		{"  tool calls", s.Calls}, {"  tool results", s.Results}, {"  from memory", s.Memory}} {
		if part.tokens > 0 {
			pairs = append(pairs, part.name, thousands(part.tokens))
		}
	}

	c.Fields(pairs...)
}

// thousands is a number as users read it: 12,345.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}

	return s
}
