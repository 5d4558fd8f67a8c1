package acp

import (
	"cmp"
	"context"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/control"
	"daycare/engine/permission"
)

// byDefault is the mode of agents that have no profile of their own.
const byDefault = "default"

// profiles are the modes, each with what it does.
var profiles = []acp.SessionMode{
	mode(byDefault, "Default", "as permissions.profile in the settings says"),
	mode(string(permission.ReadOnly), "Read only", "reads; what needs an approval is refused"),
	mode(string(permission.AskFirst), "Ask", "asks before each command and each change of a file"),
	mode(string(permission.Auto), "Auto", "runs commands in the sandbox and changes its files without asking"),
	mode(string(permission.Planning), "Plan", "reads until you approve a plan, then carries it out"),
}

func mode(id, name, does string) acp.SessionMode {
	return acp.SessionMode{Id: acp.SessionModeId(id), Name: name, Description: &does}
}

func modes(profile string) *acp.SessionModeState {
	return &acp.SessionModeState{AvailableModes: profiles, CurrentModeId: acp.SessionModeId(cmp.Or(profile, byDefault))}
}

// SetSessionMode sets the profile of the session's agent.
func (d *Door) SetSessionMode(ctx context.Context, p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	s, err := d.session(p.SessionId)
	if err != nil {
		return acp.SetSessionModeResponse{}, err
	}
	agent, err := s.ensure(ctx)
	if err != nil {
		return acp.SetSessionModeResponse{}, err
	}
	err = d.link.with(ctx, func(c *control.Client) error {
		return c.Grant(ctx, agent, control.Granting{Profile: string(p.ModeId)})
	})

	return acp.SetSessionModeResponse{}, explain("set the mode", err)
}

// mode tells the mode, which someone may have changed. s.mu is held.
func (s *session) mode(ctx context.Context, c *control.Client) {
	set, err := c.Grants(ctx, s.agent)
	if err != nil {
		return
	}
	now := acp.SessionModeId(cmp.Or(string(set.Profile), byDefault))
	s.say(acp.SessionUpdate{CurrentModeUpdate: &acp.SessionCurrentModeUpdate{CurrentModeId: now}})
}
