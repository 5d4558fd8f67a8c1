package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/agents/providers"
	"daycare/agents/providers/catalogue"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/record"
)

// unmade is the name of the choice that the settings make.
const unmade = "default"

// choose reads what a person typed as the model of an agent: the id of a provider,
// a model, or both with a slash between them; "default" leaves it to the settings.
// What else the agent's choice says (temperature, thinking) stays. The error names
// what may have been meant.
func (m *chain) choose(now record.Model, typed string) (record.Model, error) {
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
			return now, m.check(p, model)
		}
	}
	for _, serves := range []func(config.Provider) bool{
		func(p config.Provider) bool { return providers.SameModel(p.Model, typed) },
		func(p config.Provider) bool {
			known, ok := m.catalogue.Find(p.ID, typed)
			return ok && p.BaseURL == "" && known.Vendor == p.Type
		},
	} {
		if i := slices.IndexFunc(m.settings, serves); i >= 0 {
			now.ID, now.Model = m.settings[i].ID, typed
			return now, nil
		}
	}
	return now, m.strange(typed)
}

// provider is one of the settings by its id.
func (m *chain) provider(id string) (config.Provider, bool) {
	i := slices.IndexFunc(m.settings, func(p config.Provider) bool { return p.ID == id })
	if i < 0 {
		return config.Provider{}, false
	}
	return m.settings[i], true
}

// strange is the error for a model that no provider of the settings is known to
// serve.
func (m *chain) strange(typed string) error {
	var ids []string
	for _, p := range m.settings {
		ids = append(ids, p.ID)
	}
	if known, ok := m.catalogue.Find("", typed); ok {
		return fmt.Errorf("no provider of the settings is known to serve %s\nit is made by %s; name the provider that "+
			"has it: PROVIDER/%s, with PROVIDER one of %s",
			known.ID, orElse(known.Vendor, "nobody known"), typed, strings.Join(ids, ", "))
	}
	unknown := &catalogue.UnknownModel{Name: typed, Near: m.catalogue.Near(typed, 3)}
	return fmt.Errorf("%w; or name the provider that serves it: PROVIDER/%s, with PROVIDER one of %s", unknown, typed,
		strings.Join(ids, ", "))
}

// checkChoice is an error for a choice that cannot be followed: a provider that
// the settings do not have, or a model that nobody knows.
func (m *chain) checkChoice(c record.Model) (config.Provider, error) {
	p := m.first()
	if c.ID != "" {
		var ok bool
		if p, ok = m.provider(c.ID); !ok {
			var ids []string
			for _, one := range m.settings {
				ids = append(ids, one.ID)
			}
			return p, fmt.Errorf("provider %q is not in the settings\nthere are: %s; choose with /model, or in state.json", c.ID, strings.Join(ids, ", "))
		}
	}
	return p, m.check(p, c.Model)
}

// Switch changes the model of an agent from its next turn on.
func (h hands) Switch(_ context.Context, id, typed string) (control.Choice, error) {
	dir := filepath.Join(h.parts.root, "agents", id)
	state, _, found, err := record.ReadState(dir)
	if err != nil {
		return control.Choice{}, known(err)
	}
	if finding.Join(found) != nil {
		return control.Choice{}, &control.Unfit{Findings: found}
	}
	models := h.parts.models.Load()
	choice := state.Provider
	if typed != "" {
		if choice, err = models.choose(choice, typed); err != nil {
			reason, hint, _ := strings.Cut(err.Error(), "\n")
			return control.Choice{}, &control.Invalid{Field: "model", Reason: reason, Hint: hint}
		}
		vol := h.parts.vol
		if vol == nil { // nothing runs: this is an editor like any other
			vol = disk.NewVolume(h.parts.root)
		}
		err = record.UpdateState(vol, dir, func(s *record.State) { s.Provider = choice })
		if err != nil {
			return control.Choice{}, known(err)
		}
	}
	p, err := models.checkChoice(choice)
	if err != nil {
		return control.Choice{Provider: choice.ID, Model: choice.Model, Problem: err.Error()}, nil
	}
	return control.Choice{Provider: p.ID, Model: orElse(choice.Model, p.Model), Chosen: choice.ID != "" || choice.Model != ""}, nil
}

// unfitChoice says what is wrong with the model that an edited state.json names.
func (h hands) unfitChoice(path string, content []byte) error {
	state, found := record.ParseState(path, content)
	if finding.Join(found) != nil {
		return nil // the engine says it, and better
	}
	_, err := h.parts.models.Load().checkChoice(state.Provider)
	if err == nil {
		return nil
	}
	reason, remedy, _ := strings.Cut(err.Error(), "\n")
	return &control.Unfit{Findings: []finding.Finding{{ID: "state-model", Severity: finding.Error, File: path,
		Line: lineOf(content, "provider.model", "provider.id"), Reason: reason, Remedy: remedy}}}
}

// lineOf is the line of the first of these members that has a value, 1 for none.
func lineOf(content []byte, members ...string) int {
	for _, name := range members {
		if v := gjson.GetBytes(content, name); v.Index > 0 && v.String() != "" {
			return 1 + strings.Count(string(content[:v.Index]), "\n")
		}
	}
	return 1
}
