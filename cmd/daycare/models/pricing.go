package models

import (
	"cmp"
	"context"
	"net/url"

	"daycare/agents/providers"
	"daycare/agents/providers/catalogue"
	"daycare/engine/config"
	"daycare/engine/crash"
	"daycare/engine/finding"
	"daycare/engine/lan"
	"daycare/engine/record"
)

// Catalogue is the model catalogue with what the settings say over it, and below
// that the list in the file models, if there is one. A list that cannot be read
// counts as none: daycare models and doctor say why.
func Catalogue(c *config.Config, models string) *catalogue.Catalogue {
	var overrides []catalogue.Override
	for _, m := range c.Models {
		overrides = append(overrides, catalogue.Override{ID: m.ID, Provider: m.Provider, Window: m.Window,
			MaxOutput: m.MaxOutput, Images: m.Images, Documents: m.Documents,
			Price: catalogue.Price{Input: m.Price.Input, Output: m.Price.Output, CacheRead: m.Price.CacheRead,
				CacheWrite: m.Price.CacheWrite}})
	}

	cat := catalogue.New(overrides)
	if newer, err := ReadFetched(models); err == nil && newer != nil {
		return cat.With(newer)
	}

	return cat
}

// Check returns a *catalogue.UnknownModel if a provider that serves only its vendor's models is asked for an
// unknown model. A user's own server, or a service that serves all kinds, may call models anything.
func Check(known *catalogue.Catalogue, p config.Provider, model string) error {
	if p.Type == "scripted" || p.BaseURL != "" || model == "" {
		return nil
	}
	return known.Check(p.ID, model)
}

// CheckAll checks the models of the settings, and their routes.
func (m *Chain) CheckAll() error {
	for _, p := range m.Settings {
		if err := Check(m.Catalogue, p, p.Model); err != nil {
			return err
		}
	}

	return finding.Join(m.misrouted)
}

// Price is what a call cost in US dollars, 0 where that is not known.
func (m *Chain) Price(provider, model string, u providers.Usage) float64 {
	for _, p := range m.Settings {
		if p.ID != provider {
			continue
		}
		if model == "" { // not every server says what it is
			model = p.Model
		}

		// What runs on this machine costs nothing, whatever others take for it,
		// unless the settings say so.
		if local(p.BaseURL) && !m.Catalogue.Priced(provider, model) {
			return 0
		}
	}

	usd, _ := m.Catalogue.Cost(provider, model, u, crash.Now())
	return usd
}

// Window is how many tokens of context a model takes, 0 where that is not known.
func (m *Chain) Window(choice record.Model) int {
	p, err := m.CheckChoice(choice)
	if err != nil {
		return 0
	}
	known, _ := m.Catalogue.Find(p.ID, cmp.Or(choice.Model, p.Model))

	return known.Window
}

// sight is what the models of a provider take beside text. Of a model that nobody
// knows it is nothing: what it cannot take it would refuse at every later call.
// PDFs are taken by their makers' own services; others are asked for none unless
// the settings say so.
func (m *Chain) sight(p config.Provider) func(model string) providers.Sight {
	return func(model string) providers.Sight {
		if p.Type == "scripted" {
			return providers.Sight{Images: true, Documents: true}
		}
		known, _ := m.Catalogue.Find(p.ID, cmp.Or(model, p.Model))
		s := providers.Sight{Images: known.Images, Documents: known.Documents}
		if p.Type == "openai" && p.BaseURL != "" && !m.Catalogue.Said(p.ID, cmp.Or(model, p.Model)) {
			s.Documents = false
		}

		return s
	}
}

// local reports an address on this machine.
func local(baseURL string) bool {
	u, err := url.Parse(baseURL)
	return err == nil && lan.Loopback(u.Hostname())
}

// noModel is the model of an agent that asks for one that nobody knows.
type noModel struct{ err error }

// Call fails at once: a model is never replaced by another one that the agent's
// owner did not ask for.
func (n noModel) Call(context.Context, *providers.Request, func(providers.Event)) (*providers.Response, error) {
	return nil, &providers.Failure{Kind: providers.Rejected, Provider: "model", Err: n.err}
}
