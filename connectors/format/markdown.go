package format

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
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

// markdown parses what models write. There is no HTML in it, so that tags are
// text that a user sees, and no reference is defined in one place and used in
// another, because the two may be split into two messages.
var markdown = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(
				util.Prioritized(parser.NewSetextHeadingParser(), 100),
				util.Prioritized(parser.NewThematicBreakParser(), 200),
				util.Prioritized(parser.NewListParser(), 300),
				util.Prioritized(parser.NewListItemParser(), 400),
				util.Prioritized(parser.NewCodeBlockParser(), 500),
				util.Prioritized(parser.NewATXHeadingParser(), 600),
				util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
				util.Prioritized(parser.NewBlockquoteParser(), 800),
				util.Prioritized(parser.NewParagraphParser(), 1000),
			),
			parser.WithInlineParsers(
				util.Prioritized(parser.NewCodeSpanParser(), 100),
				util.Prioritized(parser.NewLinkParser(), 200),
				util.Prioritized(parser.NewAutoLinkParser(), 300),
				util.Prioritized(parser.NewEmphasisParser(), 500),
			),
			parser.WithASTTransformers(util.Prioritized(inOrderOfText{}, 100)),
		)),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList),
		goldmark.WithRenderer(renderer.NewRenderer(renderer.WithNodeRenderers(
			util.Prioritized(ghtml.NewRenderer(ghtml.WithHardWraps()), 1000),
		))),
	)
})

// Parser is the parser of all Markdown that is shown to users.
func Parser() parser.Parser { return markdown().Parser() }

// inOrderOfText puts a heading in front of the table that follows its text. Where a line of
// dashes comes after the table, the parser makes a heading of the text before the table, and
// leaves it behind the table.
type inOrderOfText struct{}

func (inOrderOfText) Transform(document *ast.Document, _ text.Reader, _ parser.Context) {
	var headings []ast.Node
	ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never an error
		if entering && n.Kind() == ast.KindHeading {
			headings = append(headings, n)
		}
		return ast.WalkContinue, nil
	})

	for _, h := range headings {
		parent := h.Parent()
		for before := h.PreviousSibling(); before != nil && before.Kind() == tables.KindTable && h.Pos() <= before.Pos(); {
			parent.InsertBefore(parent, before, h)
			before = h.PreviousSibling()
		}
	}
}

// parse makes spans of Markdown.
func parse(source string) []span {
	src := []byte(strings.ToValidUTF8(source, "\uFFFD"))
	w := &writer{src: src}
	w.blocks(markdown().Parser().Parse(text.NewReader(src)), "")
	return w.spans
}

// HTML is Markdown as a document's body, for mail. Nothing in it is from outside:
// tags in the text are shown, dangerous links are not links.
func HTML(source string) string {
	var b bytes.Buffer
	if err := markdown().Convert([]byte(strings.ToValidUTF8(source, "\uFFFD")), &b); err != nil {
		return "<pre>" + html.EscapeString(source) + "</pre>"
	}
	return b.String()
}

// A writer lays blocks out as lines of spans.
type writer struct {
	src    []byte
	spans  []span
	style  style
	link   string
	indent string // what continued lines of a list item begin with
}

func (w *writer) span(s span) {
	if s.text == "" {
		return
	}
	if n := len(w.spans); n > 0 {
		if last := &w.spans[n-1]; last.style == s.style && last.link == s.link && s.style&pre == 0 {
			last.text += s.text
			return
		}
	}

	w.spans = append(w.spans, s)
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
			lang = unescape(n.Info.Segment.Value(w.src))
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
		w.indent = outer + strings.Repeat(" ", len([]rune(marker)))
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
		value := string(n.Segment.Value(w.src))
		if !n.IsRaw() {
			value = unescape([]byte(value))
		}
		w.write(value)
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
		if n.IsChecked {
			w.write("☑ ")
		} else {
			w.write("☐ ")
		}
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
	to = unescape([]byte(to))
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
		w.write(" (" + unescape([]byte(title)) + ")")
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

// unescape resolves backslash escapes and entities as Markdown means them:
// goldmark does it while it writes HTML.
func unescape(raw []byte) string {
	if !bytes.ContainsAny(raw, "\\&\x00") {
		return string(raw)
	}
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	ghtml.DefaultWriter.Write(w, raw)
	w.Flush()

	return html.UnescapeString(b.String())
}
