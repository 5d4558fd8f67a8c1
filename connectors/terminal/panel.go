package terminal

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/markdown"
)

// A panel shows lines to read.
type panel struct {
	title string
	text  []string
	reading
}

// panelRead is a panel that is ready to be shown.
type panelRead struct {
	title string
	lines []string
}

// reading is which line of something to read is at the top; any key that does not scroll closes it.
type reading struct{ top int }

func (p *reading) key(_ *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	switch k.String() {
	case "up", "k":
		p.top--
	case "down", "j":
		p.top++
	case "pgup":
		p.top -= 10
	case "pgdown", "space":
		p.top += 10
	default:
		return true, nil
	}

	return false, nil
}

func (p *panel) help(*Model) string { return "↑↓ scroll · any other key closes" }

func (p *panel) lines(m *Model, width, height int) []string {
	out := []string{" " + m.screen.theme.Bold.Render(p.title)}
	p.top = max(0, min(p.top, len(p.text)-height+1))
	for _, l := range p.text[p.top:min(len(p.text), p.top+height-1)] {
		out = append(out, cellMax("   "+oneRow.Replace(markdown.Clean(l)), width))
	}

	return out
}

// oneRow keeps a line in its row and its columns where they are.
var oneRow = strings.NewReplacer("\n", " ", "\t", " ")

// A confirm asks before work is lost.
type confirm struct {
	question string
	yes      tea.Cmd
}

func (c *confirm) key(_ *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if k.String() == "y" {
		return true, c.yes
	}
	return true, nil
}

func (c *confirm) help(*Model) string { return "y yes · any other key: no" }

func (c *confirm) lines(m *Model, width, _ int) []string {
	return []string{"", m.screen.theme.Warn.Render(cellMax(" "+markdown.OneLine(c.question, 200), width)),
		"   [y] yes   any other key: no", ""}
}
