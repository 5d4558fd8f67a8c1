package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/config"
	"daycare/engine/fault"
)

// newBot is a Telegram bot, and an empty workspace to add it to.
func newBot(t *testing.T) (bot *telegramtest.Server, dir string) {
	t.Helper()
	bot = telegramtest.New("777:canary-token_to-be-added")
	t.Cleanup(bot.Close)
	dir = t.TempDir()
	write(t, filepath.Join(dir, "script.yaml"), `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`)
	write(t, filepath.Join(dir, home, config.Name),
		"# mine\nproviders:\n  - { id: echo, type: scripted, options: { script: script.yaml } }\n"+
			"\n#connectors:\n#  - id: x\n")

	return bot, dir
}

// unsaved reports whether a workspace is as it was: no connector, no token.
func unsaved(t *testing.T, dir string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, home, config.AuthName))
	return os.IsNotExist(err) && len(settingsOf(t, dir).Connectors) == 0
}

// On a terminal the token is tested, a wrong one can be typed again, and whoever writes first
// is let in only if they are the user. A daemon that runs has the connector at once.
func TestConnectorsAddAsksWhoYouAre(t *testing.T) {
	bot, dir := newBot(t)
	startRuntime(t, dir)
	r := onTerminal(t, dir, "connectors", "add", "telegram", "--set", "baseURL="+bot.URL)
	r.types("saved in auth.json): ", "777:wrong")
	r.types("Try again? [y/N] ", "y")
	if !unsaved(t, dir) {
		t.Error("a token that does not work was saved")
	}

	r.types("saved in auth.json): ", bot.Token)
	waitFor(t, "the invitation to write", func() bool { return strings.Contains(r.said.String(), "Now send it a message") })
	bot.Push(telegramtest.Text(1001, "a stranger's hello"))
	waitFor(t, "the question about 1001", func() bool { return strings.Contains(r.said.String(), "id 1001. Is this you") })
	r.types("Is this you? [y/N] ", "n")
	bot.Push(telegramtest.Text(1002, "hello"))
	waitFor(t, "the question about 1002", func() bool { return strings.Contains(r.said.String(), "id 1002. Is this you") })
	r.types("Is this you? [y/N] ", "y")
	code, screen := r.ends()
	if code != fault.ExitOK {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}

	for _, want := range []string{"401", "nothing was saved", "@test_bot (777) answers", "added telegram: access for 1002",
		"the daemon applies it now"} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen has no %q:\n%s", want, screen)
		}
	}

	if strings.Contains(screen, bot.Token) {
		t.Errorf("the token was shown:\n%s", screen)
	}
	text, err := os.ReadFile(filepath.Join(dir, home, config.Name))
	if err != nil || strings.Contains(string(text), bot.Token) || !strings.HasPrefix(string(text), "# mine\n") ||
		!strings.Contains(string(text), "connectors:\n  - id: \"telegram\"\n    type: telegram\n") {
		t.Errorf("settings.yaml, %v:\n%s", err, text)
	}

	conf := settingsOf(t, dir)
	if k, _ := conf.Connector("telegram"); len(k.Allow) != 1 || k.Allow[0] != "1002" || conf.Secret("telegram").Reveal() != bot.Token {
		t.Errorf("added is %+v", k)
	}
	bot.Push(telegramtest.Text(1002, "ping"))
	waitFor(t, "an answer through the new connector", func() bool {
		// A hello that was not confirmed to Telegram any more comes again, and both may be answered together.
		return slices.ContainsFunc(bot.Sent(), func(m telegramtest.Sent) bool {
			return m.Chat == "1002" && strings.HasPrefix(m.Text, "heard ") && strings.Contains(m.Text, "ping")
		})
	})
}

