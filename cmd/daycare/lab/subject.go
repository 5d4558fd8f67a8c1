package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"daycare/agents/trial"
	"daycare/engine/address"
	"daycare/engine/control"
	"daycare/engine/finding"
	"daycare/engine/record"
)

// A subject is the agent that is tested, as the files of the workspace have it.
type subject struct {
	id         string             // "": none
	descriptor address.Descriptor // the zero value: a new agent of the terminal
	model      record.Model
}

// subject finds the agent of a test: what the test says, else the one in whose folder it is.
func (l *laboratory) subject(ctx context.Context, t trial.Test) (s subject, err error) {
	typed, folder := t.Agent, filepath.Dir(t.File)
	if typed == "" && filepath.Dir(folder) == filepath.Join(l.suite.at.Data, "agents") {
		typed = filepath.Base(folder)
	}
	if typed == "" {
		return s, nil
	}

	a, err := l.client.Agent(ctx, typed)
	if err != nil {
		return s, fmt.Errorf("agent %q: %w", typed, err)
	}
	s.id = a.ID
	files := l.client.Folders()
	data, _, err := files.ReadFile(ctx, a.ID, "descriptor.json")
	if err != nil {
		return s, fmt.Errorf("agent %q: %w", typed, err)
	}
	var found []finding.Finding
	if s.descriptor, found = address.Decode("descriptor.json", data); finding.Join(found) != nil {
		return s, fmt.Errorf("agent %q: %w", typed, finding.Join(found))
	}

	data, _, err = files.ReadFile(ctx, a.ID, "state.json")
	if err != nil {
		return s, fmt.Errorf("agent %q: %w", typed, err)
	}
	state, _ := record.ParseState("state.json", data)
	s.model = state.Provider

	return s, nil
}

// born makes the agent in a throwaway workspace and returns its id.
func (s subject) born(ctx context.Context, client *control.Client) (id string, err error) {
	d := s.descriptor
	n := control.NewAgent{Type: string(address.User), Connector: "terminal", ChannelID: "default", Name: d.Name}
	switch d.Type {
	case address.Permanent, address.Subagent:
		n = control.NewAgent{Type: string(address.Permanent), Name: d.Name, Description: d.Description, SystemPrompt: d.SystemPrompt}
	}
	a, err := client.Create(ctx, n)
	if err != nil {
		return "", fmt.Errorf("make agent: %w", err)
	}

	return a.ID, s.chooses(ctx, client, a.ID)
}

// answersWith gives another agent all that the agent of the workspace says about its model.
func (s subject) answersWith(ctx context.Context, client *control.Client, id string) error {
	return s.provided(ctx, client, id, s.model)
}

// chooses gives it what the agent of the workspace says about its model, beside which it is.
func (s subject) chooses(ctx context.Context, client *control.Client, id string) error {
	m := s.model
	if m.ID, m.Model = "", ""; m == (record.Model{}) {
		return nil
	}

	return s.provided(ctx, client, id, m)
}

// provided writes the choice of a model into the state of an agent.
func (s subject) provided(ctx context.Context, client *control.Client, id string, m record.Model) error {
	if m == (record.Model{}) {
		return nil
	}
	data, hash, err := client.Folders().ReadFile(ctx, id, "state.json")
	if err != nil {
		return fmt.Errorf("read state of the agent: %w", err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &members); err != nil {
		return fmt.Errorf("read state of the agent: %w", err)
	}
	was := string(members["provider"])
	members["provider"], _ = json.Marshal(m) // texts and numbers
	if alike(json.RawMessage(was), members["provider"]) {
		return nil
	}
	if data, err = json.MarshalIndent(members, "", "  "); err != nil {
		return fmt.Errorf("write state of the agent: %w", err)
	}

	return client.Folders().WriteFile(ctx, id, "state.json", data, hash)
}
