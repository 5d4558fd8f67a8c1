package finding

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A finding names its place as far as it is known, and what to do on a second line.
func TestHowAFindingIsSaid(t *testing.T) {
	for want, f := range map[string]Finding{
		"f: no":               {File: "f", Reason: "no"},
		"f:3: no":             {File: "f", Line: 3, Reason: "no"},
		"f:3:7: no":           {File: "f", Line: 3, Column: 7, Reason: "no"},
		"f: no\nMend it.":     {File: "f", Reason: "no", Remedy: "Mend it."},
		"f: of a column only": {File: "f", Column: 7, Reason: "of a column only"},
	} {
		if got := f.Error(); got != want {
			t.Errorf("%+v is said as %q, want %q", f, got, want)
		}
	}

	for severity, want := range map[Severity]slog.Level{Info: slog.LevelInfo, Warning: slog.LevelWarn, Error: slog.LevelError} {
		if got := severity.Level(); got != want {
			t.Errorf("%s is logged as %v, want %v", severity, got, want)
		}
	}
}

// Only findings of severity Error keep a file from being used; each of them can be found in
// the error.
func TestJoinIsOfErrorsAlone(t *testing.T) {
	warning := Finding{ID: "w", Severity: Warning, File: "f", Reason: "odd"}
	one, two := Finding{ID: "1", Severity: Error, File: "f", Reason: "one"}, Finding{ID: "2", Severity: Error, File: "f", Reason: "two"}
	for _, harmless := range [][]Finding{nil, {warning}, {warning, {Severity: Info}}} {
		if err := Join(harmless); err != nil {
			t.Errorf("%v is an error: %v", harmless, err)
		}
	}

	err := Join([]Finding{one, warning, two})
	if err == nil || err.Error() != "f: one\nf: two" {
		t.Errorf("the error is %v, want both errors, a line each", err)
	}

	for _, f := range []Finding{one, two} {
		if !errors.Is(err, f) {
			t.Errorf("%v is not in it", f)
		}
	}
	if errors.Is(err, warning) {
		t.Error("a warning is in it")
	}
}

// Lines and columns are counted from 1, columns in bytes; a place outside is the nearest.
func TestPosition(t *testing.T) {
	const text = "ab\n\nçd"
	for offset, want := range map[int64]string{-5: "1:1", 0: "1:1", 1: "1:2", 2: "1:3", 3: "2:1", 4: "3:1", 6: "3:3", 7: "3:4", 99: "3:4"} {
		line, column := Position([]byte(text), offset)
		if got := fmt.Sprintf("%d:%d", line, column); got != want {
			t.Errorf("the byte %d is at %s, want %s", offset, got, want)
		}
	}
}

// A file with more mistakes than anybody reads takes no more room than a hundred of them.
func TestAPageIsBounded(t *testing.T) {
	told := 0
	b := NewProblems(func(string, Finding) { told++ }, func(string, string) {})
	var found []Finding
	for i := range maxPerFile + 50 {
		found = append(found, Finding{ID: "x", Severity: Error, File: "f", Line: i + 1, Reason: fmt.Sprint("no ", i)})
	}

	if b.Set("a", "f", found); len(b.All()) != maxPerFile || told != len(found) {
		t.Errorf("%d are kept and %d were told, want %d and %d", len(b.All()), told, maxPerFile, len(found))
	}
	b.Set("a", "f", found[:maxPerFile-1])
	for i := range 3 {
		b.Add("a", Finding{ID: "y", Severity: Error, File: "f", Reason: fmt.Sprint("more ", i)})
	}

	if n := len(b.All()); n != maxPerFile {
		t.Errorf("%d are kept, want %d", n, maxPerFile)
	}
}

// What is the same is so by kind and reason: another kind with the same words is another.
func TestWhatIsTheSameFinding(t *testing.T) {
	var told []string
	b := NewProblems(func(_ string, f Finding) { told = append(told, f.ID+" "+f.Reason) }, func(string, string) {})
	b.Set("a", "f", []Finding{{ID: "x", Severity: Error, File: "f", Reason: "no"}})
	b.Set("a", "f", []Finding{{ID: "y", Severity: Error, File: "f", Reason: "no"}})
	b.Set("a", "f", []Finding{{ID: "y", Severity: Error, File: "f", Reason: "never"}})
	if got := strings.Join(told, ", "); got != "x no, y no, y never" {
		t.Errorf("told was %s", got)
	}
}

// The list is in the order of files, lines, columns and reasons; remarks are not in it.
func TestTheOrderOfWhatIsWrong(t *testing.T) {
	b := NewProblems(func(string, Finding) {}, func(string, string) {})
	f := func(file string, line, column int, reason string) Finding {
		return Finding{ID: "x", Severity: Warning, File: file, Line: line, Column: column, Reason: reason}
	}
	b.Set("", "b", []Finding{f("b", 1, 1, "z"), f("b", 1, 1, "y")})
	b.Set("", "a", []Finding{f("a", 10, 1, "4"), f("a", 2, 5, "3"), f("a", 2, 1, "2"), {Severity: Info, File: "a", Reason: "0"},
		f("a", 1, 9, "1")})
	var got string
	for _, one := range b.All() {
		got += one.Reason
	}

	if got != "1234yz" {
		t.Errorf("the order is %s", got)
	}
	if b.Set("", "c", []Finding{{Severity: Info, File: "c", Reason: "by hand"}}); b.Has("c") || !b.Has("a") {
		t.Errorf("something is wrong with c: %v, with a: %v", b.Has("c"), b.Has("a"))
	}
}

// A file that is told of in another way is known to be wrong, and one that is good again, or
// whose agent is gone, takes no room.
func TestNothingIsKeptOfGoodFiles(t *testing.T) {
	told := 0
	b := NewProblems(func(string, Finding) { told++ }, func(string, string) { told++ })
	bad := []Finding{{ID: "x", Severity: Error, File: "f", Reason: "no"}}
	if b.SetQuietly("a", "f", bad); !b.Has("f") || len(b.Of("a")) != 1 || told != 0 {
		t.Errorf("held is %v, told %d times", b.Of("a"), told)
	}

	b.SetQuietly("a", "f", nil)
	b.Set("a", "g", bad)
	b.Set("b", "g", nil)
	b.Set("c", "h", bad)
	b.Forget("c")
	if len(b.byFile) != 0 || len(b.byAgent) != 0 {
		t.Errorf("%d pages of %d agents are kept", len(b.byFile), len(b.byAgent))
	}
}
