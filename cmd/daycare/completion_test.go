//go:build !race

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/fault"
)

// completions are what a user types, ending with Tab, and what the line is then.
var completions = []struct{ typed, line string }{
	{"daycare stat", "daycare status"},
	{"daycare agents show 0", "daycare agents show 0/"},
	{"daycare agents show Tw", "daycare agents show Two words"},
	{"daycare chat --agent Tw", "daycare chat --agent Two words"},
	{"daycare cron run d", "daycare cron run daily-look"},
	{"daycare help cost --js", "daycare help cost --json"},
}

// TestCompletionInShells presses Tab in real shells, in a workspace with an agent and
// a task.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, home, "settings.yaml"), "providers: [ { id: play, type: scripted } ]\n")
	client, err := control.Dial(startRuntime(t, workspace))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Create(t.Context(), control.NewAgent{Type: "permanent", Name: "Two words"}); err != nil {
		t.Fatal(err)
	}

	name, prompt, every := "Daily look", "Look.", "1d"
	if _, err := client.Schedule().AddTask(t.Context(), control.TaskChange{Name: &name, Prompt: &prompt, Every: &every}); err != nil {
		t.Fatal(err)
	}

	for shell, start := range map[string][]string{
		"bash": {"bash", "--noprofile", "--norc", "-i"},
		"zsh":  {"zsh", "-f", "-i"},
	} {
		t.Run(shell, func(t *testing.T) { pressTab(t, workspace, shell, start) })
	}

	t.Run("fish", func(t *testing.T) { askFish(t, workspace) })
}

// shellCommand is a shell in the workspace with the completion of daycare in a file.
func shellCommand(t *testing.T, workspace, shell string, argv []string) (cmd *exec.Cmd, script string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skipf("NOT TESTED: there is no %s on this machine; install it to see whether its completion works", shell)
	}
	var out, problems bytes.Buffer
	c := &term.App{Streams: term.Streams{Out: &out, Err: &problems}}
	if code := c.Run(t.Context(), newRoot, []string{"completion", shell}); code != fault.ExitOK {
		t.Fatalf("completion %s: exit code %d\n%s", shell, code, &problems)
	}

	script = filepath.Join(t.TempDir(), "_daycare")
	write(t, script, out.String())
	cmd = exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = workspace
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "TERM=xterm", "PS1=$ ", "HISTFILE=", "LANG=C")
	return cmd, script
}

// pressTab types into a shell on a terminal. Each line is completed, then turned into
// one that prints its words; so what is compared does not depend on how the shell draws.
func pressTab(t *testing.T, workspace, shell string, argv []string) {
	cmd, script := shellCommand(t, workspace, shell, argv)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	read := make(chan error, 1)
	defer func() {
		tty.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, or has ended
	}()

	setUp := ". " + script + "\n"
	if shell == "zsh" {
		setUp = "fpath=(" + filepath.Dir(script) + " $fpath); autoload -U compinit; compinit -u -D\n"
	}
	io.WriteString(tty, setUp)
	for _, c := range completions {
		io.WriteString(tty, c.typed+"\t\x01printf '<%s>' \n")
	}

	io.WriteString(tty, "printf '[%s]\\n' ended; exit\n")
	go func() {
		_, err := io.Copy(&seen, tty)
		read <- err
	}()

	select {
	case <-read: // a terminal whose program has ended is an error of its own
	case <-time.After(time.Minute):
		tty.Close()
		<-read
		t.Errorf("%s did not end", shell)
	}

	for _, c := range completions {
		want := "<" + strings.ReplaceAll(c.line, " ", "><") + ">"
		want = strings.ReplaceAll(want, "<Two><words>", "<Two words>")
		if !strings.Contains(seen.String(), want) {
			t.Errorf("%s<Tab> is not completed to %s", c.typed, c.line)
		}
	}

	if t.Failed() {
		t.Logf("the terminal:\n%q", seen.String())
	}
}

// askFish has fish say what it would offer: it can without a terminal.
func askFish(t *testing.T, workspace string) {
	for _, c := range completions {
		cmd, script := shellCommand(t, workspace, "fish", []string{"fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`})
		cmd.Args = append(cmd.Args, script, c.typed)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want := c.line[strings.LastIndex(strings.TrimSuffix(c.line, " words"), " ")+1:]
		if !strings.HasPrefix(string(out), want) && !strings.Contains(string(out), "\n"+want) {
			t.Errorf("%s<Tab> does not offer %s:\n%s", c.typed, want, out)
		}
	}
}
