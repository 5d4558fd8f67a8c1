package main

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// asks reports whether a person can be asked something.
func (c *cli) asks() bool {
	return !c.noInput && isTerminal(c.stdin) && isTerminal(c.stderr)
}

// A style colours text where that is wanted: on a terminal without NO_COLOR.
type style bool

func (c *cli) talk() style { return styleOf(c.stderr) }
func (c *cli) data() style { return styleOf(c.stdout) }

func styleOf(w io.Writer) style {
	return style(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w))
}

func (s style) wrap(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) dim(text string) string    { return s.wrap("2", text) }
func (s style) bold(text string) string   { return s.wrap("1", text) }
func (s style) red(text string) string    { return s.wrap("31", text) }
func (s style) yellow(text string) string { return s.wrap("33", text) }

// clean makes text from models, people and files safe to print: whatever could
// steer the terminal becomes visible. Line breaks and tabs stay.
func clean(s string) string {
	if strings.IndexFunc(s, steers) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if steers(r) {
			b.WriteString(visible(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
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

// oneLine is text on one line, at most n runes.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
