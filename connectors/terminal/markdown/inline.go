package markdown

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"

	"daycare/connectors/format"
)

func itoa(n int) string { return strconv.Itoa(n) }

// inline is the text of a node with its styles; line breaks are kept.
func (s setter) inline(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b.WriteString(s.span(n))
	}

	return b.String()
}

func (s setter) span(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Text:
		text := Clean(format.Text(n, s.src))
		if n.HardLineBreak() || n.SoftLineBreak() { // models end lines where they mean it; a terminal can follow
			return text + "\n"
		}
		return text
	case *ast.String:
		return string(n.Value)
	case *ast.CodeSpan:
		return s.Theme.Code.Render(s.plain(n))
	case *ast.Emphasis:
		if n.Level > 1 {
			return s.Theme.Strong.Render(s.inline(n))
		}
		return s.Theme.Emphasis.Render(s.inline(n))
	case *tables.Strikethrough:
		return s.Theme.Struck.Render(ansi.Strip(s.inline(n))) // lipgloss strikes each character for itself
	case *tables.TaskCheckBox:
		return format.Box(n)
	case *ast.Link:
		return s.link(s.inline(n), Clean(format.Unescape(n.Destination)))
	case *ast.AutoLink:
		return s.Theme.Link.Render(string(n.URL(s.src)))
	case *ast.Image:
		return s.link("[image: "+s.plain(n)+"]", Clean(format.Unescape(n.Destination)))
	}

	return s.inline(n)
}

// link shows where it leads unless the text says so already: nobody should have to
// click to find out.
func (s setter) link(text, to string) string {
	if to == "" || strings.Contains(to, text) {
		return s.Theme.Link.Render(to)
	}
	return text + " " + s.Theme.Link.Render(to)
}

// plain is the text of a node without styles.
func (s setter) plain(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(Clean(format.Text(n, s.src)))
			if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		default:
			b.WriteString(s.plain(n))
		}
	}

	return b.String()
}
