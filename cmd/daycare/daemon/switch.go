package daemon

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/record"
)

// Switch changes the model of an agent from its next turn on.
func (h folders) Switch(_ context.Context, id, typed string) (control.Choice, error) {
	dir := filepath.Join(h.parts.at.Data, "agents", id)
	state, _, found, err := record.ReadState(dir)
	if err != nil {
		return control.Choice{}, err
	}
	if finding.Join(found) != nil {
		return control.Choice{}, &control.Unfit{Findings: found}
	}

	models := h.parts.models.Load()
	choice := state.Provider
	if typed != "" {
		if choice, err = models.Choose(choice, typed); err != nil {
			reason, hint, _ := strings.Cut(err.Error(), "\n")
			return control.Choice{}, &control.Invalid{Field: "model", Reason: reason, Hint: hint}
		}
		vol := h.parts.vol
		if vol == nil { // nothing runs: this is an editor like any other
			vol = disk.NewVolume(h.parts.at.Data)
		}

		err = record.UpdateState(vol, dir, func(s *record.State) { s.Provider = choice })
		if err != nil {
			return control.Choice{}, err
		}
	}

	chosen := choice.ID != "" || choice.Model != ""
	if meta, ok := h.parts.index.Get(id); ok {
		choice = h.parts.choice(meta.Descriptor.Type, choice)
	}
	p, err := models.CheckChoice(choice)
	if err != nil {
		return control.Choice{Provider: choice.ID, Model: choice.Model, Problem: err.Error()}, nil
	}

	return control.Choice{Provider: p.ID, Model: cmp.Or(choice.Model, p.Model), Chosen: chosen}, nil
}

// unfitChoice says what is wrong with the model that an edited state.json names.
func (h folders) unfitChoice(path string, content []byte) error {
	state, found := record.ParseState(path, content)
	if finding.Join(found) != nil {
		return nil // the engine says it, and better
	}
	_, err := h.parts.models.Load().CheckChoice(state.Provider)
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
