package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/lazyregexp"
)

// TestTelegramOnABadDay sends many messages of many users through the whole
// program over a Bot API that fails in one call of twenty: it refuses, takes and
// loses the answer, sends half of it, asks to wait, hands the same update out
// again. Each message must stand in its agent's history exactly once and in
// order, and be answered. DAYCARE_LONG=1 sends 10,000.
func TestTelegramOnABadDay(t *testing.T) {
	t.Parallel()
	chats, each, patience := 20, 20, 2*time.Minute
	if os.Getenv("DAYCARE_LONG") != "" {
		chats, each, patience = 100, 100, 20*time.Minute
	}
	const token = "777:canary-token_of-the-bad-day"
	bot := telegramtest.New(token)
	t.Cleanup(bot.Close) // after the program, which is stopped first
	trouble := newTrouble(0.05)
	bot.Fault = trouble.of

	workspace := t.TempDir()
	var allow []string
	for chat := range chats {
		allow = append(allow, fmt.Sprintf("%q", fmt.Sprint(1001+chat)))
	}
	write(t, filepath.Join(workspace, home, "settings.yaml"), fmt.Sprintf(`
providers:
  - { id: echo, type: scripted, options: { script: %q } }
agents: { queue: followup }
log: { level: error }
connectors:
  - { id: telegram, type: telegram, baseURL: %q, allow: [%s] }
`, filepath.Join(workspace, "script.yaml"), bot.URL, strings.Join(allow, ", ")))
	write(t, filepath.Join(workspace, "script.yaml"), `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`)
	write(t, filepath.Join(workspace, home, "auth.json"), fmt.Sprintf(`{ "telegram": %q }`, token))

	begun := time.Now()
	for n := range each {
		for chat := range chats {
			bot.Push(telegramtest.Text(int64(1001+chat), word(chat, n)))
		}
	}
	root := startRuntime(t, workspace)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !bot.Wait(ctx, func() bool { return bot.Backlog() == 0 }) {
		t.Fatalf("%d updates were not confirmed in %v", bot.Backlog(), patience)
	}
	taken := time.Since(begun)
	heard := func() map[string]int { return delivered(bot.Sent()) }
	if !bot.Wait(ctx, func() bool { return len(heard()) == chats*each }) {
		t.Fatalf("%d of %d messages were answered in %v", len(heard()), chats*each, patience)
	}
	took := time.Since(begun)

	once := writtenOnce(t, root, chats, each)
	doubled := map[string]int{}
	for _, m := range bot.Sent() {
		doubled[m.Chat+m.Text]++
	}
	extra := 0
	for _, n := range doubled {
		extra += n - 1
	}
	t.Logf("%d messages of %d chats: all taken after %v, all answered after %v", chats*each, chats,
		taken.Round(time.Millisecond), took.Round(time.Millisecond))
	t.Logf("faults %v; in history once and in order: %d; answers %d, of them twice: %d (answers lost on the way: %d)",
		trouble.counts(), once, len(bot.Sent()), extra, trouble.unsure())
	if extra > trouble.unsure() {
		t.Errorf("%d answers came twice, but only %d answers of the platform were lost", extra, trouble.unsure())
	}
	if log, err := os.ReadFile(filepath.Join(root, "logs", "daycare.jsonl")); err == nil && strings.Contains(string(log), token) {
		t.Error("the token is in the log")
	}
}

// word names one message.
func word(chat, n int) string { return fmt.Sprintf("w%03d-%04d", chat, n) }

var wordRule = lazyregexp.New(`w\d{3}-\d{4}`)

// delivered counts in how many answers each message is named.
func delivered(sent []telegramtest.Sent) map[string]int {
	count := map[string]int{}
	for _, m := range sent {
		for _, w := range wordRule.FindAllStringSubmatch(m.Text, -1) {
			count[w[0]]++
		}
	}
	return count
}

// writtenOnce looks through all histories and returns how many messages stand
// there exactly once and behind those that were sent before them.
func writtenOnce(t *testing.T, root string, chats, each int) (good int) {
	t.Helper()
	next := map[string]int{}
	paths, err := filepath.Glob(filepath.Join(root, "agents", "*", "history.jsonl"))
	if err != nil || len(paths) != chats {
		t.Fatalf("%d histories, %v; want one for each of %d chats", len(paths), err, chats)
	}

	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		for line := range strings.Lines(string(data)) {
			var r struct{ Type, Text string }
			if json.Unmarshal([]byte(line), &r) != nil || r.Type != "user_message" {
				continue
			}
			chat := r.Text[:4]
			var c int
			fmt.Sscanf(chat, "w%d", &c)
			if want := word(c, next[chat]); r.Text != want {
				t.Errorf("%s: found %s, want %s next", path, r.Text, want)
				continue
			}
			next[chat]++
			good++
		}
	}

	if good != chats*each {
		t.Errorf("%d messages in history, want %d", good, chats*each)
	}
	return good
}

