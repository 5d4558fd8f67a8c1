package term

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Asks reports whether a person can be asked something.
func (c *App) Asks() bool {
	return !c.NoInput && IsTerminal(c.In) && IsTerminal(c.Err)
}

// A Style colours text where that is wanted: on a terminal without NO_COLOR.
type Style bool

// ErrStyle is the style of what is said beside the data.
func (c *App) ErrStyle() Style { return styleOf(c.Err) }

// OutStyle is the style of data.
func (c *App) OutStyle() Style { return styleOf(c.Out) }

func styleOf(w io.Writer) Style {
	return Style(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(w))
}

func (s Style) wrap(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Dim is text that matters less.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

// Bold is text that matters more.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Red is text about what failed.
func (s Style) Red(text string) string { return s.wrap("31", text) }

// Yellow is text about what to look at.
func (s Style) Yellow(text string) string { return s.wrap("33", text) }

// Clean makes text from models, people and files safe to print: whatever could
// steer the terminal becomes visible. Line breaks and tabs stay.
func Clean(s string) string {
	if strings.IndexFunc(s, Steers) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if Steers(r) {
			b.WriteString(visible(r))
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

func visible(r rune) string {
	const hex = "0123456789abcdef"
	if r < 0x100 {
		return `\x` + string(hex[r>>4]) + string(hex[r&15])
	}
	return `\u` + string([]byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]})
}

// OneLine is text on one line, at most n runes.
func OneLine(s string, n int) string {
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
