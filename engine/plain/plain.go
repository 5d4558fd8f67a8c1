package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is s with every character that steers a terminal spelled: \x1b, \u202e. Line breaks
// and tabs stay. A byte that is not UTF-8, which can be a control character to a terminal that
// expects another encoding, becomes U+FFFD.
func Text(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	if strings.IndexFunc(s, Steers) < 0 {
		return s
	}

	var b strings.Builder
	for _, r := range s {
		if Steers(r) {
			b.WriteString(spelled(r))
			continue
		}
		b.WriteRune(r)
	}

	return b.String()
}

// Steers reports control characters, and the marks that turn the reading direction
// around, with which a command can be made to look like another.
func Steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	}

	return r == '\u061c' || r == '\u200e' || r == '\u200f' ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

func spelled(r rune) string {
	const hex = "0123456789abcdef"
	if r < 0x100 {
		return `\x` + string(hex[r>>4]) + string(hex[r&15])
	}

	return `\u` + string([]byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]})
}
