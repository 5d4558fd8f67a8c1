package main

import (
	"cmp"
	"fmt"
	"time"

	"daycare/engine/record"
)

// showStory tells a why to a person, from what came in to what it cost.
func (c *cli) showStory(w why) {
	c.fields("agent", join("  ", w.Handle, w.Name, w.Agent), "turn", w.Turn)
	c.heading("came in", len(w.Inbound))
	for _, it := range w.Inbound {
		c.print("  %s\n", clean(join("  ", stamp(it.At), string(it.Kind), "from "+from(it), it.ID)))
		c.print("    %s\n", oneLine(it.Text, 200))
	}
	if w.Waiting {
		c.print("it waits in the inbox; no turn has taken it yet\n")
		return
	}
	c.showPrompt(w.Prompt)
	c.heading("what happened", len(w.Records))
	began := w.Records[0].At
	for i := range w.Records {
		if text := c.happened(w.Records[i].Rec); text != "" {
			c.print("  %8s  %s\n", "+"+w.Records[i].At.Sub(began).Round(time.Millisecond).String(), clean(text))
		}
	}
	c.fields("model calls", fmt.Sprint(w.Calls), "tokens", tokensOf(w.Tokens), "cost", money(w.Cost))
}

func (c *cli) showPrompt(parts []promptPart) {
	if len(parts) == 0 {
		return
	}
	total := 0
	for _, p := range parts {
		total += p.Tokens
	}
	c.print("%s\n", c.data().dim(fmt.Sprintf("the model was given about %d tokens, tools apart", total)))
	for _, p := range parts {
		count := ""
		if p.Count > 0 {
			count = parens(fmt.Sprint(p.Count))
		}
		c.print("  %7d  %s\n", p.Tokens, join(" ", p.Part, count))
	}
}

// happened is one record of a story in one line; "" is not worth one.
func (c *cli) happened(r record.Record) string {
	switch r := r.(type) {
	case *record.TurnBegin:
		if r.Attempt > 1 {
			return fmt.Sprintf("taken up again after a stop or a crash, attempt %d", r.Attempt)
		}
		return join(" ", "turn began", parens(r.Model))
	case *record.User:
		return join("\n            ", "read      "+oneLine(r.Text, 120), untrusted(r.Source))
	case *record.Assistant:
		return c.answered(r)
	case *record.ToolStart:
		used := ""
		if r.Grant != "" {
			used = "used up the approval " + r.Grant
		}
		return join("  ", "started   "+r.Name, used)
	case *record.ToolResult:
		return join("\n            ", fmt.Sprintf("result    %s %s in %d ms: %s", r.Name, r.Status, r.MS,
			oneLine(r.Output.Text, 120)), untrusted(r.Source))
	case *record.Permission:
		return join("  ", "approval  "+r.Event, r.Tag, oneLine(r.Request, 80), by(r.By), r.Token)
	case *record.Delivery:
		return arrived(r)
	case *record.TurnEnd:
		return join(": ", "turn ended, "+r.Reason, r.Error)
	case *record.Start:
		return ""
	}
	who, what := speak(r)
	return join("  ", who, oneLine(what, 160))
}

// untrusted says that a text does not speak for the owner.
func untrusted(source string) string {
	if source == "" {
		return ""
	}
	return "untrusted: it came from " + oneLine(source, 200)
}

// answered is one call of the model.
func (c *cli) answered(r *record.Assistant) string {
	text := "answer    " + oneLine(cmp.Or(r.Text, "(no text)"), 120)
	if r.Provider != "" {
		text = join("  ", "model     "+r.Provider+"/"+r.Model, string(r.Finish), tokensOf(r.Tokens), money(r.Cost)) +
			"\n            says: " + oneLine(cmp.Or(r.Text, "(nothing)"), 120)
	}
	for _, call := range r.ToolCalls {
		text += "\n            calls: " + call.Name + " " + oneLine(string(call.Arguments), 120) + "  " + call.ID
	}
	if r.Out != nil {
		text += "\n            promised to " + join("/", r.Out.To.Connector, r.Out.To.ChannelID, r.Out.To.UserID) + "  " + r.Out.ID
	}
	return text
}

func arrived(r *record.Delivery) string {
	part := fmt.Sprintf("part %d of %d", r.Part+1, max(r.Parts, 1))
	again := ""
	if r.Retry {
		again = "a repeated try"
	}
	switch {
	case r.Error != "" && r.Final:
		return join("  ", "delivery  given up", part, r.Error, again)
	case r.Error != "":
		return join("  ", "delivery  failed, will be tried again", part, r.Error, again)
	}
	return join("  ", "delivery  arrived", part, "as "+cmp.Or(r.RemoteID, "(no id)"), again)
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
