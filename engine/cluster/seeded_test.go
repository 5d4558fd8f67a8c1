//go:build seededbugs

package cluster

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The model test sees each of the defects that are put in on purpose.
func TestSeededBugsAreSeen(t *testing.T) {
	for bug, breaks := range map[string]string{
		"nocas":    "an append is refused if another one came between",
		"ackfirst": "an append is durable when it is acknowledged: it is acknowledged before",
		"noclaim":  "a folder is built of all before the claim: it is built before the claim",
		"stale":    "a folder is not built of what a server says that is behind",
		"deaf":     "who was replaced does not write any more",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestModel$", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
			cmd.Env = append(os.Environ(), "DAYCARE_BUG="+bug)
			out, err := cmd.CombinedOutput()
			seen := ""
			for _, sign := range []string{"is lost", "is there twice", "which nobody wrote", "the agent is not acquired"} {
				if strings.Contains(string(out), sign) {
					seen = sign
				}
			}
			if err == nil || seen == "" {
				t.Errorf("%s (%s) is not seen: %v\n%s", bug, breaks, err, out)
			}
			t.Logf("%s: seen as %q", breaks, seen)
		})
	}
}
