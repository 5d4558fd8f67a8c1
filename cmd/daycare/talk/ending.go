package talk

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
	"daycare/engine/record"
)

// ending is what the end of a turn means for a command that waited for it: nil if
// the agent has answered.
func ending(o event.Outcome) error {
	switch o.Reason {
	case record.ReasonDone, record.ReasonWaiting:
		return nil
	case record.ReasonCanceled:
		return failed("the turn was stopped", "")
	case record.ReasonLimit:
		return failed("the turn reached its limit of tool rounds", "send another message to continue")
	case record.ReasonLoop:
		return failed("the turn ended: the agent kept repeating the same tool call", "rephrase the message, or reset the conversation")
	case record.ReasonBudget:
		return failed("the turn ended: the budget is used up", "raise budget in settings.yaml")
	case record.ReasonError, record.ReasonPoison:
		return failed(cmp.Or(o.Text, cmp.Or(o.Error, "the turn ended with an error")), "")
	case string(event.ItemDropped), "dropped":
		return failed("the message was dropped from the inbox", "")
	}

	return nil // a reset, a compact: they end without a turn
}

func failed(what, do string) error {
	return &term.Problem{Code: fault.ExitFailure, Err: errors.New(what), Do: do}
}

// asksOn reports whether a turn ended because a user has to answer first.
func asksOn(reason string) bool {
	return reason == record.ReasonWaiting || reason == record.ReasonBudget
}

// needsApproval says how to answer what an agent asks, and ends with exit code 5.
func needsApproval(a event.Ask) error {
	if show.IsBudget(a) {
		return &term.Problem{Code: fault.ExitDenied, Err: fmt.Errorf("the agent is paused: %s", a.Reason),
			Do: fmt.Sprintf("raise it with: daycare permissions allow %s --once   (or without --once, permanently; or stop: "+
				"daycare permissions deny %s)", a.Token, a.Token)}
	}

	return &term.Problem{Code: fault.ExitDenied,
		Err: fmt.Errorf("the agent waits for your approval of %s: %s", a.Tag, term.OneLine(cmp.Or(a.Request, a.Reason), 200)),
		Do: fmt.Sprintf("answer with: daycare permissions allow %s --once   "+
			"(or without --once for always; or: daycare permissions deny %s)",
			a.Token, a.Token)}
}

// familyAsks lists what an agent and its descendants ask for.
func familyAsks(ctx context.Context, client *control.Client, id string) ([]event.Ask, error) {
	asks, err := client.Permissions(ctx)
	if err != nil || len(asks) == 0 {
		return nil, err
	}
	agents, err := client.Family(ctx, id)
	if errors.Is(err, message.ErrUnknownAgent) {
		return nil, nil // it was removed meanwhile
	}
	if err != nil {
		return nil, err
	}

	var out []event.Ask
	for _, a := range asks {
		if inFamily(agents, a.AgentID, id) {
			out = append(out, a)
		}
	}

	return out, nil
}

// inFamily reports whether id is the ancestor or descends from it.
func inFamily(agents []event.Agent, id, ancestor string) bool {
	parent := map[string]string{}
	for _, a := range agents {
		parent[a.ID] = a.ParentAgentID
	}

	for range len(agents) + 1 { // a loop made by hand must not hang
		if id == ancestor {
			return true
		}
		if id = parent[id]; id == "" {
			return false
		}
	}

	return false
}

// busy reports whether an agent is at work or about to be; children: also
// when only its background agents are. An item that is not done counts whatever
// the state says, since a request that waits for its answer hides it there.
func busy(a event.Agent, children bool) bool {
	switch a.State {
	case event.Queued, event.Thinking, event.UsingTool, event.Retrying:
		return true
	case event.WaitingAgent:
		return children
	case event.Paused, event.Failing, event.Ended:
		return false
	}

	return a.OldestAt != nil
}

// A past is what the end of a history tells.
type past struct {
	last     event.Outcome   // of the newest turn
	followed map[string]bool // tokens of decisions that a whole turn has followed
}

// pastReach is how many records are looked at, more than a turn commonly has.
const pastReach = 500

// readPast reads how the newest turn of an agent ended, and which decisions it has
// heard of.
func readPast(ctx context.Context, client *control.Client, id string) (past, error) {
	p := past{last: event.Outcome{Agent: id}, followed: map[string]bool{}}
	lines, err := show.Newest(ctx, client, id, pastReach)
	if err != nil {
		return p, err
	}

	text, decided := "", []string{}
	for _, line := range lines {
		entry, err := record.Decode(line)
		if err != nil {
			continue // reported by whoever loads the agent
		}

		switch r := entry.Rec.(type) {
		case *record.Permission:
			if r.Event != "asked" {
				decided = append(decided, r.Token)
			}
		case *record.Assistant:
			text = r.Text
		case *record.TurnEnd:
			p.last.Turn, p.last.Reason, p.last.Error, p.last.Text = r.Turn, r.Reason, r.Error, text
			for _, token := range decided {
				p.followed[token] = true
			}
			text, decided = "", nil
		}
	}

	return p, nil
}
