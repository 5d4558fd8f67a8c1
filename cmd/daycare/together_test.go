package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
)

// A telegramRoom is a bot of Telegram with daycare behind it, which can be killed.
type telegramRoom struct {
	t   *testing.T
	bot *telegramtest.Server
	ctx context.Context
}

const roomToken = "777:token-of-a-room"

func newTelegramRoom(t *testing.T) telegramRoom {
	t.Helper()
	bot := telegramtest.New(roomToken)
	t.Cleanup(bot.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return telegramRoom{t, bot, ctx}
}

// said are the messages of the bot with a text in them or in the name of their file.
func (r telegramRoom) said(text string) (all []telegramtest.Sent) {
	for _, m := range r.bot.Sent() {
		if strings.Contains(m.Text, text) || strings.Contains(m.File, text) {
			all = append(all, m)
		}
	}
	return all
}

// until waits until the bot has said something.
func (r telegramRoom) until(text string) {
	r.t.Helper()
	if !r.bot.Wait(r.ctx, func() bool { return len(r.said(text)) > 0 }) {
		r.t.Fatalf("nobody said %q; said %+v", text, r.bot.Sent())
	}
}

// A voice message is read by a command, and answered in words and by another command's sound. The
// daemon is killed after it has taken it: it comes once.
func TestSpeechByCommands(t *testing.T) {
	t.Parallel()
	r := newTelegramRoom(t)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"DAYCARE_SECRET_TELEGRAM=" + roomToken}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), fmt.Sprintf(`
providers: [ { id: script, type: scripted, options: { script: script.yaml } } ]
connectors:
  - { id: telegram, type: telegram, baseURL: %q, allow: ["1001"], speak: voice }
speech:
  transcribe: { command: "tr a-z A-Z", sandbox: false }
  speak: { command: "printf OggS; cat", sandbox: false }
`, r.bot.URL))
	write(t, filepath.Join(d.workspace, "script.yaml"), `rules: [ { reply: [ { delay: 1s, text: "heard {{.Text}}" } ] } ]`)
	r.bot.Files["v"] = []byte("what is new")
	d.start()
	defer func() { d.kill() }()
	voice := telegramtest.Message(1001, "")
	voice["voice"] = map[string]any{"file_id": "v", "file_size": 11, "mime_type": "audio/ogg"}
	r.bot.Push(map[string]any{"message": voice})
	waitFor(t, "the message", func() bool { return strings.Contains(read(t, d, "inbox.jsonl"), "WHAT IS NEW") })
	d.kill()
	d.start()
	r.until("answer.ogg")
	r.until("transcribed] WHAT IS NEW")
	r.bot.Push(telegramtest.Text(1001, "and in writing"))
	r.until("heard and in writing")
	history := histories(t, d)
	if n := strings.Count(history, `"type":"user_message"`); n != 2 || strings.Count(history, "voice.ogg") == 0 {
		t.Errorf("%d messages are in history, want two, the first with its recording:\n%s", n, history)
	}
	if n := len(r.said("answer.ogg")); n != 1 {
		t.Errorf("%d answers were spoken, want that to the voice message", n)
	}
}

// In quiet hours what nobody asked for waits, over a kill, and questions are answered. After them it
// comes once.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	r := newTelegramRoom(t)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"DAYCARE_SECRET_TELEGRAM=" + roomToken}}
	settings := func(quiet string) {
		write(t, filepath.Join(d.workspace, home, "settings.yaml"), fmt.Sprintf(`
providers: [ { id: script, type: scripted, options: { script: script.yaml } } ]
cron: { timezone: UTC }
connectors:
  - { id: telegram, type: telegram, baseURL: %q, allow: ["1001"]%s }
`, r.bot.URL, quiet))
	}
	now := time.Now().UTC()
	settings(fmt.Sprintf(", quiet: %q", now.Add(-time.Hour).Format("15:04")+"-"+now.Add(6*time.Hour).Format("15:04")))
	write(t, filepath.Join(d.workspace, "script.yaml"), `rules:
  - { match: "remind me", round: 1, reply: [ { calls: [ { name: add_cron, arguments: {
      name: Stretch, when: "every weekday at 9:00", prompt: "Tell the user that it is time to stretch.", here: true } } ] } ] }
  - { tool_result: add_cron, reply: [ { text: "Done." } ] }
  - { match: "time to stretch", reply: [ { text: "Stretch!" } ] }
  - { reply: [ { text: "heard {{.Text}}" } ] }
`)
	d.start()
	defer func() { d.kill() }()
	r.bot.Push(telegramtest.Text(1001, "remind me"))
	r.until("Done.")
	if out, err := exec.Command("daycare", "--workspace", d.workspace, "cron", "run", "stretch").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	waitFor(t, "the reminder in history", func() bool { return strings.Contains(histories(t, d), `"Stretch!"`) })
	d.kill()
	d.start()
	r.bot.Push(telegramtest.Text(1001, "a question"))
	r.until("heard a question")
	if got := r.said("Stretch!"); len(got) != 0 {
		t.Fatalf("in quiet hours was said %+v", got)
	}
	d.kill()
	settings("") // they are over
	d.start()
	r.until("Stretch!")
	r.bot.Push(telegramtest.Text(1001, "another"))
	r.until("heard another")
	if got := r.said("Stretch!"); len(got) != 1 {
		t.Errorf("the reminder came %d times, want once", len(got))
	}
}

// One person on two connectors has one agent, if an owner says so: its conversation continues in the
// other chat, and answers go where the last message came from.
func TestOnePersonOnTwoChats(t *testing.T) {
	t.Parallel()
	one, two := newTelegramRoom(t), newTelegramRoom(t)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"DAYCARE_SECRET_ONE=" + roomToken, "DAYCARE_SECRET_TWO=" + roomToken}}
	settings := fmt.Sprintf(`
providers: [ { id: script, type: scripted, options: { script: script.yaml } } ]
connectors:
  - { id: one, type: telegram, baseURL: %q, allow: ["1001"] }
  - { id: two, type: telegram, baseURL: %q, allow: ["2002", "2003"] }
`, one.bot.URL, two.bot.URL)
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), settings)
	write(t, filepath.Join(d.workspace, "script.yaml"), `rules: [ { reply: [ { text: "turn {{.Turn}}: {{.Text}}" } ] } ]`)
	d.start()
	defer func() { d.kill() }()
	one.bot.Push(telegramtest.Text(1001, "first"))
	one.until("turn 1: first")
	d.kill()
	write(t, filepath.Join(d.workspace, home, "settings.yaml"),
		settings+"links: [ { agent: \"0/\", users: [\"one:1001\", \"two:2002\"] } ]\n")
	d.start()
	two.bot.Push(telegramtest.Text(2002, "second"))
	two.until("turn 2: second")
	d.kill()
	d.start()
	one.bot.Push(telegramtest.Text(1001, "third"))
	one.until("turn 3: third")
	two.bot.Push(telegramtest.Text(2003, "of somebody else"))
	two.until("turn 1: of somebody else")
	for _, wrong := range []struct {
		r    telegramRoom
		text string
	}{{one, "second"}, {two, "first"}, {two, "third"}} {
		if got := wrong.r.said(wrong.text); len(got) > 0 {
			t.Errorf("an answer came to the wrong chat: %+v", got)
		}
	}
}
