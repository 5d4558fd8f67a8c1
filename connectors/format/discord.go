package format

import (
	"strings"
	"unicode"
)

// Discord is Markdown as Discord shows it: what it does not know, such as tables, is laid
// out as text, and signs that a text has by chance are escaped. Links show no preview.
func Discord(source string) string {
	var b lineWriter
	for _, s := range parse(source) {
		text := s.text
		switch {
		case s.style&pre != 0:
			// A fence inside would end the block.
			lang, _, _ := strings.Cut(strings.TrimSpace(s.lang), " ")
			if strings.ContainsFunc(lang, func(r rune) bool {
				return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+-#", r)
			}) {
				lang = ""
			}
			text = "```" + lang + "\n" + strings.ReplaceAll(text, "```", "`\u200b``") + "\n```"
		case s.style&code != 0 && !strings.Contains(text, "`"):
			text = mark(text, "`")
		default:
			text = escapeDiscord(text, b.Len() == 0 || !b.mid)
			for _, m := range []struct {
				style style
				mark  string
			}{{strike, "~~"}, {italic, "*"}, {bold, "**"}} {
				if s.style&m.style != 0 {
					text = mark(text, m.mark)
				}
			}
		}

		if s.link != "" {
			text = discordLink(s, text)
		}
		b.write(text, s.style&quote != 0)
	}

	return strings.TrimSpace(b.String())
}

// discordLink is a link without a preview.
func discordLink(s span, text string) string {
	address := strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", "\n", "", ")", "%29").Replace(s.link)
	if s.link == s.text {
		return "<" + address + ">"
	}
	if !strings.HasPrefix(s.link, "http:") && !strings.HasPrefix(s.link, "https:") {
		return text + trailer(s) // Discord links to nothing else
	}

	return "[" + strings.ReplaceAll(text, "\n", " ") + "](<" + address + ">)"
}

// escapeDiscord has a text shown as it is. Addresses in it stay whole.
func escapeDiscord(text string, atStart bool) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		body := strings.TrimLeft(line, " ")
		b.WriteString(line[:len(line)-len(body)])
		if (i > 0 || atStart) && body != "" && strings.ContainsRune("#>-+", rune(body[0])) {
			b.WriteByte('\\')
		}

		for n, word := range strings.Split(body, " ") {
			if n > 0 {
				b.WriteByte(' ')
			}
			if at := max(strings.Index(word, "http://"), strings.Index(word, "https://")); at >= 0 {
				b.WriteString(discordSigns.Replace(word[:at]) + word[at:])
				continue
			}
			b.WriteString(discordSigns.Replace(word))
		}
	}

	return b.String()
}

var discordSigns = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`, "[", `\[`, "]", `\]`)
