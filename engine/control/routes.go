package control

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/message"
)

func (a *api) listAgents(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	list := a.Agents.Agents
	if ref := r.URL.Query().Get("family"); ref != "" {
		id, err := a.resolve(r.Context(), ref)
		if err != nil {
			return 0, nil, err
		}
		list = func(ctx context.Context) ([]event.Agent, error) { return a.Agents.Family(ctx, id) }
	}
	all, err := list(r.Context())
	all = slices.DeleteFunc(all, func(v event.Agent) bool { return !knows(r.Context(), v.ID) })
	return http.StatusOK, agentsBody{some(all)}, err
}

// agentTypes are the kinds of agent that are made by hand.
const agentTypes = "user, permanent, subagent"

func (a *api) createAgent(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var n NewAgent
	if err := decode(w, r, maxBody, &n); err != nil {
		return 0, nil, err
	}
	switch n.Type {
	case "", "user":
		n.Type = "user"
	case "permanent":
		if strings.TrimSpace(n.Name) == "" {
			return 0, nil, &Invalid{Field: "name", Reason: "a permanent agent needs one"}
		}
	case "subagent":
		if n.Parent == "" {
			return 0, nil, &Invalid{Field: "parent", Reason: "a subagent needs one", Hint: "name the agent it works for by handle or id"}
		}
	default:
		return 0, nil, &Invalid{Field: "type", Reason: fmt.Sprintf("found %q, allowed: %s", n.Type, agentTypes)}
	}
	if n.Spawned && n.Type != "user" {
		return 0, nil, &Invalid{Field: "spawned", Reason: "only agents of type user are spawned"}
	}
	if n.Parent != "" {
		parent, err := a.resolve(r.Context(), n.Parent)
		if err != nil {
			return 0, nil, err
		}
		n.Parent = parent
	}
	made, err := a.Agents.Create(r.Context(), n)
	return http.StatusCreated, made, err
}

func (a *api) showAgent(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	v, err := a.Agents.Agent(r.Context(), id)
	return http.StatusOK, v, err
}

func (a *api) removeAgent(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	force, err := flag(r, "force")
	if err != nil {
		return 0, nil, err
	}
	trash, err := a.Agents.Remove(r.Context(), id, force)
	return http.StatusOK, trashBody{trash}, err
}

func (a *api) stop(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	stopped, err := a.Agents.Stop(r.Context(), id)
	return http.StatusOK, stoppedBody{stopped}, err
}

// reset is stop and reset: who asks for an empty slate does not want to wait for
// the turn under way.
func (a *api) reset(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	return a.order(r.Context(), id, message.Reset)
}

func (a *api) compact(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	return a.order(r.Context(), id, message.Compact)
}

func (a *api) order(ctx context.Context, id string, kind message.Kind) (int, any, error) {
	receipt, err := a.deliver(ctx, message.Incoming{Agent: id, Kind: kind, From: callerAddress(ctx)})
	return http.StatusAccepted, receipt, err
}

func (a *api) kill(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	return http.StatusOK, empty{}, a.Agents.Kill(r.Context(), id)
}

// Limits of one page of history, in records.
const (
	defaultPage = 100
	maxPage     = 1000
)

func (a *api) history(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	before, err := number(r, "before", 0, 1, 1<<53)
	if err != nil {
		return 0, nil, err
	}
	limit, err := number(r, "limit", defaultPage, 1, maxPage)
	if err != nil {
		return 0, nil, err
	}
	page, err := a.Agents.History(r.Context(), id, before, int(limit))
	page.Records = some(page.Records)
	return http.StatusOK, page, err
}

func (a *api) draft(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	v, err := a.Agents.Draft(r.Context(), id)
	return http.StatusOK, v, err
}

func (a *api) inbox(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	items, err := a.Agents.Inbox(r.Context(), id)
	return http.StatusOK, inboxBody{some(items)}, err
}

func (a *api) drop(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	return http.StatusOK, empty{}, a.Agents.Drop(r.Context(), id, r.PathValue("item"))
}

func (a *api) front(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	return http.StatusOK, empty{}, a.Agents.Front(r.Context(), id, r.PathValue("item"))
}

func (a *api) asks(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	asks, err := a.knownAsks(r.Context())
	return http.StatusOK, asksBody{some(asks)}, err
}

// knownAsks are the requests of the agents that the caller's rights are about.
func (a *api) knownAsks(ctx context.Context) ([]event.Ask, error) {
	asks, err := a.Permissions.Asks(ctx)
	return slices.DeleteFunc(asks, func(v event.Ask) bool { return !knows(ctx, v.AgentID) }), err
}

func (a *api) decide(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var answer Answer
	if err := decode(w, r, maxBody, &answer); err != nil {
		return 0, nil, err
	}
	switch answer.Decision {
	case "once", "always", "prefix", "deny":
	default:
		return 0, nil, &Invalid{Field: "decision", Reason: fmt.Sprintf("found %q, allowed: once, always, deny, prefix", answer.Decision)}
	}
	caller := callerOf(r.Context())
	by := caller.Name
	if answer.By != "" {
		if !caller.Local {
			return 0, nil, &Invalid{Field: "by", Reason: "only a caller on the unix socket may say who decided", Hint: "leave it out"}
		}
		by = answer.By
	}
	if caller.Rights.Restricted() {
		asks, err := a.knownAsks(r.Context())
		if err != nil {
			return 0, nil, err
		}
		if !slices.ContainsFunc(asks, func(v event.Ask) bool { return v.Token == r.PathValue("token") }) {
			return 0, nil, ErrNoAsk // as of one that is not there
		}
	}
	return http.StatusOK, empty{}, a.Permissions.Decide(r.Context(), r.PathValue("token"), answer.Decision, by)
}

func (a *api) status(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	v, err := a.Daemon.Status(r.Context())
	if callerOf(r.Context()).Rights.Restricted() { // the rest is about all agents
		v = event.Status{Running: v.Running, Version: v.Version, UptimeMS: v.UptimeMS}
	}
	v.Connectors, v.Providers = some(v.Connectors), some(v.Providers)
	return http.StatusOK, v, err
}

func (a *api) config(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	v, err := a.Daemon.Config(r.Context())
	return http.StatusOK, v, err
}

func (a *api) tools(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	v, err := a.Daemon.Tools(r.Context())
	return http.StatusOK, toolsBody{some(v)}, err
}

func (a *api) reload(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	found, err := a.Daemon.Reload(r.Context())
	if err != nil {
		return 0, nil, err
	}
	if bad := finding.Join(found); bad != nil {
		e := refuse(fault.InvalidConfig, "", "%s", bad)
		e.Findings = found
		return 0, nil, e
	}
	return http.StatusOK, reloadBody{some(found)}, nil
}

func (a *api) shutdown(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	return http.StatusAccepted, empty{}, a.Daemon.Shutdown(r.Context())
}

// number reads a query parameter.
func number(r *http.Request, name string, byDefault, low, high int64) (int64, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return byDefault, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high {
		return 0, &malformed{Invalid{Field: name, Reason: fmt.Sprintf("found %q, allowed: a number from %d to %d", s, low, high)}}
	}
	return n, nil
}

func flag(r *http.Request, name string) (bool, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(s)
	if err != nil {
		return false, &malformed{Invalid{Field: name, Reason: fmt.Sprintf("found %q, allowed: 1 or 0", s)}}
	}
	return on, nil
}

// some makes a nil list an empty one: clients read [] more easily than null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
