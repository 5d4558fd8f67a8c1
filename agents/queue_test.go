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

// A late mailbox is one of which a person drops an item right before the agent takes it.
type late struct {
	inbox.Mailbox
	drop string // id of the item
}

func (l late) Take(ids ...string) ([]inbox.Item, error) {
	if ids[0] == l.drop {
		_ = l.Mailbox.Drop(l.drop) // fails the second time
	}
	return l.Mailbox.Take(ids...)
}

// What waits behind an item that was dropped is worked on, although nothing arrives any more.
func TestWhatWaitsBehindADroppedItem(t *testing.T) {
	b := newBench(t, callHold)
	b.opts.Settings.Queue = Followup
	var items []string
	for _, text := range []string{"never mind", "hello"} {
		r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.System, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, r.Item)
	}

	select { // the agent learns from its inbox alone that they are there
	case <-b.box.Arrived():
	default:
	}
	b.opts.Inbox = late{b.box, items[0]}
	b.run()
	if o := b.outcome(items[1]); o.Reason != record.ReasonDone || o.Text != "heard: hello" {
		t.Errorf("%+v\n%s", o, b.history())
	}
}
