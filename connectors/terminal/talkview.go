package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
)

// How a conversation looks, top to bottom: the text, who works for this agent, what
// waits, what it is doing, and the line to type in.

// foot is everything below the text.
type foot struct {
	lines  []string
	cursor *tea.Cursor // in the foot
}

func (p *talk) lines(m *Model, width, height int) ([]string, *tea.Cursor) {
	f := p.foot(m, width)
	f.lines = f.lines[max(0, len(f.lines)-height+3):] // some text stays, whatever waits
	lines := p.textLines(m, width, height-len(f.lines))
	if f.cursor != nil {
		f.cursor.Y += len(lines)
	}

	return append(lines, f.lines...), f.cursor
}

// frame is what the text is set for.
func (p *talk) frame(m *Model) transcript.Frame {
	return transcript.Frame{Renderer: m.screen.render, Width: m.screen.talkWidth(), Height: p.bodyHeight(m), Now: m.screen.now,
		Names: m.world.sender, Child: func(call string) (transcript.Child, bool) { return p.agents.childOf(m, call) }}
}

// childOf is the agent that a call of the one shown has started: its id follows
// from the call's.
func (p *conversations) childOf(m *Model, call string) (transcript.Child, bool) {
	id, known := p.children[call]
	if !known {
		id = address.ChildID(p.shown, call)
		p.children[call] = id
	}
	a := m.world.get(id)
	if a == nil {
		return transcript.Child{}, false
	}
	c := transcript.Child{ID: a.ID, Handle: a.Handle, Icon: m.world.icons[a.Name]}
	if a.rank() <= working {
		c.Doing = m.world.stateText(a)
	}

	return c, true
}

// bodyHeight is how many lines of text can be seen.
func (p *talk) bodyHeight(m *Model) int {
	height := m.screen.height - 3
	return max(3, height-len(p.foot(m, m.screen.talkWidth()).lines))
}

func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}

	return out
}

// textTop is the row of the screen where the text begins.
func (p *talk) textTop(m *Model) int { return 1 + p.space(m) }

// space is how many rows are empty above a short text.
func (p *talk) space(m *Model) int {
	return max(0, p.bodyHeight(m)-len(p.agents.current().text.View.Lines(p.frame(m))))
}

// textLines are the conversation, at the bottom of its area like in any chat.
func (p *talk) textLines(m *Model, width, height int) []string {
	c := p.agents.current()
	if c.text.Empty() {
		return fill(c.welcome(m, width), height)
	}
	f := p.frame(m)
	f.Width, f.Height = width, height
	lines := c.text.View.Lines(f)
	out := make([]string, height-len(lines), height)
	out = append(out, lines...)
	if !c.text.View.Following() {
		t := m.screen.theme
		more := t.Selected.Render(" ↓ more below · Esc goes to the end ")
		out[height-1] = strings.Repeat(" ", max(0, width-ansi.StringWidth(more)-2)) + more
	}

	return out
}

// welcome is what an empty conversation says.
func (c *conversation) welcome(m *Model, width int) []string {
	t := m.screen.theme
	if c.agent != "" && !c.text.Loaded() {
		return []string{"", t.Dim.Render("  reading…")}
	}
	first := "Write to your agent below and press Enter."
	if c.agent != "" {
		first = "No messages yet. Write below and press Enter."
	}
	text := []string{""}
	say := func(style lipgloss.Style, words string) {
		lines := strings.Split(lipgloss.Wrap(words, max(10, width-4), ""), "\n")
		text = append(text, styleAll(style, indented(lines))...)
	}
	say(t.Bold, first)
	text = append(text, "")
	plain := lipgloss.NewStyle()
	say(plain, "It works in "+markdown.OneLine(m.opts.Workspace, 2*width)+", and keeps running when you leave.")
	say(plain, "It asks you before doing anything it has no permission for.")
	text = append(text, "")
	say(t.Dim, "/spawn starts another agent. Ctrl+G shows all agents, ? every key.")
	if event.NoModel(m.world.status.Providers) {
		text = append(text, "")
		say(t.Warn, "No model is set up: the built-in offline model answers, which has few abilities.")
		say(t.Dim, "/setup sets one up here: a service and its key, or your own server.")
	}
	if m.world.missed != "" {
		text = append(text, "")
		say(t.Warn, m.world.missed)
	}

	return text
}

