package budget

import (
	"context"
	"iter"
	"unicode/utf8"

	"daycare/agents/providers"
)

// reserveOutput is how many tokens of answer are reserved for, at most: a model may
// be allowed far more than it nearly ever says.
const reserveOutput = 4_000

// Wrap makes a provider that spends only what the ledger allows.
func Wrap(p providers.Provider, l *Ledger) providers.Provider { return &bounded{p, l} }

type bounded struct {
	providers.Provider
	ledger *Ledger
}

// Stream asks the provider if the budget allows it. One that is used up is a
// *providers.Failure of kind Budget, before anything was sent.
func (b *bounded) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		likely := providers.Usage{Input: providers.Estimate(req), Output: reserveOutput, Estimated: true}
		if req.MaxTokens > 0 {
			likely.Output = min(likely.Output, int64(req.MaxTokens))
		}
		r, err := b.ledger.reserve(req.Agent, b.amount(req.Model, likely))
		if err != nil {
			yield(providers.Error{Err: &providers.Failure{Kind: providers.Budget, Provider: b.ID(), Err: err}})
			return
		}

		m := meter{bounded: b, req: req, reserved: r}
		defer m.close()
		for ev := range b.Provider.Stream(ctx, req) {
			m.see(ev)
			if !yield(ev) {
				return
			}
		}
	}
}

func (b *bounded) amount(model string, u providers.Usage) Amount {
	return Amount{b.ledger.o.Price(b.ID(), model, u), tokensOf(u).sum()}
}

// A meter follows one request.
type meter struct {
	*bounded
	req      *providers.Request
	reserved *reservation
	chars    int // of what came
	done     bool
}

func (m *meter) see(ev providers.Event) {
	switch ev := ev.(type) {
	case providers.ContentDelta:
		m.chars += utf8.RuneCountInString(ev.Text)
	case providers.ThinkingDelta:
		m.chars += utf8.RuneCountInString(ev.Text)
	case providers.ToolUseDelta:
		m.chars += utf8.RuneCountInString(ev.Arguments)
	case providers.Complete:
		m.done = true
		m.ledger.settle(m.reserved, m.ID(), ev.Model, ev.Usage)
	}
}

// close ends a request that came to no end: what had come was paid for all the
// same, and nobody says how much it was.
func (m *meter) close() {
	switch {
	case m.done:
	case m.chars == 0:
		m.ledger.release(m.reserved)
	default:
		m.ledger.settle(m.reserved, m.ID(), m.req.Model, providers.EstimateUsage(m.req, m.chars))
	}
}
