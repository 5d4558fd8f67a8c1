package probe

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Containers often run a program as root without any capability. It has no right to
// drop what it does not have, and its commands need a sandbox all the same.
func TestRootWithoutCapabilities(t *testing.T) {
	const inside = "DAYCARE_TEST_WITHOUT_CAPABILITIES"
	if os.Getenv(inside) != "" {
		r, err := Choose("landlock", self(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("view %v: %s", r.HasView(), r.Why)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can give its capabilities away")
	}

	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if _, err := Choose("landlock", self(t)); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}

	cmd := exec.Command(setpriv, "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs",
		self(t), "-test.run=^TestRootWithoutCapabilities$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "view ") {
		t.Fatalf("%v\n%s", err, out)
	}

	t.Logf("%s", out)
}
