package main

import (
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/tarball"
)

// A newcomer is someone at a terminal who has an archive and no Go.
type newcomer struct {
	*seat
	began time.Time
	steps int
}

// runs types a command into the shell and waits for its end. The screen has to show all of
// want then; the step is logged with its time and its screen.
func (n *newcomer) runs(what, command string, want ...string) {
	n.t.Helper()
	n.clear()
	begin := time.Now()
	n.types(command + "; echo [done $?]")
	n.keys("Enter")
	n.sees(append([]string{"\n[done 0]"}, want...)...)
	n.tells(what, begin)
}

func (n *newcomer) clear() {
	n.t.Helper()
	n.tmux("send-keys", "-R")
	n.loses("[done")
}

func (n *newcomer) tells(what string, begin time.Time) {
	n.t.Helper()
	n.steps++
	n.t.Logf("step %d, %s: %.1f s (%.0f s since the beginning)\n%s", n.steps, what, time.Since(begin).Seconds(),
		time.Since(n.began).Seconds(), strings.TrimRight(n.screen(), "\n "))
}

// answers waits for a question and types the answer.
func (n *newcomer) answers(question, answer string) {
	n.t.Helper()
	n.looks(func(screen string) string {
		if !strings.HasSuffix(strings.TrimRight(screen, "\n "), strings.TrimRight(question, " ")) {
			return fmt.Sprintf("it never asks %q", question)
		}
		return ""
	})
	n.types(answer)
	n.keys("Enter")
}

// release packs a program as a release does, with its checksum, and returns the archive.
func release(t *testing.T, dir, number string) string {
	t.Helper()
	program := filepath.Join(dir, number)
	flags := "-s -w -X daycare/cmd/daycare/version.Number=" + number
	if out, err := exec.Command("go", "build", "-ldflags", flags, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	name := "daycare-" + number + "-" + runtime.GOOS + "-" + runtime.GOARCH
	archive := filepath.Join(dir, name+".tar.gz")
	pack(t, archive, name+"/daycare", program)
	packed, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(packed), name)
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums), 0o600); err != nil {
		t.Fatal(err)
	}
	return archive
}

