package fetch

import (
	"fmt"
	"net/url"
	"strings"
)

// dropped elements are not what a page says.
var dropped = words("script style noscript template svg canvas iframe object embed audio video map head button select " +
	"input textarea dialog nav aside footer")

// markdown is what a page says, as Markdown, with its title. Links are made
// absolute by base.
func markdown(page string, base *url.URL) (title, text string) {
	root := parse(page)
	if t := root.find("title"); t != nil {
		title = flat(t.plain())
	}
	if b := root.find("base"); b != nil {
		if u, err := base.Parse(b.attrs["href"]); err == nil {
			base = u
		}
	}
	w := &writer{base: base}
	w.block(content(root))
	return title, tidy(w.b.String())
}

// content is the part of a page that is about something: the largest article, or
// main, if it holds a good part of the text; else everything.
func content(root *node) *node {
	body := root.find("body")
	if body == nil {
		body = root
	}
	best := body
	total := body.size()
	for _, tag := range []string{"main", "article"} {
		for _, n := range body.all(tag) {
			if size := n.size(); size > 200 && size*3 > total && (best == body || tag == "article" && size*2 > best.size()) {
				best = n
			}
		}
	}
	return best
}

// A writer turns elements into Markdown.
type writer struct {
	b    strings.Builder
	base *url.URL
	list []string // the open lists: "-" or "1."
	pre  bool
	cell bool // in a table's cell: no line may end
}

func (w *writer) block(n *node) {
	for _, c := range n.children {
		w.node(c)
	}
}

func (w *writer) node(n *node) {
	switch {
	case n.tag == "":
		w.text(n.text)
		return
	case dropped[n.tag], n.attrs["hidden"] != "" || n.attrs["aria-hidden"] == "true":
		return
	}
	switch n.tag {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.para(func() { w.b.WriteString(strings.Repeat("#", int(n.tag[1]-'0')) + " " + flat(w.inline(n))) })
	case "br":
		w.line()
	case "hr":
		w.para(func() { w.b.WriteString("---") })
	case "a":
		w.link(n)
	case "img":
		w.image(n)
	case "strong", "b":
		w.around(n, "**")
	case "em", "i":
		w.around(n, "*")
	case "code", "kbd", "samp", "tt":
		w.code(n)
	case "pre":
		w.preformatted(n)
	case "ul", "ol", "menu":
		w.lists(n)
	case "li":
		w.item(n)
	case "blockquote":
		w.quote(n)
	case "table":
		w.table(n)
	default:
		if blocks[n.tag] || n.tag == "dt" || n.tag == "dd" || n.tag == "figcaption" || n.tag == "body" || n.tag == "#" {
			w.para(func() { w.block(n) })
			return
		}
		w.block(n)
	}
}

// text writes running text: white space is one space.
func (w *writer) text(text string) {
	if w.pre {
		w.b.WriteString(text)
		return
	}
	fields := strings.Fields(text)
	if len(fields) == 0 {
		w.space()
		return
	}
	if strings.TrimLeft(text, " \t\r\n") != text {
		w.space()
	}
	w.b.WriteString(strings.Join(fields, " "))
	if strings.TrimRight(text, " \t\r\n") != text {
		w.space()
	}
}

func (w *writer) space() {
	s := w.b.String()
	if s != "" && !strings.HasSuffix(s, " ") && !strings.HasSuffix(s, "\n") {
		w.b.WriteByte(' ')
	}
}

// para puts empty lines around what f writes.
func (w *writer) para(f func()) {
	if w.cell {
		w.space()
		f()
		w.space()
		return
	}
	w.b.WriteString("\n\n")
	f()
	w.b.WriteString("\n\n")
}

func (w *writer) line() {
	if w.cell {
		w.space()
		return
	}
	w.b.WriteString("\n")
}

// inline is what an element says, written apart.
func (w *writer) inline(n *node) string {
	sub := &writer{base: w.base, cell: true}
	sub.block(n)
	return strings.TrimSpace(sub.b.String())
}

func (w *writer) around(n *node, mark string) {
	if text := w.inline(n); text != "" {
		w.b.WriteString(mark + text + mark)
	}
}

