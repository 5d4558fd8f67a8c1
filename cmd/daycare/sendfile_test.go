package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
)

// An agent sends a file of the workspace into the chat, beside its answer, and none
// from outside of it.
func TestFileIntoTheChat(t *testing.T) {
	t.Parallel()
	const token = "777:token-of-files"
	bot := telegramtest.New(token)
	t.Cleanup(bot.Close)
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, home, "settings.yaml"), fmt.Sprintf(`
providers:
  - { id: s, type: scripted, options: { script: %q } }
connectors:
  - { id: telegram, type: telegram, baseURL: %q, allow: ["1001"] }
`, filepath.Join(workspace, "script.yaml"), bot.URL))
	write(t, filepath.Join(workspace, "script.yaml"), `rules:
  - { contains: "report please", round: 1, reply: [ { calls: [ { name: send_file, arguments: { path: report.csv, text: "Here it `+
		`is." } } ] } ] }
  - { contains: "keys please", round: 1, reply: [ { calls: [ { name: send_file, arguments: { path: .daycare/settings.yaml } } ] } ] }
  - { tool_result: send_file, reply: [ { text: "It said {{.Result}}" } ] }
`)
	write(t, filepath.Join(workspace, "report.csv"), "a,b\n1,2\n")
	write(t, filepath.Join(workspace, home, "auth.json"), fmt.Sprintf(`{ "telegram": %q }`, token))
	bot.Push(telegramtest.Text(1001, "report please"))
	startRuntime(t, workspace)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	sent := func(method, text string) bool {
		for _, m := range bot.Sent() {
			if m.Method == method && strings.Contains(m.Text, text) {
				return true
			}
		}
		return false
	}
	if !bot.Wait(ctx, func() bool { return sent("sendDocument", "Here it is.") && sent("sendMessage", "sent report.csv") }) {
		t.Fatalf("sent: %+v", bot.Sent())
	}

	bot.Push(telegramtest.Text(1001, "keys please"))
	if !bot.Wait(ctx, func() bool { return sent("sendMessage", "never open to agents") }) {
		t.Fatalf("sent: %+v", bot.Sent())
	}
	documents := 0
	for _, m := range bot.Sent() {
		if m.Method == "sendDocument" {
			documents++
		}
	}

	if documents != 1 {
		t.Errorf("%d files were sent: %+v", documents, bot.Sent())
	}
}
