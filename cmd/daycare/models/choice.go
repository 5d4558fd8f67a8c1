package models

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"daycare/agents/providers"
	"daycare/agents/providers/catalogue"
	"daycare/engine/config"
	"daycare/engine/record"
)

// unmade is the name of the choice that the settings make.
const unmade = "default"

// Choose reads what a user typed as the model of an agent: the id of a provider,
// a model, or both with a slash between them; "default" leaves it to the settings.
// What else the agent's choice says (temperature, thinking) stays. The error names
// what may have been meant.
func (m *Chain) Choose(now record.Model, typed string) (record.Model, error) {
	typed = strings.TrimSpace(typed)
	now.ID, now.Model = "", ""
	if typed == unmade {
		return now, nil
	}
	if p, ok := m.provider(typed); ok {
		now.ID = p.ID
		return now, nil
	}
	if id, model, ok := strings.Cut(typed, "/"); ok {
		if p, ok := m.provider(id); ok {
			now.ID, now.Model = p.ID, model
			return now, Check(m.Catalogue, p, model)
		}
	}

	for _, serves := range []func(config.Provider) bool{
		func(p config.Provider) bool { return providers.SameModel(p.Model, typed) },
		func(p config.Provider) bool {
			known, ok := m.Catalogue.Find(p.ID, typed)
			return ok && p.BaseURL == "" && known.Vendor == p.Type
		},
	} {
		if i := slices.IndexFunc(m.Settings, serves); i >= 0 {
			now.ID, now.Model = m.Settings[i].ID, typed
			return now, nil
		}
	}

	return now, m.strange(typed)
}

// provider is one of the settings by its id.
func (m *Chain) provider(id string) (config.Provider, bool) {
	i := slices.IndexFunc(m.Settings, func(p config.Provider) bool { return p.ID == id })
	if i < 0 {
		return config.Provider{}, false
	}

	return m.Settings[i], true
}

// strange is the error for a model that no provider of the settings is known to
// serve.
func (m *Chain) strange(typed string) error {
	var ids []string
	for _, p := range m.Settings {
		ids = append(ids, p.ID)
	}
	if known, ok := m.Catalogue.Find("", typed); ok {
		return fmt.Errorf("no provider in the settings is known to serve %s\nits vendor is %s; name the provider that "+
			"serves it: PROVIDER/%s, with PROVIDER one of %s",
			known.ID, cmp.Or(known.Vendor, "unknown"), typed, strings.Join(ids, ", "))
	}

	unknown := &catalogue.UnknownModel{Name: typed, Near: m.Catalogue.Near(typed, 3)}

	return fmt.Errorf("%w; or name the provider that serves it: PROVIDER/%s, with PROVIDER one of %s", unknown, typed,
		strings.Join(ids, ", "))
}

// CheckChoice returns an error for an impossible choice: a provider that is not in the settings, or an unknown
// model.
func (m *Chain) CheckChoice(c record.Model) (config.Provider, error) {
	p := m.First()
	if c.ID != "" {
		var ok bool
		if p, ok = m.provider(c.ID); !ok {
			var ids []string
			for _, one := range m.Settings {
				ids = append(ids, one.ID)
			}
			return p, fmt.Errorf("provider %q is not in the settings\nconfigured: %s; choose one with /model, or in state.json",
				c.ID, strings.Join(ids, ", "))
		}
	}

	return p, Check(m.Catalogue, p, c.Model)
}
