package fetch

import (
	"slices"
	"strings"

	"github.com/JohannesKaufmann/dom"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A tree is a page that is being read, in time and memory that grow with its length alone. By a browser's rules, which
// html.Parse follows, they grow with the square of it: every style is opened again in each paragraph, text between the rows
// of a table or between tags that mean nothing is joined piece by piece, and so are the attributes of all tags <html>.
// Elements that Markdown does not know are left out, as the converter copies what is in an element once for each.
type tree struct {
	root, at *html.Node
	indents  int             // how many open elements move what is in them
	deep     int             // how many elements are open
	passed   map[string]int  // elements that were not opened: their end tags count for nothing
	pending  strings.Builder // text that is to stand at the end of at
	gap      bool            // what comes next begins a line
	styles   []string        // were closed with what they are in: the next text has them again
}

const (
	// maxIndents is how many elements are in each other that put something before each line of what is in them.
	maxIndents = 8
	// maxDeep is the same of all elements. What is opened in more is read without its tags.
	maxDeep = 100
	// maxStyles is how many styles a text is given again.
	maxStyles = 3
)

// Elements by what they mean.
var (
	void    = words("area base br embed hr img input link meta param source track wbr")
	ignored = words("html head body frameset frame col colgroup")
	indents = words("blockquote ul ol menu dir dl table")
	styles  = words("b strong i em code del s strike var samp kbd tt")
	// kinds are the elements that a Markdown text has, beside those above; once are those of them, and of the styles, that
	// are not in one of their own.
	kinds = words("a p pre h1 h2 h3 h4 h5 h6 li dt dd main article")
	once  = words("a pre main article b strong i em code del s strike var samp kbd tt")
	// blocks end a paragraph that is open, and begin a line.
	blocks = words("address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form " +
		"h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre section summary table ul li dt dd legend")
	// parts occur in a table only; rows are those that hold nothing but other parts.
	parts = words("td th tr thead tbody tfoot caption")
	rows  = words("table tr thead tbody tfoot")
	// walls keep what is closed in them from closing what is around them.
	walls        = words("td th caption table button object template svg math")
	paragraph    = words("p")
	tables       = words("table")
	preformatted = words("pre code var samp kbd tt")
	headings     = words("h1 h2 h3 h4 h5 h6")
	foreign      = words("svg math")
)

// A closing is of the innermost open element of those named, unless a wall stands before it.
type closing struct{ named, walls map[string]bool }

// ends are what a tag closes: that of the end of an element, and that of the next of its kind.
var ends = map[string]closing{
	"li": {words("li"), words("ul ol menu dir td th caption table")}, "dt": description, "dd": description,
	"td": {words("td th"), words("tr table")}, "th": {words("td th"), words("tr table")}, "tr": {words("tr caption"), words("table")},
	"thead": section, "tbody": section, "tfoot": section,
	"a": {words("a"), walls}, "button": {words("button"), walls}, "option": {words("option"), words("select")},
	"h1": heading, "h2": heading, "h3": heading, "h4": heading, "h5": heading, "h6": heading,
}

var (
	description = closing{words("dt dd"), words("dl td th caption table")}
	section     = closing{words("thead tbody tfoot caption"), words("table")}
	heading     = closing{headings, blocksBut(headings)}
)

// blocksBut are what closes no heading around it, as one stands in it.
func blocksBut(some map[string]bool) map[string]bool {
	set := words("td th caption table button object template svg math")
	for name := range blocks {
		set[name] = !some[name]
	}

	return set
}

// readPage makes a tree of a page.
func readPage(page string) *html.Node {
	t := &tree{root: &html.Node{Type: html.DocumentNode}, passed: map[string]int{}}
	t.at = t.root
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			t.flush()
			return t.root
		case html.TextToken:
			t.text(string(z.Text()))
		case html.StartTagToken:
			t.open(elementOf(z), false)
		case html.SelfClosingTagToken:
			t.open(elementOf(z), true)
		case html.EndTagToken:
			name, _ := z.TagName()
			t.end(string(name))
		}
	}
}

// elementOf reads a tag, with the attributes that are looked at.
func elementOf(z *html.Tokenizer) *html.Node {
	name, more := z.TagName()
	n := element(string(name))
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if (kept[string(key)] || string(key) == "hidden" || string(key) == "aria-hidden") && len(n.Attr) < 10 {
			n.Attr = append(n.Attr, html.Attribute{Key: string(key), Val: string(value)})
		}
	}

	return n
}

func element(name string) *html.Node {
	return &html.Node{Type: html.ElementNode, Data: name, DataAtom: atom.Lookup([]byte(name))}
}

// text takes a piece of text.
func (t *tree) text(s string) {
	s = strings.ReplaceAll(s, "\x00", "")
	switch {
	case t.at.Data == "pre" && t.at.FirstChild == nil && t.pending.Len() == 0:
		s = strings.TrimPrefix(s, "\n")
	case !t.within(preformatted):
		s = collapsed(s)
	}
	if strings.TrimSpace(s) != "" {
		t.cell()
		t.line()
		for _, style := range t.styles {
			t.enter(element(style))
		}
		t.styles = nil
	}
	t.pending.WriteString(s)
}

