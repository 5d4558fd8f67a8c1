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
	"daycare/engine/message"
)

// How a conversation looks, top to bottom: the text, who works for this agent, what
// waits, what it is doing, and the line to type in.

// foot is everything below the text.
type foot struct {
	lines  []string
	cursor *tea.Cursor // in the foot
}

func (m *Model) talkLines(width, height int) ([]string, *tea.Cursor) {
	f := m.foot(width)
	f.lines = f.lines[max(0, len(f.lines)-height+3):] // some text stays, whatever waits
	lines := m.textLines(width, height-len(f.lines))
	if f.cursor != nil {
		f.cursor.Y += len(lines)
	}
	return append(lines, f.lines...), f.cursor
}

// frame is what the text is set for.
func (m *Model) frame() transcript.Frame {
	return transcript.Frame{Renderer: m.screen.render, Width: m.screen.width, Height: m.bodyHeight(), Now: m.screen.now,
		Names: m.world.sender, Child: m.childOf}
}

// childOf is the agent that a call of the one shown has started: its id follows
// from the call's.
func (m *Model) childOf(call string) (transcript.Child, bool) {
	id, known := m.talk.children[call]
	if !known {
		id = address.ChildID(m.talk.shown, call)
		m.talk.children[call] = id
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
func (m *Model) bodyHeight() int {
	height := m.screen.height - 3
	return max(3, height-len(m.foot(m.screen.width).lines))
}

func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}

// textTop is the row of the screen where the text begins.
func (m *Model) textTop() int { return 1 + m.space() }

// space is how many rows are empty above a short text.
func (m *Model) space() int {
	return max(0, m.bodyHeight()-len(m.talk.current().text.Lines(m.frame())))
}

// textLines are the conversation, at the bottom of its area like in any chat.
func (m *Model) textLines(width, height int) []string {
	c := m.talk.current()
	if c.text.Empty() {
		return fill(m.welcome(c, width), height)
	}
	f := m.frame()
	f.Width, f.Height = width, height
	lines := c.text.Lines(f)
	out := make([]string, height-len(lines), height)
	out = append(out, lines...)
	if !c.text.Following() {
		t := m.screen.theme
		more := t.Selected.Render(" ↓ more below · Esc goes to the end ")
		out[height-1] = strings.Repeat(" ", max(0, width-ansi.StringWidth(more)-2)) + more
	}
	return out
}

// welcome is what an empty conversation says.
func (m *Model) welcome(c *conversation, width int) []string {
	t := m.screen.theme
	if c.agent != "" && !c.text.Loaded() {
		return []string{"", t.Dim.Render("  reading…")}
	}
	first := "Write to your agent below and press Enter."
	if c.agent != "" {
		first = "Nothing was said here yet. Write below and press Enter."
	}
	text := []string{""}
	say := func(style lipgloss.Style, words string) {
		lines := strings.Split(lipgloss.Wrap(words, max(10, width-4), ""), "\n")
		text = append(text, styleAll(style, indented(lines))...)
	}
	say(t.Bold, first)
	text = append(text, "")
	plain := lipgloss.NewStyle()
	say(plain, "It works in "+markdown.OneLine(m.opts.Workspace, 2*width)+", and goes on when you leave.")
	say(plain, "What it may not do by itself, it asks you.")
	text = append(text, "")
	say(t.Dim, "/spawn starts another agent beside it. Ctrl+G shows all agents, ? every key.")
	for _, p := range m.world.status.Providers {
		if p.Type == "scripted" && p.ID == p.Type {
			text = append(text, "")
			say(t.Warn, "No model is set up: the built-in offline one answers, and it knows little.")
			say(t.Dim, "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or providers in .daycare/settings.yaml, and start daycare again.")
		}
		break
	}
	return text
}

func (m *Model) foot(width int) foot {
	var f foot
	c := m.talk.current()
	f.lines = append(f.lines, m.family(c, width)...)
	f.lines = append(f.lines, m.queueLines(c, width)...)
	f.lines = append(f.lines, m.doing(c, width)...)
	f.lines = append(f.lines, m.talk.input.menu.lines(m, width)...)
	f.lines = append(f.lines, m.screen.rule(m.whom(c), width))
	in := m.talk.input.lines(width)
	if cur := m.talk.input.area.Cursor(); cur != nil {
		cur.Y += len(f.lines)
		f.cursor = cur
	}
	f.lines = append(f.lines, in...)
	return f
}

// whom says who gets what is typed.
func (m *Model) whom(c *conversation) string {
	if c.agent == "" {
		return "to your agent"
	}
	return "to " + m.world.name(c.agent)
}

// maxFamily is how many of an agent's agents are listed.
const maxFamily = 4

// family are the agents that work for this one.
func (m *Model) family(c *conversation, width int) []string {
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
	lines := []string{"", t.Bold.Render(" Running "+count(len(busy)+done, "agent")) +
		t.Dim.Render(fmt.Sprintf(" (%d done, %d running) · Ctrl+↓ goes there", done, len(busy)))}
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

// asked reports whether the agent waits for an answer of the person.
func (m *Model) asked(c *conversation) bool {
	a := m.world.get(c.agent)
	return a != nil && a.asks
}

// queueLines are what waits, shortly: the newest of it, and how much there is.
func (m *Model) queueLines(c *conversation, width int) []string {
	n := len(c.inbox)
	if n == 0 {
		return nil
	}
	t := m.screen.theme
	newest := c.inbox[n-1]
	how := ""
	if m.busy(c) || newest.Type != string(message.Text) {
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
func (m *Model) doing(c *conversation, width int) []string {
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
func (m *Model) talkStatus() string {
	c := m.talk.current()
	a := m.world.get(c.agent)
	if a == nil {
		return " your agent · made by your first message"
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
func (m *Model) talkHelp() string {
	c := m.talk.current()
	in := &m.talk.input
	switch {
	case in.menu.open():
		return "Tab completes · ↑↓ choose · Esc closes"
	case c.text.Chosen():
		if _, ok := c.text.ChosenChild(m.frame()); ok {
			return "Enter opens its steps · Ctrl+↓ its whole conversation · Shift+↑↓ moves · Esc back to the text"
		}
		return "Enter opens or closes · Shift+↑↓ moves · Ctrl+T all · Esc back to the text"
	case !in.empty() && m.busy(c):
		return enterHelp(m.world.queueOf(c.agent)) + " · Alt+Enter new line · Ctrl+C clears"
	case !in.empty():
		return "Enter sends · Alt+Enter new line · Ctrl+O editor · Ctrl+C clears"
	case m.asked(c):
		return "Ctrl+Y answers what it asks · Ctrl+←→ other agents · Ctrl+G all · ? help"
	case m.busy(c):
		return "Esc stops · Ctrl+←→ other agents · Ctrl+G all · Shift+↑ opens cards · ? help"
	}
	return "/ commands · @ files · ! shell · Ctrl+←→ other agents · Ctrl+G all · Ctrl+P finds · ? help"
}
