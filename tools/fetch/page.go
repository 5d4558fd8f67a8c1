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

const (
	// maxTags bounds how much of a page is read: no page for users has more.
	maxTags = 200_000
	// maxPage is how many bytes of text, and of addresses, are converted: more than maxText characters have.
	maxPage    = 5 * maxText
	maxTitle   = 1000 // bytes
	maxColumns = 60
)

// dropped elements are not part of what a page says.
var dropped = words("head title script style noscript template svg canvas iframe object embed audio video map " +
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
// absolute by base. Of a page that is longer than what is shown of any, only the beginning is converted.
func markdown(page string, base *url.URL) (title, text string) {
	page = bounded(page)
	root := readPage(page)
	if t := dom.FindFirstNode(root, tagged("title")); t != nil {
		title = flat(dom.CollectText(t))
		title = strings.ToValidUTF8(title[:min(len(title), maxTitle)], "")
	}
	if b := dom.FindFirstNode(root, tagged("base")); b != nil {
		if u, err := base.Parse(dom.GetAttributeOr(b, "href", "")); err == nil && len(u.String()) <= maxURL {
			base = u
		}
	}

	prune(root)
	root = content(root)
	ready(root, base)
	out, err := toMarkdown().ConvertNode(root)
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

func tagged(tag string) func(*html.Node) bool {
	return func(n *html.Node) bool { return dom.NodeName(n) == tag }
}

// prune removes what is not worth reading.
func prune(root *html.Node) {
	remove(root, func(n *html.Node) bool { return n.Type == html.ElementNode && hides(n) })
}

// remove removes the nodes below root that are gone.
func remove(root *html.Node, gone func(*html.Node) bool) {
	var all []*html.Node
	for n := range root.Descendants() {
		if gone(n) {
			all = append(all, n)
		}
	}
	for _, n := range all {
		n.Parent.RemoveChild(n)
	}
}

// ready makes a page what the converter is given: without what must not be followed, and no more than can be shown.
func ready(root *html.Node, base *url.URL) {
	text, links := maxPage, maxPage
	remove(root, func(n *html.Node) bool {
		switch n.Type {
		case html.TextNode:
			n.Data = strings.ToValidUTF8(n.Data[:min(len(n.Data), max(text, 0))], "")
			text -= len(n.Data)
			return n.Data == ""
		case html.ElementNode:
			if text -= 5; text <= 0 || !useful(n, base, links > 0) {
				return true
			}
			for _, a := range n.Attr {
				links -= len(a.Val)
			}
		}
		return false
	})
}

// useful readies one element for the converter; its address only if links are wanted. It reports whether anything is left.
func useful(n *html.Node, base *url.URL, links bool) bool {
	var attrs []html.Attribute
	for _, a := range n.Attr {
		switch {
		case len(a.Val) > maxURL, !links && a.Key != "start":
			continue
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
		if c := columns(n); c < 2 || c > maxColumns { // it is only there for the layout, or no table that can be read
			n.Data, n.DataAtom = "div", 0
		}
	}

	return true
}

// columns returns how many cells the widest row of a table has.
func columns(table *html.Node) int {
	most := 0
	for _, row := range dom.FindAllNodes(table, tagged("tr")) {
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
	sizes := map[*html.Node]int{}
	total := measure(root, sizes)
	best := root
	for _, tag := range []string{"main", "article"} {
		for _, n := range dom.FindAllNodes(root, tagged(tag)) {
			if s := sizes[n]; s > 200 && s*3 > total && (best == root || tag == "article" && s*2 > sizes[best]) {
				best = n
			}
		}
	}

	return best
}

// measure returns how much text is in an element, and notes it of those in it that may be the content.
func measure(n *html.Node, sizes map[*html.Node]int) int {
	if n.Type == html.TextNode {
		return len(strings.TrimSpace(n.Data))
	}
	sum := 0
	for c := range n.ChildNodes() {
		sum += measure(c, sizes)
	}
	if n.Data == "main" || n.Data == "article" {
		sizes[n] = sum
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
