package fetch

import (
	"html"
	"slices"
	"strings"
)

// A node is an element, or a text (tag is "").
type node struct {
	tag      string
	text     string
	attrs    map[string]string
	children []*node
}

// Bounds of a page: what goes beyond is no page for people.
const (
	maxNodes = 300_000
	maxDepth = 200
)

var (
	void = words("area base br col embed hr img input link meta param source track wbr")
	// raw elements hold text up to their own end.
	raw = words("script style textarea title xmp noframes iframe noembed")
	// blocks end a paragraph that is open.
	blocks = words("address article aside blockquote details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 " +
		"header hr main nav ol p pre section table ul")
)

// siblings end each other: a new one of the list ends the open one, up to the
// elements that hold them.
var siblings = []struct{ tags, within map[string]bool }{
	{words("li"), words("ul ol menu")},
	{words("dt dd"), words("dl")},
	{words("tr"), words("table thead tbody tfoot")},
	{words("td th"), words("tr table")},
	{words("thead tbody tfoot"), words("table")},
	{words("option optgroup"), words("select")},
}

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// parse reads HTML as it is found on the web: it never fails, and what is wrong
// with it costs structure at most.
func parse(text string) *node {
	p := parser{text: text, lower: lower(text)}
	p.stack = []*node{{tag: "#"}}
	for p.pos < len(p.text) && p.nodes < maxNodes {
		p.next()
	}
	return p.stack[0]
}

// lower is the text in lower case, byte for byte as long.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

type parser struct {
	text, lower string
	pos         int
	stack       []*node
	nodes       int
}

// next reads one text, tag or comment.
func (p *parser) next() {
	rest := p.text[p.pos:]
	i := strings.IndexByte(rest, '<')
	if i < 0 {
		i = len(rest)
	}
	if i > 0 {
		p.put(&node{text: html.UnescapeString(rest[:i])})
		p.pos += i
		return
	}
	switch {
	case strings.HasPrefix(rest, "<!--"):
		p.skip("-->", 4)
	case strings.HasPrefix(rest, "<!"), strings.HasPrefix(rest, "<?"):
		p.skip(">", 2)
	case strings.HasPrefix(rest, "</"):
		p.close()
	case len(rest) > 1 && letter(rest[1]):
		p.open()
	default: // a "<" that is no tag
		p.put(&node{text: "<"})
		p.pos++
	}
}

func (p *parser) skip(end string, from int) {
	i := strings.Index(p.text[min(p.pos+from, len(p.text)):], end)
	if i < 0 {
		p.pos = len(p.text)
		return
	}
	p.pos += from + i + len(end)
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func (p *parser) put(n *node) {
	p.nodes++
	top := p.stack[len(p.stack)-1]
	top.children = append(top.children, n)
}

// close ends the innermost element of that name, and all in it.
func (p *parser) close() {
	start := p.pos + 2
	name := p.name(start)
	p.skip(">", 2)
	for i := len(p.stack) - 1; i > 0; i-- {
		if p.stack[i].tag == name {
			p.stack = p.stack[:i]
			return
		}
	}
}

func (p *parser) name(from int) string {
	end := from
	for end < len(p.lower) && !strings.ContainsRune(" \t\r\n\f/>", rune(p.lower[end])) {
		end++
	}
	return p.lower[from:end]
}

func (p *parser) open() {
	n := &node{tag: p.name(p.pos + 1)}
	p.pos += 1 + len(n.tag)
	closed := p.attributes(n)
	p.endBefore(n.tag)
	p.put(n)
	switch {
	case raw[n.tag]:
		p.rawText(n)
	case !void[n.tag] && !closed && len(p.stack) < maxDepth:
		p.stack = append(p.stack, n)
	}
}

// attributes reads them up to the tag's end; closed reports "/>" of a foreign
// element, which HTML does not have.
func (p *parser) attributes(n *node) (closed bool) {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; c {
		case '>':
			p.pos++
			return closed && (n.tag == "svg" || n.tag == "path" || n.tag == "use")
		case ' ', '\t', '\r', '\n', '\f', '/':
			closed = c == '/'
			p.pos++
		default:
			closed = false
			p.attribute(n)
		}
	}
	return false
}

func (p *parser) attribute(n *node) {
	start := p.pos
	for p.pos < len(p.text) && !strings.ContainsRune(" \t\r\n\f/>=", rune(p.text[p.pos])) {
		p.pos++
	}
	key := p.lower[start:p.pos]
	if p.pos == start { // a "=" without a name
		p.pos++
		return
	}
	value := ""
	if p.pos < len(p.text) && p.text[p.pos] == '=' {
		p.pos++
		value = p.value()
	}
	if n.attrs == nil {
		n.attrs = map[string]string{}
	}
	if _, ok := n.attrs[key]; !ok && len(n.attrs) < 100 {
		n.attrs[key] = html.UnescapeString(value)
	}
}

func (p *parser) value() string {
	if p.pos < len(p.text) && (p.text[p.pos] == '"' || p.text[p.pos] == '\'') {
		quote := p.text[p.pos]
		p.pos++
		end := strings.IndexByte(p.text[p.pos:], quote)
		if end < 0 {
			end = len(p.text) - p.pos
		}
		v := p.text[p.pos : p.pos+end]
		p.pos = min(p.pos+end+1, len(p.text))
		return v
	}
	start := p.pos
	for p.pos < len(p.text) && !strings.ContainsRune(" \t\r\n\f>", rune(p.text[p.pos])) {
		p.pos++
	}
	return p.text[start:p.pos]
}

// rawText takes everything up to the element's own end.
func (p *parser) rawText(n *node) {
	end := strings.Index(p.lower[p.pos:], "</"+n.tag)
	if end < 0 {
		end = len(p.text) - p.pos
	}
	text := p.text[p.pos : p.pos+end]
	if n.tag == "title" || n.tag == "textarea" {
		text = html.UnescapeString(text)
	}
	n.children = []*node{{text: text}}
	p.pos += end
	if p.pos < len(p.text) {
		p.skip(">", 2)
	}
}

// endBefore ends what a new element ends without saying so.
func (p *parser) endBefore(tag string) {
	if blocks[tag] && p.stack[len(p.stack)-1].tag == "p" {
		p.stack = p.stack[:len(p.stack)-1]
	}
	for _, s := range siblings {
		if !s.tags[tag] {
			continue
		}
		for i := len(p.stack) - 1; i > 0 && !s.within[p.stack[i].tag]; i-- {
			if s.tags[p.stack[i].tag] {
				p.stack = p.stack[:i]
				return
			}
		}
	}
}

// find is the first element with one of the tags, in the order of the text.
func (n *node) find(tags ...string) *node {
	if slices.Contains(tags, n.tag) {
		return n
	}
	for _, c := range n.children {
		if f := c.find(tags...); f != nil {
			return f
		}
	}
	return nil
}

// all are the elements with the tag, outermost first.
func (n *node) all(tag string) []*node {
	if n.tag == tag {
		return []*node{n}
	}
	var list []*node
	for _, c := range n.children {
		list = append(list, c.all(tag)...)
	}
	return list
}

// size is how much text is in it, without what is no text.
func (n *node) size() int {
	if n.tag == "" {
		return len(strings.TrimSpace(n.text))
	}
	if dropped[n.tag] {
		return 0
	}
	sum := 0
	for _, c := range n.children {
		sum += c.size()
	}
	return sum
}