func (w *writer) code(n *node) {
	if text := n.plain(); strings.TrimSpace(text) != "" {
		w.b.WriteString("`" + strings.ReplaceAll(flat(text), "`", "'") + "`")
	}
}

func (w *writer) preformatted(n *node) {
	text := strings.Trim(n.plain(), "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	w.b.WriteString("\n\n" + fence + "\n" + text + "\n" + fence + "\n\n")
}

func (w *writer) link(n *node) {
	text := flat(w.inline(n))
	href := w.absolute(n.attrs["href"])
	switch {
	case text == "":
	case href == "":
		w.b.WriteString(text)
	default:
		w.b.WriteString("[" + text + "](" + href + ")")
	}
}

func (w *writer) image(n *node) {
	alt := flat(n.attrs["alt"])
	if src := w.absolute(n.attrs["src"]); alt != "" && src != "" {
		w.b.WriteString("![" + alt + "](" + src + ")")
	}
}

// absolute is a link as it can be fetched; "" if it cannot.
func (w *writer) absolute(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || strings.HasPrefix(href, "#") {
		return ""
	}
	u, err := w.base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	return strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(u.String())
}

func (w *writer) lists(n *node) {
	mark := "-"
	if n.tag == "ol" {
		mark = "1."
	}
	w.list = append(w.list, mark)
	if len(w.list) == 1 {
		w.b.WriteString("\n")
	}
	w.block(n)
	w.list = w.list[:len(w.list)-1]
	if len(w.list) == 0 {
		w.b.WriteString("\n\n")
	}
}

func (w *writer) item(n *node) {
	mark, depth := "-", 0
	if len(w.list) > 0 {
		mark, depth = w.list[len(w.list)-1], len(w.list)-1
	}
	sub := &writer{base: w.base, list: w.list}
	sub.block(n)
	text := tidy(sub.b.String())
	if text == "" {
		return
	}
	indent := strings.Repeat("  ", min(depth, 1))
	w.b.WriteString("\n" + indent + mark + " " + strings.ReplaceAll(text, "\n", "\n"+indent+"  "))
}

func (w *writer) quote(n *node) {
	sub := &writer{base: w.base}
	sub.block(n)
	if text := tidy(sub.b.String()); text != "" {
		w.b.WriteString("\n\n> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n\n")
	}
}

// table writes rows; one of a single column is only layout.
func (w *writer) table(n *node) {
	var rows [][]string
	columns := 0
	for _, tr := range n.all("tr") {
		var row []string
		for _, c := range tr.children {
			if c.tag == "td" || c.tag == "th" {
				row = append(row, strings.ReplaceAll(flat(w.inline(c)), "|", `\|`))
			}
		}
		if len(row) > 0 {
			rows, columns = append(rows, row), max(columns, len(row))
		}
	}
	if columns < 2 || columns > 50 {
		w.para(func() { w.block(n) })
		return
	}
	w.b.WriteString("\n\n")
	for i, row := range rows {
		for len(row) < columns {
			row = append(row, "")
		}
		fmt.Fprintf(&w.b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			w.b.WriteString("|" + strings.Repeat(" --- |", columns) + "\n")
		}
	}
	w.b.WriteString("\n")
}

// plain is all text in an element, as it stands.
func (n *node) plain() string {
	if n.tag == "" {
		return n.text
	}
	if n.tag == "br" {
		return "\n"
	}
	var b strings.Builder
	for _, c := range n.children {
		b.WriteString(c.plain())
	}
	return b.String()
}

func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// tidy takes superfluous space away: at line ends, and more than one empty line.
// What is between fences stays.
func tidy(text string) string {
	var out []string
	empty, fence := 0, ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimRight(line, " \t")
		bare := strings.TrimLeft(trimmed, " >")
		if fence == "" && strings.HasPrefix(bare, "```") {
			fence = bare
		} else if fence != "" && bare == fence {
			fence = ""
		}
		if trimmed == "" && fence == "" {
			empty++
			continue
		}
		if empty > 0 && len(out) > 0 {
			out = append(out, "")
		}
		empty = 0
		out = append(out, trimmed)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}
