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

// An agentRuntime is an agent that runs: its runtime in the engine, and what it needs of this
// daemon. It is the agents.Identity, Models, Costs, Briefing and Jobs of the agent.
type agentRuntime struct {
	factory
	rt engine.Runtime
}

// start runs one agent: the engine calls it when the agent has work.
func (r factory) start(ctx context.Context, rt engine.Runtime) error {
	r.machines.Bring(func() []string { return conversationsOf(r.Daemon).names(rt.Meta.ID) })
	return agents.Run(ctx, r.options(rt))
}

// options are what the agent is run with.
func (r factory) options(rt engine.Runtime) *agents.Options {
	s, meta := &agentRuntime{r, rt}, rt.Meta
	o := &agents.Options{
		Place: agents.Place{ID: meta.ID, Dir: rt.Dir, Volume: r.vol, Inbox: rt.Inbox, Events: r.events, Log: r.log,
			Redact: &r.secrets, Folders: r.folders, Problems: r.problems, Results: rt.Results, Leave: rt.Leave(), Edited: rt.Edited()},
		Identity: s, Models: s, Costs: s, Briefing: s, Jobs: s, Outbox: &s.rt, Stage: &s.rt,
		Deciders: agents.Deciders{Permits: r.asks, Hooks: hooked{r.Daemon}}, Sources: prompt.Sources{File: r.files.Read},
	}
	if meta.Descriptor.Type != address.User {
		o.Overseer = overseer{r.Daemon, meta.ID}
	}
	if meta.Descriptor.Type == address.Subagent {
		o.Reports = r.reports(*meta)
	}

	return o
}

func (s agentRuntime) Meta() address.Meta        { return s.rt.Identity() }
func (s agentRuntime) Settings() agents.Settings { return s.settingsFor(s.rt.Meta.Descriptor) }
func (s agentRuntime) Tools(p permission.Profile) *tools.Set {
	return s.toolset.of(*s.rt.Meta, s.plansFirst(p))
}

// Model is the chain of an agent's choice, each request within the budgets.
func (s agentRuntime) Model(choice record.Model) agents.Model {
	m := budgets{s.Daemon}.bounded(s.models.Load().Caller(choice))
	if s.tracer == nil {
		return m
	}

	return s.tracer.Model(s.rt.Meta.ID, m)
}

func (s agentRuntime) Window(choice record.Model) int { return s.models.Load().Window(choice) }

// Price is what a call cost in US dollars. The call is counted.
func (s agentRuntime) Price(provider, model string, u providers.Usage) float64 {
	usd := s.models.Load().Price(provider, model, u)
	s.meter.call(provider, model, u, usd)
	return usd
}

func (s agentRuntime) Cut(provider, model string, u providers.Usage) {
	s.ledger.Spend(s.rt.Meta.ID, provider, model, u)
}

func (s agentRuntime) Raise(ctx context.Context, b permission.Budget, d permission.Decision, token, by string) error {
	return budgets{s.Daemon}.raise(ctx, s.rt.Meta.ID, b, d, token, by)
}

func (s agentRuntime) Definition(meta address.Meta, state record.State) prompt.Definition {
	return s.define(meta, state)
}

// Preface names the agents that work for the agent of a user.
func (s agentRuntime) Preface() string {
	if s.rt.Meta.Descriptor.Type != address.User {
		return ""
	}
	return s.preface(s.rt.Meta.ID)
}

func (s agentRuntime) Broken() []finding.Finding { return s.brokenFor(*s.rt.Meta) }
func (s agentRuntime) Running() []string         { return s.jobs.Running(s.rt.Meta.ID) }
func (s agentRuntime) Narrowed(now permission.Set) {
	authority{s.Daemon}.narrowed(s.rt.Meta.ID, now)
}