// line begins one, if the last element or the next one does so.
func (t *tree) line() {
	if t.gap && (t.at.FirstChild != nil || t.pending.Len() > 0) {
		t.add(element("div"))
	}
	t.gap = false
}

// add puts a node at the end of the open element.
func (t *tree) add(n *html.Node) {
	t.flush()
	t.at.AppendChild(n)
}

// flush makes a node of the text that came.
func (t *tree) flush() {
	if t.pending.Len() > 0 {
		t.at.AppendChild(&html.Node{Type: html.TextNode, Data: t.pending.String()})
		t.pending.Reset()
	}
}

// collapsed is a text with one blank for each run of them.
func collapsed(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		if c == '\n' || c == '\t' || c == '\r' || c == '\f' {
			c = ' '
		}
		if c != ' ' || len(b) == 0 || b[len(b)-1] != ' ' {
			b = append(b, c)
		}
	}

	return string(b)
}

// cell opens one where something stands in a table without it, so that it is not lost.
func (t *tree) cell() {
	if !rows[t.at.Data] {
		return
	}
	if t.at.Data != "tr" {
		t.enter(element("tr"))
	}
	t.enter(element("td"))
}

// open takes the tag of an element. Closed: it says that nothing is in it.
func (t *tree) open(n *html.Node, closed bool) {
	if ignored[n.Data] || n.Data == "form" && rows[t.at.Data] {
		return
	}
	off := hides(n)
	if blocks[n.Data] {
		t.close(closing{paragraph, walls})
		t.gap = t.gap || !off
	}
	if e, ok := ends[n.Data]; ok {
		t.close(e)
	}
	if parts[n.Data] && !t.within(tables) {
		t.gap = true
		return
	}

	if !off && !parts[n.Data] {
		t.cell()
	}
	switch {
	case void[n.Data] || closed && (foreign[n.Data] || t.within(foreign)):
		t.line()
		t.add(n)
	case off && t.deep < 2*maxDeep || t.shows(n):
		t.line()
		t.enter(n)
	default:
		t.passed[n.Data]++
	}
}

// hides reports whether an element and what is in it are not part of what a page says.
func hides(n *html.Node) bool {
	_, hidden := dom.GetAttribute(n, "hidden")
	return dropped[n.Data] || hidden || dom.GetAttributeOr(n, "aria-hidden", "") == "true"
}

// shows reports whether an element is to be one of the Markdown text.
func (t *tree) shows(n *html.Node) bool {
	switch {
	case t.deep >= maxDeep, once[n.Data] && t.within(map[string]bool{n.Data: true}):
		return false
	case indents[n.Data]:
		return t.indents < maxIndents
	}

	return kinds[n.Data] || styles[n.Data] || parts[n.Data]
}

// enter opens an element.
func (t *tree) enter(n *html.Node) {
	t.add(n)
	t.at = n
	t.deep++
	if indents[n.Data] {
		t.indents++
	}
}

// end takes an end tag.
func (t *tree) end(name string) {
	if i := slices.Index(t.styles, name); i >= 0 {
		t.styles = slices.Delete(t.styles, i, i+1)
	}

	e, ok := ends[name]
	closed := false
	switch {
	case t.passed[name] > 0:
		t.passed[name]--
		if closed = blocks[name]; closed {
			t.close(closing{paragraph, walls})
		}
	case name == "br": // for browsers it is a tag
		t.add(element("br"))
	case name == "table":
		closed = t.close(closing{tables, nil})
	case headings[name]:
		closed = t.close(closing{headings, walls})
	case ok && name != "a":
		closed = t.close(closing{map[string]bool{name: true}, e.walls})
	default:
		closed = t.close(closing{map[string]bool{name: true}, walls})
	}
	if last := t.at.LastChild; closed && blocks[name] && (last == nil || !hides(last)) {
		t.gap = true
	}
}

// close closes an element with all that is open in it, and reports whether there was one.
func (t *tree) close(c closing) bool {
	var inner []string
	for n := t.at; n != t.root; n = n.Parent {
		if c.named[n.Data] {
			t.flush()
			t.gap = t.gap && !blocks[n.Data] && !parts[n.Data]
			for ; t.at != n.Parent; t.at = t.at.Parent {
				t.deep--
				if indents[t.at.Data] {
					t.indents--
				}
			}
			if !walls[n.Data] && !parts[n.Data] {
				t.styles = inner
			}
			return true
		}
		if c.walls[n.Data] {
			return false
		}
		if styles[n.Data] && len(inner) < maxStyles {
			inner = append(inner, n.Data)
		}
	}

	return false
}

// within reports whether one of some elements is open.
func (t *tree) within(some map[string]bool) bool {
	for n := t.at; n != t.root; n = n.Parent {
		if some[n.Data] {
			return true
		}
	}

	return false
}
