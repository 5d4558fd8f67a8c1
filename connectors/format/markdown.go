package format

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// A style is how a span looks; styles add up.
type style uint8

const (
	bold style = 1 << iota
	italic
	strike
	code // in a line
	pre  // a block of its own, lines as they are
	quote
)

// A span is a stretch of text that looks one way. The spans of a Markdown text,
// one after the other, are all that a user reads of it: line ends, bullets and
// the columns of tables are in their texts.
type span struct {
	text  string
	style style
	link  string // http:, https:, mailto:, tel:; "": none
	lang  string // of pre
}

// parse makes spans of Markdown.
func parse(source string) []span {
	src := []byte(strings.ToValidUTF8(source, "\uFFFD"))
	w := &writer{src: src}
	w.blocks(Parser().Parse(text.NewReader(src)), "")
	return joined(w.spans)
}

// joined makes one span of those that look the same and stand side by side.
func joined(spans []span) []span {
	var out []span
	for len(spans) > 0 {
		first, n := spans[0], 1
		for n < len(spans) && first.style&pre == 0 && spans[n].style == first.style && spans[n].link == first.link {
			n++
		}

		var b strings.Builder
		for _, s := range spans[:n] {
			b.WriteString(s.text)
		}
		first.text = b.String()
		out = append(out, first)
		spans = spans[n:]
	}

	return out
}

// mostIndent is how far the lines of a nested list are moved, at least, before those in them are moved no further: each line
// has it, and a text of a few thousand bytes may nest as many lists.
const mostIndent = 40

// A writer lays blocks out as lines of spans.
type writer struct {
	src    []byte
	spans  []span
	style  style
	link   string
	indent string // what continued lines of a list item begin with
}

func (w *writer) span(s span) {
	if s.text != "" {
		w.spans = append(w.spans, s)
	}
}

// write adds text in the style of the moment; its further lines are indented.
func (w *writer) write(s string) {
	if w.indent != "" {
		s = strings.ReplaceAll(s, "\n", "\n"+w.indent)
	}
	w.span(span{text: s, style: w.style, link: w.link})
}

// blocks writes the children of a block with what stands between them.
func (w *writer) blocks(parent ast.Node, between string) {
	if between == "" {
		between = "\n\n"
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			w.span(span{text: between, style: w.style})
			if !flush(n) {
				w.span(span{text: w.indent, style: w.style})
			}
		}
		w.block(n)
	}
}

// flush reports blocks whose lines begin at the margin, wherever they stand.
func flush(n ast.Node) bool {
	switch n.Kind() {
	case ast.KindFencedCodeBlock, ast.KindCodeBlock, tables.KindTable, ast.KindList:
		return true
	}

	return false
}

func (w *writer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		w.styled(bold, func() { w.inlines(n) })
	case *ast.Blockquote:
		w.styled(quote, func() { w.blocks(n, "") })
	case *ast.List:
		w.list(n)
	case *ast.FencedCodeBlock:
		lang := ""
		if n.Info != nil {
			lang = Unescape(n.Info.Segment.Value(w.src))
		}
		w.code(n, lang)
	case *ast.CodeBlock:
		w.code(n, "")
	case *ast.ThematicBreak:
		w.write("———")
	case *tables.Table:
		w.table(n)
	default:
		w.inlines(n)
	}
}

func (w *writer) styled(s style, f func()) {
	before := w.style
	w.style |= s
	f()
	w.style = before
}

func (w *writer) code(n ast.Node, lang string) {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(w.src))
	}

	body := strings.TrimSuffix(b.String(), "\n")
	if body == "" {
		body = " " // an empty block is still one
	}
	w.span(span{text: body, style: w.style | pre, lang: lang})
}

func (w *writer) list(n *ast.List) {
	outer := w.indent
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil {
			between := "\n"
			if !n.IsTight {
				between = "\n\n"
			}
			w.span(span{text: between, style: w.style})
		}

		marker := "• "
		if n.IsOrdered() {
			marker = fmt.Sprintf("%d%c ", number, n.Marker)
			number++
		}

		w.span(span{text: outer + marker, style: w.style})
		if len(outer) < mostIndent {
			w.indent = outer + strings.Repeat(" ", len([]rune(marker)))
		}
		if first := item.FirstChild(); first != nil && flush(first) {
			w.span(span{text: "\n", style: w.style})
		}

		between := "\n"
		if !n.IsTight {
			between = "\n\n"
		}
		w.blocks(item, between)
		w.indent = outer
	}
}

func (w *writer) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.inline(n)
	}
}

func (w *writer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		w.write(Text(n, w.src))
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.write("\n")
		}
	case *ast.String:
		w.write(string(n.Value))
	case *ast.CodeSpan:
		w.styled(code, func() { w.codeSpan(n) })
	case *ast.Emphasis:
		s := italic
		if n.Level == 2 {
			s = bold
		}
		w.styled(s, func() { w.inlines(n) })
	case *tables.Strikethrough:
		w.styled(strike, func() { w.inlines(n) })
	case *ast.Link:
		w.linked(n, string(n.Destination), string(n.Title))
	case *ast.Image:
		w.linked(n, string(n.Destination), string(n.Title))
	case *ast.AutoLink:
		url := string(n.URL(w.src))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(url, "mailto:") {
			url = "mailto:" + url
		}
		if label := string(n.Label(w.src)); anchored(url) {
			w.anchor(url, func() { w.write(label) })
		} else {
			w.write(label)
		}
	case *tables.TaskCheckBox:
		w.write(Box(n))
	default:
		w.inlines(n)
	}
}

func (w *writer) codeSpan(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			w.write(strings.ReplaceAll(string(t.Segment.Value(w.src)), "\n", " "))
			continue
		}
		w.inline(c)
	}
}

// linked writes a link or picture: where it leads is a link if that is safe to
// offer, else text.
func (w *writer) linked(n ast.Node, to, title string) {
	to = Unescape([]byte(to))
	if anchored(to) {
		w.anchor(to, func() {
			w.inlines(n)
			if n.ChildCount() == 0 {
				w.write(to)
			}
		})
	} else {
		w.inlines(n)
		if to != "" {
			w.write(" (" + to + ")")
		}
	}
	if title != "" {
		w.write(" (" + Unescape([]byte(title)) + ")")
	}
}

func (w *writer) anchor(to string, f func()) {
	before := w.link
	if before == "" {
		w.link = to
	}
	f()
	w.link = before
}

// anchored reports whether a destination is one that chats open. Those of Telegram (tg:) are none: one that
// names a user notifies them.
func anchored(to string) bool {
	for _, scheme := range []string{"http://", "https://", "mailto:", "tel:"} {
		if len(to) > len(scheme) && strings.EqualFold(to[:len(scheme)], scheme) {
			return true
		}
	}

	return false
}
