package terminal

import (
	"fmt"
	"os"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/theme"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/event"
)

// A screen is what everything is drawn for.
type screen struct {
	width, height int
	terminal      theme.Terminal
	theme         *theme.Theme
	render        *markdown.Renderer
	now           time.Time
	mouse         bool
	notice
}

// dress chooses the colours for the terminal.
func (s *screen) dress() {
	s.theme = theme.New(s.terminal)
	s.render = markdown.New(s.theme)
}

// lightByEnvironment reports that COLORFGBG, as some terminals set it, tells of a
// light background: white or light grey. It counts until the terminal has answered
// itself, which some never do.
func lightByEnvironment() bool {
	fields := strings.Split(os.Getenv("COLORFGBG"), ";")
	background := fields[len(fields)-1]
	return background == "7" || background == "15"
}

// rule is a line with a title in it.
func (s *screen) rule(title string, width int) string {
	t := s.theme
	if title == "" {
		return t.Rule.Render(strings.Repeat("─", width))
	}
	title = ansi.Truncate(title, width-6, "…")
	return t.Rule.Render("── ") + title + t.Rule.Render(" "+strings.Repeat("─", max(0, width-4-ansi.StringWidth(title))))
}

// mark is an agent's state as one sign, with its style.
func (s *screen) mark(a *agent) (string, lipgloss.Style) {
	t := s.theme
	switch {
	case a == nil:
		return " ", t.Dim
	case a.asks || a.State == event.WaitingPermission:
		return "?", t.Warn
	}
	switch a.rank() {
	case needsYou:
		return "!", t.Bad
	case working:
		if a.State == event.Retrying {
			return "↻", t.Warn
		}
		if a.State == event.Queued {
			return "○", t.Accent
		}
		return "●", t.Accent
	case unread:
		return "✉", t.Good
	case ended:
		return "✝", t.Dim
	}

	return "·", t.Dim
}

func (s *screen) inboxText(a *agent) string {
	if a.Queued == 0 {
		return ""
	}
	if a.OldestAt == nil {
		return fmt.Sprint(a.Queued)
	}

	return fmt.Sprintf("%d %s", a.Queued, s.age(a.OldestAt))
}

// age is how long ago something was, short.
func (s *screen) age(at *time.Time) string {
	if at == nil {
		return "never"
	}
	d := s.now.Sub(*at)
	switch {
	case d < 5*time.Second:
		return "now"
	case d < time.Hour && d >= time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour && d >= time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}

	return transcript.Elapsed(d)
}

// percent is how full the context is, "" where that is not known.
func percent(tokens, window int64) string {
	if tokens <= 0 || window <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", min(100, max(1, tokens*100/window)))
}

// fullSoon is from how many percent on a context is about to be shortened.
const fullSoon = 80

func (s *screen) fullness(a *agent) lipgloss.Style {
	if a.Window > 0 && a.Context*100/a.Window >= fullSoon {
		return s.theme.Warn
	}
	return s.theme.Dim
}

func money(usd float64) string {
	switch {
	case usd == 0:
		return ""
	case usd < 10:
		return fmt.Sprintf("$%.4f", usd)
	}

	return fmt.Sprintf("$%.2f", usd)
}

// cell is text in a column: cut or padded to exactly width.
func cell(text string, width int) string {
	if width <= 0 {
		return ""
	}
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

func cellMax(text string, n int) string { return ansi.Truncate(text, n, "…") }

func right(text string, width int) string {
	return strings.Repeat(" ", max(0, width-ansi.StringWidth(text))) + ansi.Truncate(text, width, "…")
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// fill makes it exactly height lines.
func fill(lines []string, height int) []string {
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines[:height]
}
