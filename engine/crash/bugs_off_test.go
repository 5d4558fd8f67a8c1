//go:build !seededbugs

package crash

import "testing"

// What users get has no seeded bug, whatever the environment says.
func TestNoBugIsOnInABinaryOfUsers(t *testing.T) {
	t.Setenv("DAYCARE_BUG", "wakelost")
	if Bug("wakelost") || Once("wake") {
		t.Error("a seeded bug is on")
	}
	if got := Swap("agent", "a"); got != "a" {
		t.Errorf("a value became %v", got)
	}
}
