package shell

import (
	"fmt"
	"strings"
	"testing"
)

// A command line of a megabyte of brackets does not end the daemon, and one of many commands takes no longer than it is long.
func TestLongCommandLines(t *testing.T) {
	for name, command := range map[string]string{
		"substitutions": strings.Repeat("$(", 350_000) + "a" + strings.Repeat(")", 350_000),
		"subshells":     strings.Repeat("( ", 350_000) + "a" + strings.Repeat(")", 350_000),
	} {
		if list, plain := segments(command); plain || len(list) > 0 {
			t.Errorf("%s: %d segments, plain %v", name, len(list), plain)
		}
		if got := does(command); got != "run a command" {
			t.Errorf("%s: %q", name, got)
		}
	}

	var many strings.Builder
	for i := 0; many.Len() < maxParsed-100; i++ {
		fmt.Fprintf(&many, "a%d;", i)
	}
	if got := does(many.String()); got != "run commands: a0, a1, a2, a3, a4, a5, a6, a7, …" {
		t.Errorf("%q", got)
	}
	deep := strings.Repeat("$(", maxParsed/3) + "a" + strings.Repeat(")", maxParsed/3)
	if list, plain := segments(deep); plain || len(list) != 1 {
		t.Errorf("%d segments, plain %v", len(list), plain)
	}
}
