package permission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	a := Set{WorkingDir: "/w", ReadDirs: []string{"/r"}, Exec: []string{"git push"}, Grants: []Grant{{Tag: "@exec:rm x", SHA256: "1"}}}
	b := Set{WorkingDir: "/v", WriteDirs: []string{"/r"}, Web: true, Hosts: []string{"a.example"}, Exec: []string{"git push"}}
	want := []string{"workingDir /w → /v", "+@write:/r", "+@web", "+@web:a.example", "-@read:/r", "-@exec:rm x (one exact request)"}
	if diff := cmp.Diff(want, Diff(a, b)); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
	if got := Diff(a, a); got != nil {
		t.Errorf("Diff of a set with itself: %q, want none", got)
	}
}
