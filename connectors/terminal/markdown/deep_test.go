package markdown

import (
	"strings"
	"testing"
	"time"

	"daycare/connectors/terminal/theme"
)

// Nothing that fits a message takes long to set: some milliseconds each, and on no
// machine a minute.
func TestDeep(t *testing.T) {
	for name, source := range map[string]string{
		"quotes":     strings.Repeat(">", 4000) + " x",
		"lists":      strings.Repeat("- ", 2000) + "x",
		"stars":      strings.Repeat("*a", 4000),
		"brackets":   strings.Repeat("[", 4000),
		"columns":    strings.Repeat("|a", 1000) + "|\n" + strings.Repeat("|-", 1000) + "|\n" + strings.Repeat("|b", 1000) + "|",
		"short rows": strings.Repeat("|a", 4000) + "\n" + strings.Repeat("|-", 4000) + "\n" + strings.Repeat("b\n", 4000),
		"long word":  strings.Repeat("x", 200_000),
		"long text":  strings.Repeat("some words, **strong** and `code`.\n\n", 5000),
	} {
		began := time.Now()
		lines := New(theme.New(theme.Terminal{Dark: true})).Lines(source, 80)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: %d bytes took %s", name, len(source), took)
		} else {
			t.Logf("%s: %d bytes, %d lines, %s", name, len(source), len(lines), took.Round(time.Millisecond))
		}
	}
}

// A table is set without many times its length, whatever its columns are.
func TestATableIsNotSetMuchLarger(t *testing.T) {
	for name, source := range map[string]string{
		"short rows": strings.Repeat("|a", 60) + "\n" + strings.Repeat("|-", 60) + "\n" + strings.Repeat("b\n", 30_000),
		"a tall row": strings.Repeat("|a", 60) + "\n" + strings.Repeat("|-", 60) + "\n" + strings.Repeat("|c", 59) + "|" +
			strings.Repeat("d ", 30_000),
	} {
		size := 0
		for _, line := range New(theme.New(theme.Terminal{Dark: true})).Lines(source, 80) {
			size += len(line)
		}

		if size < len(source)/2 || size > 25*len(source) {
			t.Errorf("%s: %d bytes are set as %d", name, len(source), size)
		}
	}
}