func (p *talk) foot(m *Model, width int) foot {
	var f foot
	c := p.agents.current()
	f.lines = append(f.lines, c.family(m, width)...)
	f.lines = append(f.lines, c.queueLines(m, width)...)
	f.lines = append(f.lines, c.doing(m, width)...)
	f.lines = append(f.lines, p.input.menu.lines(m, width)...)
	f.lines = append(f.lines, m.screen.rule(c.whom(m), width))
	in := p.input.lines(width)
	if cur := p.input.area.Cursor(); cur != nil {
		cur.Y += len(f.lines)
		f.cursor = cur
	}
	f.lines = append(f.lines, in...)
	return f
}

// whom says who gets what is typed.
func (c *conversation) whom(m *Model) string {
	if c.agent == "" {
		return "to your agent"
	}
	return "to " + m.world.name(c.agent)
}

// maxFamily is how many of an agent's agents are listed.
const maxFamily = 4

// family are the agents that work for this one.
func (c *conversation) family(m *Model, width int) []string {
	if c.agent == "" {
		return nil
	}
	children := m.world.children(c.agent)
	var busy []*agent
	done := 0
	for _, a := range children {
		if a.rank() <= working {
			busy = append(busy, a)
		} else if a.rank() != ended {
			done++
		}
	}
	if len(busy) == 0 {
		return nil
	}
	t := m.screen.theme
	head := t.Bold.Render(" Running "+count(len(busy)+done, "agent")) +
		t.Dim.Render(fmt.Sprintf(" (%d done, %d running) · Ctrl+↓ goes there", done, len(busy)))
	lines := []string{"", cellMax(head, width)}
	for i, a := range busy {
		if i == maxFamily {
			lines = append(lines, t.Dim.Render(fmt.Sprintf("    and %d more", len(busy)-i)))
			break
		}
		sign, style := m.screen.mark(a)
		took := ""
		if !a.since.IsZero() {
			took = transcript.Elapsed(m.screen.now.Sub(a.since)) + "  "
		}
		line := "  " + style.Render(sign) + " " + a.Handle + " " + title(a) + t.Dim.Render("  "+took+m.world.stateText(a))
		lines = append(lines, ansi.Truncate(line, width, "…"))
	}

	return lines
}

// asked reports whether the agent waits for an answer of the user.
func (c *conversation) asked(m *Model) bool {
	a := m.world.get(c.agent)
	return a != nil && a.asks
}

// queueLines are what waits, shortly: the newest of it, and how much there is.
func (c *conversation) queueLines(m *Model, width int) []string {
	n := len(c.inbox)
	if n == 0 {
		return nil
	}
	t := m.screen.theme
	newest := c.inbox[n-1]
	how := ""
	if c.busy(m) || newest.Type != string(message.Text) {
		how = " (" + m.world.kindOf(c.agent, newest) + ")"
	}
	text := newest.Text
	head := t.Accent.Render(fmt.Sprintf(" ⧗ %d waiting", n)) + t.Dim.Render(how+": ")
	tail := t.Dim.Render("  Ctrl+Q all")
	if slices.ContainsFunc(c.inbox, takesBack) {
		tail = t.Dim.Render("  Alt+↑ takes back · Ctrl+Q all")
	}
	room := width - ansi.StringWidth(head) - ansi.StringWidth(tail)
	return []string{"", head + markdown.OneLine(text, max(8, room)) + tail}
}

