package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"daycare/cmd/daycare/setup"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// A keeper does with a systemd unit what systemd does with it: it runs ExecStart and,
// when that ends, looks at Restart= and RestartForceExitStatus= of the file to decide
// whether it runs again. It waits less than RestartSec=.
type keeper struct {
	t    *testing.T
	unit map[string]string
	args []string
	said loudspeaker

	mu     sync.Mutex
	next   []string // the environment of the next run only
	now    *exec.Cmd
	starts int
	codes  []int // how the runs ended; -1: by a signal
	over   chan struct{}
}

// keep reads the unit and starts it.
func keep(t *testing.T, unit string, env ...string) *keeper {
	t.Helper()
	k := &keeper{t: t, unit: map[string]string{}, next: env, over: make(chan struct{})}
	for line := range strings.Lines(unit) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			k.unit[name] = value
		}
	}
	k.args = unitWords(t, k.unit["ExecStart"])
	go k.run()
	t.Cleanup(k.stop)

	return k
}

// unitWords are the words of a command line as systemd reads it.
func unitWords(t *testing.T, line string) (words []string) {
	t.Helper()
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word, rest, _ := strings.Cut(line, " ")
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				t.Fatalf("ExecStart: %v", err)
			}
			rest = line[len(quoted):]
			if word, err = strconv.Unquote(quoted); err != nil {
				t.Fatalf("ExecStart: %v", err)
			}
		}
		words, line = append(words, strings.NewReplacer("%%", "%", "$$", "$").Replace(word)), rest
	}

	return words
}

func (k *keeper) run() {
	defer close(k.over)
	for {
		cmd := exec.Command(k.args[0], k.args[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = k.unit["WorkingDirectory"], &k.said, &k.said
		k.mu.Lock()
		cmd.Env = append(os.Environ(), k.next...)
		k.next = nil
		err := cmd.Start()
		k.now = cmd
		k.starts++
		k.mu.Unlock()
		if err != nil {
			k.t.Error(err)
			return
		}

		code := 0
		var exit *exec.ExitError
		if err := cmd.Wait(); errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		k.mu.Lock()
		k.codes = append(k.codes, code)
		k.mu.Unlock()
		if !k.again(code) {
			return
		}
	}
}

// again is systemd's table of Restart=, as far as units of daycare use it.
func (k *keeper) again(code int) bool {
	forced := slices.Contains(strings.Fields(k.unit["RestartForceExitStatus"]), strconv.Itoa(code))
	return forced || k.unit["Restart"] == "on-failure" && code != 0
}

// next has the next run see more of an environment.
func (k *keeper) prepare(env ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = env
}

func (k *keeper) ended() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.codes)
}

func (k *keeper) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.now.Process.Signal(syscall.SIGKILL); err != nil {
		k.t.Error(err)
	}
}

func (k *keeper) stop() {
	k.mu.Lock()
	k.unit["Restart"], k.unit["RestartForceExitStatus"] = "no", ""
	if k.now != nil && k.now.Process != nil {
		_ = k.now.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	k.mu.Unlock()
	<-k.over
}

// inTurn waits until the nth run answers on its socket.
func (k *keeper) inTurn(workspace string, nth int) {
	k.t.Helper()
	waitFor(k.t, fmt.Sprintf("run %d (%s)", nth, k.said.String()), func() bool {
		client, err := control.Dial(filepath.Join(workspace, home))
		if err != nil {
			return false
		}
		defer client.Close()
		s, err := client.Status(k.t.Context())
		k.mu.Lock()
		defer k.mu.Unlock()

		return err == nil && k.starts == nth && s.PID == k.now.Process.Pid
	})
}

// aService is a workspace and the unit that keeps its daemon.
func aService(t *testing.T, dir string) string {
	t.Helper()
	program, err := exec.LookPath("daycare")
	if err != nil {
		t.Fatal(err)
	}

	write(t, filepath.Join(dir, home, "settings.yaml"),
		"providers: [ { id: offline, type: scripted, options: { script: script.yaml } } ]\n")
	write(t, filepath.Join(dir, "script.yaml"), `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`)
	unit, err := setup.Unit(workspace.At(dir), "systemd", program)
	if err != nil {
		t.Fatal(err)
	}

	return unit
}

// say sends a message by the command line; accepted is exit code 0.
func say(workspace, word string, more ...string) (accepted bool, said string) {
	out, err := exec.Command("daycare", append([]string{"--workspace", workspace, "chat", word}, more...)...).CombinedOutput()
	return err == nil, string(out)
}

// once looks that words stand in the history of the only agent exactly once each, and
// have one answer each.
func once(t *testing.T, workspace string, words []string) {
	t.Helper()
	d := &process{t: t, workspace: workspace}
	waitFor(t, "all answers", func() bool {
		h := read(t, d, "history.jsonl")
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(h, `"text":"heard `+w+`"`) })
	})

	for _, w := range words {
		n := 0
		for line := range strings.Lines(read(t, d, "history.jsonl")) {
			if strings.Contains(line, `"type":"user_message"`) && strings.Contains(line, `"text":"`+w+`"`) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s stands in history %d times, want once", w, n)
		}
	}
}

