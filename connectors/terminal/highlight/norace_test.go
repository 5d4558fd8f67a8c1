//go:build !race

package highlight

import (
	"strings"
	"testing"
	"time"
)

// What starts no goroutine: the race detector has nothing to find there, and makes it take ten times as long.

// A long line, or one that opens much and closes nothing, takes no longer than it is long.
func TestDeep(t *testing.T) {
	for _, name := range names {
		for _, piece := range []string{"x", `"`, "'", "<a ", "/*", "a: ", "1.", "`", "\\", "#"} {
			began := time.Now()
			line := strings.Repeat(piece, 100_000)
			spans, _ := Named(name).Line(line, State{})
			sum := 0
			for _, s := range spans {
				sum += s.Len
			}
			if sum != len(line) {
				t.Errorf("%s: %d of %d bytes of %q", name, sum, len(line), piece)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s: %d bytes of %q took %s", name, len(line), piece, took)
			}
		}
	}
}
