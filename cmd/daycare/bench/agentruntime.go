package bench

import (
	"context"
	"path/filepath"
	"time"

	"daycare/agents"
	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// A seated agent is one that runs in a world: it has no costs and no jobs, and nobody
// edits its files.
type agentRuntime struct {
	*World
	rt engine.Runtime
}

func (s agentRuntime) Meta() address.Meta                  { return *s.rt.Meta }
func (s agentRuntime) Tools(permission.Profile) *tools.Set { return s.tools }
func (s agentRuntime) Settings() agents.Settings {
	return agents.Settings{Rounds: 20, Parallel: 4, Queue: s.queue, Idle: time.Minute, Stuck: time.Minute, Zone: "UTC"}
}

func (s agentRuntime) Model(record.Model) agents.Model { return s.model }
func (agentRuntime) Window(record.Model) int           { return 0 }

func (agentRuntime) Price(_, _ string, _ providers.Usage) float64 { return 0 }
func (agentRuntime) Cut(_, _ string, _ providers.Usage)           {}
func (agentRuntime) Raise(context.Context, permission.Budget, permission.Decision, string, string) error {
	return nil
}

func (s agentRuntime) Definition(m address.Meta, _ record.State) prompt.Definition {
	return prompt.Definition{Name: m.Name, Handle: m.Handle, Workspace: filepath.Dir(s.Root), OS: "linux"}
}
func (s agentRuntime) Broken() []finding.Finding { return s.problems.Of(s.rt.Meta.ID) }
func (agentRuntime) Preface() string             { return "" }

func (agentRuntime) Running() []string       { return nil }
func (agentRuntime) Narrowed(permission.Set) {}
