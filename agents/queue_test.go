package agents

import (
	"context"
	"strings"
	"sync"
	"testing"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools"
)

// A hasty person drops an item right after the agent looked into its inbox.
type hasty struct {
	inbox.Mailbox
	mu   sync.Mutex
	drop string // id of the item that goes next
}

func (h *hasty) Open() []inbox.Head {
	heads := h.Mailbox.Open()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, head := range heads {
		if head.ID == h.drop && h.Mailbox.Drop(head.ID) == nil {
			h.drop = ""
		}
	}

	return heads
}

// An item that is dropped between the look into the inbox and its taking is not worked
// on, and costs nobody else anything: not what came beside it, nor the current turn.
func TestAnItemDroppedBeforeItIsTaken(t *testing.T) {
	for name, dropped := range map[string]inbox.Item{
		"message": {Kind: message.Text, Text: "never mind"},
		"silent":  {Kind: message.System, Silent: true, Text: "never mind"},
		"control": {Kind: message.Mark, Text: "never mind"},
	} {
		for _, when := range []string{"between turns", "during a turn"} {
			t.Run(name+" "+when, func(t *testing.T) {
				h := newHold("hold", tools.Once)
				b := newBench(t, callHold, h)
				hurry := &hasty{Mailbox: b.box}
				b.opts.Inbox = hurry
				first := ""
				b.run()
				b.wait(b.say("hello"))
				if when == "during a turn" {
					first = b.say("go")
					<-h.running
				}

				hurry.mu.Lock()
				r, err := b.box.Accept(context.Background(), dropped)
				hurry.drop = r.Item
				hurry.mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}

				beside := b.say("beside")
				if when == "during a turn" {
					h.release <- "r"
				}
				if o := b.outcome(beside); o.Reason != record.ReasonDone {
					t.Errorf("what came beside it ended %q\n%s", o.Reason, b.history())
				}
				if first != "" && b.outcome(first).Reason != record.ReasonDone {
					t.Errorf("the turn under way did not end well\n%s", b.history())
				}

				b.halt() // reports an agent that failed
				if _, ok, err := record.Closing(b.dir, r.Item); ok || err != nil {
					t.Errorf("the dropped item was worked on, or %v\n%s", err, b.history())
				}
				for line := range strings.Lines(b.history()) {
					if strings.Contains(line, `"type":"turn_begin"`) && !strings.Contains(line, `"items":["`) {
						t.Errorf("a turn was begun for nothing: %s", line)
					}
				}
			})
		}
	}
}
