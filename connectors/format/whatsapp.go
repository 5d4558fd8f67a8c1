package format

import "strings"

// WhatsApp is Markdown as WhatsApp shows it: links are followed by where they lead.
func WhatsApp(source string) string {
	var b lineWriter
	for _, s := range parse(source) {
		b.write(marked(s.text, s.style)+trailer(s), s.style&quote != 0)
	}

	return strings.TrimSpace(b.String())
}
