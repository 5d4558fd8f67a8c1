package acp

import (
	"context"
	"errors"
	"slices"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/control"
	"daycare/engine/event"
)

// optionKinds are the answers to a request, in the words of the protocol.
var optionKinds = map[string]acp.PermissionOptionKind{
	"once": acp.PermissionOptionKindAllowOnce, "always": acp.PermissionOptionKindAllowAlways,
	"prefix": acp.PermissionOptionKindAllowAlways, "deny": acp.PermissionOptionKindRejectOnce,
}

// questions are the requests of a session's agent and of those that work for it.
type questions struct{ *session }

// look shows the requests that wait, and withdraws those that someone else has answered. While a
// turn runs, a request is shown once it is known of which call it is; over: the turn has ended.
func (s questions) look(ctx context.Context, c *control.Client, over bool) {
	s.asked.looks.Lock()
	defer s.asked.looks.Unlock()
	asks, err := s.family(ctx, c)
	if err != nil {
		return // the connection is gone: the next one looks again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, withdraw := range s.asked.shown {
		if !slices.ContainsFunc(asks, func(a event.Ask) bool { return a.Token == token }) {
			if withdraw != nil {
				withdraw()
			}
			delete(s.asked.shown, token)
		}
	}
	if len(asks) > 0 && s.catchUp(ctx, c) != nil {
		return
	}
	for _, a := range asks {
		_, known := s.asked.shown[a.Token]
		if known || !over && a.AgentID == s.agent && s.tell.asks[a.Token] == nil {
			continue
		}
		ctx, cancel := context.WithCancel(s.ctx)
		s.asked.shown[a.Token] = cancel
		card := acp.ToolCallId("ask-" + a.Token)
		if waits := s.tell.asks[a.Token]; waits != nil {
			card = waits.id
		}
		s.door.wg.Go(func() {
			defer cancel()
			s.ask(ctx, a, card)
		})
	}
}

// family are the requests of the agent and of those that work for it.
func (s questions) family(ctx context.Context, c *control.Client) ([]event.Ask, error) {
	asks, err := c.Permissions(ctx)
	if err != nil || len(asks) == 0 {
		return nil, err
	}
	agents, err := c.Family(ctx, s.agentID())
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(asks, func(a event.Ask) bool {
		return !slices.ContainsFunc(agents, func(m event.Agent) bool { return m.ID == a.AgentID })
	}), nil
}

// ask puts a request to the editor and hands on its answer. The first answer wins, wherever it
// is given.
func (s questions) ask(ctx context.Context, a event.Ask, card acp.ToolCallId) {
	answer, err := s.door.conn.RequestPermission(ctx, request(s.id, a, card))
	chosen := ""
	if err == nil && answer.Outcome.Selected != nil {
		chosen = string(answer.Outcome.Selected.OptionId)
	}
	offered := slices.ContainsFunc(a.Choices, func(c event.Choice) bool { return c.Decision == chosen })
	if offered {
		err = s.door.link.with(s.ctx, func(c *control.Client) error { return c.Decide(s.ctx, a.Token, chosen, "") })
		var first *control.Decided
		if err != nil && !errors.As(err, &first) && !errors.Is(err, control.ErrNoAsk) {
			s.say(acp.UpdateAgentThoughtText("The answer was not accepted: " + err.Error() + "\n\n"))
			offered = false
		}
	}
	if offered || ctx.Err() != nil { // whoever withdrew it has said what is to be done
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.asked.shown[a.Token]; known {
		s.asked.shown[a.Token] = nil // it stays open for others, and is asked again with the next prompt
	}
}

// request is a request as the editor shows it: whole, as every surface does.
func request(session string, a event.Ask, card acp.ToolCallId) acp.RequestPermissionRequest {
	title, status := "Allow "+a.Tag+"?", acp.ToolCallStatusPending
	var options []acp.PermissionOption
	for _, c := range a.Choices {
		options = append(options, acp.PermissionOption{OptionId: acp.PermissionOptionId(c.Decision), Name: c.Text,
			Kind: optionKinds[c.Decision]})
	}

	return acp.RequestPermissionRequest{SessionId: acp.SessionId(session), Options: options, ToolCall: acp.ToolCallUpdate{
		ToolCallId: card, Title: &title, Status: &status, Content: []acp.ToolCallContent{fenced(a.Card)},
	}}
}
