package models

import (
	"context"
	"path/filepath"
	"slices"

	"daycare/agents"
	"daycare/agents/providers"
	"daycare/agents/providers/catalogue"
	"daycare/cmd/daycare/plugins"
	"daycare/engine/config"
	"daycare/engine/crash"
	"daycare/engine/finding"
	"daycare/engine/record"
	ws "daycare/engine/workspace"
)

// A Chain is the active models: the providers in fallback order.
type Chain struct {
	Settings  []config.Provider
	providers []providers.Provider
	observed  []*observed // the same
	Catalogue *catalogue.Catalogue
	routes    routes
	misrouted []finding.Finding
	Stamp     string // stamp of the list that a user fetched
}

// A Maker makes one provider of its settings; paths in them are those of the workspace.
type Maker func(at ws.Place, p config.Provider, key func() string) (providers.Provider, error)

// New makes the chain of the settings of a workspace: plugins.NewProvider makes its providers,
// unless another maker is given.
func New(ctx context.Context, c *config.Config, at ws.Place, key func(config.Provider) func() string, other Maker) (*Chain, error) {
	provider := plugins.NewProvider
	if other != nil {
		provider = other
	}
	models := filepath.Join(at.Data, FileName)
	m := &Chain{Settings: c.Choose(ctx, config.Ollama), Catalogue: Catalogue(c, models), Stamp: StampOf(models)}
	for _, s := range m.Settings {
		p, err := provider(at, s, key(s))
		if err != nil {
			return nil, err
		}
		if s.Type != "scripted" {
			p = providers.Limit(p, s.Concurrency)
		}
		seen := &observed{Provider: providers.See(p, m.sight(s))}
		m.providers, m.observed = append(m.providers, seen), append(m.observed, seen)
	}

	m.route(c)
	return m, nil
}

// Named is the provider with an id, as it is asked.
func (m *Chain) Named(id string) (providers.Provider, bool) {
	i := slices.IndexFunc(m.providers, func(p providers.Provider) bool { return p.ID() == id })
	if i < 0 {
		return nil, false
	}

	return m.providers[i], true
}

// First is the settings of the provider that is asked first.
func (m *Chain) First() config.Provider { return m.Settings[0] }

// Caller calls the models for an agent: its own provider first, if it named one.
func (m *Chain) Caller(choice record.Model) agents.Model {
	first, err := m.CheckChoice(choice)
	if err != nil {
		return noModel{err}
	}
	order := []providers.Provider{nil}
	for _, p := range m.providers {
		if p.ID() == first.ID {
			order[0] = p
		} else {
			order = append(order, p)
		}
	}

	return &providers.Caller{Chain: order, Sleep: crash.Sleep}
}
