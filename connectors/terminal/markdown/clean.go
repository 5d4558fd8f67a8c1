package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text from models, people and files safe to show: whatever could
// steer the terminal becomes visible. Line breaks and tabs stay.
func Clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd") // a byte alone can be a control character, too
	}
	if strings.IndexFunc(s, steers) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		if steers(r) {
			b.WriteString(visible(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// OneLine is text on one line, cleaned; at most n runes.
func OneLine(s string, n int) string {
	if len(s) > 8*n { // what lies behind is not shown: do not look at all of it
		s = strings.ToValidUTF8(s[:8*n], "")
	}
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:max(n-1, 0)]) + "…"
	}
	return s
}

// steers: control characters, and the marks that turn the reading direction
// around, with which a command can be made to look like another.
func steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	}
	return r == '\u061c' || r == '\u200e' || r == '\u200f' ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

func visible(r rune) string {
	const hex = "0123456789abcdef"
	if r < 0x100 {
		return `\x` + string(hex[r>>4]) + string(hex[r&15])
	}
	return `\u` + string([]byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]})
}
