package talk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/control"
	"daycare/engine/event"
)

// approvals is how a talk deals with what its agents ask to be allowed.
type approvals struct {
	c      *term.App
	policy string            // ask, deny, allow or, where nobody can be asked, leave
	seen   map[string]bool   // tokens that were dealt with
	old    map[string]bool   // tokens that waited before the talk began
	names  map[string]string // handles by agent id
	queue  []event.Ask       // to be asked of the user; the first is on the screen
	due    []string          // tokens of decisions that a turn must follow
	denied bool
	left   *event.Ask // the first that was left waiting
}

func newApprovals(c *term.App, flag string) *approvals {
	policy := flag
	if flag == "" || flag == "ask" {
		policy = "leave"
		if c.Asks() {
			policy = "ask"
		}
	}

	return &approvals{c: c, policy: policy, seen: map[string]bool{}, old: map[string]bool{}}
}

// begin looks at what waits already. A conversation puts it to the user; a
// single message has nothing to do with it, and a flag must not allow it.
func (p *approvals) begin(ctx context.Context, client *control.Client, once bool) error {
	if !once && p.policy == "ask" {
		return nil
	}
	asks, err := client.Permissions(ctx)
	if err != nil {
		return fmt.Errorf("list permissions: %w", err)
	}

	for _, a := range asks {
		p.old[a.Token] = true
	}

	return nil
}

// waiting shows what the agent, and those below it, asked for before the talk begins. A
// conversation puts it to the user; else they read how to answer.
func (t *talk) waiting(ctx context.Context) error {
	if asks, err := t.client.Permissions(ctx); err != nil || len(asks) == 0 {
		return err
	}
	id := t.agent
	if id == "" {
		a, err := t.client.Agent(ctx, address.Own)
		if err != nil {
			return nil // its first message makes it, or finds it
		}
		id = a.ID
	}

	asks, err := familyAsks(ctx, t.client, id)
	if err != nil || len(asks) == 0 {
		return err
	}
	if !t.once && t.asks.policy == "ask" {
		t.agent = id
		return t.answerAsks(ctx, t.asks.fresh(asks, false))
	}

	t.c.Warn("%s for your answer:", term.Plural(len(asks), "earlier request waits", "earlier requests wait"))
	names := show.Handles(ctx, t.client, asks...)
	for _, ask := range asks {
		show.Ask(t.c.Err, t.c.ErrStyle(), ask, names)
	}

	return nil
}

// fresh picks the requests that were not dealt with before. A turn that waits with
// no new request waits for an old one: nothing is asked twice.
func (p *approvals) fresh(asks []event.Ask, waiting bool) []event.Ask {
	var fresh, old []event.Ask
	for _, a := range asks {
		switch {
		case p.seen[a.Token]:
		case p.old[a.Token]:
			old = append(old, a)
		default:
			fresh = append(fresh, a)
		}
	}

	if len(fresh) == 0 && waiting && len(p.seen) == 0 {
		fresh = old
	}
	for _, a := range fresh {
		p.seen[a.Token] = true
	}

	return fresh
}

// open reports whether a question stands on the screen.
func (p *approvals) open() bool { return len(p.queue) > 0 }

// decidedElsewhere takes a question back that someone else has answered.
func (t *talk) decidedElsewhere(a event.Asked) {
	p := t.asks
	if !p.open() || p.queue[0].Token != a.Token {
		return
	}
	p.c.Warn("\nanswered elsewhere: %s by %s", a.Decision, a.By)
	t.flight.expect()
	p.owe(p.queue[0], t.agent)
	p.next()
}

// owe notes that a turn of the agent follows from the answer to its request.
func (p *approvals) owe(a event.Ask, agent string) {
	if a.AgentID == agent {
		p.due = append(p.due, a.Token)
	}
}

// heardOf reports whether a turn has followed every decision.
func (p *approvals) heardOf(followed map[string]bool) bool {
	p.due = slices.DeleteFunc(p.due, func(token string) bool { return followed[token] })
	return len(p.due) == 0
}

