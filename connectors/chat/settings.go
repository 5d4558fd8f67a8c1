package chat

import (
	"errors"
	"fmt"
)

// Settings are what the settings of all platforms have in common.
type Settings struct {
	ID      string   `json:"id"`
	Allow   []string `json:"allow"`   // user ids; empty is nobody
	AgentID string   `json:"agentId"` // all messages go to this agent; "": one agent a chat
	Interim bool     `json:"interim"` // text beside tool calls is delivered too
}

// Check reports what is wrong with them. user tells the entries of the allow list that can be users; want is how those look.
func (s Settings) Check(user func(string) bool, want string) (wrong []error) {
	if s.ID == "" {
		wrong = append(wrong, errors.New("connector without an id"))
	}
	for _, a := range s.Allow {
		if !user(a) {
			wrong = append(wrong, fmt.Errorf("allow: found %q, want %s", a, want))
		}
	}

	return wrong
}

// Named is embedded by connectors, for what the engine asks of each.
type Named struct{ Settings Settings }

// ID is the connector's id in settings.
func (n Named) ID() string { return n.Settings.ID }

// Interim reports whether text beside tool calls is delivered too.
func (n Named) Interim() bool { return n.Settings.Interim }
