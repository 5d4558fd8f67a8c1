//go:build !race

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/talk"
	"daycare/engine/control"
)

// A turn in steady state asks the system no more than this for files, at the median of many turns:
// what is kept in memory is read again when a second is over. The looks are those that find an edit
// of an inbox, a history, a descriptor or a state.json before the next use, and after each write.
var turnLimits = map[string]int{"fdatasync": 2, "open": 1, "look": 19, "failed": 0, "fcntl": 0, "unlink": 0}

func TestWhatATurnAsksTheSystemFor(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, home, "settings.yaml"), "providers: [{id: offline, type: scripted}]\n")
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-o", trace, "-e", "trace=%file,%desc", "daycare", "--workspace", dir, "start")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var said loudspeaker
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { // strace takes no signal while it looks at a program
		stopped := exec.Command("daycare", "--workspace", dir, "stop").Run()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			t.Error("the daemon does not end", stopped, said.String())
		}
	})
	var client *control.Client
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if client, err = control.Dial(filepath.Join(dir, home)); err == nil {
			break
		}
		if strings.Contains(said.String(), "ptrace") || strings.Contains(said.String(), "PTRACE") {
			t.Skip("strace may not look here: " + said.String())
		}
		if time.Now().After(end) {
			t.Fatal(err, said.String())
		}
	}
	defer client.Close()

	for range 40 {
		if _, err := client.Stream(t.Context(), "", talk.Own(control.Message{Text: "hello"}), func(control.RawEvent) {}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	turns := turnsOf(string(data))
	if len(turns) < 20 {
		t.Fatalf("%d turns in %d bytes", len(turns), len(data))
	}
	for what, limit := range turnLimits {
		var n []int
		for _, turn := range turns[5:] { // the first ones read what is kept
			n = append(n, turn[what])
		}
		slices.Sort(n)
		t.Logf("%-9s median %d of %d turns, from %d to %d", what, n[len(n)/2], len(n), n[0], n[len(n)-1])
		if n[len(n)/2] > limit {
			t.Errorf("%s: %d a turn, want at most %d", what, n[len(n)/2], limit)
		}
	}
}

// callNames are the system calls that are counted, by what they are counted as.
var callNames = map[string]string{"openat": "open", "newfstatat": "look", "fstat": "look", "statx": "look", "fdatasync": "fdatasync",
	"fsync": "fdatasync", "fcntl": "fcntl", "unlinkat": "unlink"}

var traced = regexp.MustCompile(`^\d+ +(<\.\.\. )?(\w+)(\(| resumed>)`)

// turnsOf counts by turns: each begins with the barrier of its message, and has another one at its end.
func turnsOf(trace string) (turns []map[string]int) {
	var turn map[string]int
	barriers := 0
	for line := range strings.Lines(trace) {
		m := traced.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := callNames[m[2]]
		if m[1] == "" && name == "fdatasync" {
			if barriers%2 == 0 {
				turn = map[string]int{}
				turns = append(turns, turn)
			}
			barriers++
		}
		if turn == nil || name == "" {
			continue
		}
		if m[1] == "" {
			turn[name]++
		}
		if strings.Contains(line, "= -1 ENOENT") {
			turn["failed"]++
		}
	}

	return turns
}
