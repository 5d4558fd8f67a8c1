package agents

import (
	"os"
	"path/filepath"
	"testing"

	"daycare/engine/inbox"
	"daycare/engine/message"
)

// An agent that wakes does not read its whole past, whether for a new message, for a
// dropped one, whose id is not the mailbox's own, or after a crash: the files that its
// history was rotated into are not opened, however many there are.
func TestWakingDoesNotReadThePast(t *testing.T) {
	for _, why := range []string{"message", "dropped message", "death"} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, "rules: [ { reply: [ { text: ok } ] } ]", general{})
			b.run()
			b.outcome(b.say("before"))
			b.halt()

			// Read, it would be an error: it is a folder, not a file.
			if err := os.MkdirAll(filepath.Join(b.dir, "history", "000001.jsonl"), 0o700); err != nil {
				t.Fatal(err)
			}
			b.openBox()
			it := inbox.Item{Kind: message.Text, Text: "hello"}
			if why == "dropped message" {
				it.ID = "namedbysomebodyelse00000"
			}

			r, err := b.box.Accept(t.Context(), it)
			if err != nil {
				t.Fatal(err)
			}
			if why == "death" {
				b.openBox()
			}

			b.run()
			if o := b.outcome(r.Item); o.Reason != "done" {
				t.Errorf("the turn ended as %s: %s", o.Reason, o.Error)
			}
			b.halt()
		})
	}
}
