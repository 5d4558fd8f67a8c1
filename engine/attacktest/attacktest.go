package attacktest

import (
	"strings"
	"testing"
)

// A Row is one attack that was tried and held.
type Row struct {
	Class string
	Level string // of the sandbox, and the user; "": neither makes a difference
	How   string // what held it, as the attacker saw it
	Name  string
}

const mark = "attack | "

// Held logs a row.
func Held(t testing.TB, r Row) {
	t.Helper()
	t.Log(mark + strings.Join([]string{r.Class, r.Level, r.How, r.Name}, " | "))
}

// Rows are those that the output of go test -v has.
func Rows(output string) (rows []Row) {
	for line := range strings.Lines(output) {
		_, line, found := strings.Cut(strings.TrimSpace(line), mark)
		if parts := strings.SplitN(line, " | ", 4); found && len(parts) == 4 {
			rows = append(rows, Row{parts[0], parts[1], parts[2], parts[3]})
		}
	}

	return rows
}
