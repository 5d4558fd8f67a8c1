package terminal

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/markdown"
)

// The least that can be drawn on.
const minWidth, minHeight = 40, 10

// View draws everything: the head line, the page with what is open over it, the
// status line and the help line.
func (m *Model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	v.WindowTitle = windowTitle(m)
	if m.screen.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	w, h := m.screen.width, m.screen.height
	if w < minWidth || h < minHeight {
		v.SetContent(fmt.Sprintf("daycare needs %d×%d,\nhere are %d×%d", minWidth, minHeight, w, h))
		return v
	}
	body, cursor := drawBody(m, w, h-3)
	lines := append([]string{drawHead(m, w)}, body...)
	lines = append(lines, drawStatus(m, w), drawHelp(m, w))
	v.SetContent(strings.Join(lines, "\n"))
	v.Cursor = cursor
	return v
}

// drawBody is the page, exactly height lines, with what is open over its lower part.
func drawBody(m *Model, width, height int) ([]string, *tea.Cursor) {
	var lines []string
	var cursor *tea.Cursor
	if m.page == homePage {
		lines = m.home.lines(m, width, height)
	} else {
		lines, cursor = m.talk.lines(m, m.screen.talkWidth(), height)
	}
	lines = fill(lines, height)
	if m.page == talkPage && m.screen.talkWidth() < width {
		lines = besideTalk(m, lines)
	}
	if m.over == nil {
		if cursor != nil {
			cursor.Y++ // the head line
		}
		return lines, cursor
	}
	panel := m.over.lines(m, width, height-1)
	panel = append([]string{m.screen.rule("", width)}, panel...)
	return append(lines[:height-len(panel)], panel...), nil
}

// drawHead is the first line: where we are, and everybody in the ring.
func drawHead(m *Model, width int) string {
	t := m.screen.theme
	left := t.Bold.Render(" daycare ")
	if m.page == homePage {
		where := markdown.OneLine(m.opts.Workspace, width)
		return left + t.Dim.Render(cell(where, max(0, width-9-badgeWidth(m)))) + drawBadges(m)
	}
	ids := m.ring.list(m.world, m.talk.agents.shown)
	room := width - 10 - badgeWidth(m)
	return left + drawTabs(m, ids, room) + drawBadges(m)
}

// drawTabs are the agents of the ring; the one that is shown is always among them.
func drawTabs(m *Model, ids []string, room int) string {
	t := m.screen.theme
	var names []string
	at := 0
	for i, id := range ids {
		a := m.world.get(id)
		sign, style := m.screen.mark(a)
		name := "new"
		if a != nil {
			name = a.Handle + " " + cellMax(title(a), 14)
		}
		if id == m.talk.agents.shown {
			at = i
			names = append(names, t.Selected.Render("["+sign+name+"]"))
			continue
		}
		names = append(names, style.Render(" "+sign)+t.Dim.Render(name+" "))
	}
	from := at
	for used := width1(names, at); from > 0 && used+width1(names, from-1) <= room*2/3; {
		from--
		used += width1(names, from)
	}
	out := strings.Join(names[min(from, len(names)):], "")
	if from > 0 {
		out = t.Dim.Render("‹") + out
	}

	return cell(out, room) + " "
}

func width1(names []string, i int) int {
	if i >= len(names) {
		return 0
	}
	return ansi.StringWidth(names[i])
}

// drawBadges say on every page what waits for the user.
func drawBadges(m *Model) string {
	t := m.screen.theme
	var parts []string
	if n := len(m.world.asks); n > 0 {
		parts = append(parts, t.Warn.Render(fmt.Sprintf("? %d to answer", n)))
	}
	if n := m.world.count(working); n > 0 {
		parts = append(parts, t.Accent.Render(fmt.Sprintf("● %d", n)))
	}
	if n := m.world.count(unread); n > 0 {
		parts = append(parts, t.Good.Render(fmt.Sprintf("✉ %d", n)))
	}
	if !m.conn.up {
		word := "connecting…"
		if m.conn.was {
			word = "disconnected"
		}
		parts = append(parts, t.Bad.Render(word))
	}
	if len(parts) == 0 {
		return ""
	}

	return strings.Join(parts, "  ") + " "
}

func badgeWidth(m *Model) int { return ansi.StringWidth(drawBadges(m)) }

// windowTitle says how many wait for the user, also while the window is not in front.
func windowTitle(m *Model) string {
	if n := len(m.world.asks); n > 0 {
		return fmt.Sprintf("(%d?) daycare", n)
	}
	return "daycare"
}

// drawStatus is what was said last, or how things stand.
func drawStatus(m *Model, width int) string {
	t := m.screen.theme
	if m.screen.flash != "" {
		style, mark := t.Accent, " "
		if m.screen.bad {
			style, mark = t.Bad, " ✗ "
		}
		return style.Render(cell(mark+markdown.OneLine(m.screen.flash, width), width))
	}
	if !m.conn.up && m.conn.was {
		return t.Bad.Render(cell(" daycare does not answer; connecting again. What was sent is safe. Ctrl+R starts it.", width))
	}
	if m.page == homePage {
		return t.Dim.Render(cell(homeStatus(m), width))
	}

	return t.Dim.Render(cell(m.talk.status(m), width))
}

func homeStatus(m *Model) string {
	cost := 0.0
	for _, a := range m.world.order {
		if m.world.get(a.ParentAgentID) == nil { // its cost has that of its agents in it
			cost += a.Cost
		}
	}
	s := fmt.Sprintf(" %s: %d need you, %d at work", count(len(m.world.order), "agent"), m.world.count(needsYou), m.world.count(working))
	if cost > 0 {
		s += " · " + money(cost)
	}
	if m.home.filter != "" || m.home.asking {
		s = " / " + m.home.filter + "▏ " + s
	}

	return s
}

// drawHelp is what can be done here.
func drawHelp(m *Model, width int) string {
	t := m.screen.theme
	text := ""
	switch {
	case m.over != nil:
		text = m.over.help(m)
	case m.page == homePage && m.home.asking:
		text = "type letters of a name, or a command · Enter keeps it · Esc shows all"
		if typed, ok := m.home.typed(m.world); ok {
			word, _, _ := strings.Cut(typed, " ")
			text = "Enter runs " + word + " · Esc shows all"
		}
	case m.page == homePage:
		text = "Enter opens · n new agent · / filter · a answers · x stops · Ctrl+P finds · q leaves · ? help"
	default:
		text = m.talk.help(m)
	}

	return t.Dim.Render(cell(" "+fitting(text, width-1), width))
}

// fitting leaves out parts of a help line, from the end, until it fits; the last
// part, which says where there is more, stays.
func fitting(text string, width int) string {
	parts := strings.Split(text, " · ")
	for len(parts) > 2 && ansi.StringWidth(strings.Join(parts, " · ")) > width {
		parts = append(parts[:len(parts)-2], parts[len(parts)-1])
	}

	return strings.Join(parts, " · ")
}
