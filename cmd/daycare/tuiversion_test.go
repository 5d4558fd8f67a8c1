package main

import (
	"path/filepath"
	"testing"

	"daycare/engine/config"
	"daycare/engine/workspace"
)

// A UI that stays open while the daemon is updated and starts again does not continue to say that
// the daemon is of another version.
func TestTheUIForgetsTheVersionOfTheDaemonBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, home, config.Name), "providers: [ { id: echo, type: scripted } ]\n")
	startRuntime(t, dir)
	var other otherVersion
	before := "0.0.1"
	other.theirs.Store(&before)
	client, err := other.dial(workspace.At(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := other.theirs.Load(); v != nil {
		t.Errorf("the daemon is said to be daycare %s", *v)
	}
}
