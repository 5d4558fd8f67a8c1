package term

import (
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"daycare/engine/fault"
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

// TakesArchive reports an error if standard output is a terminal, which the bytes of an archive would steer.
func (s *Streams) TakesArchive() error {
	if !IsTerminal(s.Out) {
		return nil
	}
	return &Problem{Code: fault.ExitUsage, Err: errors.New("cannot write an archive to a terminal"),
		Do: "name a file, or pipe the output to a program"}
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

// Styled is text that is safe to print as it is: whatever could steer a terminal is spelled in it, except what a Style
// adds.
type Styled string

// Plain is text without a colour.
func Plain(text string) Styled { return Styled(Clean(text)) }

func (s Style) wrap(code, text string) Styled {
	safe := Plain(text)
	if !s || text == "" {
		return safe
	}

	return Styled("\x1b["+code+"m") + safe + "\x1b[0m"
}

// Dim is text that matters less.
func (s Style) Dim(text string) Styled { return s.wrap("2", text) }

// Bold is text that matters more.
func (s Style) Bold(text string) Styled { return s.wrap("1", text) }

// Red is text about what failed.
func (s Style) Red(text string) Styled { return s.wrap("31", text) }

// Yellow is text about what to look at.
func (s Style) Yellow(text string) Styled { return s.wrap("33", text) }

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
