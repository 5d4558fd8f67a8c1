package agents

import (
	"os"
	"path/filepath"
	"testing"
)

// An agent that wakes for a new message does not read its whole past: the files that
// its history was rotated into are not opened, however many there are.
func TestWakingDoesNotReadThePast(t *testing.T) {
	b := newBench(t, "rules: [ { reply: [ { text: ok } ] } ]", general{})
	// Read, it would be an error: it is a folder, not a file.
	if err := os.MkdirAll(filepath.Join(b.dir, "history", "000001.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	item := b.say("hello")
	b.run()
	if o := b.outcome(item); o.Reason != "done" {
		t.Errorf("the turn ended as %s: %s", o.Reason, o.Error)
	}
	b.halt()
}
