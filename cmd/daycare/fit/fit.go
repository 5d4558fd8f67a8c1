package fit

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds in columns: a narrower terminal, and a narrower description of a flag, are left as they are.
const (
	leastWidth       = 40
	leastDescription = 20
)

// Help lays out the help of a command for so many columns. Paragraphs with a line that is too long are filled, descriptions of
// flags and commands continue in their column. Examples stay as they are, so that they can be copied.
func Help(text string, width int) string {
	if width < leastWidth {
		return text
	}
	var out []string
	for lines := strings.Split(text, "\n"); len(lines) > 0; {
		n := 0
		for n < len(lines) && lines[n] != "" && lines[n][0] != ' ' {
			n++
		}
		n = max(n, 1)
		out = append(out, block(lines[:n], width)...)
		lines = lines[n:]
	}

	return strings.Join(out, "\n")
}

// block lays out a paragraph, or one line with an indent.
func block(lines []string, width int) []string {
	if !slices.ContainsFunc(lines, func(line string) bool { return utf8.RuneCountInString(line) > width }) {
		return lines
	}
	first := lines[0]
	if first[0] != ' ' {
		return fill(strings.Join(lines, " "), width)
	}
	first = strings.TrimRight(first, " ")
	at := strings.LastIndex(first, "  ") + 2
	column := utf8.RuneCountInString(first[:at])
	if strings.TrimSpace(first[:at]) == "" || first[at] == '#' || width-column < leastDescription {
		return lines
	}

	filled := fill(first[at:], width-column)
	for i, line := range filled {
		filled[i] = strings.Repeat(" ", column) + line
	}
	filled[0] = first[:at] + filled[0][column:]

	return filled
}

// fill breaks text into lines between its words. A word that is too long has a line alone.
func fill(text string, width int) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}

	return lines
}
