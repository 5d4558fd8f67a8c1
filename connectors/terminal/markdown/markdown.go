package markdown

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"daycare/connectors/format"
	"daycare/connectors/terminal/highlight"
	"daycare/connectors/terminal/theme"
)

// A Renderer sets text in one theme. It may be used by one goroutine.
type Renderer struct {
	Theme *theme.Theme
	inks  *[highlight.Kinds]ink // made when the first code is set
}

// New makes a renderer.
func New(t *theme.Theme) *Renderer { return &Renderer{Theme: t} }

// minWidth is the least that text is set in: below it nothing can be read anyway.
const minWidth = 10

// Lines sets source in at most width columns. No line ends with a line break.
func (r *Renderer) Lines(source string, width int) []string {
	src := []byte(Clean(source))
	s := setter{Renderer: r, src: src}
	return s.blocks(format.Parser().Parse(text.NewReader(src)), max(width, minWidth))
}

// A setter sets one document.
type setter struct {
	*Renderer
	src []byte
}

// blocks sets the children of a node, a blank line between them where the source
// is not tight.
func (s setter) blocks(parent ast.Node, width int) []string {
	var lines []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		set := s.block(n, width)
		if len(set) == 0 {
			continue
		}
		if len(lines) > 0 && n.Kind() != ast.KindTextBlock && !tightList(n) {
			lines = append(lines, "")
		}
		lines = append(lines, set...)
	}

	return lines
}

// tightList: a list right under the text of a tight item stands without a blank line.
func tightList(n ast.Node) bool {
	list, ok := n.(*ast.List)
	return ok && list.IsTight && n.Parent() != nil && n.Parent().Kind() == ast.KindListItem
}

func (s setter) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return wrap(s.Theme.Heading.Render(ansi.Strip(s.inline(n))), width)
	case *ast.Paragraph, *ast.TextBlock:
		return wrap(s.inline(n), width)
	case *tables.Table:
		return s.table(n, width)
	case *ast.FencedCodeBlock:
		return s.code(s.raw(n), string(n.Language(s.src)), width)
	case *ast.CodeBlock:
		return s.code(s.raw(n), "", width)
	case *ast.Blockquote:
		if width <= minWidth { // nested beyond what can be shown
			return s.blocks(n, width)
		}
		return prefix(s.Theme.Quote.Render("▏ "), s.blocks(n, width-2))
	case *ast.List:
		return s.list(n, width)
	case *ast.ThematicBreak:
		return []string{s.Theme.Rule.Render(strings.Repeat("─", min(width, 40)))}
	}

	return s.blocks(n, width)
}

// raw is the text of a block whose lines are kept as they are.
func (s setter) raw(n ast.Node) string {
	return string(n.Lines().Value(s.src))
}

func (s setter) list(n *ast.List, width int) []string {
	if width <= minWidth {
		return s.blocks(n, width)
	}
	var lines []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = itoa(number) + ". "
			number++
		}
		set := s.blocks(item, width-len([]rune(mark)))
		if len(set) == 0 {
			set = []string{""}
		}
		if len(lines) > 0 && !n.IsTight {
			lines = append(lines, "")
		}
		lines = append(lines, s.Theme.Dim.Render(mark)+set[0])
		lines = append(lines, prefix(strings.Repeat(" ", len([]rune(mark))), set[1:])...)
	}

	return lines
}

// wrap breaks styled text into lines; each closes the styles it opens.
func wrap(text string, width int) []string {
	return strings.Split(lipgloss.Wrap(text, max(width, 1), ""), "\n")
}

func prefix(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = mark + line
	}

	return out
}
