package agents

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
	"daycare/engine/finding"
)

// Each broken file is said once, and so is its end; more than a handful are only counted.
func TestWhatIsSaidOfBrokenFiles(t *testing.T) {
	broken := func(names ...string) (list findings) {
		for _, name := range names {
			list = append(list, finding.Finding{ID: "x", Severity: finding.Error, File: name, Reason: "no"})
		}
		return list
	}
	said := func(names ...string) (lines []string) {
		for _, name := range names {
			lines = append(lines, notice(broken(name)[0]))
		}
		return lines
	}
	mended := func(name string) string { return fmt.Sprintf("Mended file %q: it is valid again, and active.", name) }
	for name, tt := range map[string]struct {
		broken findings
		read   map[string][]string
		want   []string
	}{
		"nothing":                 {nil, nil, nil},
		"a file":                  {broken("a"), nil, said("a")},
		"a file that was said":    {broken("a"), map[string][]string{"a": said("a")}, nil},
		"in another way":          {broken("a"), map[string][]string{"a": {"Broken file \"a\": other"}}, said("a")},
		"one that is mended":      {nil, map[string][]string{"a": said("a")}, []string{mended("a")}},
		"one breaks, one is well": {broken("b"), map[string][]string{"a": said("a")}, append(said("b"), mended("a"))},
		"as many as are said":     {broken("a", "b", "c", "d", "e"), nil, said("a", "b", "c", "d", "e")},
		"one too many": {broken("a", "b", "c", "d", "e", "f"), nil,
			append(said("a", "b", "c", "d", "e"), "and 1 more; the user can list them with: daycare doctor")},
	} {
		if diff := cmp.Diff(tt.want, notices(tt.broken, tt.read)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A broken file is named with the place, and with what applies until it is mended.
func TestHowABrokenFileIsSaid(t *testing.T) {
	for want, f := range map[string]finding.Finding{
		`Broken file "f": no. Until the user corrects it, its last valid version stays active.`: {Severity: finding.Error, Reason: "no"},
		`Broken file "f": line 3: no. Until the user corrects it, its last valid version stays active.`: {Severity: finding.Error,
			Line: 3, Reason: "no"},
		`Broken file "f": line 3, column 7: no. Until the user corrects it, its last valid version stays active.`: {Severity: finding.Error,
			Line: 3, Column: 7, Reason: "no\nand more"},
		`Broken file "f": no. Until the user corrects it, that part of it is ignored.`: {Severity: finding.Warning, Reason: "no"},
		`Broken file "f": line 1: no. Until the user corrects it, that part of it is ignored.`: {ID: "history-bad-line",
			Severity: finding.Error, Line: 1, Reason: "no"},
	} {
		f.File = "f"
		if got := notice(f); got != want {
			t.Errorf("it is said as\n%s\nwant\n%s", got, want)
		}
	}
}

// A user reads what kind of failure it was and what to do, in one line.
func TestHowAFailureIsSaid(t *testing.T) {
	for kind, want := range map[providers.Kind]string{
		providers.NoKey:    "why",
		providers.Auth:     "The model service did not accept the key (p: why). Check the key, then ask again.",
		providers.Busy:     "The model service could not be reached or is too busy (p: why). Please ask again in a while.",
		providers.Broken:   "The model service could not be reached or is too busy (p: why). Please ask again in a while.",
		providers.Rejected: "The model service refused the request (p: why).",
		providers.Down: "The model service on this machine does not answer (p: why). Is the server running? " +
			"Test it with: daycare providers test",
	} {
		if got := short(fmt.Errorf("call: %w", &providers.Failure{Kind: kind, Provider: "p", Message: "why\nand a trace"})); got != want {
			t.Errorf("%s is said as %q, want %q", kind, got, want)
		}
	}

	if got, want := short(errors.New("odd\nmore")), "I could not answer: odd. Please try again."; got != want {
		t.Errorf("any other error is said as %q, want %q", got, want)
	}
	for n, cut := range map[int]bool{300: false, 301: true} {
		if got := firstLine(strings.Repeat("x", n)); strings.HasSuffix(got, "…") != cut || strings.Count(got, "x") != 300 {
			t.Errorf("of a line of %d characters are left: %q", n, got)
		}
	}
}

// Failures of a kind are found wherever they are wrapped, and no other is.
func TestKindsOfFailures(t *testing.T) {
	wrap := func(k providers.Kind) error { return callError{fmt.Errorf("x: %w", &providers.Failure{Kind: k})} }
	for kind, want := range map[providers.Kind][2]bool{
		providers.Budget: {true, false}, providers.Overflow: {false, true}, providers.Busy: {false, false},
	} {
		if got := [2]bool{budgetOf(wrap(kind)) != nil, overflowed(wrap(kind))}; got != want {
			t.Errorf("%s is a budget, an overflow: %v, want %v", kind, got, want)
		}
	}
	if err := errors.New("x"); budgetOf(err) != nil || overflowed(err) {
		t.Error("an error that is no failure of a model is taken for one")
	}
}
