package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
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
		text := s.struck(string(n.Value(s.src)))
		switch {
		case n.HardLineBreak():
			return text + "\n"
		case n.SoftLineBreak():
			// Models end lines where they mean it; a terminal can follow.
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
	case *ast.Link:
		return s.link(s.inline(n), string(n.Destination))
	case *ast.AutoLink:
		return s.Theme.Link.Render(string(n.URL(s.src)))
	case *ast.Image:
		return s.link("[image: "+s.plain(n)+"]", string(n.Destination))
	case *ast.RawHTML:
		return s.Theme.Dim.Render(string(n.Segments.Value(s.src)))
	}
	return s.inline(n)
}

// struck strikes out what stands between two pairs of tildes.
func (s setter) struck(text string) string {
	before, rest, found := strings.Cut(text, "~~")
	if !found {
		return text
	}
	inside, after, closed := strings.Cut(rest, "~~")
	if !closed || strings.TrimSpace(inside) == "" {
		return text
	}
	return before + s.Theme.Struck.Render(inside) + s.struck(after)
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
			b.Write(n.Value(s.src))
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
