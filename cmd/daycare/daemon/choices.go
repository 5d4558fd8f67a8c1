package daemon

import (
	"cmp"
	"context"
	"time"

	"daycare/agents/providers/catalogue"
	"daycare/engine/config"
	"daycare/engine/control"
)

// choices is the part of the API that says what there is to choose from.
type choices struct{ parts *Daemon }

// Models are the providers of the settings with the model that each is set to, and
// behind them what else a vendor's own service has.
func (o choices) Models(context.Context) ([]control.ModelInfo, error) {
	m := o.parts.models.Load()
	list := make([]control.ModelInfo, 0, len(m.Settings))
	set := map[string]bool{}
	for i, p := range m.Settings {
		known, _ := m.Catalogue.Find(p.ID, p.Model)
		one := offered(p, known)
		one.Choice, one.Model, one.Default = p.ID, cmp.Or(p.Model, known.ID), i == 0
		list, set[p.ID+"/"+known.ID] = append(list, one), true
	}
	for _, p := range m.Settings {
		if p.BaseURL != "" || p.Type == "scripted" {
			continue // nobody knows what else it has
		}
		for _, known := range m.Catalogue.All() {
			one := offered(p, known)
			one.Choice, one.Model = p.ID+"/"+known.ID, known.ID
			if known.Vendor == p.Type && !set[one.Choice] {
				list, set[one.Choice] = append(list, one), true
			}
		}
	}
	return list, nil
}

func offered(p config.Provider, m catalogue.Model) control.ModelInfo {
	price := m.PriceAt(time.Now(), 0)
	return control.ModelInfo{Provider: p.ID, Window: m.Window, Images: m.Images, Input: price.Input, Output: price.Output}
}

// Skills are those in force.
func (o choices) Skills(context.Context) ([]control.SkillInfo, error) {
	list := o.parts.shelf.List()
	infos := make([]control.SkillInfo, len(list))
	for i, s := range list {
		infos[i] = control.SkillInfo{Name: s.Name, Description: s.Description, Icon: s.Metadata["icon"],
			Tools: s.AllowedTools, File: s.File, SHA256: s.SHA256}
	}
	return infos, nil
}
