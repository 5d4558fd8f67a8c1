package markdown

import "strings"

// A Stream sets a text that grows: what can no longer change is set once. The end
// of it may look different until it is whole. The zero value is ready.
type Stream struct {
	renderer *Renderer
	width    int
	head     string   // what was set for good
	lines    []string // of head
}

// Lines are those of r.Lines, as far as the text has come.
func (s *Stream) Lines(r *Renderer, source string, width int) []string {
	if s.renderer != r || s.width != width || !strings.HasPrefix(source, s.head) {
		*s = Stream{renderer: r, width: width}
	}
	if cut := settled(source[len(s.head):]); cut > 0 {
		s.lines = spaced(s.lines, r.Lines(source[len(s.head):len(s.head)+cut], width))
		s.head = source[:len(s.head)+cut]
	}
	return spaced(s.lines[:len(s.lines):len(s.lines)], r.Lines(source[len(s.head):], width))
}

// spaced puts an empty line between two parts of a text.
func spaced(head, tail []string) []string {
	if len(head) > 0 && len(tail) > 0 {
		head = append(head, "")
	}
	return append(head, tail...)
}

// settled is how much of a text can be set for good: up to the last empty line
// after which something new begins, with no code block open.
func settled(text string) (cut int) {
	fence := ""
	at := 0
	blank := false
	for at < len(text) {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			break
		}
		line := text[at : at+end]
		if blank && fence == "" && fresh(line) {
			cut = at
		}
		mark := strings.TrimLeft(line, " >-*0123456789.")
		switch {
		case fence == "" && (strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~")):
			fence = mark[:3]
		case fence != "" && strings.HasPrefix(mark, fence):
			fence = ""
		}
		blank = strings.TrimSpace(line) == ""
		at += end + 1
	}
	return cut
}

// fresh: the line cannot belong to a list, a quote or an indented block above it.
func fresh(line string) bool {
	return line != "" && !strings.ContainsAny(line[:1], " \t>-*+|0123456789[")
}
