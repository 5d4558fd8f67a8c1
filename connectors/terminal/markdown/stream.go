package markdown

import "strings"

// A Stream sets a text that grows: what can no longer change is set once, in an open code block
// each line. The end of it may look different until it is whole. The zero value is ready.
type Stream struct {
	Margin string // before each line

	renderer *Renderer
	width    int
	head     string     // lines that are final
	lines    []string   // of head
	open     *codeBlock // that head ends in, nil: in none
}

// A codeBlock is one whose end has not come.
type codeBlock struct {
	mark   string // that it began with
	coder  coder
	blanks int  // empty lines at its end: they are shown when more follows
	begun  bool // a line of it was set
}

// Lines are those of r.Lines, as far as the text has come.
func (s *Stream) Lines(r *Renderer, source string, width int) []string {
	if s.renderer != r || s.width != width || !strings.HasPrefix(source, s.head) {
		*s = Stream{Margin: s.Margin, renderer: r, width: width}
	}
	for {
		n := s.step(source[len(s.head):])
		if n == 0 {
			break
		}
		s.head = source[:len(s.head)+n]
	}
	rest, set := source[len(s.head):], s.lines[:len(s.lines):len(s.lines)]
	if s.open == nil {
		return s.spaced(set, r.Lines(rest, width))
	}
	now := *s.open // the line in progress may be set again
	if rest != "" && !closing(rest, now.mark) {
		set = append(set, s.code(&now, rest)...)
	}

	return append(set, s.end(&now)...)
}

// step makes lines of the beginning of a text that are final, and says how much that is.
func (s *Stream) step(text string) int {
	line, _, whole := strings.Cut(text, "\n")
	mark, language := opening(line)
	switch {
	case s.open != nil && !whole:
		return 0
	case s.open != nil && closing(line, s.open.mark):
		s.lines = append(s.lines, s.end(s.open)...)
		s.open = nil
		return len(line) + 1
	case s.open != nil:
		s.lines = append(s.lines, s.code(s.open, line)...)
		return len(line) + 1
	case mark != "" && whole:
		if len(s.lines) > 0 {
			s.lines = append(s.lines, s.Margin)
		}
		s.open = &codeBlock{mark: mark, coder: s.renderer.coder(language)}
		return len(line) + 1
	}
	n := settled(text)
	if n > 0 {
		s.lines = s.spaced(s.lines, s.renderer.Lines(text[:n], s.width))
	}

	return n
}

// code sets a line of a code block, after the empty ones before it.
func (s *Stream) code(b *codeBlock, line string) (lines []string) {
	line = Clean(strings.TrimSuffix(line, "\r"))
	if line == "" {
		b.blanks++
		return nil
	}
	for ; b.blanks > 0; b.blanks-- {
		lines = append(lines, b.coder.line("", s.inside())...)
	}
	b.begun = true
	return prefix(s.Margin+s.renderer.bar(), append(lines, b.coder.line(line, s.inside())...))
}

// inside is how wide code is set.
func (s *Stream) inside() int { return max(s.width, minWidth) - 2 }

// end is the line that an empty code block has.
func (s *Stream) end(b *codeBlock) []string {
	if b.begun {
		return nil
	}
	return []string{s.Margin + s.renderer.bar()}
}

// opening is what a code block begins with in this line, and its language; "" if none does.
func opening(line string) (mark, language string) {
	n := len(line) - len(strings.TrimLeft(line, "`"))
	if n < 3 {
		n = len(line) - len(strings.TrimLeft(line, "~"))
	}
	info := strings.TrimSpace(line[n:])
	if n < 3 || line[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	language, _, _ = strings.Cut(info, " ")
	return line[:n], language
}

// closing reports whether a line ends a code block that began with this mark.
func closing(line, mark string) bool {
	text := strings.TrimLeft(line, " ")
	ends := strings.TrimRight(text, " \t\r")
	return len(line)-len(text) <= 3 && len(ends) >= len(mark) && strings.Trim(ends, mark[:1]) == ""
}

// spaced puts an empty line between two parts of a text.
func (s *Stream) spaced(head, tail []string) []string {
	if len(head) > 0 && len(tail) > 0 {
		head = append(head, s.Margin)
	}
	return append(head, prefix(s.Margin, tail)...)
}

// settled is how much of a text can be final: up to the first code block that is
// for itself, else to the last empty line after which something new begins.
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
		if open, _ := opening(line); fence == "" && open != "" && at > 0 {
			return at
		}
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
