package markdown

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/highlight"
	"daycare/connectors/terminal/theme"
)

// code sets a code block. Long lines are broken, not cut: a user may want to copy
// all of it.
func (s setter) code(source, language string, width int) []string {
	return prefix(s.bar(), s.Code(source, language, width-2))
}

// bar stands before each line of a code block.
func (r *Renderer) bar() string { return r.Theme.Rule.Render("│ ") }

// Code sets source text as it is, in the colours of its language.
func (r *Renderer) Code(source, language string, width int) []string {
	c := r.coder(language)
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(source, "\n"), "\n") {
		lines = append(lines, c.line(line, width)...)
	}

	return lines
}

// IsDiff reports whether a text is a diff, or has one in it.
func IsDiff(text string) bool {
	return strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "@@ ") || strings.HasPrefix(text, "diff --git ") ||
		strings.Contains(text, "\n@@ -")
}

// A coder sets the lines of one source text, one after the other.
type coder struct {
	*Renderer
	language *highlight.Language // nil: not known
	diff     bool
	state    highlight.State
}

func (r *Renderer) coder(language string) coder {
	return coder{Renderer: r, language: highlight.Named(language), diff: language == "diff" || language == "patch"}
}

// line sets a line. What does not fit continues below it, with a mark that says so.
func (c *coder) line(line string, width int) (lines []string) {
	line = strings.ReplaceAll(line, "\t", "    ")
	b := c.brush(line)
	if ansi.StringWidth(line) <= width || width < 10 {
		for part := range strings.SplitSeq(ansi.Hardwrap(line, max(width, 1), true), "\n") {
			lines = append(lines, b.paint(part))
		}
		return lines
	}
	for i, part := range strings.Split(ansi.Hardwrap(line, width-2, true), "\n") {
		if i == 0 {
			lines = append(lines, b.paint(part))
			continue
		}
		lines = append(lines, c.Theme.Rule.Render("↪ ")+b.paint(part))
	}

	return lines
}

// An ink is what switches a colour on and off.
type ink struct{ on, off string }

func inkOf(s lipgloss.Style) ink {
	on, off := theme.Around(s)
	return ink{on, off}
}

// A brush paints a line, part after part.
type brush struct {
	inks  *[highlight.Kinds]ink
	spans []highlight.Span
	other ink // behind the last span
}

func (c *coder) brush(line string) *brush {
	if c.inks == nil {
		t := c.Theme
		c.inks = &[highlight.Kinds]ink{highlight.Plain: inkOf(t.CodeBlock), highlight.Comment: inkOf(t.Syntax.Comment),
			highlight.String: inkOf(t.Syntax.String), highlight.Number: inkOf(t.Syntax.Number),
			highlight.Keyword: inkOf(t.Syntax.Keyword)}
	}
	b := &brush{inks: c.inks, other: c.inks[highlight.Plain]}
	switch {
	case c.diff:
		b.other = inkOf(c.changed(line))
	case c.language != nil:
		b.spans, c.state = c.language.Line(line, c.state)
	}

	return b
}

// paint gives the next part of the line its colours.
func (b *brush) paint(part string) string {
	var out strings.Builder
	for len(part) > 0 {
		n, with := len(part), b.other
		if len(b.spans) > 0 {
			s := &b.spans[0]
			n, with = min(n, s.Len), b.inks[s.Kind]
			if s.Len -= n; s.Len == 0 {
				b.spans = b.spans[1:]
			}
		}
		out.WriteString(with.on)
		out.WriteString(part[:n])
		out.WriteString(with.off)
		part = part[n:]
	}

	return out.String()
}

// changed is the style of a line of a diff.
func (r *Renderer) changed(line string) lipgloss.Style {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return r.Theme.Strong
	case strings.HasPrefix(line, "+"):
		return r.Theme.Added
	case strings.HasPrefix(line, "-"):
		return r.Theme.Removed
	case strings.HasPrefix(line, "@@"):
		return r.Theme.Hunk
	}

	return r.Theme.CodeBlock
}
