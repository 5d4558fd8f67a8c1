package control

import (
	"context"
	"fmt"
	"time"
)

// Pairings is what the API needs for the requests of unknown users for access to a connector.
type Pairings interface {
	Pairings(ctx context.Context) ([]Pairing, error)
	// Pair grants access to the user with a code, or rejects them; by is who decided.
	// Errors: fault.NoPairing, *Invalid.
	Pair(ctx context.Context, code string, reject bool, by string) (Paired, error)
}

// A Pairing is one pending pairing request.
type Pairing struct {
	Code      string    `json:"code"`
	Connector string    `json:"connector"`
	UserID    string    `json:"userId"`
	Name      string    `json:"name,omitempty"` // the name they chose
	At        time.Time `json:"at"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Paired is the result of answering a pairing request.
type Paired struct {
	Pairing
	// Owner means that they are now first in allow, so they answer approvals.
	Owner bool `json:"owner"`
}

// PairAnswer is the body of POST /v1/pairings/{code}.
type PairAnswer struct {
	Decision string `json:"decision"` // approve or reject
}

type (
	pairingsBody struct {
		Pairings []Pairing `json:"pairings"`
	}
	pairIn struct {
		Code string     `path:"code"`
		Body PairAnswer `body:"application/json"`
	}
)

// pairRoutes serve pairing requests.
type pairRoutes struct{ pairings Pairings }

func pairRows(a *api, p pairRoutes) []row {
	return []row{on(a, listPairings, p.list), on(a, decidePairing, p.pair)}
}

func (p pairRoutes) list(ctx context.Context, _ nothing) (pairingsBody, error) {
	list, err := p.pairings.Pairings(ctx)
	return pairingsBody{some(list)}, err
}

func (p pairRoutes) pair(ctx context.Context, in pairIn) (Paired, error) {
	switch in.Body.Decision {
	case "approve", "reject":
		return p.pairings.Pair(ctx, in.Code, in.Body.Decision == "reject", callerOf(ctx).Name)
	}

	return Paired{}, &Invalid{Field: "decision", Reason: fmt.Sprintf("found %q, allowed: approve, reject", in.Body.Decision)}
}

// Pairings lists the pending requests.
func (c permissionCalls) Pairings(ctx context.Context) ([]Pairing, error) {
	b, err := listPairings.call(ctx, c.wire, nothing{})
	return b.Pairings, err
}

// Pair grants access to the user with a code, or rejects them. Errors: fault.NoPairing.
func (c permissionCalls) Pair(ctx context.Context, code string, reject bool) (Paired, error) {
	answer := PairAnswer{"approve"}
	if reject {
		answer.Decision = "reject"
	}

	return decidePairing.call(ctx, c.wire, pairIn{code, answer})
}
