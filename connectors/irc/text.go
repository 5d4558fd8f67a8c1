package irc

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxLine is the most bytes of text in a line: 512 with the end of the line,
	// without our mask and the target, which the server puts before it.
	maxLine = 400
	// linesAPart keeps a part within what a flood limit lets through in time.
	linesAPart = 8
)

// lines makes of a text what is sent one by one: no empty lines, none too long,
// and nothing in them that would begin another command.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.Map(func(r rune) rune {
			switch r {
			case '\r', '\n', 0, 1: // 1 begins CTCP
				return -1
			case '\t':
				return ' '
			}

			return r
		}, strings.ToValidUTF8(line, "\uFFFD"))
		for strings.TrimSpace(line) != "" {
			head, rest := cut(line)
			all, line = append(all, head), rest
		}
	}

	return all
}

// cut takes off as much of a line as may be sent, between words if it can.
func cut(line string) (head, rest string) {
	if len(line) <= maxLine {
		return line, ""
	}
	n := maxLine
	for !utf8.RuneStart(line[n]) {
		n--
	}

	if space := strings.LastIndexByte(line[:n], ' '); space > maxLine/2 {
		return line[:space], line[space+1:]
	}

	return line[:n], line[n:]
}