// leave is how a conversation ends that the user leaves, with so many messages without an
// outcome.
func (p *approvals) leave(open int) error {
	if p.left != nil {
		return needsApproval(*p.left)
	}
	if open > 0 {
		p.c.Note("your message is on disk; work on it continues when daycare runs again")
	}

	return nil
}

// next puts the next question.
func (p *approvals) next() {
	p.queue = p.queue[1:]
	if p.open() {
		p.put()
	}
}

// put shows the question whole: who asks, what it would do, and what each answer gives.
func (p *approvals) put() {
	a, s := p.queue[0], p.c.ErrStyle()
	p.c.Say("%s\n%s", s.Yellow("An agent asks for permission: "+cmp.Or(p.names[a.AgentID], a.AgentID)), a.Card)
	for _, c := range a.Choices {
		p.c.Say("  %-7s %s\n", c.Decision, c.Text)
	}
	p.ask()
}

func (p *approvals) ask() {
	prefix := ""
	if takenAs(p.queue[0], "prefix") {
		prefix = " / [p]refix"
	}
	p.c.Say("%s", p.c.ErrStyle().Bold("[o]nce / [a]lways / [d]eny"+prefix+": "))
}

// takenAs reports whether a request offers an answer.
func takenAs(a event.Ask, decision string) bool {
	return slices.ContainsFunc(a.Choices, func(c event.Choice) bool { return c.Decision == decision })
}

// decisionOf reads what a user answered; "" is no answer.
func decisionOf(a event.Ask, line string) string {
	decision := ""
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "o", "once", "y", "yes":
		decision = "once"
	case "a", "always":
		decision = "always"
	case "p", "prefix":
		decision = "prefix"
	case "d", "deny", "n", "no":
		decision = "deny"
	}

	if !takenAs(a, decision) {
		return ""
	}

	return decision
}

// answerAsks deals with new requests as the flag says.
func (t *talk) answerAsks(ctx context.Context, fresh []event.Ask) error {
	if len(fresh) == 0 {
		return nil
	}
	p := t.asks
	switch p.policy {
	case "allow", "deny":
		decision := map[string]string{"allow": "once", "deny": "deny"}[p.policy]
		for _, a := range fresh {
			if decision == "once" && show.IsBudget(a) { // a flag allows calls, and spends no more money
				p.left = &a
				continue
			}
			if err := t.decide(ctx, a, decision); err != nil {
				return err
			}
		}
		return nil
	case "ask":
		t.watch(ctx) // someone else may be faster
		if t.typed == nil {
			t.typed = typedLines(t.c)
		}
		p.names = show.Handles(ctx, t.client, append(slices.Clone(p.queue), fresh...)...)
		first := !p.open()
		p.queue = append(p.queue, fresh...)
		if first {
			t.view.newline()
			p.put()
		}
		return nil
	}

	if p.left == nil {
		p.left = &fresh[0]
	}

	return nil
}

// answer takes a typed line as the answer to the question on the screen.
func (t *talk) answer(ctx context.Context, line string) error {
	decision := decisionOf(t.asks.queue[0], line)
	if decision == "" {
		t.asks.ask()
		return nil
	}
	if err := t.decide(ctx, t.asks.queue[0], decision); err != nil {
		return err
	}

	t.asks.next()

	return nil
}

// unanswered: the input ended at a question.
func (p *approvals) unanswered() {
	if p.left == nil {
		p.left = &p.queue[0]
	}
	p.queue = nil
}

// decide sends a decision; the agent's next turn follows from it.
func (t *talk) decide(ctx context.Context, a event.Ask, decision string) error {
	var first *control.Decided
	switch err := t.client.Decide(ctx, a.Token, decision, ""); {
	case errors.As(err, &first):
		t.view.note("answered elsewhere: %s by %s", first.Decision, first.By)
	case errors.Is(err, control.ErrNoAsk):
		t.view.note("that request is no longer open")
	case err != nil:
		return fmt.Errorf("answer %s: %w", a.Token, err)
	default:
		t.asks.denied = t.asks.denied || decision == "deny"
		t.view.note("%s: %s", term.OneLine(term.Join(" ", a.Tag, a.Shown), 120), decision)
	}

	t.flight.expect()
	t.asks.owe(a, t.agent)
	return nil
}
