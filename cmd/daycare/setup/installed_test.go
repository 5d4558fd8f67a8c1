package setup

import (
	"testing"

	"daycare/engine/workspace"
)

// The workspace of a unit is found again, whatever is in its name.
func TestWorkspaceOfAUnit(t *testing.T) {
	for _, dir := range []string{"/home/me/work", `/home/me/a "b" 100% $HOME \ c`, "/home/me/<a> & b's"} {
		for _, system := range []string{"systemd", "launchd"} {
			unit, err := Unit(workspace.At(dir), system, "/usr/bin/daycare")
			if err != nil {
				t.Fatal(err)
			}
			if got := workspaceOf(unit); got != dir {
				t.Errorf("%s: %q became %q", system, dir, got)
			}
		}
	}

	if got := workspaceOf("[Unit]\n"); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
