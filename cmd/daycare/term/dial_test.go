package term

import (
	"strings"
	"testing"
)

// That the daemon has another version is said once, with what to do about it.
func TestAnotherVersionIsSaidOnce(t *testing.T) {
	for theirs, want := range map[string]string{"0.0.1": "restart it with: daycare restart", "99.0.0": "daycare update"} {
		var out strings.Builder
		c := &App{Err: &out}
		c.otherVersion(theirs)
		c.otherVersion(theirs)
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, theirs) || !strings.Contains(got, want) {
			t.Errorf("of %s: %q", theirs, got)
		}
	}
}