// A service that is killed comes back; one whose storage fails ends with 75 and comes
// back; one that is stopped stays away. Nothing that was accepted is lost.
func TestServiceComesBack(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	k := keep(t, aService(t, workspace))
	k.inTurn(workspace, 1)
	ok, said := say(workspace, "one")
	if !ok {
		t.Fatal(said)
	}

	k.prepare("DAYCARE_FAILPOINT=eio@inbox.sync#2+")
	k.kill()
	k.inTurn(workspace, 2)
	words := []string{"one"}
	for _, w := range []string{"two", "three", "four"} {
		if ok, _ := say(workspace, w); !ok {
			// Another message now might find no daemon, and answer in its own process.
			waitFor(t, "the end of run 2", func() bool { return len(k.ended()) > 1 })
			break
		}
		words = append(words, w)
	}

	k.inTurn(workspace, 3)
	if got := k.ended(); !slices.Equal(got, []int{-1, fault.ExitDisk}) {
		t.Fatalf("the runs ended with %v, want [-1 %d]: %s", got, fault.ExitDisk, k.said.String())
	}
	if ok, said := say(workspace, "five"); !ok {
		t.Fatalf("after the restart: %s", said)
	}

	once(t, workspace, append(words, "five"))
	if out, err := exec.Command("daycare", "--workspace", workspace, "stop").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	select {
	case <-k.over:
	case <-time.After(30 * time.Second):
		t.Fatal("a service that was stopped came back")
	}
	if got := k.ended(); !slices.Equal(got, []int{-1, fault.ExitDisk, fault.ExitOK}) {
		t.Errorf("the runs ended with %v", got)
	}

	t.Logf("killed: back; storage failed: exit %d, back; stopped: stays away; %d accepted, none lost", fault.ExitDisk, len(words)+1)
}

// A disk that is full takes nothing new and loses nothing old, also when the service is
// killed meanwhile and comes back onto it.
func TestServiceOnFullDisk(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", workspace).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no small disk can be made here: mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", workspace).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})

	k := keep(t, aService(t, workspace))
	k.inTurn(workspace, 1)
	var accepted []string
	refused := 0
	speak := func(from, to int) {
		for n := from; n < to; n++ {
			w := fmt.Sprintf("word%03d%s", n, strings.Repeat("x", 700))
			if ok, said := say(workspace, w); ok {
				accepted = append(accepted, w)
			} else if refused++; !strings.Contains(said, "no space left") {
				t.Errorf("refused without a reason: %s", said)
			}
		}
	}
	speak(0, 3)
	fill := filepath.Join(workspace, "fill")
	brim(t, fill)
	speak(3, 20)
	if refused == 0 {
		t.Error("nothing was refused, so the disk was not full")
	}

	k.kill()
	k.inTurn(workspace, 2)
	brim(t, fill)
	speak(20, 24)
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}

	waitFor(t, "room", func() bool { ok, _ := say(workspace, "room"); return ok })
	speak(30, 32)
	once(t, workspace, accepted)
	t.Logf("%d accepted, each in history once; %d refused with the reason", len(accepted), refused)
}

// brim writes until there is no byte left.
func brim(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			size /= 2
		}
	}
}
