package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/message"
)

func (a *api) listAgents(ctx context.Context, in listIn) (agentsBody, error) {
	list := a.Agents.Agents
	if in.Family != "" {
		id, err := a.resolve(ctx, in.Family)
		if err != nil {
			return agentsBody{}, err
		}
		list = func(ctx context.Context) ([]event.Agent, error) { return a.Agents.Family(ctx, id) }
	}
	all, err := list(ctx)
	all = slices.DeleteFunc(all, func(v event.Agent) bool { return !knows(ctx, v.ID) })
	return agentsBody{some(all)}, err
}

// agentTypes are the kinds of agent that are made by hand.
const agentTypes = "user, permanent, subagent"

func (a *api) createAgent(ctx context.Context, in aBody[NewAgent]) (event.Agent, error) {
	n := in.Body
	switch n.Type {
	case "", "user":
		n.Type = "user"
	case "permanent":
		if strings.TrimSpace(n.Name) == "" {
			return event.Agent{}, &Invalid{Field: "name", Reason: "a permanent agent needs one"}
		}
	case "subagent":
		if n.Parent == "" {
			return event.Agent{}, &Invalid{Field: "parent", Reason: "a subagent needs one",
				Hint: "name the agent it works for by handle or id"}
		}
	default:
		return event.Agent{}, &Invalid{Field: "type", Reason: fmt.Sprintf("found %q, allowed: %s", n.Type, agentTypes)}
	}
	if n.Spawned && n.Type != "user" {
		return event.Agent{}, &Invalid{Field: "spawned", Reason: "only agents of type user are spawned"}
	}
	if n.Parent != "" {
		parent, err := a.resolve(ctx, n.Parent)
		if err != nil {
			return event.Agent{}, err
		}
		n.Parent = parent
	}
	return a.Agents.Create(ctx, n)
}

func (a *api) showAgent(ctx context.Context, in anAgent) (event.Agent, error) {
	return a.Agents.Agent(ctx, in.ID)
}

func (a *api) removeAgent(ctx context.Context, in removeIn) (trashBody, error) {
	trash, err := a.Agents.Remove(ctx, in.ID, in.Force)
	return trashBody{trash}, err
}

func (a *api) stop(ctx context.Context, in anAgent) (stoppedBody, error) {
	stopped, err := a.Agents.Stop(ctx, in.ID)
	return stoppedBody{stopped}, err
}

// reset is stop and reset: who asks for an empty slate does not want to wait for
// the turn under way.
func (a *api) reset(ctx context.Context, in anAgent) (message.Receipt, error) {
	return a.order(ctx, in.ID, message.Reset, "")
}

func (a *api) compact(ctx context.Context, in anAgent) (message.Receipt, error) {
	return a.order(ctx, in.ID, message.Compact, "")
}

// order posts an item that is no message.
func (a *api) order(ctx context.Context, id string, kind message.Kind, text string) (message.Receipt, error) {
	return a.deliver(ctx, message.Incoming{Agent: id, Kind: kind, Text: strings.TrimSpace(text), From: callerAddress(ctx)})
}

func (a *api) kill(ctx context.Context, in anAgent) (empty, error) {
	return empty{}, a.Agents.Kill(ctx, in.ID)
}

func (a *api) history(ctx context.Context, in historyIn) (event.Page, error) {
	page, err := a.Agents.History(ctx, in.ID, in.Before, int(in.Limit))
	page.Records = some(page.Records)
	return page, err
}

func (a *api) draft(ctx context.Context, in anAgent) (event.Draft, error) {
	return a.Agents.Draft(ctx, in.ID)
}

func (a *api) inbox(ctx context.Context, in anAgent) (inboxBody, error) {
	items, err := a.Agents.Inbox(ctx, in.ID)
	return inboxBody{some(items)}, err
}

func (a *api) drop(ctx context.Context, in itemIn) (empty, error) {
	return empty{}, a.Agents.Drop(ctx, in.ID, in.Item)
}

func (a *api) front(ctx context.Context, in itemIn) (empty, error) {
	return empty{}, a.Agents.Front(ctx, in.ID, in.Item)
}

func (a *api) asks(ctx context.Context, _ nothing) (asksBody, error) {
	asks, err := a.knownAsks(ctx)
	return asksBody{some(asks)}, err
}

// knownAsks are the requests of the agents that the caller's rights are about.
func (a *api) knownAsks(ctx context.Context) ([]event.Ask, error) {
	asks, err := a.Permissions.Asks(ctx)
	return slices.DeleteFunc(asks, func(v event.Ask) bool { return !knows(ctx, v.AgentID) }), err
}

func (a *api) decide(ctx context.Context, in decideIn) (empty, error) {
	answer := in.Body
	switch answer.Decision {
	case "once", "always", "prefix", "deny":
	default:
		return empty{}, &Invalid{Field: "decision", Reason: fmt.Sprintf("found %q, allowed: once, always, deny, prefix", answer.Decision)}
	}
	caller := callerOf(ctx)
	by := caller.Name
	if answer.By != "" {
		if !caller.Local {
			return empty{}, &Invalid{Field: "by", Reason: "only a caller on the unix socket may say who decided", Hint: "leave it out"}
		}
		by = answer.By
	}
	if caller.Rights.Restricted() {
		asks, err := a.knownAsks(ctx)
		if err != nil {
			return empty{}, err
		}
		if !slices.ContainsFunc(asks, func(v event.Ask) bool { return v.Token == in.Token }) {
			return empty{}, ErrNoAsk // as of one that is not there
		}
	}
	return empty{}, a.Permissions.Decide(ctx, in.Token, answer.Decision, by)
}

func (a *api) status(ctx context.Context, _ nothing) (event.Status, error) {
	v, err := a.Daemon.Status(ctx)
	if callerOf(ctx).Rights.Restricted() { // the rest is about all agents
		v = event.Status{Running: v.Running, Version: v.Version, UptimeMS: v.UptimeMS}
	}
	v.Connectors, v.Providers = some(v.Connectors), some(v.Providers)
	return v, err
}

func (a *api) config(ctx context.Context, _ nothing) (json.RawMessage, error) {
	v, err := a.Daemon.Config(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func (a *api) tools(ctx context.Context, _ nothing) (toolsBody, error) {
	v, err := a.Daemon.Tools(ctx)
	return toolsBody{some(v)}, err
}

func (a *api) reload(ctx context.Context, _ nothing) (reloadBody, error) {
	found, err := a.Daemon.Reload(ctx)
	if err != nil {
		return reloadBody{}, err
	}
	if bad := finding.Join(found); bad != nil {
		e := refuse(fault.InvalidConfig, "", "%s", bad)
		e.Findings = found
		return reloadBody{}, e
	}
	return reloadBody{some(found)}, nil
}

func (a *api) shutdown(ctx context.Context, _ nothing) (empty, error) {
	return empty{}, a.Daemon.Shutdown(ctx)
}

// some makes a nil list an empty one: clients read [] more easily than null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
