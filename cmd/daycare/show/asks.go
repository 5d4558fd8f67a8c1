package show

import (
	"cmp"
	"context"
	"io"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/permission"
)

// Ask prints one request whole: nobody can answer for what they have not seen.
func Ask(w io.Writer, s term.Style, a event.Ask, handles map[string]string) {
	now := time.Now()
	_ = term.Printf(w, "%s  %s  %s  %s  %s\n", s.Bold(a.Token), cmp.Or(handles[a.AgentID], a.AgentID),
		permission.VisibleLine(a.Tag), term.OneLine(a.Shown, 60),
		s.Dim("asked "+term.Ago(a.AskedAt, now)+", expires in "+term.Span(a.ExpiresAt.Sub(now))))
	_ = term.Printf(w, "%s", a.Card)
	for _, choice := range a.Choices {
		_ = term.Printf(w, "  %s  %s\n", answerCommand(a.Token, choice.Decision), choice.Text)
	}
}

// answerCommand is the command that gives an answer.
func answerCommand(token, decision string) string {
	switch decision {
	case "deny":
		return "daycare permissions deny " + token
	case "always":
		return "daycare permissions allow " + token
	}

	return "daycare permissions allow " + token + " --" + decision
}

// Handles names the agents that ask the short way; on trouble by their ids.
func Handles(ctx context.Context, client *control.Client, asks ...event.Ask) map[string]string {
	out := map[string]string{}
	for _, ask := range asks {
		if _, known := out[ask.AgentID]; known {
			continue
		}
		if a, err := client.Agent(ctx, ask.AgentID); err == nil {
			out[a.ID] = a.Handle
		}
	}

	return out
}

// IsBudget reports whether a request is to continue beyond a budget.
func IsBudget(a event.Ask) bool {
	_, ok := permission.BudgetOf(a.Tag)
	return ok
}
