package control

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"daycare/engine/event"
)

// approvals serve the requests that wait for an answer.
type approvals struct{ permissions Permissions }

func approvalRows(a *api, p approvals) []row {
	return []row{on(a, asks, p.list), on(a, decide, p.decide)}
}

func (p approvals) list(ctx context.Context, in asksIn) (asksBody, error) {
	if in.State == "decided" {
		most := int(in.Limit)
		if callerOf(ctx).Rights.Restricted() { // of many that it does not know, some may be its own
			most = math.MaxInt
		}
		asks, err := p.permissions.Answered(ctx, most)
		asks = onlyKnown(ctx, asks)
		return asksBody{some(asks[:min(len(asks), int(in.Limit))])}, err
	}
	asks, err := p.known(ctx)
	return asksBody{some(asks)}, err
}

// AnsweredAtMost is how many requests that were answered a call of GET /v1/permissions wants; 0: those that wait, or none.
func AnsweredAtMost(r *http.Request) int {
	var in asksIn
	if err := (&api{}).bind(r, &in); err != nil || in.State != "decided" {
		return 0
	}

	return int(in.Limit)
}

// known are the pending requests of the agents that the caller's rights are about.
func (p approvals) known(ctx context.Context) ([]event.Ask, error) {
	asks, err := p.permissions.Asks(ctx)
	return onlyKnown(ctx, asks), err
}

func onlyKnown(ctx context.Context, asks []event.Ask) []event.Ask {
	asks = slices.DeleteFunc(asks, func(v event.Ask) bool { return !knows(ctx, v.AgentID) })
	if callerOf(ctx).Rights.Restricted() {
		for i := range asks {
			asks[i].Lineage = nil // it tells of other agents
		}
	}

	return asks
}

func (p approvals) decide(ctx context.Context, in decideIn) (empty, error) {
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
			return empty{}, &Invalid{Field: "by", Reason: "only a caller on the unix socket can say who decided", Hint: "leave it out"}
		}
		by = answer.By
	}
	if caller.Rights.Restricted() {
		asks, err := p.known(ctx)
		if err != nil {
			return empty{}, err
		}
		if !slices.ContainsFunc(asks, func(v event.Ask) bool { return v.Token == in.Token }) {
			return empty{}, ErrNoAsk // as of one that is not there
		}
	}

	return empty{}, p.permissions.Decide(ctx, in.Token, answer.Decision, by)
}
