package format

import "strings"

// WhatsApp is Markdown as WhatsApp shows it: links are followed by where they lead.
func WhatsApp(source string) string {
	var b lineWriter
	for _, s := range parse(source) {
		text := s.text
		switch {
		case s.style&pre != 0:
			// A fence inside would end the block.
			text = "```\n" + strings.ReplaceAll(text, "```", "`\u200b``") + "\n```"
		case s.style&code != 0 && !strings.Contains(text, "`"):
			text = mark(text, "`")
		default:
			for _, m := range []struct {
				style style
				mark  string
			}{{strike, "~"}, {italic, "_"}, {bold, "*"}} {
				if s.style&m.style != 0 {
					text = mark(text, m.mark)
				}
			}
		}
		b.write(text+trailer(s), s.style&quote != 0)
	}

	return strings.TrimSpace(b.String())
}
