package agents

import (
	"context"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine/address"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// A world is what a test gives its agent: its options, and what its interfaces answer. A
// function that is nil is one that has nothing to say.
type world struct {
	Options
	Meta     address.Meta
	Settings Settings
	Tools    *tools.Set

	Identity   func() address.Meta
	Model      func(record.Model) Model
	Window     func(record.Model) int
	Price      func(u providers.Usage) float64
	Cut        func(u providers.Usage)
	Raise      func(b permission.Budget, d permission.Decision, token, by string) error
	Definition func(address.Meta, record.State) prompt.Definition
	Preface    func() string
	Broken     func() []finding.Finding
	Narrowed   func(permission.Set)
}

// Run runs the agent in its world.
func (w *world) Run(ctx context.Context) error { return Run(ctx, w.options()) }

func (w *world) options() *Options {
	o := w.Options
	o.ID, o.Identity, o.Models, o.Costs, o.Briefing, o.Jobs = w.Meta.ID, identity{w}, models{w}, costs{w}, briefing{w}, jobsOf{w}
	return &o
}

type identity struct{ *world }

func (i identity) Settings() Settings                  { return i.world.Settings }
func (i identity) Tools(permission.Profile) *tools.Set { return i.world.Tools }
func (i identity) Meta() address.Meta {
	if i.world.Identity == nil {
		return i.world.Meta
	}
	return i.world.Identity()
}

type models struct{ *world }

func (m models) Model(choice record.Model) Model { return m.world.Model(choice) }
func (m models) Window(choice record.Model) int {
	if m.world.Window == nil {
		return 0
	}
	return m.world.Window(choice)
}

type costs struct{ *world }

func (c costs) Price(_, _ string, u providers.Usage) float64 {
	if c.world.Price == nil {
		return 0
	}
	return c.world.Price(u)
}
func (c costs) Cut(_, _ string, u providers.Usage) {
	if c.world.Cut != nil {
		c.world.Cut(u)
	}
}
func (c costs) Raise(_ context.Context, b permission.Budget, d permission.Decision, token, by string) error {
	if c.world.Raise == nil {
		return nil
	}
	return c.world.Raise(b, d, token, by)
}

type briefing struct{ *world }

func (b briefing) Definition(meta address.Meta, state record.State) prompt.Definition {
	return b.world.Definition(meta, state)
}

func (b briefing) Preface() string {
	if b.world.Preface == nil {
		return ""
	}
	return b.world.Preface()
}

func (b briefing) Broken() []finding.Finding {
	if b.world.Broken != nil {
		return b.world.Broken()
	}
	if b.Problems == nil {
		return nil
	}
	return b.Problems.Of(b.world.Meta.ID)
}

type jobsOf struct{ *world }

func (jobsOf) Running() []string { return nil }
func (j jobsOf) Narrowed(now permission.Set) {
	if j.world.Narrowed != nil {
		j.world.Narrowed(now)
	}
}
