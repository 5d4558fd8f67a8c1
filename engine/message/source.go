package message

import (
	"slices"
	"strings"
)

// What an agent keeps for later (a note, the memory of a task) is a text that other turns
// read as their own. So that it does not lose where it came from, a text of a turn that had
// read something from outside is marked: a comment of Markdown at the end of each
// paragraph, which users do not see in a rendered note and can take away by hand.
const (
	markBegin = "<!-- untrusted: "
	markEnd   = " -->"
)

// WithSource is a text with its source in it; a source of "" leaves it as it is.
func WithSource(text, source string) string {
	if source == "" || strings.TrimSpace(text) == "" {
		return text
	}
	source = strings.Join(strings.Fields(source), " ")
	for strings.Contains(source, "--") {
		source = strings.ReplaceAll(source, "--", "-")
	}

	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if last := i == len(lines)-1 || strings.TrimSpace(lines[i+1]) == ""; last && strings.TrimSpace(line) != "" {
			lines[i] = line + " " + markBegin + source + markEnd
		}
	}

	return strings.Join(lines, "\n")
}

// SourceOf is the sources that are in a text; "": none, so it speaks for its owner.
func SourceOf(text string) string {
	var sources []string
	for {
		_, rest, found := strings.Cut(text, markBegin)
		if !found {
			break
		}
		source, after, closed := strings.Cut(rest, markEnd)
		if !closed {
			source, after = "a text that was cut", ""
		}
		if !slices.Contains(sources, source) {
			sources = append(sources, source)
		}

		text = after
	}

	return bounded(strings.Join(sources, "; "))
}

// bounded keeps a source as short as a card can show it.
func bounded(source string) string {
	text := []rune(source)
	return string(text[:min(len(text), maxRelayed)])
}
