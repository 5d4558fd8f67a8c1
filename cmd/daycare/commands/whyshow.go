package commands

import (
	"cmp"
	"fmt"
	"time"

	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/record"
)

// showStory tells a why to a user, from what came in to what it cost.
func showStory(c *term.App, w why) {
	c.Fields("agent", term.Join("  ", w.Handle, w.Name, w.Agent), "turn", w.Turn)
	heading(c, "came in", len(w.Inbound))
	for _, it := range w.Inbound {
		c.Print("  %s\n", term.Join("  ", stamp(it.At), string(it.Kind), "from "+from(it), it.ID))
		c.Print("    %s\n", term.OneLine(it.Text, 200))
	}

	if w.Waiting {
		c.Print("queued: no turn has picked it up yet\n")
		return
	}
	showPrompt(c, w.Prompt)
	heading(c, "what happened", len(w.Records))
	began := w.Records[0].At
	for i := range w.Records {
		if text := happened(w.Records[i].Rec); text != "" {
			c.Print("  %8s  %s\n", "+"+w.Records[i].At.Sub(began).Round(time.Millisecond).String(), text)
		}
	}

	c.Fields("model calls", fmt.Sprint(w.Calls), "tokens", tokensOf(w.Tokens), "cost", term.Money(w.Cost))
}

func showPrompt(c *term.App, parts []promptPart) {
	if len(parts) == 0 {
		return
	}
	total := 0
	for _, p := range parts {
		total += p.Tokens
	}

	c.Print("%s\n", c.OutStyle().Dim(fmt.Sprintf("the model was given about %d tokens, not counting tool definitions", total)))
	for _, p := range parts {
		count := ""
		if p.Count > 0 {
			count = term.Parens(fmt.Sprint(p.Count))
		}
		c.Print("  %7d  %s\n", p.Tokens, term.Join(" ", p.Part, count))
	}
}

// happened is one record of a story in one line; "" is not worth one.
func happened(r record.Record) string {
	switch r := r.(type) {
	case *record.TurnBegin:
		if r.Attempt > 1 {
			return fmt.Sprintf("resumed after a stop or a crash, attempt %d", r.Attempt)
		}
		return term.Join(" ", "turn started", term.Parens(r.Model))
	case *record.User:
		return term.Join("\n            ", "read      "+term.OneLine(r.Text, 120), untrusted(r.Source))
	case *record.Assistant:
		return answered(r)
	case *record.ToolStart:
		used := ""
		if r.Grant != "" {
			used = "used up the approval " + r.Grant
		}
		return term.Join("  ", "started   "+r.Name, used)
	case *record.ToolResult:
		return term.Join("\n            ", fmt.Sprintf("result    %s %s in %d ms: %s", r.Name, r.Status, r.MS,
			term.OneLine(r.Output.Text, 120)), untrusted(r.Source))
	case *record.Permission:
		return term.Join("  ", "approval  "+r.Event, r.Tag, term.OneLine(r.Request, 80), show.By(r.By), r.Token)
	case *record.Delivery:
		return arrived(r)
	case *record.TurnEnd:
		return term.Join(": ", "turn ended, "+r.Reason, r.Error)
	case *record.Start:
		return ""
	}

	who, what := show.Words(r)
	return term.Join("  ", who, term.OneLine(what, 160))
}

// untrusted says that a text does not speak for the owner.
func untrusted(source string) string {
	if source == "" {
		return ""
	}
	return "untrusted: from " + term.OneLine(source, 200)
}

// answered is one call of the model.
func answered(r *record.Assistant) string {
	text := "answer    " + term.OneLine(cmp.Or(r.Text, "(no text)"), 120)
	if r.Provider != "" {
		text = term.Join("  ", "model     "+r.Provider+"/"+r.Model, string(r.Finish), tokensOf(r.Tokens), term.Money(r.Cost)) +
			"\n            says: " + term.OneLine(cmp.Or(r.Text, "(nothing)"), 120)
	}

	for _, call := range r.ToolCalls {
		text += "\n            calls: " + call.Name + " " + term.OneLine(string(call.Arguments), 120) + "  " + call.ID
	}
	if r.Out != nil {
		text += "\n            to " + term.Join("/", r.Out.To.Connector, r.Out.To.ChannelID, r.Out.To.UserID) + "  " + r.Out.ID
	}

	return text
}

func arrived(r *record.Delivery) string {
	part := fmt.Sprintf("part %d of %d", r.Part+1, max(r.Parts, 1))
	again := ""
	if r.Retry {
		again = "retry"
	}

	switch {
	case r.Error != "" && r.Final:
		return term.Join("  ", "delivery  given up", part, r.Error, again)
	case r.Error != "":
		return term.Join("  ", "delivery  failed, will be retried", part, r.Error, again)
	}

	return term.Join("  ", "delivery  arrived", part, "as "+cmp.Or(r.RemoteID, "(no id)"), again)
}

func tokensOf(t record.Tokens) string {
	text := fmt.Sprintf("%d in, %d out", t.Input+t.CacheRead+t.CacheWrite, t.Output)
	if t.CacheRead > 0 {
		text += fmt.Sprintf(", %d of it cached", t.CacheRead)
	}
	if t.Estimated {
		text += " (estimated)"
	}

	return text
}

func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
