package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Row is one figure.
type Row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`            // "1/s", "ms", "MiB"
	Limit float64 `json:"limit,omitempty"` // what the machine allows, in the same unit; 0: no limit
	Ratio float64 `json:"ratio,omitempty"` // Value / Limit
	Note  string  `json:"note,omitempty"`
}

// Against is a Row that is compared with a limit.
func Against(name string, value float64, unit string, limit float64, note string) Row {
	r := Row{Name: name, Value: value, Unit: unit, Limit: limit, Note: note}
	if limit > 0 {
		r.Ratio = value / limit
	}

	return r
}

// Print writes the rows as a table: names and notes to the left, figures to the
// right of their column.
func Print(w io.Writer, rows []Row) error {
	table := [][]string{{"NAME", "VALUE", "UNIT", "LIMIT", "RATIO", "NOTE"}}
	for _, r := range rows {
		table = append(table, []string{r.Name, figure(r.Value), r.Unit, orDash(r.Limit), ratio(r.Ratio), r.Note})
	}
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}

	for _, line := range table {
		var b strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 1 || i == 3 || i == 4 {
				b.WriteString(pad + cell + "  ")
			} else {
				b.WriteString(cell + pad + "  ")
			}
		}

		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}

	return nil
}

// PrintJSON writes one object a line.
func PrintJSON(w io.Writer, rows []Row) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}

	return nil
}

// figure writes a number with three significant digits, and all digits before
// the point: more would claim a precision that no benchmark has.
func figure(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', min(max(digits, 0), 6), 64)
}

func orDash(v float64) string {
	if v == 0 {
		return "-"
	}
	return figure(v)
}

func ratio(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
