package format

import (
	"bytes"
	"html"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// HTML is Markdown as a document's body, for mail. Nothing in it is from outside:
// tags in the text are shown, dangerous links are not links.
func HTML(source string) string {
	src := []byte(strings.ToValidUTF8(source, "\uFFFD"))
	var b bytes.Buffer
	if err := mail().Render(&b, src, Parser().Parse(text.NewReader(src))); err != nil {
		return "<pre>" + html.EscapeString(source) + "</pre>"
	}

	return b.String()
}

var mail = sync.OnceValue(func() renderer.Renderer {
	return renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(tablesHTML{}, 500),
		util.Prioritized(ghtml.NewRenderer(ghtml.WithHardWraps()), 1000),
	))
})

// tablesHTML writes what goldmark's own renderer does not know.
type tablesHTML struct{}

func (tablesHTML) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(tables.KindTable, between("<table>\n", "</tbody>\n</table>\n"))
	r.Register(tables.KindTableHeader, between("<thead>\n<tr>\n", "</tr>\n</thead>\n<tbody>\n"))
	r.Register(tables.KindTableRow, between("<tr>\n", "</tr>\n"))
	r.Register(tables.KindTableCell, cellHTML)
	r.Register(tables.KindStrikethrough, between("<del>", "</del>"))
	r.Register(tables.KindTaskCheckBox, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			w.WriteString(Box(n.(*tables.TaskCheckBox)))
		}
		return ast.WalkContinue, nil
	})
}

// between writes the children of a node between two tags. What cannot be written is seen when the writer is flushed.
func between(before, after string) renderer.NodeRendererFunc {
	return func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			w.WriteString(before)
		} else {
			w.WriteString(after)
		}
		return ast.WalkContinue, nil
	}
}

func cellHTML(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "td"
	if n.Parent().Kind() == tables.KindTableHeader {
		tag = "th"
	}
	style := ""
	if a := n.(*tables.TableCell).Alignment; a != tables.AlignNone {
		style = ` style="text-align:` + a.String() + `"`
	}

	return between("<"+tag+style+">", "</"+tag+">\n")(w, src, n, entering)
}
