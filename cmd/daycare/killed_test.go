package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"daycare/engine/control"
)

// A process is the program in a process of its own, that a test may kill.
type process struct {
	t         *testing.T
	workspace string
	args      []string // of start
	env       []string
	cmd       *exec.Cmd
	said      loudspeaker
}

// A loudspeaker keeps what a process says while the test reads it.
type loudspeaker struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *loudspeaker) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *loudspeaker) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts the daemon and waits until it answers.
func (d *process) start() {
	d.t.Helper()
	d.cmd = exec.Command("daycare", append([]string{"--workspace", d.workspace, "start"}, d.args...)...)
	d.cmd.Env = append(os.Environ(), d.env...)
	d.cmd.Stdout, d.cmd.Stderr = &d.said, &d.said
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}

	defer func() {
		if d.t.Failed() {
			d.t.Logf("the daemon said: %s", &d.said)
		}
	}()
	waitFor(d.t, "the daemon", func() bool {
		client, err := control.Dial(filepath.Join(d.workspace, home))
		if err != nil {
			return false
		}
		client.Close()
		return true
	})
}

// kill ends it as a power cut would, short of the disk.
func (d *process) kill() {
	d.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Error(err)
	}
	_ = d.cmd.Wait()
}

// sendsToItself has the account of a connector send itself a message.
func (d *process) sendsToItself(connector string) {
	d.t.Helper()
	test := exec.Command("daycare", "--workspace", d.workspace, "connectors", "test", connector, "--send")
	test.Env = append(os.Environ(), d.env...)
	if out, err := test.CombinedOutput(); err != nil || !strings.Contains(string(out), "sent a m") {
		d.t.Errorf("a message of the account to itself: %v\n%s", err, out)
	}
}

// converse has a user say words one after the other, each when the one before
// was answered, to a daemon that is killed after it has accepted some of them and
// before it answers. Every word must be in history once and be answered once.
func converse(t *testing.T, d *process, connector string, say func(word string), heard func() string) {
	t.Helper()
	write(t, filepath.Join(d.workspace, "script.yaml"), `rules: [ { reply: [ { delay: 300ms, text: "heard {{.Text}}" } ] } ]`)
	d.start()
	defer d.kill()
	const words, every = 9, 3
	for n := range words {
		w := word(0, n)
		if n%every == 1 { // an answer whose delivery is not recorded is sent once more
			waitFor(t, "the deliveries of earlier answers", func() bool {
				return strings.Count(read(t, d, "history.jsonl"), `"type":"delivery"`) >= n
			})
		}
		say(w)
		if n%every == 1 {
			waitFor(t, "the message in the inbox", func() bool { return strings.Contains(read(t, d, "inbox.jsonl"), w) })
			d.kill()
			d.start()
		}
		waitFor(t, fmt.Sprintf("the answer to %s over %s (%s)", w, connector, d.said.String()),
			func() bool { return strings.Contains(heard(), "heard "+w) })
	}

	history := read(t, d, "history.jsonl")
	for n := range words {
		w := word(0, n)
		if got := strings.Count(heard(), "heard "+w); got != 1 {
			t.Errorf("%s was answered %d times, want once", w, got)
		}
		written := 0
		for line := range strings.Lines(history) {
			if strings.Contains(line, `"type":"user_message"`) && strings.Contains(line, w) {
				written++
			}
		}

		if written != 1 {
			t.Errorf("%s stands in history %d times, want once", w, written)
		}
	}

	t.Logf("%d messages over %s with %d kills: each in history once, each answered once", words, connector, words/every)
}

// read is what stands in a file of the only agent; "" if there is none yet.
func read(t *testing.T, d *process, name string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(d.workspace, home, "agents", "*", name))
	if err != nil || len(paths) > 1 {
		t.Fatalf("%d files %s, want one (%v)", len(paths), name, err)
	}
	if len(paths) == 0 {
		return ""
	}

	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
