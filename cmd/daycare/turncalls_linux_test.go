//go:build !race

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/talk"
	"daycare/engine/control"
	"daycare/engine/lazyregexp"
)

// A turn on a model that streams 20 pieces asks the system no more than this for files: the least of many turns,
// because what is kept in memory is read again when a second is over, and what the turn before wrote is looked at
// after 0.2 s, which a busy machine has within one turn. The looks are those that find an edit of an inbox, a
// history, a descriptor or a state.json before the next use; those inside are at the open file after each write.
var turnLimits = map[string]int{"fdatasync": 3, "open": 0, "look": 11, "inside": 4, "failed": 0, "fcntl": 0, "unlink": 0}

func TestWhatATurnAsksTheSystemFor(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, home, "settings.yaml"), "providers: [{id: local, type: openai, model: m, baseURL: "+streams(t)+"}]\n")
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-y", "-s", "100", "-o", trace, "-e", "trace=%file,%desc", "daycare", "--workspace", dir, "start")
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

	const asked = 40
	for range asked {
		if _, err := client.Stream(t.Context(), "", talk.Own(control.Message{Text: "hello"}), func(control.RawEvent) {}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	turns := turnsOf(string(data))
	if len(turns) != asked {
		t.Fatalf("%d turns of %d in %d bytes", len(turns), asked, len(data))
	}
	for what, limit := range turnLimits {
		var n []int
		for _, turn := range turns[5:] { // the first ones read what is kept
			n = append(n, turn[what])
		}
		slices.Sort(n)
		t.Logf("%-9s least %d of %d turns, median %d, most %d", what, n[0], len(n), n[len(n)/2], n[len(n)-1])
		if n[0] > limit {
			t.Errorf("%s: %d a turn, want at most %d", what, n[0], limit)
		}
	}
}

// callNames are the system calls that are counted, by what they are counted as.
var callNames = map[string]string{"openat": "open", "newfstatat": "look", "fstat": "inside", "statx": "look", "fdatasync": "fdatasync",
	"fsync": "fdatasync", "fcntl": "fcntl", "unlinkat": "unlink"}

var (
	traced = lazyregexp.New(`^\d+ +(<\.\.\. )?(\w+)(\(| resumed>)`)
	// A turn begins when its message is written into the inbox. Barriers do not tell: they are joined and are more
	// when the machine is busy.
	accepted = lazyregexp.New(`^\d+ +write\(\d+<[^>]*/inbox\.jsonl>, "[^ ]*\\"type\\":\\"message\\"`)
)

// turnsOf counts by turns.
func turnsOf(trace string) (turns []map[string]int) {
	var turn map[string]int
	for line := range strings.Lines(trace) {
		m := traced.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if accepted.MatchString(line) {
			turn = map[string]int{}
			turns = append(turns, turn)
		}
		name := callNames[m[2]]
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

// streams is the address of a model that answers with 20 pieces.
func streams(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 20 {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}
