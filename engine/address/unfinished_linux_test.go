package address

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A folder that a crash left and that cannot be removed is reported, and keeps no agent
// from its work.
func TestALeftoverThatCannotBeRemovedHidesNoAgent(t *testing.T) {
	root := t.TempDir()
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"p"}`)
	put(t, root, newPrefix+idB, `{"type":"cr`)
	left := filepath.Join(root, "agents", newPrefix+idB)
	if os.Getuid() == 0 { // whom no mode of a folder stops
		if err := unix.Mount("daycare-test", left, "tmpfs", 0, "size=1m"); err != nil {
			t.Skip("nothing can be mounted here:", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(left, 0); err != nil {
				t.Error(err)
			}
		})
	} else {
		if err := os.Chmod(left, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(left, 0o700) })
	}

	x, found := load(t, root)
	if len(found) != 1 || found[0].ID != "agent-unfinished" || found[0].File != left ||
		!strings.Contains(found[0].Reason, "cannot be removed") {
		t.Errorf("found: %+v", found)
	}
	if _, ok := x.Get(idA); !ok {
		t.Error("the other agent is not there")
	}
}
