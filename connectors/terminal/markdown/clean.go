package markdown

import (
	"strings"

	"daycare/engine/plain"
)

// Clean makes text from models, users and files safe to show, also where its lines end as
// on Windows.
func Clean(s string) string { return plain.Text(strings.ReplaceAll(s, "\r\n", "\n")) }

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
