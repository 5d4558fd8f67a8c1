package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/lazyregexp"
)

// TestOneApprovalOnEverySurface has an agent ask for one command and takes down what a user
// reads of it in a chat, on the command line, in the full-screen UI and over the API: the
// same text. testdata/approval.txt keeps it; -update writes it anew.
func TestOneApprovalOnEverySurface(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: no tmux to show the full-screen view in (apt-get install tmux)")
	}
	t.Parallel()
	bot, workspace := telegramWorkspace(t, "permissions: { defaults: { exec: ask } }", `rules:
  - { reply: [ { calls: [ { name: exec, arguments: { command: "sh build.sh \u202Etxt", env: { MODE: fast } } } ] } ] }
`, "1001")
	write(t, filepath.Join(workspace, "build.sh"), "#!/bin/sh\necho built\n")
	root := startRuntime(t, workspace)
	client, err := control.Dial(root)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	bot.Push(telegramtest.Text(1001, "run it"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var sent telegramtest.Sent
	if !bot.Wait(ctx, func() bool {
		for _, m := range bot.Sent() {
			if len(m.Buttons) > 0 {
				sent = m
			}
		}
		return len(sent.Buttons) > 0
	}) {
		t.Fatalf("no card among %+v", bot.Sent())
	}
	asks, err := client.Permissions(t.Context())
	if err != nil || len(asks) != 1 {
		t.Fatalf("%+v, %v", asks, err)
	}
	ask := asks[0]
	line, err := exec.Command("daycare", "--workspace", workspace, "permissions", "show", ask.Token).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	surfaces := []struct{ name, text string }{{"API, member card", ask.Card}, {"command line: daycare permissions show", string(line)},
		{"full-screen UI", screenOf(t, workspace, ask)},
		{"chat: Telegram", sent.Text + "\nbuttons: " + strings.Join(deeds(sent.Buttons), ", ")}}
	var all strings.Builder
	for _, s := range surfaces {
		t.Logf("%s:\n%s", s.name, s.text)
		for _, want := range []string{"sh build.sh [U+202E]txt", "MODE=", "fast", "build.sh, sha256 ", "run"} {
			if !strings.Contains(strings.ReplaceAll(s.text, "\n", " "), want) {
				t.Errorf("%s does not show %q:\n%s", s.name, want, s.text)
			}
		}
		fmt.Fprintf(&all, "== %s\n%s\n", s.name, strings.TrimSpace(steady(s.text, workspace, ask)))
	}
	golden := filepath.Join("testdata", "approval.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != all.String() {
		t.Errorf("what people read is not %s (%v); write it with: go test ./cmd/daycare -run TestOneApprovalOnEverySurface -update\n%s",
			golden, err, all.String())
	}
}

// screenOf is the question of the full-screen UI.
func screenOf(t *testing.T, workspace string, ask event.Ask) string {
	t.Helper()
	s := newSeat(t, workspace, 240, 40) // wide: a long name of a folder is not broken
	s.types("exec sh -c 'daycare; exec sh'")
	s.keys("Enter")
	s.sees("to answer")
	s.keys("C-g")
	s.sees("a answers", "telegram:1001")
	s.keys("a")
	screen := s.sees("asks for", "sandbox", "Deny")

	return screen[strings.LastIndex(screen, " ? "):]
}

// deeds are what buttons do, without the token.
func deeds(buttons []string) (list []string) {
	for _, b := range buttons {
		word, _, _ := strings.Cut(b, " ")
		list = append(list, word)
	}
	return list
}

var (
	hash    = lazyregexp.New(`[0-9a-f]{64}|[0-9a-f]{12,}…?`)
	expires = lazyregexp.New(`asked (just now|\S+ ago)|expires in \S+`)
	blank   = lazyregexp.New(`[ \t]+\n`)
	empty   = lazyregexp.New(`\n{3,}`)
)

// steady is a text without what another run or machine has otherwise.
func steady(text, workspace string, ask event.Ask) string {
	text = strings.NewReplacer(workspace, "/home/me/notes", ask.Token, "TOKEN", ask.AgentID, "AGENT").Replace(text)
	text = regexp.MustCompile(`sh: /\S+`).ReplaceAllString(text, "sh: /usr/bin/sh")
	text = regexp.MustCompile(`(sandbox +)\S+`).ReplaceAllString(text, "${1}LEVEL")
	text = expires.ReplaceAllString(hash.ReplaceAllString(text, "HASH"), "SOON")
	return empty.ReplaceAllString(blank.ReplaceAllString(text+"\n", "\n"), "\n\n")
}
