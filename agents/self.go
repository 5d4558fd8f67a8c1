package agents

import (
	"daycare/engine/address"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools"
)

// A self is what the agent is while it does one piece of work: users may change it
// before the next one. A turn has a copy of its own.
type self struct {
	meta     address.Meta
	state    record.State
	settings Settings
	tools    *tools.Set
}

// foreground reports whether a user waits for the answers of this agent.
func (s *self) foreground() bool { return s.meta.Descriptor.Type == address.User }

// model is the agent's choice, or where its state makes none that of the settings.
func (s *self) model() record.Model {
	choice := s.state.Provider
	if choice.ID == "" && choice.Model == "" {
		choice.ID, choice.Model = s.settings.Routes.Own.ID, s.settings.Routes.Own.Model
	}

	return choice
}

// summarist is the choice for summaries.
func (s *self) summarist() record.Model {
	if s.settings.Routes.Summary != (record.Model{}) {
		return s.settings.Routes.Summary
	}
	return s.model()
}

// address is the agent's own chat; empty where it has none.
func (s *self) address() message.Address {
	d := s.meta.Descriptor
	if d.Type != address.User {
		return message.Address{}
	}

	return d.Address()
}
