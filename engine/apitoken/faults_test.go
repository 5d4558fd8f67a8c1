package apitoken

import (
	"os"
	"path/filepath"
	"testing"

	"daycare/engine/crash/crashtest"
)

// Who makes or revokes a token hears of any step that fails: a token that is said to be
// revoked is.
func TestEachFailedStepOfAChangeIsReported(t *testing.T) {
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		root := t.TempDir()
		return func() error { _, _, err := Create(root, "new", Rights{Scopes: []Scope{Read}}, nil); return err }
	})
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		root := t.TempDir()
		create(t, root, "old", Rights{Scopes: []Scope{Read}}, nil)
		return func() error { return Revoke(root, "old") }
	})
}

// A file of tokens that cannot be read or locked is not overwritten.
func TestWhatCannotBeReadIsNotOverwritten(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "none")
	if err := Revoke(gone, "x"); err == nil {
		t.Error("a token was revoked where nothing is")
	}
	root := t.TempDir()
	put(t, root, "{broken")
	_, _, made := Create(root, "new", Rights{Scopes: []Scope{Read}}, nil)
	for what, err := range map[string]error{"create": made, "revoke": Revoke(root, "old")} {
		if err == nil {
			t.Errorf("%s worked on a file that is broken", what)
		}
	}

	if data, err := os.ReadFile(filepath.Join(root, Name)); err != nil || string(data) != "{broken" {
		t.Errorf("the file has %q: %v", data, err)
	}
}