func pack(t *testing.T, archive, name, program string) {
	t.Helper()
	from, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(to)
	w := tarball.NewWriter(zip)
	err = w.Add(tarball.Entry{Name: name, Mode: 0o755, Size: info.Size(), ModTime: info.ModTime()}, from)
	if err = errors.Join(err, w.Close(), zip.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestNewcomersHour is the first hour of someone who has the archive and the README, on a real
// terminal: install, set up, talk, a chat platform, a task, an edit by hand, backup, move, update, uninstall. It
// logs each step with its screen. DAYCARE_LONG=1 runs it: it builds two releases.
func TestNewcomersHour(t *testing.T) {
	if os.Getenv("DAYCARE_LONG") == "" {
		t.Skip("SKIPPED: it builds two releases; DAYCARE_LONG=1 runs it")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: there is no tmux here")
	}
	house := t.TempDir()
	for _, dir := range []string{"download", "release", "tmp"} {
		if err := os.Mkdir(filepath.Join(house, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	release(t, filepath.Join(house, "download"), "0.1.0")
	release(t, filepath.Join(house, "release"), "0.2.0")
	for name, value := range map[string]string{"HOME": house, "TMPDIR": filepath.Join(house, "tmp"), "XDG_STATE_HOME": "",
		"XDG_CONFIG_HOME": "",
		"PATH":            filepath.Join(house, ".local", "bin") + ":/usr/local/bin:/usr/bin:/bin"} {
		t.Setenv(name, value)
	}
	n := &newcomer{seat: newSeat(t, house, 110, 45), began: time.Now()}
	t.Cleanup(func() {
		for _, dir := range []string{"notes", "moved"} {
			exec.Command("daycare", "--workspace", filepath.Join(house, dir), "stop").Run()
		}
	})

	n.runs("install from the archive", "tar xzf download/daycare-0.1.0-*.tar.gz && mkdir -p .local/bin && "+
		"cp daycare-0.1.0-*/daycare .local/bin && hash -r && daycare version", "daycare 0.1.0")
	n.wizard(modelServer(t, ""))
	n.talks()
	bot := telegramtest.New("777:token-of-the_newcomer")
	t.Cleanup(bot.Close)
	n.joins(bot)
	n.runs("a task", "daycare cron add --every 10s --name soon say hello && sleep 12 && daycare cron runs soon", "task  soon", " ran ")
	n.runs("an edit by hand", `sed -i 's/I can read/I REALLY can read/' .daycare/agents/*/history.jsonl && sleep 1 && daycare agents `+
		`tail 0/ && `+
		`daycare logs | grep -c 'edited'`, "I REALLY can read")
	n.runs("a backup", "daycare backup ~/notes.tar.gz && daycare stop", "backed up", "stopped")
	n.runs("a move to another folder", "mkdir ~/moved && cd ~/moved && daycare restore ~/notes.tar.gz && daycare start --background && "+
		"daycare agents tail 0/ && daycare chat hello again", "restored", "I REALLY can read")
	n.runs("an update", "daycare update --from ~/release --unsigned --yes && daycare version && daycare restart && daycare status",
		"0.1.0 -> 0.2.0", "daycare 0.2.0", "running, pid")
	n.runs("an overview", "daycare workspaces", "/notes", "stopped", "/moved", "running")
	n.runs("uninstall", "daycare stop && daycare uninstall --yes && hash -r; command -v daycare; ls ~/moved/.daycare/settings.yaml",
		"keep    "+filepath.Join(house, "moved", ".daycare"), "removed daycare")
	if left, _ := filepath.Glob(filepath.Join(house, ".local", "bin", "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	t.Logf("%d steps in %.0f s", n.steps, time.Since(n.began).Seconds())
}

// wizard sets up a server of this machine as init asks for it.
func (n *newcomer) wizard(url string) {
	n.t.Helper()
	n.clear()
	begin := time.Now()
	n.types("mkdir notes && cd notes && echo 'buy milk' > notes.txt && daycare init; echo [done $?]")
	n.keys("Enter")
	n.answers("Number [7]: ", "6")
	n.answers("Server address [http://127.0.0.1:8080/v1]: ", url)
	n.answers("(not shown; Enter for none): ", "")
	n.answers("Model [qwen3]: ", "")
	n.sees("\n[done 0]", "wrote    provider server, model qwen3")
	n.tells("the wizard", begin)
}

// talks has the first chat on the command line, and the next in the full-screen UI.
func (n *newcomer) talks() {
	n.t.Helper()
	n.runs("the first chat", "daycare start --background && daycare chat hello", "Hello! I can read and change the files of this folder.")
	n.clear()
	begin := time.Now()
	n.types("daycare; echo [done $?]")
	n.keys("Enter")
	n.sees("I can read and change", "main")
	n.enters("what is in notes.txt?")
	n.reads("what is in notes.txt?", "buy milk.")
	n.tells("the UI", begin)
	n.enters("/quit")
	n.sees("[done 0]")
}

// joins adds a bot of Telegram to the daemon that runs, and talks to the agent there.
func (n *newcomer) joins(bot *telegramtest.Server) {
	n.t.Helper()
	n.clear()
	begin := time.Now()
	n.types("daycare connectors add telegram --set baseURL=" + bot.URL + "; echo [done $?]")
	n.keys("Enter")
	n.answers("saved in auth.json): ", bot.Token)
	n.sees("Now send it a message")
	bot.Push(telegramtest.Text(1001, "hello"))
	n.answers("Is this you? [y/N] ", "y")
	n.sees("\n[done 0]", "added telegram: access for 1001", "the daemon applies it now")
	bot.Push(telegramtest.Text(1001, "hello"))
	waitFor(n.t, "an answer on Telegram", func() bool {
		return slices.ContainsFunc(bot.Sent(), func(m telegramtest.Sent) bool {
			return m.Chat == "1001" && strings.HasPrefix(m.Text, "Hello! I can read")
		})
	})
	n.tells("Telegram", begin)
}
