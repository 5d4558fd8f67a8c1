package models

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"daycare/engine/config"
	"daycare/engine/finding"
	"daycare/engine/record"
)

// routes are the models that kinds of calls have of their own, by the key of the setting.
type routes map[string]record.Model

// Route is the choice of the settings for a kind of calls; zero: they make none.
func (m *Chain) Route(key string) record.Model { return m.routes[key] }

// route follows the routes of the settings. One that cannot be followed is reported, and has no
// effect.
func (m *Chain) route(c *config.Config) {
	m.routes = routes{}
	to := c.Routing.Routes()
	for _, key := range slices.Sorted(maps.Keys(to)) {
		choice, err := m.Choose(record.Model{}, to[key])
		if err != nil {
			f := c.Route(key)
			reason, remedy, _ := strings.Cut(err.Error(), "\n")
			f.Reason, f.Remedy = "routing."+key+": "+reason, remedy
			m.misrouted = append(m.misrouted, f)
			continue
		}
		m.routes[key] = choice
	}
}

// Misrouted is what is wrong with the routes of the settings.
func (m *Chain) Misrouted() []finding.Finding { return m.misrouted }

// Answers names the model of a choice.
func (m *Chain) Answers(choice record.Model) string {
	p, ok := m.provider(choice.ID)
	if !ok {
		p = m.First()
	}

	return cmp.Or(choice.Model, p.Model)
}
