package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/control"
)

// TestAnswersFromTwoSurfacesAtOnce has one request after the other answered by a
// button in a chat and by the command line (or another client of the API) at the same
// time: one wins, and the other is told who.
func TestAnswersFromTwoSurfacesAtOnce(t *testing.T) {
	t.Parallel()
	bot, workspace := telegramWorkspace(t, "", `
rules:
  - { match: 'look at (?<n>\d+)', round: 1, reply: [ { calls: [ { name: request_permission, arguments: { permission: `+
		`"@read:/srv/{{.Name.n}}", reason: "to look" } } ] } ] }
  - { after: permission, reply: [ { text: "I was told." } ] }
  - { reply: [ { text: "I wait." } ] }
`, "1001")
	root := startRuntime(t, workspace)
	client, err := control.Dial(root)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	wins := map[string]int{}
	for n := range 20 {
		bot.Push(telegramtest.Text(1001, fmt.Sprintf("look at %d", n)))
		ask, message := shownRequest(t, bot, n)
		told := len(bot.Answers())
		var refused error
		var both sync.WaitGroup
		both.Go(func() {
			if n%2 == 0 {
				refused = client.Decide(t.Context(), ask, "deny", "")
				return
			}
			refused = denyByCommand(workspace, ask)
		})

		if n%2 == 1 { // a process needs a while to start
			time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
		}
		bot.Push(map[string]any{"callback_query": map[string]any{"id": fmt.Sprint(n), "data": "once " + ask,
			"from": map[string]any{"id": 1001, "first_name": "Ada"}, "message": telegramtest.Message(1001, message)}})
		both.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if !bot.Wait(ctx, func() bool { return len(bot.Answers()) > told }) {
			t.Fatal("whoever pressed the button was told nothing")
		}
		cancel()
		inChat := bot.Answers()[told]
		waitFor(t, "the decision in history", func() bool { return decisionsIn(historyOf(t, root), ask) != "" })

		switch winner := decisionsIn(historyOf(t, root), ask); winner {
		case "once":
			wins["chat"]++
			if refused == nil || !strings.Contains(refused.Error(), "already answered: once by telegram:1001") ||
				inChat != "Allowed once." {
				t.Errorf("%d: the chat won; it was told %q, the other %v", n, inChat, refused)
			}
		case "deny":
			wins["other"]++
			if refused != nil || !strings.Contains(inChat, "has already answered: denied") || strings.HasPrefix(inChat, "someone") {
				t.Errorf("%d: the other won and was told %v, the chat %q", n, refused, inChat)
			}
		default:
			t.Errorf("%d: the decisions recorded are %q, want one", n, winner)
		}
	}
	t.Logf("who was first: %v", wins)
}

// shownRequest waits for the card of a request and returns its token.
func shownRequest(t *testing.T, bot *telegramtest.Server, n int) (token, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if !bot.Wait(ctx, func() bool {
		for _, m := range bot.Sent() {
			if len(m.Buttons) > 0 && strings.Contains(m.Text, fmt.Sprintf("@read:/srv/%d\n", n)) {
				token, text = strings.TrimPrefix(m.Buttons[0], "once "), m.Text
				return true
			}
		}
		return false
	}) {
		t.Fatalf("request %d is not shown: %+v", n, bot.Sent())
	}

	return token, text
}

// denyByCommand is a user at the command line.
func denyByCommand(workspace, token string) error {
	out, err := exec.Command("daycare", "--workspace", workspace, "permissions", "deny", token).CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return nil
}

// decisionsIn are the decisions on a request in a history, in their order.
func decisionsIn(history, token string) string {
	var list []string
	for line := range strings.Lines(history) {
		if !strings.Contains(line, `"type":"permission"`) || !strings.Contains(line, `"token":"`+token+`"`) {
			continue
		}
		for _, word := range []string{"once", "always", "deny", "expired"} {
			if strings.Contains(line, `"event":"`+word+`"`) {
				list = append(list, word)
			}
		}
	}

	return strings.Join(list, " ")
}
