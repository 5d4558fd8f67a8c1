package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// printJSON writes v as one line: all of a command's output, or one of a stream.
func (c *cli) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return c.printLine(b.Bytes())
}

// printLine writes a line of JSON as it is, but for characters that could steer a
// terminal, which may be at the other end of a pipe: JSON can spell them.
func (c *cli) printLine(line []byte) error {
	text := strings.TrimSuffix(string(line), "\n")
	if strings.ContainsFunc(text, steers) {
		text = inert(text)
	}
	if _, err := fmt.Fprintln(c.stdout, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// inert is JSON with such characters spelled as \uXXXX, which says the same. They are
// in strings only; what is no JSON is cleaned.
func inert(text string) string {
	if !json.Valid([]byte(text)) {
		return clean(text)
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < ' ': // a tab or a line end between two values
			b.WriteByte(' ')
		case steers(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// print writes data for a person.
func (c *cli) print(format string, args ...any) {
	fmt.Fprintf(c.stdout, format, args...)
}

// A table is rows of cells, the first the headings.
type table [][]string

func (t *table) row(cells ...string) { *t = append(*t, cells) }

// write aligns columns by runes. The last column is as long as it is.
func (t table) write(w io.Writer, s style) error {
	var width []int
	for _, row := range t {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(clean(cell)))
		}
	}
	for n, row := range t {
		var b strings.Builder
		for i, cell := range row {
			cell = clean(cell)
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if n == 0 {
			line = s.dim(line)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

// fields is a table of names and values without headings.
func (c *cli) fields(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, utf8.RuneCountInString(pairs[i]))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		gap := strings.Repeat(" ", width-utf8.RuneCountInString(pairs[i])+2)
		fmt.Fprintln(c.stdout, c.data().dim(pairs[i])+gap+clean(pairs[i+1]))
	}
}

// ago says how long ago t was, the way people do.
func ago(t, now time.Time) string {
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
	return span(d) + " ago"
}

func agoPtr(t *time.Time, now time.Time) string {
	if t == nil {
		return "never"
	}
	return ago(*t, now)
}

// span is a length of time in its largest unit.
func span(d time.Duration) string {
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

// money is US dollars to the hundredth of a cent, which is what one answer of a
// small model costs.
func money(usd float64) string { return fmt.Sprintf("$%.4f", usd) }

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