// Ctrl-C while a message is waited for saves nothing.
func TestConnectorsAddInterrupted(t *testing.T) {
	bot, dir := newBot(t)
	r := onTerminal(t, dir, "connectors", "add", "telegram", "--set", "baseURL="+bot.URL)
	r.types("saved in auth.json): ", bot.Token)
	waitFor(t, "the invitation to write", func() bool { return strings.Contains(r.said.String(), "Now send it a message") })
	bot.Push(telegramtest.Text(1001, "hello"))
	waitFor(t, "the question", func() bool { return strings.HasSuffix(r.said.String(), "Is this you? [y/N] ") })
	time.Sleep(50 * time.Millisecond)
	if _, err := r.tty.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if code, screen := r.ends(); code != fault.ExitInterrupted || !unsaved(t, dir) {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
}

// Without a terminal everything is a flag. What is missing is named, and what does not work
// is not saved.
func TestConnectorsAddByFlags(t *testing.T) {
	bot, dir := newBot(t)
	t.Setenv("MY_BOT", bot.Token)
	write(t, filepath.Join(dir, "wrong.txt"), "777:wrong\n")
	run := func(args ...string) (int, string) {
		var out strings.Builder
		code := execute(append([]string{"--workspace", dir, "connectors", "add"}, args...), strings.NewReader(bot.Token+"\n"), &out, &out)
		return code, out.String()
	}
	at := "baseURL=" + bot.URL
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"telegramm"}, fault.ExitUsage, "unknown connector type"},
		{[]string{"webhook"}, fault.ExitUsage, "docs/connectors/webhook.md"},
		{[]string{"telegram", "--set", "baseurl=x"}, fault.ExitUsage, "did you mean baseURL?"},
		{[]string{"telegram", "--set", "baseURL"}, fault.ExitUsage, "not of the form KEY=VALUE"},
		{[]string{"telegram", "--id", "no space"}, fault.ExitUsage, "--id"},
		{[]string{"telegram"}, fault.ExitUsage, "--token-from-env NAME or --token-file FILE (Bot token of @BotFather)\n--allow ID"},
		{[]string{"irc"}, fault.ExitUsage, "--set server=… (Server, such as irc.libera.chat:6697)\n--set nick=…"},
		{[]string{"slack", "--set", "listen=127.0.0.1:1", "--allow", "U024BE7LH"}, fault.ExitUsage,
			"--token-from-env signing=NAME or --token-file signing=FILE (Signing secret)"},
		{[]string{"telegram", "--token-from-env", "NO_SUCH_BOT", "--allow", "1"}, fault.ExitUsage,
			"NO_SUCH_BOT is not set in the environment"},
		{[]string{"telegram", "--token-from-env", "app=MY_BOT", "--allow", "1"}, fault.ExitUsage, "has no such token"},
		{[]string{"telegram", "--token-file", "no.txt", "--allow", "1"}, fault.ExitNotFound, "there is no file no.txt"},
		{[]string{"telegram", "--token-file", filepath.Join(dir, "wrong.txt"), "--allow", "1", "--set", at}, fault.ExitFailure,
			"nothing was saved"},
		{[]string{"telegram", "--token-file", "-", "--allow", "ada", "--set", at}, fault.ExitFailure, "want the numeric id of a user"},
		{[]string{"telegram", "--token-file", "-", "--allow", "1", "--set", "baseURL=http://127.0.0.1:1"}, fault.ExitFailure, "refused"},
	} {
		if code, said := run(tt.args...); code != tt.code || !strings.Contains(said, tt.want) {
			t.Errorf("add %v: exit code %d, want %d with %q:\n%s", tt.args, code, tt.code, tt.want, said)
		}
		if !unsaved(t, dir) {
			t.Fatalf("after add %v something is saved", tt.args)
		}
	}

	if code, said := run("telegram", "--token-from-env", "MY_BOT", "--allow", "1001", "--allow", "1002", "--set", at,
		"--json"); code != fault.ExitOK ||
		!strings.Contains(said, `"id":"telegram","type":"telegram","allow":["1001","1002"]`) {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, said := run("telegram", "--token-from-env", "MY_BOT", "--allow", "1001", "--set", at); code != fault.ExitUsage ||
		!strings.Contains(said, "--id") {
		t.Errorf("a second one of the same id: exit code %d: %s", code, said)
	}
	if code, said := run("telegram", "--id", "second", "--token-file", "-", "--set", "pairing=true", "--set", at); code != fault.ExitOK ||
		!strings.Contains(said, "daycare start --background") {
		t.Errorf("exit code %d: %s", code, said)
	}

	conf := settingsOf(t, dir)
	if len(conf.Connectors) != 2 || conf.Secret("second").Reveal() != bot.Token || !conf.Secret("telegram").IsZero() ||
		conf.SecretNamed("MY_BOT").Reveal() != bot.Token {
		t.Errorf("added are %+v", conf.Connectors)
	}
}
