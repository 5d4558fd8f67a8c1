package permission

import (
	"slices"
	"strings"

	"daycare/engine/event"
	"daycare/engine/message"
)

// A Script is a file that a command names and that the agent could change: an approval
// of the command is bound to what it contained when it was asked for.
type Script = message.Script

// Unreadable is the SHA256 of a script that cannot be read completely. No content has this hash, so
// an approval never applies to another run.
const Unreadable = "unreadable"

// Shown returns exactly what would be done, with every invisible character replaced by its name.
func (r Request) Shown() string { return Visible(r.Detail.String()) }

// Facts returns what decides about the effect of a request beside its own text: where it runs, in
// which sandbox, which program with which content, and what the turn has read before. Each value is
// one line.
func (r Request) Facts() (facts []event.Fact) {
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, event.Fact{Name: name, Value: VisibleLine(value)})
		}
	}
	for _, tag := range slices.Concat([]string{r.Tag}, r.Also) {
		add("permission", tag)
	}
	add("folder", r.Workdir)
	switch r.Sandbox {
	case "":
	case NoSandbox:
		add("sandbox", "none: the command can do whatever you can do")
	default:
		add("sandbox", r.Sandbox)
	}
	for _, p := range r.Programs {
		add("runs", p)
	}
	for _, s := range r.Scripts {
		add("script", s.Path+", sha256 "+s.SHA256)
	}
	for _, s := range r.Sources {
		add("untrusted", "this turn read "+s)
	}
	add("reason", r.Reason)
	return facts
}

// Card returns the whole request as every user interface shows it: what would be done, indented so
// that no line of it can be mistaken for a fact, then the facts.
func (r Request) Card() string {
	var b strings.Builder
	if text := strings.TrimRight(r.Shown(), "\n"); text != "" {
		b.WriteString("    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n")
	}
	for _, f := range r.Facts() {
		b.WriteString(f.Name + strings.Repeat(" ", max(1, 12-len(f.Name))) + f.Value + "\n")
	}

	return b.String()
}

// Choices returns the possible answers to a request, each with its meaning. Prefix is among them
// only if its rule covers exactly this request.
func (r Request) Choices() []event.Choice {
	if b, ok := BudgetOf(r.Tag); ok {
		return b.choices()
	}
	list := []event.Choice{{Decision: string(Once), Text: "Once"}, {Decision: string(Always), Text: r.always()}}
	if r.Prefix != "" {
		list = append(list, event.Choice{Decision: string(Prefix), Text: r.rule()})
	}

	return append(list, event.Choice{Decision: string(Deny), Text: "Deny"})
}

// rule spells what the answer Prefix allows.
func (r Request) rule() string {
	if tool, ok := strings.CutPrefix(r.Prefix, mcpKind+":"); ok {
		return "Always `" + VisibleLine(tool) + "`, whatever its arguments"
	}
	return "Always commands that begin with `" + VisibleLine(strings.TrimPrefix(r.Prefix, "@exec:")) + "`"
}

// Ask returns a pending request as the API and every user interface show it.
func (p Pending) Ask() event.Ask {
	r := p.Request
	a := event.Ask{Token: p.Token, AgentID: p.Agent, Tag: r.Tag, Reason: r.Reason, Request: r.Detail.String(),
		Shown: r.Shown(), Facts: r.Facts(), Card: r.Card(), Choices: r.Choices(), Folder: r.Workdir, Sandbox: r.Sandbox,
		Programs: r.Programs, Prefix: r.Prefix, Untrusted: r.Sources, AskedAt: p.AskedAt, ExpiresAt: p.ExpiresAt,
		Kind: r.Detail.kind(), SHA256: p.SHA256, Unseen: Unseen(r.Detail.String())}
	if p.Decision != "" {
		a.Decision, a.DecidedBy, a.DecidedAt, a.Choices = string(p.Decision), p.DecidedBy, &p.DecidedAt, nil
	}

	return a
}

// kind is what String shows.
func (d Detail) kind() string {
	switch {
	case d.Command != "":
		return "command"
	case d.Diff != "":
		return "diff"
	case d.Path != "":
		return "path"
	case d.Host != "":
		return "host"
	case d.Budget != "":
		return "budget"
	case d.Call != "":
		return "call"
	}

	return ""
}

// always spells what the answer "always" gives.
func (r Request) always() string {
	switch {
	case r.general():
		return "Always " + VisibleLine(r.Tag)
	case r.Detail.Command != "":
		return "Always this exact command"
	case r.Detail.Call != "":
		return "Always this exact call"
	}

	return "Always exactly this"
}
