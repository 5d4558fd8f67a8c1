package daemon

import (
	"context"

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

// A seated agent is one that runs: its seat in the engine, and what it needs of this
// daemon. It is the agents.Identity, Models, Costs, Briefing and Jobs of the agent.
type seated struct {
	factory
	seat engine.Seat
}

// start runs one agent: the engine calls it when the agent has work.
func (r factory) start(ctx context.Context, seat engine.Seat) error {
	s, meta := seated{r, seat}, seat.Meta
	o := agents.Options{
		Place: agents.Place{ID: meta.ID, Dir: seat.Dir, Volume: r.vol, Inbox: seat.Inbox, Events: r.events, Log: r.log,
			Redact: &r.secrets, Folders: r.folders, Problems: r.problems, Results: seat.Results, Leave: seat.Leave(), Edited: seat.Edited()},
		Identity: s, Models: s, Costs: s, Briefing: s, Jobs: s, Outbox: seat, Stage: seat, Permits: r.asks,
		Sources: prompt.Sources{File: r.files.Read},
	}
	if meta.Descriptor.Type != address.User {
		o.Overseer = overseer{r.Daemon, meta.ID}
	}
	if meta.Descriptor.Type == address.Subagent {
		o.Reports = r.reports(meta)
	}
	return agents.Run(ctx, o)
}

func (s seated) Meta() address.Meta        { return s.seat.Identity() }
func (s seated) Settings() agents.Settings { return s.figures(s.seat.Meta.Descriptor) }
func (s seated) Tools() *tools.Set         { return s.toolset.of(s.seat.Meta) }

// Model is the chain of an agent's choice, each request within the budgets.
func (s seated) Model(choice record.Model) agents.Model {
	return budgets{s.Daemon}.bounded(s.models.Load().Caller(choice))
}

func (s seated) Window(choice record.Model) int { return s.models.Load().Window(choice) }

// Price is what a call cost in US dollars. The call is counted.
func (s seated) Price(provider, model string, u providers.Usage) float64 {
	usd := s.models.Load().Price(provider, model, u)
	s.meter.call(provider, model, u, usd)
	return usd
}

func (s seated) Cut(provider, model string, u providers.Usage) {
	s.ledger.Spend(s.seat.Meta.ID, provider, model, u)
}

func (s seated) Raise(ctx context.Context, b permission.Budget, d permission.Decision, token, by string) error {
	return budgets{s.Daemon}.raise(ctx, s.seat.Meta.ID, b, d, token, by)
}

func (s seated) Definition(meta address.Meta, state record.State) prompt.Definition {
	return s.define(meta, state)
}

// Preface names the agents that work for the agent of a person.
func (s seated) Preface() string {
	if s.seat.Meta.Descriptor.Type != address.User {
		return ""
	}
	return s.preface(s.seat.Meta.ID)
}

func (s seated) Broken() []finding.Finding { return s.brokenFor(s.seat.Meta) }
func (s seated) Running() []string         { return s.jobs.Running(s.seat.Meta.ID) }
func (s seated) Narrowed(now permission.Set) {
	authority{s.Daemon}.narrowed(s.seat.Meta.ID, now)
}
