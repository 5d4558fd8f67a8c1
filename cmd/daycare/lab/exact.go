package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/cmd/daycare/daemon"
	"daycare/engine/record"
)

// proof makes the request that an answer was given to once more.
func (t turn) proof(ctx context.Context, r daemon.Requests, e *record.Entry) (proof, error) {
	as := e.Rec.(*record.Assistant)
	p := proof{Turn: t.trace.Turn, Seq: e.Seq, Model: strings.TrimSuffix(as.Provider+"/"+as.Model, "/")}
	if as.Sent == nil {
		p.Why = "the request was not recorded: the model needs no network, or the answer is from an earlier version of daycare " +
			"or from another program"
		return p, nil
	}
	p.SHA256 = as.Sent.SHA256
	if e.ByHand {
		p.Why = "the answer was edited by hand, and with it what it records about its request"
		return p, nil
	}

	before, err := t.past.Before(t.session, e.Seq)
	if err != nil {
		return p, err
	}
	system, err := r.System(t.meta, as.Sent.System)
	if err != nil {
		return p, err
	}
	choice, err := r.Choice(t.meta)
	if err != nil {
		return p, err
	}
	choice.Model = as.Sent.Model
	req, err := r.Make(t.builder, t.meta, before, system, choice)
	if errors.Is(err, prompt.ErrNothingNew) {
		p.Why = "the messages that it answers are no longer in the history: " + edited(before)
		return p, nil
	}
	if err != nil {
		return p, err
	}
	service, known := r.Models().Named(as.Provider)
	if !known {
		p.Why = fmt.Sprintf("the provider %s is no longer in the settings, so its format is unknown", as.Provider)
		return p, nil
	}
	body, err := providers.Rehearse(ctx, service, req)
	if errors.Is(err, providers.ErrNoWire) {
		p.Why = fmt.Sprintf("the provider %s no longer sends requests; it did when this was asked", as.Provider)
		return p, nil
	}
	if err != nil {
		return p, err
	}

	p.Bytes = body.Len()
	if p.Exact = body.Sum() == as.Sent.SHA256; !p.Exact {
		p.Why = t.reasons(as.Sent, req, before)
	}

	return p, nil
}

// reasons says what of a request is not what it was.
func (t turn) reasons(sent *record.Sent, req *providers.Request, before *record.Context) string {
	var why []string
	if providers.SystemSum(req.System) != sent.System {
		why = append(why, "the system prompt was different: SOUL.md, USER.md, AGENTS.md, a skill, the descriptor or daycare "+
			"itself has changed since, and only the newest prompt is kept")
	}
	if providers.ToolsSum(req.Tools) != sent.Tools {
		why = append(why, "the tools were different: settings, sub-agents, MCP servers or daycare itself have changed since")
	}
	if hand := byHand(before); len(hand) > 0 {
		why = append(why, edited(before))
	}
	if copied := t.copied(); copied != "" {
		why = append(why, copied)
	}
	if len(why) == 0 {
		why = append(why, "system prompt and tools are the same, so the messages or the options differ: an earlier record was "+
			"deleted by hand, an attachment is gone, the temperature or the options of the provider have changed, or a newer "+
			"daycare writes the format differently")
	}

	return strings.Join(why, "\n")
}

// byHand are the records of a context that a user wrote or changed.
func byHand(c *record.Context) (seqs []string) {
	for _, e := range c.Entries {
		if e.ByHand {
			seqs = append(seqs, fmt.Sprint(e.Seq))
		}
	}
	if c.Summary != nil && c.Summary.ByHand {
		seqs = append(seqs, fmt.Sprint(c.Summary.Seq))
	}

	return seqs
}

func edited(c *record.Context) string {
	hand := byHand(c)
	if len(hand) == 0 {
		return "earlier records were deleted by hand"
	}
	const most = 10
	more := ""
	if len(hand) > most {
		more = fmt.Sprintf(" and %d more", len(hand)-most)
	}

	return "edited by hand since: record " + strings.Join(hand[:min(len(hand), most)], ", ") + more
}

// copied says that the history was begun by another agent, whose id or session its requests have.
func (t turn) copied() string {
	start := t.past.Begins()
	if start == nil || start.ForkedFrom == nil {
		return ""
	}
	if first := t.trace.Entries[0].Seq; first <= start.ForkedFrom.Seq {
		return fmt.Sprintf("the record was copied from the agent %s, whose session its request names", start.ForkedFrom.Agent)
	}

	return ""
}
