package term

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"daycare/engine/plain"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Asks reports whether a user can be asked something.
func (s *Streams) Asks() bool {
	return !s.NoInput && IsTerminal(s.In) && IsTerminal(s.Err)
}

// A Style colours text where that is wanted: on a terminal without NO_COLOR.
type Style bool

// ErrStyle is the style of what is said beside the data.
func (s *Streams) ErrStyle() Style { return styleOf(s.Err) }

// OutStyle is the style of data.
func (s *Streams) OutStyle() Style { return styleOf(s.Out) }

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

// Clean makes text safe to print. It is plain.Text, by the name that commands use.
func Clean(s string) string { return plain.Text(s) }

// OneLine is text on one line, at most n runes.
func OneLine(s string, n int) string {
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Cause is an error and its advice, which have a line each, on one line of at most n runes.
func Cause(err string, n int) string {
	return OneLine(strings.ReplaceAll(strings.TrimSpace(err), "\n", "; "), n)
}
