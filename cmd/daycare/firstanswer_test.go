package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/permission"
)

// A house of answers is a daemon whose agent asks a user in a chat.
type answerHouse struct {
	*process
	root string
	bot  *telegramtest.Server
	c    *control.Client
}

// An answerer answers a request and returns the reply; "" if its answer counts.
// picture is the request's file as it was.
type answerer struct {
	name, by string
	answer   func(t *testing.T, token, decision, picture string) string
}

func newAnswerHouse(t *testing.T) *answerHouse {
	const token = "777:canary-token_of-the-answers"
	bot := telegramtest.New(token)
	t.Cleanup(bot.Close)
	h := &answerHouse{process: &process{t: t, workspace: t.TempDir(), env: []string{"DAYCARE_SECRET_TELEGRAM=" + token}}, bot: bot}
	h.root = filepath.Join(h.workspace, home)
	write(t, filepath.Join(h.root, "settings.yaml"), fmt.Sprintf(`
providers: [ { id: script, type: scripted, options: { script: %q } } ]
connectors: [ { id: telegram, type: telegram, baseURL: %q, allow: ["1001"] } ]
agents: { queue: followup }
`, filepath.Join(h.workspace, "script.yaml"), bot.URL))
	write(t, filepath.Join(h.workspace, "script.yaml"), `rules:
  - { match: '^may I see (?<host>\S+)$', round: 1, reply: [ { calls: [ { name: request_permission, arguments: { permission: `+
		`"@web:{{.Name.host}}", reason: "to see it" } } ] } ] }
  - { reply: [ { text: "NO_MESSAGE" } ] }
`)
	h.start()
	t.Cleanup(h.kill)
	var err error
	if h.c, err = control.Dial(h.root); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { h.c.Close() })
	return h
}

// ask has the agent ask for a host and returns the request's token and file.
func (h *answerHouse) ask(t *testing.T, host string) (token, picture string) {
	t.Helper()
	h.bot.Push(telegramtest.Text(1001, "may I see "+host))
	waitFor(t, "the request", func() bool {
		asks, err := h.c.Permissions(t.Context())
		i := slices.IndexFunc(asks, func(a event.Ask) bool { return a.Tag == "@web:"+host })
		if err != nil || i < 0 {
			return false
		}
		token = asks[i].Token
		return true
	})

	return token, string(mustRead(t, h.file(token)))
}

func (h *answerHouse) file(token string) string {
	return filepath.Join(h.root, "permissions", token+".json")
}

// log is the line of a request that was answered.
func (h *answerHouse) log(t *testing.T, token string) (p permission.Pending, found bool) {
	t.Helper()
	log, err := permission.Log(h.root)
	if err != nil {
		t.Fatal(err)
	}

	for _, p := range log {
		if p.Token == token {
			return p, true
		}
	}
	return p, false
}

// say says something in the chat and returns the answer to it; what asks for an answer,
// and comes at any time, is none.
func (h *answerHouse) say(t *testing.T, text string) string {
	t.Helper()
	before := len(h.bot.Sent())
	h.bot.Push(telegramtest.Text(1001, text))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said := ""
	if !h.bot.Wait(ctx, func() bool {
		for _, m := range h.bot.Sent()[before:] {
			if !strings.HasPrefix(m.Text, "Permission needed") {
				said = m.Text
			}
		}
		return said != ""
	}) {
		t.Fatalf("%q was not answered", text)
	}

	return said
}

func (h *answerHouse) answerers() []answerer {
	return []answerer{
		{"command", "", func(t *testing.T, token, decision, _ string) string {
			args := map[string][]string{"once": {"allow", token[:8], "--once"}, "always": {"allow", token[:8]},
				"deny": {"deny", token[:8]}}[decision]
			out, err := exec.Command("daycare", append([]string{"--workspace", h.workspace, "permissions"}, args...)...).CombinedOutput()
			if err == nil {
				return ""
			}
			return string(out)
		}},
		{"API", "", func(t *testing.T, token, decision, _ string) string {
			err := h.c.Decide(t.Context(), token, decision, "")
			if err == nil {
				return ""
			}
			if first := (*control.Decided)(nil); !errors.As(err, &first) {
				t.Errorf("the API says %v, want who was first", err)
			}

			return err.Error()
		}},
		{"chat", "telegram:1001", func(t *testing.T, token, decision, _ string) string {
			said := h.say(t, "/"+decision+" "+token[:permission.CodeLength])
			if slices.Contains([]string{"Allowed once.", "Allowed from now on.", "Denied."}, said) {
				return ""
			}
			return strings.NewReplacer("allowed once", "once", "allowed from now on", "always", "denied", "deny").Replace(said)
		}},
		{"file", "file", func(t *testing.T, token, decision, picture string) string {
			before := len(h.said.String())
			write(t, h.file(token), strings.Replace(picture, `"decision": null`, fmt.Sprintf(`"decision": %q`, decision), 1))
			waitFor(t, "the file to be taken", func() bool { return !term.Exists(h.file(token)) })
			if p, ok := h.log(t, token); ok && p.DecidedBy == "file" && string(p.Decision) == decision {
				return ""
			}
			waitFor(t, "what is said of it", func() bool { return strings.Contains(h.said.String()[before:], "too late") })

			return h.said.String()[before:]
		}},
	}
}

// firstAnswerWins answers a request twice, by each pair of ways to answer and with each pair of decisions: the first
// answer counts, and the second one is told who was first.
func firstAnswerWins(t *testing.T, pairs ...[2]string) {
	h := newAnswerHouse(t)
	n := 0
	for _, first := range h.answerers() {
		for _, second := range h.answerers() {
			for _, decisions := range pairs {
				n++
				t.Run(first.name+" then "+second.name+"/"+decisions[0], func(t *testing.T) {
					token, picture := h.ask(t, fmt.Sprintf("h%d.example", n))
					if said := first.answer(t, token, decisions[0], picture); said != "" {
						t.Fatalf("the first answer was told: %s", said)
					}
					said := second.answer(t, token, decisions[1], picture)
					p, ok := h.log(t, token)
					if !ok || string(p.Decision) != decisions[0] || p.DecidedBy == "" || first.by != "" && p.DecidedBy != first.by {
						t.Errorf("%s by %s stands (%v), want %s by %s", p.Decision, p.DecidedBy, ok, decisions[0], first.by)
					}
					if !strings.Contains(said, decisions[0]) || !strings.Contains(said, p.DecidedBy) {
						t.Errorf("the second answer was told %q, want %s by %s", said, decisions[0], p.DecidedBy)
					}
				})
			}
		}
	}
}
