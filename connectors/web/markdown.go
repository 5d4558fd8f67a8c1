package web

import (
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"daycare/connectors/format"
)

const (
	// mostMarkdown is how long a text is that is set as Markdown, in bytes; a longer one is shown as
	// it is: a browser takes long for the elements of one.
	mostMarkdown = 64 << 10
	// mostNested is how deep blocks and spans are nested; what is deeper is text.
	mostNested = 32
)

// HTML makes HTML of a Markdown text that anybody may have written. It consists of the elements and
// attributes that this file writes and of nothing else: tags in the text are shown as text, images
// are links, and links lead to http, https or mailto.
func HTML(source string) string {
	source = readable(strings.ToValidUTF8(source, "\uFFFD"))
	if len(source) > mostMarkdown {
		return "<pre>" + html.EscapeString(source) + "</pre>"
	}
	w := &setter{src: []byte(source)}
	w.children(format.Parser().Parse(text.NewReader(w.src)))
	return w.out.String()
}

// readable names the characters that turn the reading direction around or that control a device.
// Those that languages need to join letters stay.
func readable(s string) string {
	hidden := func(r rune) bool {
		return unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
			r == 0x200e || r == 0x200f || r == 0x061c || r >= 0xe0000 && r <= 0xe007f
	}
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		if hidden(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
			continue
		}
		b.WriteRune(r)
	}

	return b.String()
}

// A setter writes nodes as HTML.
type setter struct {
	src    []byte
	out    strings.Builder
	nested int
}

// text writes a text as it is; an entity in it may have stood for a character that is named.
func (w *setter) text(s []byte) { w.out.WriteString(html.EscapeString(readable(string(s)))) }

// inside writes the children of a node in an element; tag has its attributes, which this file made.
func (w *setter) inside(tag string, n ast.Node) {
	name, _, _ := strings.Cut(tag, " ")
	w.out.WriteString("<" + tag + ">")
	w.children(n)
	w.out.WriteString("</" + name + ">")
}

func (w *setter) children(n ast.Node) {
	if w.nested++; w.nested > mostNested {
		w.text(flat(n, w.src))
	} else {
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			w.node(c)
		}
	}
	w.nested--
}

// flat is the text below a node, without its form; it does not recur.
func flat(n ast.Node, src []byte) (all []byte) {
	for c := n.FirstChild(); c != nil && c != n; {
		if t, ok := c.(*ast.Text); ok {
			all = append(all, t.Segment.Value(src)...)
		}
		if c.FirstChild() != nil {
			c = c.FirstChild()
			continue
		}
		for c != n && c.NextSibling() == nil {
			c = c.Parent()
		}
		if c != n {
			c = c.NextSibling()
		}
	}

	return all
}

// node writes one node. A kind that is not here is not written but for its children.
func (w *setter) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Paragraph:
		w.inside("p", n)
	case *ast.Heading:
		w.inside("h"+strconv.Itoa(min(n.Level+2, 6)), n) // the page has the first two
	case *ast.Blockquote:
		w.inside("blockquote", n)
	case *ast.ThematicBreak:
		w.out.WriteString("<hr>")
	case *ast.List:
		w.list(n)
	case *ast.ListItem:
		w.inside("li", n)
	case *ast.FencedCodeBlock:
		w.code(n, language(n.Language(w.src)))
	case *ast.CodeBlock:
		w.code(n, "")
	case *tables.Table:
		w.inside("table", n)
	case *tables.TableHeader:
		w.inside("tr", n)
	case *tables.TableRow:
		w.inside("tr", n)
	case *tables.TableCell:
		w.cell(n)
	default:
		w.span(n)
	}
}

// span writes a node within a line.
func (w *setter) span(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		w.text([]byte(format.Text(n, w.src)))
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.out.WriteString("<br>")
		}
	case *ast.String:
		w.text(n.Value)
	case *ast.CodeSpan:
		w.inside("code", n)
	case *ast.Emphasis:
		w.inside([]string{"em", "strong"}[min(n.Level, 2)-1], n)
	case *tables.Strikethrough:
		w.inside("del", n)
	case *tables.TaskCheckBox:
		w.out.WriteString(format.Box(n))
	case *ast.Link:
		w.link(n, string(n.Destination))
	case *ast.Image:
		w.out.WriteString("image: ")
		w.link(n, string(n.Destination))
	case *ast.AutoLink:
		address := string(n.URL(w.src))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(address), "mailto:") {
			address = "mailto:" + address
		}
		w.anchor(address, func() { w.text(n.Label(w.src)) })
	default:
		w.children(n)
	}
}

func (w *setter) list(n *ast.List) {
	switch {
	case !n.IsOrdered():
		w.inside("ul", n)
	case n.Start != 1 && n.Start > 0 && n.Start < 1_000_000_000:
		w.inside(fmt.Sprintf(`ol start="%d"`, n.Start), n)
	default:
		w.inside("ol", n)
	}
}

// code writes a block of code. Its language is for whoever colours it.
func (w *setter) code(n ast.Node, language string) {
	w.out.WriteString("<pre><code")
	if language != "" {
		w.out.WriteString(` data-language="` + language + `"`)
	}
	w.out.WriteString(">")
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		w.text(line.Value(w.src))
	}
	w.out.WriteString("</code></pre>")
}

// language is the name of a language, or nothing.
func language(name []byte) string {
	for _, r := range string(name) {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#.-", r) {
			return ""
		}
	}
	if len(name) > 20 {
		return ""
	}

	return string(name)
}

func (w *setter) cell(n *tables.TableCell) {
	tag := "td"
	if _, head := n.Parent().(*tables.TableHeader); head {
		tag = "th"
	}
	switch n.Alignment {
	case tables.AlignRight:
		tag += ` data-align="right"`
	case tables.AlignCenter:
		tag += ` data-align="center"`
	}
	w.inside(tag, n)
}

// link writes a link with its text. One that leads elsewhere than its text says can be told by
// its title, which is its address.
func (w *setter) link(n ast.Node, address string) {
	w.anchor(address, func() {
		if n.FirstChild() == nil {
			w.text([]byte(address))
		}
		w.children(n)
	})
}

// anchor writes a link, or only its text where the address is not one that the page may open.
func (w *setter) anchor(address string, label func()) {
	u, err := url.Parse(address)
	ok := err == nil && (u.Scheme == "mailto" && u.Opaque != "" || (u.Scheme == "http" || u.Scheme == "https") && u.Host != "")
	if !ok {
		label()
		return
	}
	safe := html.EscapeString(u.String())
	w.out.WriteString(`<a href="` + safe + `" title="` + safe + `" target="_blank" rel="noopener noreferrer">`)
	label()
	w.out.WriteString("</a>")
}