// trouble makes calls fail, one of so many, each time in another way.
type trouble struct {
	mu    sync.Mutex
	dice  *rand.Rand
	share float64
	made  map[string]int
}

func newTrouble(share float64) *trouble {
	return &trouble{dice: rand.New(rand.NewPCG(1, 2)), share: share, made: map[string]int{}}
}

func (x *trouble) of(method string) telegramtest.Fault {
	faults := []telegramtest.Fault{telegramtest.Broken, telegramtest.Busy, telegramtest.Drop, telegramtest.Half}
	if method == "getUpdates" {
		faults = append(faults, telegramtest.Conflict, telegramtest.Again)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.dice.Float64() >= x.share {
		return telegramtest.OK
	}
	f := faults[x.dice.IntN(len(faults))]
	x.made[method+" "+string(f)]++

	return f
}

func (x *trouble) counts() map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := map[string]int{}
	for k, n := range x.made {
		all[k] = n
	}
	return all
}

// unsure is how many answers were taken without the sender hearing of it.
func (x *trouble) unsure() int {
	all := x.counts()
	return all["sendMessage drop"] + all["sendMessage half"]
}

// telegramWorkspace makes a workspace with a scripted model and a chat platform, in which
// those users may write. settings are further lines of settings.yaml.
func telegramWorkspace(t *testing.T, settings, script string, allowed ...string) (bot *telegramtest.Server, workspace string) {
	t.Helper()
	const token = "777:canary-token_of-a-test"
	bot = telegramtest.New(token)
	t.Cleanup(bot.Close)
	workspace = t.TempDir()
	write(t, filepath.Join(workspace, home, "settings.yaml"), fmt.Sprintf(`
providers:
  - { id: script, type: scripted, options: { script: %q } }
log: { level: error }
%s
connectors:
  - { id: telegram, type: telegram, baseURL: %q, allow: [%s] }
`, filepath.Join(workspace, "script.yaml"), settings, bot.URL, `"`+strings.Join(allowed, `", "`)+`"`))
	write(t, filepath.Join(workspace, "script.yaml"), script)
	write(t, filepath.Join(workspace, home, "auth.json"), fmt.Sprintf(`{ "telegram": %q }`, token))

	return bot, workspace
}

// TestTelegramApproval: an agent asks to run a command, the user presses a
// button, the command runs; someone else's finger and a second press do nothing.
func TestTelegramApproval(t *testing.T) {
	t.Parallel()
	bot, workspace := telegramWorkspace(t, "permissions: { defaults: { exec: ask } }", `rules:
  - { after: permission, round: 1, reply: [ { calls: [ { name: exec, arguments: { command: "printf 'it %s' ran" } } ] } ] }
  - { tool_result: exec, reply: [ { text: "Result: {{.Result}}" } ] }
  - { reply: [ { calls: [ { name: exec, arguments: { command: "printf 'it %s' ran" } } ] } ] }
`, "1001", "1002")
	startRuntime(t, workspace)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	find := func(what string, is func(telegramtest.Sent) bool) telegramtest.Sent {
		t.Helper()
		var found telegramtest.Sent
		if !bot.Wait(ctx, func() bool {
			for _, m := range bot.Sent() {
				if is(m) {
					found = m
					return true
				}
			}
			return false
		}) {
			t.Fatalf("no %s among %+v", what, bot.Sent())
		}

		return found
	}

	bot.Push(telegramtest.Text(1001, "run it"))
	card := find("card", func(m telegramtest.Sent) bool { return len(m.Buttons) == 3 })
	if card.Chat != "1001" || !strings.Contains(card.Text, "printf 'it %s' ran") {
		t.Errorf("the card is %+v, want the exact command in the chat of who asked", card)
	}
	press := func(user int, data string) string {
		t.Helper()
		n := len(bot.Answers())
		bot.Push(map[string]any{"callback_query": map[string]any{"id": fmt.Sprint(user, n), "data": data,
			"from":    map[string]any{"id": user, "first_name": "X"},
			"message": map[string]any{"message_id": card.ID, "chat": map[string]any{"id": 1001, "type": "private"}}}})
		if !bot.Wait(ctx, func() bool { return len(bot.Answers()) > n }) {
			t.Fatal("the button was not answered")
		}

		return bot.Answers()[n]
	}
	if got := press(1002, card.Buttons[0]); !strings.Contains(got, "Only the user") {
		t.Errorf("somebody else pressed: %q", got)
	}
	if got := press(1001, card.Buttons[0]); got != "Allowed once." {
		t.Errorf("the owner pressed: %q", got)
	}
	find("result", func(m telegramtest.Sent) bool {
		return strings.Contains(m.Text, "it ran") && m.Method == "sendMessage" && len(m.Buttons) == 0
	})
	find("settled card", func(m telegramtest.Sent) bool {
		return m.Method == "editMessageText" && strings.Contains(m.Text, "Allowed once by telegram:1001.")
	})
	if got := press(1001, card.Buttons[2]); !strings.Contains(got, "has already answered: allowed once") {
		t.Errorf("a second press: %q", got)
	}
}
