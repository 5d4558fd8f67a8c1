package terminal

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/markdown"
)

// A chooser offers what there is to choose from: models, skills, places to go back
// to. Letters that are typed leave what has them.
type chooser struct {
	title   string
	verb    string // what Enter does, for the help line
	options []option
	query   string
	at      int
}

// An option is one line of a chooser.
type option struct {
	group string // the head that it stands under; "": none
	sign  string // one or two columns before the name
	name  string
	about string
	more  string                 // details of the option under the cursor
	take  func(m *Model) tea.Cmd // Enter
}

// chooserRead is a chooser whose options have come.
type chooserRead struct{ chooser *chooser }

// maxOffered is how many options are shown at once.
const maxOffered = 14

// found are the options that the query leaves, the best first.
func (c *chooser) found() []option {
	if c.query == "" {
		return c.options
	}
	scores := map[int]int{}
	var hits []int
	for i, o := range c.options {
		best := fuzzy(c.query, o.name)
		if s := fuzzy(c.query, o.about); best < 0 && s >= 0 && s < 6 { // letters far apart in a sentence say nothing
			best = s + 10
		}
		if best >= 0 {
			scores[i], hits = best, append(hits, i)
		}
	}
	slices.SortStableFunc(hits, func(a, b int) int { return scores[a] - scores[b] })
	list := make([]option, len(hits))
	for k, i := range hits {
		list[k] = c.options[i]
		list[k].group = "" // heads say nothing once they are out of order
	}

	return list
}

func (c *chooser) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	list := c.found()
	switch k.String() {
	case "esc":
		return true, nil
	case "up", "ctrl+k", "shift+tab":
		c.at--
	case "down", "ctrl+n", "tab":
		c.at++
	case "pgup":
		c.at -= maxOffered
	case "pgdown":
		c.at += maxOffered
	case "enter":
		if len(list) == 0 {
			return false, nil
		}
		return true, list[min(c.at, len(list)-1)].take(m)
	case "backspace":
		if r := []rune(c.query); len(r) > 0 {
			c.query = string(r[:len(r)-1])
		}
	default:
		if k.Text != "" {
			c.query, c.at = c.query+k.Text, 0
		}
	}
	c.at = max(0, min(c.at, len(list)-1))
	return false, nil
}

func (c *chooser) help(*Model) string {
	return "↑↓ choose · Enter " + c.verb + " · letters find · Esc closes"
}

func (c *chooser) lines(m *Model, width, height int) []string {
	t := m.screen.theme
	list := c.found()
	head := " " + t.Bold.Render(c.title)
	if c.query != "" {
		head += t.Accent.Bold(true).Render("  find: ") + c.query + "▏"
	}
	out := []string{head}
	if len(list) == 0 {
		return append(out, t.Dim.Render("   nothing has these letters"))
	}
	more := c.about(list[c.at], width, max(1, height/3))
	rows, at := c.rows(m, list, width)
	n := min(maxOffered, height-1-len(more))
	first := max(0, min(at-n/2, len(rows)-n))
	out = append(out, rows[first:min(len(rows), first+n)]...)
	return append(out, styleAll(t.Dim, more)...)
}

// rows are the options with their heads, and which of the rows is under the cursor.
func (c *chooser) rows(m *Model, list []option, width int) (rows []string, at int) {
	t := m.screen.theme
	name := 8
	for _, o := range list {
		name = max(name, ansi.StringWidth(o.name))
	}
	name = min(name, max(12, width*2/5))
	for i, o := range list {
		if o.group != "" && (i == 0 || list[i-1].group != o.group) {
			rows = append(rows, " "+t.Bold.Render(o.group))
		}
		line := cell(o.sign, 2) + " " + cell(o.name, name) + "  "
		about := cellMax(o.about, max(1, width-name-9))
		if i == c.at {
			at = len(rows)
			rows = append(rows, t.Selected.Render(cell(" ▌ "+line+about, width)))
			continue
		}
		rows = append(rows, "   "+line+t.Dim.Render(about))
	}

	return rows, at
}

// about returns the details of the option under the cursor.
func (c *chooser) about(o option, width, height int) []string {
	if o.more == "" {
		return nil
	}
	lines := []string{""}
	for _, l := range strings.Split(lipgloss.Wrap(markdown.Clean(o.more), max(10, width-6), ""), "\n") {
		lines = append(lines, "   "+l)
	}

	return lines[:min(len(lines), height+1)]
}

func styleAll(s lipgloss.Style, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = s.Render(l)
	}

	return out
}
