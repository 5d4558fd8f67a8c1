package plain

import "strings"

// Fenced is text as a block of code in Markdown, in which no Markdown has an effect, whatever is in it.
// may be empty.
func Fenced(text string) string {
	mark, run := 3, 0 // longer than what is in the text
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		mark = max(mark, run+1)
	}

	fence := strings.Repeat("`", mark)
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