// doing is what the agent is at: its question, its work, its pause.
func (c *conversation) doing(m *Model, width int) []string {
	t := m.screen.theme
	for _, ask := range m.world.asks {
		if ask.AgentID == c.agent {
			more := ""
			if n := len(m.world.asks) - 1; n > 0 {
				more = fmt.Sprintf(" (and %d more)", n)
			}
			head := t.Warn.Render(" ? it asks: ")
			tail := t.Warn.Render("  Ctrl+Y answers" + more)
			room := width - ansi.StringWidth(head) - ansi.StringWidth(tail)
			return []string{"", head + cellMax(askLine(ask), max(8, room)) + tail}
		}
	}
	turn := c.text.Turn()
	a := m.world.get(c.agent)
	if r := turn.Retry; r != nil {
		left := max(0, turn.Until.Sub(m.screen.now)).Round(time.Second)
		what := fmt.Sprintf(" ↻ retry %d/%d in %s: %s", r.N, r.Of, left, markdown.OneLine(r.Reason, width))
		if r.Fallback != "" {
			what = " ↻ trying " + r.Fallback + ": " + markdown.OneLine(r.Reason, width)
		}
		return []string{"", t.Warn.Render(cellMax(what, width))}
	}
	if turn.ID == "" && (a == nil || a.rank() != working) {
		return []string{""}
	}
	word, took := "working", ""
	if a != nil && a.rank() == working {
		word = m.world.stateText(a)
	}
	if !turn.Began.IsZero() {
		took = "  " + transcript.Elapsed(m.screen.now.Sub(turn.Began))
	}

	return []string{"", t.Accent.Render(" ● "+markdown.OneLine(word, width-30)) + t.Dim.Render(took+"  Esc stops")}
}

// talkStatus is the status line of a conversation.
func (p *talk) status(m *Model) string {
	c := p.agents.current()
	a := m.world.get(c.agent)
	if a == nil {
		return " your agent · created by your first message"
	}
	u := c.text.Usage()
	parts := []string{" " + a.Handle + " " + title(a), a.Model, inContext(u.Context, a.Window), money(a.Cost)}
	if a.Cost == 0 {
		parts = parts[:3]
	}
	if began := c.text.Turn().Began; !began.IsZero() && c.text.Turn().ID != "" {
		parts = append(parts, transcript.Elapsed(m.screen.now.Sub(began)))
	}
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}

	return strings.Join(some, " · ")
}

// inContext is how full the context is: in percent where its room is known.
func inContext(tokens, window int64) string {
	if p := percent(tokens, window); p != "" {
		return "context " + p
	}
	return thousands(tokens)
}

// thousands is the size of the context, "" if it is not known.
func thousands(tokens int64) string {
	switch {
	case tokens == 0:
		return ""
	case tokens < 1000:
		return fmt.Sprintf("%d tokens", tokens)
	}

	return strings.Replace(fmt.Sprintf("%.1fk tokens", float64(tokens)/1000), ".0k", "k", 1)
}

// talkHelp is the help line of a conversation: what the next key could be.
func (p *talk) help(m *Model) string {
	c := p.agents.current()
	in := &p.input
	switch {
	case in.menu.open():
		return "Tab completes · ↑↓ choose · Esc closes"
	case c.text.View.Chosen():
		if _, ok := c.text.View.ChosenChild(p.frame(m)); ok {
			return "Enter opens its steps · Ctrl+↓ its whole conversation · Shift+↑↓ moves · Esc back to the text"
		}
		return "Enter opens or closes · Shift+↑↓ moves · Ctrl+T all · Esc back to the text"
	case !in.empty() && c.busy(m):
		return enterHelp(m.world.queueOf(c.agent)) + " · Alt+Enter new line · Ctrl+C clears"
	case !in.empty():
		return in.help()
	case c.asked(m):
		return "Ctrl+Y answers what it asks · Ctrl+←→ other agents · Ctrl+G all · ? help"
	case c.busy(m):
		return "Esc stops · Ctrl+←→ other agents · Ctrl+G all · Shift+↑ opens cards · ? help"
	}

	return "/ commands · @ files · ! shell · Ctrl+←→ other agents · Ctrl+G all · Ctrl+P finds · ? help"
}
