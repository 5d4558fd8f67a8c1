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
type seated struct {
	*World
	seat engine.Seat
}

func (s seated) Meta() address.Meta { return s.seat.Meta }
func (s seated) Tools() *tools.Set  { return s.tools }
func (s seated) Settings() agents.Settings {
	return agents.Settings{Rounds: 20, Parallel: 4, Queue: s.queue, Idle: time.Minute, Stuck: time.Minute, Zone: "UTC"}
}

func (s seated) Model(record.Model) agents.Model { return s.model }
func (seated) Window(record.Model) int           { return 0 }

func (seated) Price(_, _ string, _ providers.Usage) float64 { return 0 }
func (seated) Cut(_, _ string, _ providers.Usage)           {}
func (seated) Raise(context.Context, permission.Budget, permission.Decision, string, string) error {
	return nil
}

func (s seated) Definition(m address.Meta, _ record.State) prompt.Definition {
	return prompt.Definition{Name: m.Name, Handle: m.Handle, Workspace: filepath.Dir(s.Root), OS: "linux"}
}
func (s seated) Broken() []finding.Finding { return s.problems.Of(s.seat.Meta.ID) }
func (seated) Preface() string             { return "" }

func (seated) Running() []string       { return nil }
func (seated) Narrowed(permission.Set) {}
