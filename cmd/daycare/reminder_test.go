package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
)

// TestReminderOverARestart: someone asks in a chat to be reminded every weekday at 9.
// The agent makes the task with its tool; daycare is killed, a week passes, and the
// reminder comes in that chat, once.
func TestReminderOverARestart(t *testing.T) {
	t.Parallel()
	const token = "777:canary-token_of-the-reminder"
	bot := telegramtest.New(token)
	t.Cleanup(bot.Close)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"DAYCARE_SECRET_TELEGRAM=" + token, "TZ=Europe/Berlin"}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), fmt.Sprintf(`
providers: [ { id: script, type: scripted, options: { script: %q } } ]
connectors:
  - { id: telegram, type: telegram, baseURL: %q, allow: ["1001", "1002"] }
`, filepath.Join(d.workspace, "script.yaml"), bot.URL))
	write(t, filepath.Join(d.workspace, "script.yaml"), `rules:
  - { match: "remind me every weekday", round: 1, reply: [ { calls: [ { name: add_cron, arguments: {
      name: Stretch, when: "every weekday at 9:00", prompt: "Tell the user that it is time to stretch.", here: true } } ] } ] }
  - { tool_result: add_cron, reply: [ { text: "Done. {{.Result}}" } ] }
  - { match: "time to stretch", reply: [ { text: "Stretch!" } ] }
  - { reply: [ { text: "heard {{.Text}}" } ] }
`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said := func(text string) (in []string) {
		for _, m := range bot.Sent() {
			if strings.Contains(m.Text, text) {
				in = append(in, m.Chat)
			}
		}
		return in
	}
	wait := func(text string) {
		t.Helper()
		if !bot.Wait(ctx, func() bool { return len(said(text)) > 0 }) {
			t.Fatalf("nobody said %q; %+v\n%s", text, bot.Sent(), d.said.String())
		}
	}

	d.start()
	defer func() { d.kill() }()
	bot.Push(telegramtest.Text(1001, "remind me every weekday at 9 to stretch"))
	wait("Done. Task stretch: Monday to Friday at 09:00 (Europe/Berlin)")
	bot.Push(telegramtest.Text(1002, "hello")) // the newest chat is another one
	wait("heard hello")
	d.kill()

	ledger := filepath.Join(d.workspace, home, "cron", "stretch", "runs.jsonl")
	weekPasses(t, ledger)
	d.start()
	wait("Stretch!")
	if in := said("Stretch!"); len(in) != 1 || in[0] != "1001" {
		t.Errorf("the reminder came in the chats %q, want once in the one where it was asked for", in)
	}
	waitFor(t, "the ledger", func() bool { return strings.Contains(string(mustRead(t, ledger)), `"outcome":"ran"`) })
	// A kill before the delivery is noted may have an answer sent again.
	waitFor(t, "the delivery in history", func() bool { return strings.Count(histories(t, d), `"type":"delivery"`) == 3 })
	d.kill()
	d.start()
	bot.Push(telegramtest.Text(1002, "again"))
	wait("heard again")
	if in := said("Stretch!"); len(in) != 1 {
		t.Errorf("after another restart the reminder came %d times", len(in))
	}
	lines := string(mustRead(t, ledger))
	if ran := strings.Count(lines, `"outcome":"ran"`); ran != 1 || strings.Count(lines, `"outcome":"missed"`) < 3 {
		t.Errorf("the ledger has %d runs, want the newest slot and the others noted as missed:\n%s", ran, lines)
	}
	item := regexp.MustCompile(`"outcome":"ran".*"item":"(\w+)"`).FindStringSubmatch(lines)
	if item == nil {
		t.Fatalf("the run names no item:\n%s", lines)
	}
	n := strings.Count(histories(t, d), `"type":"user_message","item":"`+item[1]+`"`)
	if n != 1 {
		t.Errorf("the item of the ledger stands %d times in the histories, want once", n)
	}
}

// weekPasses makes a task's schedule count from eight days earlier, as if the machine
// had been off since.
func weekPasses(t *testing.T, ledger string) {
	t.Helper()
	stamp := regexp.MustCompile(`"(at|from)":"([^"]+)"`)
	text := stamp.ReplaceAllStringFunc(string(mustRead(t, ledger)), func(m string) string {
		part := stamp.FindStringSubmatch(m)
		at, err := time.Parse(time.RFC3339, part[2])
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`"%s":"%s"`, part[1], at.AddDate(0, 0, -8).Format("2006-01-02T15:04:05.000Z07:00"))
	})
	write(t, ledger, text)
}

// histories is what stands in the histories of all agents.
func histories(t *testing.T, d *process) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(d.workspace, home, "agents", "*", "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		all.Write(mustRead(t, path))
	}

	return all.String()
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
