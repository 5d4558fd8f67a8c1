package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/markdown"
	"daycare/engine/control"
	"daycare/engine/event"
)

// A sub is what is known of the agent that a call started: from events while it
// works, and from the list of agents after a restart.
type sub struct {
	agent string
	steps []step
	calls int
	used  int64 // tokens
	cost  float64
	over  bool
}

// A step is one call that a sub-agent made.
type step struct{ id, name, subject, status string }

// SubAgentIcon stands for sub-agents without an icon of their own.
const SubAgentIcon = "⚙"

// A Child is the agent that a call started, as the list of agents has it.
type Child struct {
	ID     string
	Handle string
	Icon   string // of its definition, two columns wide; "": SubAgentIcon
	Doing  string // "" when it has nothing to do
}

// subEvent is of sub_agent_*.
type subEvent struct {
	Call   string    `json:"toolCallId"`
	Agent  string    `json:"subAgentId"`
	Event  *subInner `json:"event"`
	Result *subEnd   `json:"result"`
}

// subInner is an event of the sub-agent itself, with the members of its tool calls.
type subInner struct {
	Type event.Type `json:"type"`
	event.Tool
}

type subEnd struct {
	ToolCalls int      `json:"toolCallCount"`
	Usage     subUsage `json:"usage"`
	Cost      float64  `json:"cost"`
}

// subUsage is read in both spellings; daycare writes the short one.
type subUsage struct {
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

func (u subUsage) total() int64 {
	return cmp.Or(u.Input, u.InputTokens) + cmp.Or(u.Output, u.OutputTokens)
}

// subAgent takes a sub_agent_* event into the card of the call.
func (cs cards) subAgent(e control.RawEvent) {
	var body subEvent
	if e.Decode(&body) != nil {
		return
	}
	b, ok := cs[body.Call]
	if !ok {
		return
	}
	s := b.tool.sub
	if s == nil {
		s = &sub{agent: body.Agent}
		b.tool.sub = s
	}
	switch {
	case body.Event != nil:
		s.step(*body.Event)
	case body.Result != nil:
		r := body.Result
		s.over, s.calls, s.used, s.cost = true, r.ToolCalls, r.Usage.total(), r.Cost
	}
	b.touch()
}

func (s *sub) step(e subInner) {
	switch e.Type {
	case event.ToolStarted:
		s.calls++
		s.steps = append(s.steps, step{e.Call, e.Name, Subject(e.Arguments), ""})
	case event.ToolFinished:
		for i := range s.steps {
			if s.steps[i].id == e.Call {
				s.steps[i].status = e.Status
			}
		}
	}
}

// child is the agent that the block's call started, if it did.
func (b *block) child(f Frame) (Child, bool) {
	if b.kind != card || f.Child == nil {
		return Child{}, false
	}
	c, ok := f.Child(b.tool.ID)
	if !ok && b.tool.sub != nil {
		c, ok = Child{ID: b.tool.sub.agent}, true
	}

	return c, ok
}

// ChosenChild is the agent that the call under the cursor started.
func (v *View) ChosenChild(f Frame) (id string, ok bool) {
	if v.chosen == nil {
		return "", false
	}
	c, ok := v.chosen.child(f)
	return c.ID, ok
}

// subLine is a sub-agent on one line: name, status, elapsed, calls, tokens.
func (b *block) subLine(f Frame, c Child, width int) string {
	t, call := f.Theme, b.tool
	mark, status := t.Accent.Render("●"), "running"
	var facts []string
	switch {
	case call.status == "" && call.sub != nil && call.sub.over:
		mark, status = t.Good.Render("✓"), "done"
	case call.status == "":
		facts = append(facts, Elapsed(f.Now.Sub(call.began)))
	case call.status == "ok" && c.Doing != "":
		status = "goes on: " + markdown.OneLine(c.Doing, 40)
	case call.status == "ok":
		mark, status = t.Good.Render("✓"), "done"
	default:
		mark, status = t.Bad.Render("✗"), call.status
	}
	if took := brief(call.ms); took != "" {
		facts = append(facts, took)
	}
	if s := call.sub; s != nil {
		facts = append(facts, counted(s.calls, "call"))
		if s.used > 0 {
			facts = append(facts, fmt.Sprintf("%.1fk tokens", float64(s.used)/1000))
		}
		if s.cost > 0 {
			facts = append(facts, fmt.Sprintf("$%.4f", s.cost))
		}
	}
	head := mark + " " + t.Bold.Render(cmp.Or(c.Icon, SubAgentIcon)+" "+markdown.OneLine(strings.TrimSpace(c.Handle+" "+call.Name), 48))
	tail := t.Dim.Render("  " + status + " · " + strings.Join(facts, " · "))
	if len(facts) == 0 {
		tail = t.Dim.Render("  " + status)
	}
	room := width - ansi.StringWidth(head) - ansi.StringWidth(tail) - 1
	return head + " " + markdown.OneLine(Subject(call.Arguments), max(room, 8)) + tail
}

// shownSteps is how many of a sub-agent's newest steps are shown.
const shownSteps = 12

// stepLines are what a sub-agent did, newest last.
func (b *block) stepLines(f Frame, width int) []string {
	t, s := f.Theme, b.tool.sub
	if s == nil {
		return nil
	}
	var lines []string
	if n := len(s.steps) - shownSteps; n > 0 {
		lines = append(lines, t.Dim.Render(fmt.Sprintf("… %d steps before", n)))
	}
	for _, x := range s.steps[max(0, len(s.steps)-shownSteps):] {
		mark := t.Accent.Render("●")
		switch x.status {
		case "":
		case "ok":
			mark = t.Good.Render("✓")
		default:
			mark = t.Bad.Render("✗")
		}
		lines = append(lines, mark+" "+x.name+" "+t.Dim.Render(markdown.OneLine(x.subject, max(8, width-len(x.name)-8))))
	}

	return lines
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
