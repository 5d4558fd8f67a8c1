//go:build !race

package files

import (
	"runtime"
	"strings"
	"testing"
)

// What a model writes in a few kilobytes takes neither gigabytes nor hours.
func TestShortCallsThatWouldTakeMuch(t *testing.T) {
	x := strings.Repeat
	patch := func(lines string) []change {
		c, err := parsePatch("*** Begin Patch\n" + lines + "*** End Patch")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, do := range map[string]func(){
		"a new file of many lines": func() {
			if c := patch("*** Add File: a\n" + x("+x\n", 100_000)); len(strings.Join(c[0].added, "")) != 200_000 {
				t.Errorf("%+v", c)
			}
		},
		"changes of a long file": func() {
			got, err := patch("*** Update File: a\n" + x("@@\n-o\n+n\n", 300))[0].apply(x("o\n", 400) + x("\n", 1<<20))
			if err != nil || got != x("n\n", 300)+x("o\n", 100)+x("\n", 1<<20) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		},
		"lines that are nearly there": func() {
			if _, err := patch("*** Update File: a\n" + x(" x\n", 100_000) + "-y\n")[0].apply(x("x\n", 1<<20)); err == nil {
				t.Error("they were found")
			}
		},
		"a pattern of alternatives": func() {
			if usable(x("{a,a}", 60) + "b") {
				t.Error("it is used")
			}
		},
		"a pattern of many steps": func() {
			res, err := grep(t.Context(), nil, grepArgs{Pattern: x("(?:.?){1000}", 16) + "y$"})
			if err != nil || !strings.Contains(res.Text, "repeats too much") {
				t.Errorf("%q, %v", res.Text, err)
			}
		},
		"text that doubles": func() {
			if _, _, err := (swap{Old: "a", New: x("a", 1000), All: true}).in(x("a", maxChange/2), "f"); err == nil {
				t.Error("it is changed")
			}
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 300<<20 {
			t.Errorf("%s takes %d MB", name, used>>20)
		}
	}
}

// Alternatives can be used as long as they are not many.
func TestWhichPatternsCanBeUsed(t *testing.T) {
	for pattern, want := range map[string]bool{"**/*.{go,mod}": true, "{a,b}{c,d}/*": true, "{" + strings.Repeat("a,", 999) + "b}": true,
		"{" + strings.Repeat("a,", 1000) + "b}": false, strings.Repeat("{a,b}", 9): true, strings.Repeat("{a,b}", 10): false, `\{a,b`: true,
		strings.Repeat("a", maxPattern): true, strings.Repeat("a", maxPattern+1): false, "{a": false, "[": false} {
		if got := usable(pattern); got != want {
			t.Errorf("%.40s: %v", pattern, got)
		}
	}
}
