package format

import (
	"html"
	"strings"
	"unicode"
)

// Length is how long Markdown is as a user reads it, in units of count (nil:
// characters): without marks and without where links lead.
func Length(source string, count func(string) int) int {
	if count == nil {
		count = func(s string) int { return len([]rune(s)) }
	}
	n := 0
	for _, s := range parse(source) {
		n += count(s.text)
	}

	return n
}

// Plain is Markdown for platforms without styles: the marks are gone, links are
// followed by where they lead, quotes keep their >.
func Plain(source string) string {
	var b lineWriter
	for _, s := range parse(source) {
		b.write(s.text+trailer(s), s.style&quote != 0)
	}

	return strings.TrimRightFunc(dropBlank(b.String()), unicode.IsSpace)
}

// dropBlank takes blank lines off the beginning. Space before the first words stays:
// in code that was cut in two it is the indentation.
func dropBlank(text string) string {
	for {
		line, rest, _ := strings.Cut(text, "\n")
		if strings.TrimSpace(line) != "" || text == "" {
			return text
		}
		text = rest
	}
}

// trailer is where a link leads, if its text does not say it.
func trailer(s span) string {
	if s.link == "" || s.link == s.text || s.link == "mailto:"+s.text {
		return ""
	}
	return " (" + s.link + ")"
}

// A lineWriter begins quoted lines with a mark.
type lineWriter struct {
	strings.Builder
	mid bool // in the middle of a line
}

func (w *lineWriter) write(text string, quoted bool) {
	for line := range strings.Lines(text) {
		if !w.mid && quoted {
			w.WriteString("> ")
		}
		w.WriteString(line)
		w.mid = !strings.HasSuffix(line, "\n")
	}
}

// Telegram renders Markdown as the HTML that Telegram accepts: a handful of tags, closed in order, and no entities
// except those of < > & ".
func Telegram(source string) string {
	var b strings.Builder
	var open []tag
	for _, s := range parse(source) {
		want := telegramTags(s)
		keep := 0
		for keep < len(open) && keep < len(want) && open[keep] == want[keep] {
			keep++
		}

		closeTags(&b, open[keep:])
		for _, t := range want[keep:] {
			b.WriteString(t.begin())
		}

		open = want
		b.WriteString(html.EscapeString(s.text))
		if s.style&pre != 0 { // two blocks in a row stay two
			closeTags(&b, open)
			open = nil
		}
	}

	closeTags(&b, open)
	// Its parser knows few named entities; these two are written as numbers by Go.
	return strings.NewReplacer("&#34;", "&quot;", "&#39;", "'").Replace(strings.TrimSpace(b.String()))
}

type tag struct{ name, attr string }

func (t tag) begin() string {
	if t.attr == "" {
		return "<" + t.name + ">"
	}
	return "<" + t.name + " " + t.attr + ">"
}

func closeTags(b *strings.Builder, open []tag) {
	for i := len(open) - 1; i >= 0; i-- {
		b.WriteString("</" + open[i].name + ">")
	}
}

// telegramTags are the tags around a span, outermost first. Nothing may be inside
// pre and code, and pre not inside a quotation.
func telegramTags(s span) []tag {
	if s.style&pre != 0 {
		if lang, _, _ := strings.Cut(strings.TrimSpace(s.lang), " "); lang != "" {
			return []tag{{"pre", ""}, {"code", `class="language-` + html.EscapeString(lang) + `"`}}
		}
		return []tag{{"pre", ""}}
	}

	var tags []tag
	if s.style&quote != 0 {
		tags = append(tags, tag{"blockquote", ""})
	}
	if s.link != "" {
		tags = append(tags, tag{"a", `href="` + html.EscapeString(s.link) + `"`})
	}
	if s.style&code != 0 {
		return append(tags, tag{"code", ""})
	}

	for _, t := range []struct {
		style style
		name  string
	}{{bold, "b"}, {italic, "i"}, {strike, "s"}} {
		if s.style&t.style != 0 {
			tags = append(tags, tag{t.name, ""})
		}
	}

	return tags
}

// Slack is Markdown as mrkdwn.
func Slack(source string) string {
	var b lineWriter
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	for _, s := range parse(source) {
		text := marked(escape.Replace(s.text), s.style)
		if s.link != "" {
			text = "<" + strings.NewReplacer("|", "%7C", ">", "%3E", "<", "%3C", " ", "%20", "\n", "").Replace(escape.Replace(s.link)) +
				"|" + strings.ReplaceAll(text, "\n", " ") + ">"
		}
		b.write(text, s.style&quote != 0)
	}

	return strings.TrimSpace(b.String())
}

// marked is text with the marks that Slack and WhatsApp have for its style.
func marked(text string, is style) string {
	switch {
	case is&pre != 0:
		// A fence inside would end the block.
		return "```\n" + strings.ReplaceAll(text, "```", "`\u200b``") + "\n```"
	case is&code != 0 && !strings.Contains(text, "`"):
		return mark(text, "`")
	}

	for _, m := range []struct {
		style style
		mark  string
	}{{strike, "~"}, {italic, "_"}, {bold, "*"}} {
		if is&m.style != 0 {
			text = mark(text, m.mark)
		}
	}

	return text
}

// mark puts a mark around each line of text, inside of the spaces at its ends,
// where Slack does not see one.
func mark(text, with string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimSpace(line)
		if body == "" {
			b.WriteString(line)
			continue
		}
		start := strings.Index(line, body)
		b.WriteString(line[:start] + with + body + with + line[start+len(body):])
	}

	return b.String()
}

// A Style is a stretch of a Signal message that looks different, in UTF-16 units.
type Style struct {
	Start, Length int
	Name          string // BOLD, ITALIC, STRIKETHROUGH, MONOSPACE
}

// Signal is Markdown as a text and the styles in it, ordered by start.
func Signal(source string) (string, []Style) {
	var b lineWriter
	var styles []Style
	at := 0
	for _, s := range parse(source) {
		before := b.Len()
		b.write(s.text+trailer(s), s.style&quote != 0)
		n := UTF16(b.String()[before:])
		for _, t := range []struct {
			style style
			name  string
		}{{bold, "BOLD"}, {italic, "ITALIC"}, {strike, "STRIKETHROUGH"}, {code | pre, "MONOSPACE"}} {
			if s.style&t.style != 0 {
				styles = append(styles, Style{at, n, t.name})
			}
		}

		at += n
	}

	return trimStyled(b.String(), styles)
}

// trimStyled takes blank lines off the beginning and space off the end of a text and
// moves the styles along.
func trimStyled(text string, styles []Style) (string, []Style) {
	left := dropBlank(text)
	cut := UTF16(text[:len(text)-len(left)])
	text = strings.TrimRightFunc(left, unicode.IsSpace)
	end := UTF16(text)
	kept := styles[:0]
	for _, s := range styles {
		from, to := max(s.Start-cut, 0), min(s.Start+s.Length-cut, end)
		if from < to {
			kept = append(kept, Style{from, to - from, s.Name})
		}
	}

	return text, kept
}
