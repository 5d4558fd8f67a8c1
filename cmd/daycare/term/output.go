package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"daycare/engine/plain"
)

// An output is standard output that is no terminal. It keeps the first error, so that Run can say that data was lost:
// not everything that prints looks.
type output struct {
	io.Writer
	failed atomic.Pointer[error]
}

// Write writes data, as the one beneath does.
func (o *output) Write(data []byte) (int, error) {
	n, err := o.Writer.Write(data)
	if err != nil {
		o.failed.CompareAndSwap(nil, &err)
	}

	return n, err
}

// lost is the first error.
func (o *output) lost() error {
	if err := o.failed.Load(); err != nil {
		return fmt.Errorf("write output: %w", *err)
	}
	return nil
}

// PrintJSON writes v as one line: all of a command's output, or one of a stream.
func (s *Streams) PrintJSON(v any) error { return printJSON(s.Out, v) }

func printJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write output: %w", err)
	}

	return printLine(w, b.Bytes())
}

// PrintLine writes a line of JSON unchanged, except that it escapes characters that could control a terminal,
// which may be at the other end of a pipe.
func (s *Streams) PrintLine(line []byte) error { return printLine(s.Out, line) }

func printLine(w io.Writer, line []byte) error {
	text := strings.TrimSuffix(string(line), "\n")
	if strings.ContainsFunc(text, plain.Steers) || !utf8.ValidString(text) {
		text = inert(text)
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}

	return nil
}

// inert is JSON with such characters spelled as \uXXXX, which says the same. They are
// in strings only; what is no JSON is cleaned.
func inert(text string) string {
	if !json.Valid([]byte(text)) {
		return Clean(text)
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < ' ': // a tab or a line end between two values
			b.WriteByte(' ')
		case plain.Steers(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}

	return b.String()
}

// Print writes data for a user, as Printf does.
func (s *Streams) Print(format string, args ...any) { _ = Printf(s.Out, format, args...) } // Run reports what is lost

// Say writes what a user reads beside the data, as Printf does.
func (s *Streams) Say(format string, args ...any) { _ = Printf(s.Err, format, args...) } // there is nowhere to say that it failed

// Printf formats as fmt.Fprintf does, and spells whatever could steer a terminal in the arguments, which are names, paths
// and texts of others. Styled stays as it is.
func Printf(w io.Writer, format string, args ...any) error {
	safe := make([]any, len(args))
	for i, a := range args {
		safe[i] = printable(a)
	}
	_, err := fmt.Fprintf(w, format, safe...)
	return err
}

// printable is an argument without what could steer a terminal. Numbers and times, which have none of it, stay.
func printable(arg any) any {
	switch a := arg.(type) {
	case nil, Styled, time.Time, time.Duration:
		return a
	case []byte:
		return Clean(string(a))
	case error, fmt.Stringer:
		return Clean(fmt.Sprint(a)) // which also takes one that is nil
	}

	switch reflect.ValueOf(arg).Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float32, reflect.Float64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return arg
	}

	return Clean(fmt.Sprint(arg))
}

// A Table is rows of cells, the first the headings.
type Table [][]string

// Row adds a row.
func (t *Table) Row(cells ...string) { *t = append(*t, cells) }

// Write aligns columns as terminals show them. The last column is as long as it is.
func (t Table) Write(w io.Writer, s Style) error {
	var width []int
	for _, row := range t {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], ansi.StringWidth(Clean(cell)))
		}
	}

	for n, row := range t {
		var b strings.Builder
		for i, cell := range row {
			cell = Clean(cell)
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-ansi.StringWidth(cell)+2))
			}
		}

		line := Styled(strings.TrimRight(b.String(), " "))
		if n == 0 {
			line = s.Dim(string(line))
		}
		if err := Printf(w, "%s\n", line); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}

	return nil
}

// Fields is a table of names and values without headings.
func (s *Streams) Fields(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, utf8.RuneCountInString(pairs[i]))
	}

	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		gap := strings.Repeat(" ", width-utf8.RuneCountInString(pairs[i])+2)
		s.Print("%s%s%s\n", s.OutStyle().Dim(pairs[i]), gap, pairs[i+1])
	}
}

// Ago says how long ago t was, the way users do.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	switch {
	case d < 5*time.Second:
		return "just now"
	case d > 30*24*time.Hour:
		return t.Local().Format("2006-01-02")
	}

	return Span(d) + " ago"
}

// AgoPtr is Ago of a time that may be missing.
func AgoPtr(t *time.Time, now time.Time) string {
	if t == nil {
		return "never"
	}
	return Ago(*t, now)
}

// Span is a length of time in its largest unit.
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d/time.Hour))
	}

	return fmt.Sprintf("%dd", int(d/(24*time.Hour)))
}

// Money is US dollars to the hundredth of a cent, which is what one answer of a
// small model costs.
func Money(usd float64) string { return fmt.Sprintf("$%.4f", usd) }

// Size is a number of bytes for users.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}

	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Plural is a number with the word for it: one for 1, else many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
