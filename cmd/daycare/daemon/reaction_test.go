package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/address"
	ws "daycare/engine/workspace"
)

// An agent reacts to the message that it answers, and says nothing; one whose chat
// takes no reactions has no tool for it.
func TestReaction(t *testing.T) {
	const token = "777:token-of-reactions"
	bot := telegramtest.New(token)
	t.Cleanup(bot.Close)
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, ws.Home, "settings.yaml"), fmt.Sprintf(`
providers:
  - { id: s, type: scripted, options: { script: %q } }
connectors:
  - { id: telegram, type: telegram, baseURL: %q, allow: ["1001"] }
`, filepath.Join(workspace, "script.yaml"), bot.URL))
	write(t, filepath.Join(workspace, "script.yaml"), `rules:
  - { contains: "seen it", round: 1, reply: [ { calls: [ { name: set_reaction, arguments: { emoji: "👍" } } ] } ] }
  - { contains: "unicorn", round: 1, reply: [ { calls: [ { name: set_reaction, arguments: { emoji: "🦄" } } ] } ] }
  - { tool_result: set_reaction, once: true, reply: [ { text: "NO_MESSAGE" } ] }
  - { tool_result: set_reaction, reply: [ { text: "It said {{.Result}}" } ] }
`)
	t.Setenv("DAYCARE_SECRET_TELEGRAM", token)
	body := telegramtest.Text(1001, "have you seen it?")
	id := fmt.Sprint(body["message"].(map[string]any)["message_id"])
	bot.Push(body)
	r := started(t, workspace)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if !bot.Wait(ctx, func() bool { return bot.Reaction("1001", id) == "👍" }) {
		t.Fatalf("there is no reaction to message %s; sent: %+v", id, bot.Sent())
	}

	// What comes while the turn still runs would join it.
	waitFor(t, "the end of the turn", func() bool {
		_, _, waiting := r.system.Counts()
		return waiting == 0
	})
	bot.Push(telegramtest.Text(1001, "a unicorn, please"))
	said := func(text string) bool {
		for _, m := range bot.Sent() {
			if strings.Contains(m.Text, text) {
				return true
			}
		}
		return false
	}
	if !bot.Wait(ctx, func() bool { return said("It said set_reaction: telegram has no reaction 🦄") }) {
		t.Fatalf("sent: %+v", bot.Sent())
	}

	for connector, want := range map[string]bool{"telegram": true, "terminal": false} {
		set := r.toolset.of(address.Meta{Descriptor: address.Descriptor{Type: address.User, Connector: connector}}, false)
		if _, _, ok := set.Get("set_reaction"); ok != want {
			t.Errorf("an agent of %s has set_reaction: %v, want %v", connector, ok, want)
		}
		if _, _, ok := set.Get("send_file"); !ok {
			t.Errorf("an agent of %s lacks send_file", connector)
		}
	}

	if n := len(bot.Sent()); n != 1 {
		t.Errorf("%d messages were sent, want the answer about the unicorn alone: %+v", n, bot.Sent())
	}
}
