package fetch

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/JohannesKaufmann/dom"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// maxTags bounds how much of a page is read: no page for users has more.
const maxTags = 200_000

// dropped elements are not part of what a page says.
var dropped = words("head script style noscript template svg canvas iframe object embed audio video map " +
	"button select input textarea dialog nav aside footer")

// kept are the attributes that the Markdown needs. All others go, so that a page cannot
// ask for a table of a billion columns.
var kept = words("href src alt class start")

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// toMarkdown returns the converter. It is built for the first page, not at every start.
var toMarkdown = sync.OnceValue(func() *converter.Converter {
	c := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithHorizontalRule("---"), commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithHeaderPromotion(true), table.WithNewlineBehavior(table.NewlineBehaviorPreserve),
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)),
	))
	c.Register.RendererFor("a", converter.TagTypeInline, link, converter.PriorityEarly)

	return c
})

// link writes a link. The converter's own would spell the query of its address anew.
func link(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var text bytes.Buffer
	ctx.RenderChildNodes(ctx.WithValue("is_inside_link", true), &text, n)
	if label := flat(text.String()); label != "" {
		fmt.Fprintf(w, "[%s](%s)", label, dom.GetAttributeOr(n, "href", ""))
	}

	return converter.RenderSuccess
}

// markdown returns the title of a page and what it says, as Markdown. Links are made
// absolute by base. A page nested deeper than the parser goes comes as plain text.
func markdown(page string, base *url.URL) (title, text string) {
	page = bounded(page)
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", plain(page)
	}

	if t := dom.FindFirstNode(root, element("title")); t != nil {
		title = flat(dom.CollectText(t))
	}
	if b := dom.FindFirstNode(root, element("base")); b != nil {
		if u, err := base.Parse(dom.GetAttributeOr(b, "href", "")); err == nil {
			base = u
		}
	}

	prune(root, base)
	out, err := toMarkdown().ConvertNode(content(root))
	if err != nil {
		return title, plain(page)
	}

	return title, string(out)
}

// bounded cuts a page after maxTags tags, and removes the two characters that the
// converter uses as marks of its own.
func bounded(page string) string {
	tags := 0
	for i := range len(page) {
		if page[i] != '<' {
			continue
		}
		if tags++; tags > maxTags {
			page = page[:i]
			break
		}
	}

	return unmarked.Replace(page)
}

var unmarked = strings.NewReplacer(string(marker.MarkerEscaping), "", string(marker.MarkerCodeBlockNewline), "")

func element(tag string) func(*html.Node) bool {
	return func(n *html.Node) bool { return dom.NodeName(n) == tag }
}

// prune removes what is not worth reading, and what must not be followed.
func prune(root *html.Node, base *url.URL) {
	var gone []*html.Node
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data == "html" || n.Data == "body" {
			continue
		}
		_, hidden := dom.GetAttribute(n, "hidden")
		if dropped[n.Data] || hidden || dom.GetAttributeOr(n, "aria-hidden", "") == "true" || !useful(n, base) {
			gone = append(gone, n)
		}
	}

	for _, n := range gone {
		n.Parent.RemoveChild(n)
	}
}

// useful readies one element for the converter. It reports whether anything is left.
func useful(n *html.Node, base *url.URL) bool {
	var attrs []html.Attribute
	for _, a := range n.Attr {
		switch {
		case a.Key == "href" || a.Key == "src":
			a.Val = absolute(a.Val, base)
		case a.Key == "alt":
			a.Val = flat(a.Val)
		}
		if kept[a.Key] && a.Val != "" {
			attrs = append(attrs, a)
		}
	}

	n.Attr = attrs

	switch n.Data {
	case "img":
		return dom.GetAttributeOr(n, "alt", "") != "" && dom.GetAttributeOr(n, "src", "") != ""
	case "a":
		if dom.GetAttributeOr(n, "href", "") == "" {
			n.Data, n.DataAtom = "span", 0
		}
	case "table":
		if columns(n) < 2 { // it is only there for the layout
			n.Data, n.DataAtom = "div", 0
		}
	}

	return true
}

// columns returns how many cells the widest row of a table has.
func columns(table *html.Node) int {
	most := 0
	for _, row := range dom.FindAllNodes(table, element("tr")) {
		n := 0
		for c := range row.ChildNodes() {
			if c.Data == "td" || c.Data == "th" {
				n++
			}
		}
		most = max(most, n)
	}

	return most
}

// absolute returns a link as it can be fetched; "" if it cannot.
func absolute(href string, base *url.URL) string {
	href = strings.TrimSpace(href)
	if href == "" || strings.HasPrefix(href, "#") {
		return ""
	}
	u, err := base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}

	return unspaced.Replace(u.String())
}

// unspaced spells what would end a link's address in Markdown.
var unspaced = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20")

// content returns the part of a page that is about something: the largest article, or
// main, if it has a good part of the text; else everything.
func content(root *html.Node) *html.Node {
	best := dom.FindFirstNode(root, element("body"))
	if best == nil {
		return root
	}
	body, total := best, size(best)
	for _, tag := range []string{"main", "article"} {
		for _, n := range dom.FindAllNodes(body, element(tag)) {
			if s := size(n); s > 200 && s*3 > total && (best == body || tag == "article" && s*2 > size(best)) {
				best = n
			}
		}
	}

	return best
}

// size returns how much text is in an element.
func size(n *html.Node) int {
	sum := 0
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			sum += len(strings.TrimSpace(d.Data))
		}
	}

	return sum
}

// plain returns the text of HTML on one line for each block, without its scripts and styles.
func plain(page string) string {
	var b strings.Builder
	skip := false
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.TextToken:
			if !skip {
				b.Write(z.Text())
			}
			continue
		}

		name, _ := z.TagName()
		skip = kind == html.StartTagToken && dropped[string(name)]
		if dom.NameIsBlockNode(string(name)) {
			b.WriteByte('\n')
		}
	}
}

func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
