package terminal

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/event"
)

const (
	// sideFrom is from how many columns on a conversation has a pane beside it.
	sideFrom = 140
	// sideWidth is how wide the pane is, with the line before it.
	sideWidth = 42
	// sideAsks is how many requests of the agent are listed.
	sideAsks = 3
)

// talkWidth is how wide a conversation is.
func (s *screen) talkWidth() int {
	if s.width < sideFrom {
		return s.width
	}
	return s.width - sideWidth
}

// A side is the pane beside a wide conversation: the agent that is shown, and all agents. It is
// drawn from what is known anyway and asks the daemon for nothing.
type side struct {
	world  *world
	screen *screen
	shown  string // agent
	rows   []sideRow
}

// A sideRow is a line of the pane. A click on one with an agent opens that agent.
type sideRow struct{ text, agent string }

// sideOf is the pane in a height.
func sideOf(m *Model, height int) []sideRow {
	s := &side{world: m.world, screen: &m.screen, shown: m.talk.agents.shown}
	s.about(m.talk.agents.current())
	s.add("")
	s.agents(height - len(s.rows))
	for len(s.rows) < height {
		s.add("")
	}

	return s.rows[:height]
}

// besideTalk puts the pane beside the lines of a conversation.
func besideTalk(m *Model, lines []string) []string {
	width, bar := m.screen.talkWidth(), m.screen.theme.Rule.Render("│")
	out := make([]string, len(lines))
	for i, r := range sideOf(m, len(lines)) {
		out[i] = cell(lines[i], width) + bar + r.text
	}

	return out
}

func (s *side) add(text string) {
	s.rows = append(s.rows, sideRow{text: cellMax(" "+text, sideWidth-1)})
}

// fact adds a name and what is known of it; nothing, if nothing is.
func (s *side) fact(name, text string, style lipgloss.Style) {
	if text != "" {
		s.add(s.screen.theme.Dim.Render(cell(name, 9)) + style.Render(cellMax(text, sideWidth-11)))
	}
}

// about is the agent that is shown.
func (s *side) about(c *conversation) {
	t, plain := s.screen.theme, lipgloss.NewStyle()
	a := s.world.get(s.shown)
	if a == nil {
		s.add(t.Bold.Render("your agent"))
		s.add(t.Dim.Render("created by your first message"))
		return
	}
	s.add(t.Bold.Render(a.Handle+" "+title(a)) + t.Dim.Render("  "+a.Type))
	_, style := s.screen.mark(a)
	state := s.world.stateText(a)
	if a.asks {
		state = "asks you" // what, is said below
	}
	if !a.since.IsZero() && a.rank() == working {
		state = transcript.Elapsed(s.screen.now.Sub(a.since)) + " " + state
	}
	s.fact("state", state, style)
	s.fact("model", markdown.OneLine(a.Model, sideWidth), plain)
	s.fact("context", contextOf(c.text.Usage().Context, a), s.screen.fullness(a))
	s.fact("cost", money(a.Cost), plain)
	s.fact("budget", budgetOf(a), plain)
	if a.Queued > 0 && a.OldestAt != nil {
		s.fact("queue", fmt.Sprintf("%d waiting, the oldest %s", a.Queued, s.screen.age(a.OldestAt)), plain)
	}
	s.asks(a)
}

// contextOf is how full the context is, and of how much: of the newest answer, else as far as
// the daemon knows.
func contextOf(tokens int64, a *agent) string {
	if tokens == 0 {
		tokens = a.Context
	}
	p := percent(tokens, a.Window)
	if p == "" {
		return thousands(tokens)
	}

	return p + " of " + thousands(a.Window)
}

// budgetOf is what an agent may cost, and how much of it is used up.
func budgetOf(a *agent) string {
	if a.Budget <= 0 {
		return "no limit"
	}
	return fmt.Sprintf("%.0f%% of $%.2f", 100*a.Cost/a.Budget, a.Budget)
}

// asks are the requests of the agent that is shown.
func (s *side) asks(a *agent) {
	t, n := s.screen.theme, 0
	for _, ask := range s.world.asks {
		if ask.AgentID != a.ID {
			continue
		}
		if n++; n <= sideAsks {
			s.fact("asks", askLine(ask), t.Warn)
		}
	}
	switch {
	case n > sideAsks:
		s.fact("", fmt.Sprintf("and %d more · Ctrl+Y answers", n-sideAsks), t.Dim)
	case n > 0:
		s.fact("", "Ctrl+Y answers", t.Dim)
	}
}

// agents are all agents in the order in which they need a user, the one that is shown among
// them, in at most height lines.
func (s *side) agents(height int) {
	t := s.screen.theme
	groups := map[rank][]*agent{}
	n := 0
	for _, a := range s.world.order {
		if r := a.rank(); r != ended || a.ID == s.shown {
			groups[r] = append(groups[r], a)
			n++
		}
	}
	if n == 0 || height < 3 {
		return
	}
	s.add(t.Bold.Render(count(n, "agent")) + t.Dim.Render(" · Ctrl+G all"))
	height -= 2 // this line, and the one that says how many are not here
	left, here := n, false
	for r := needsYou; r <= ended; r++ {
		for _, a := range groups[r] {
			room := height
			if here = here || a.ID == s.shown; !here && s.world.get(s.shown) != nil {
				room-- // the last place is for the one that is shown
			}
			if room < 1 {
				continue
			}
			height -= s.agent(a, room)
			left--
		}
	}
	if left > 0 {
		s.add(t.Dim.Render(fmt.Sprintf("… and %d more", left)))
	}
}

// agent adds one agent: how it stands, its name, what waits for it and what it cost; where
// there is room, what it is doing. It returns how many lines that took.
func (s *side) agent(a *agent, room int) int {
	t := s.screen.theme
	sign, style := s.screen.mark(a)
	queued := ""
	if a.Queued > 0 {
		queued = fmt.Sprintf("⧗%d", a.Queued)
	}
	const cost, waits = 9, 5
	name := cell(a.Handle+" "+title(a), sideWidth-5-cost-waits)
	if a.ID == s.shown {
		name = t.Selected.Render(name)
	}
	name += t.Accent.Render(right(queued, waits)) + t.Dim.Render(right(money(a.Cost), cost))
	s.rows = append(s.rows, sideRow{" " + style.Render(sign) + " " + name, a.ID})
	if a.ID == s.shown || a.rank() > working || a.State == event.Queued || room < 2 {
		return 1
	}
	doing := ansi.Truncate(s.world.stateText(a), sideWidth-6, "…")
	s.rows = append(s.rows, sideRow{strings.Repeat(" ", 3) + t.Dim.Render(doing), a.ID})
	return 2
}
