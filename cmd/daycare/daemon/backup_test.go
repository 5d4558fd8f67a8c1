package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/backup"
	"daycare/engine/message"
	ws "daycare/engine/workspace"
)

// busy is the script of agents that answer, and that pass on what they are told to.
const busy = `rules:
  - match: '^pass (?<n>\d+)'
    round: 1
    reply: [ { calls: [ { name: send_agent_message, arguments: { agentId: receiver, text: "got {{.Name.n}}" } } ] } ]
  - { tool_result: "*", reply: [ { text: "passed on" } ] }
  - { reply: [ { text: "answer to {{.Text}}" } ] }
`

// accepted are the messages that the daemon has acknowledged.
type accepted struct {
	mu    sync.Mutex
	texts []string
}

func (a *accepted) add(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.texts = append(a.texts, text)
}

func (a *accepted) now() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.texts[:len(a.texts):len(a.texts)]
}

// What starts from a backup that was made while agents worked has every message that had been
// accepted, once, and nothing that an agent had passed on is lost or comes twice.
func TestBackupsUnderLoad(t *testing.T) {
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, "script.yaml"), busy)
	write(t, filepath.Join(workspace, ws.Home, "settings.yaml"),
		"providers:\n- { id: s, type: scripted, options: { script: script.yaml } }\nagents: { perMinute: 0 }\n")
	r := started(t, workspace)
	ids := map[string]string{}
	for _, name := range []string{"sender", "receiver", "talker"} {
		a, err := r.system.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = a.ID
	}
	var said accepted
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for _, to := range []struct{ name, text string }{{"sender", "pass %d"}, {"talker", "say %d"}} {
		senders.Go(func() { keepSending(t, r, ids[to.name], to.text, &said, stop) })
	}

	type copied struct {
		before []string // accepted before the backup began
		data   bytes.Buffer
	}
	var copies []*copied
	for range 4 {
		enough := len(said.now()) + 60
		waitFor(t, "more messages", func() bool { return len(said.now()) >= enough })
		c := &copied{before: said.now()}
		if err := (backups{r}).Backup(t.Context(), &c.data, false); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, c)
	}
	close(stop)
	senders.Wait()

	for i, c := range copies {
		to := t.TempDir()
		if _, err := backup.Restore(&c.data, ws.At(to)); err != nil {
			t.Fatal(err)
		}
		cold := historyOf(t, to, ids["sender"])
		t.Run(fmt.Sprint("copy ", i), func(t *testing.T) {
			r := started(t, to)
			waitFor(t, "the end of all work", func() bool {
				_, _, waiting := r.system.Counts()
				return waiting == 0
			})
		})
		times := map[string]int{}
		for _, id := range ids {
			for _, line := range historyOf(t, to, id) {
				if line.Type == "user_message" || strings.HasPrefix(line.Text, "answer to") {
					times[line.Text]++
				}
			}
		}
		for _, text := range c.before {
			if times[text] != 1 {
				t.Errorf("copy %d: %q was accepted before it, and is %d times in history", i, text, times[text])
			}
		}
		for _, format := range []string{"pass %d", "say %d"} { // one was accepted after the other
			for n, last := 0, newest(times, format); n <= last; n++ {
				if text := fmt.Sprintf(format, n); times[text] != 1 {
					t.Errorf("copy %d: %q is %d times in history, and later ones are there", i, text, times[text])
				}
			}
		}
		for text, n := range times {
			if n > 1 {
				t.Errorf("copy %d: %q is %d times in history", i, text, n)
			}
		}
		passed := sentBy(cold)
		t.Logf("copy %d: %d messages accepted before it, %d records in the sender's history, %d passed on",
			i, len(c.before), len(cold), len(passed))
		if i == len(copies)-1 && len(passed) == 0 {
			t.Error("nothing was passed on in all the time, so that was not tested")
		}
		for _, n := range passed {
			if times["got "+n] != 1 {
				t.Errorf("copy %d: the sender was told that %q is sent, and the receiver has it %d times", i, "got "+n, times["got "+n])
			}
		}
	}
}

// newest is the highest number of a text that is there.
func newest(times map[string]int, format string) (last int) {
	for text := range times {
		n := 0
		if _, err := fmt.Sscanf(text, format, &n); err == nil {
			last = max(last, n)
		}
	}
	return last
}

// keepSending delivers numbered messages until stop is closed, a few at a time.
func keepSending(t *testing.T, r *Daemon, id, format string, said *accepted, stop chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		text := fmt.Sprintf(format, n)
		if _, err := r.system.Deliver(t.Context(), message.Incoming{Agent: id, Text: text}); err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		said.add(text)
	}
}

// A line of a history, as far as the test needs it.
type line struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Status string `json:"status"`
	Call   string `json:"toolCallId"`
	Calls  []struct {
		ID        string `json:"id"`
		Arguments struct{ Text string }
	} `json:"toolCalls"`
}

// historyOf reads all lines of an agent's history, older parts included.
func historyOf(t *testing.T, workspace, id string) (lines []line) {
	t.Helper()
	dir := filepath.Join(workspace, ws.Home, "agents", id)
	older, err := filepath.Glob(filepath.Join(dir, "history", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range append(older, filepath.Join(dir, "history.jsonl")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		for text := range bytes.Lines(data) {
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				continue // the half line of a crash
			}
			lines = append(lines, l)
		}
	}

	return lines
}

// sentBy lists the numbers whose call of send_agent_message has a good result.
func sentBy(lines []line) (numbers []string) {
	calls := map[string]string{}
	for _, l := range lines {
		for _, c := range l.Calls {
			calls[c.ID] = strings.TrimPrefix(c.Arguments.Text, "got ")
		}
		if n := calls[l.Call]; l.Type == "tool_result" && l.Status == "ok" && n != "" {
			numbers = append(numbers, n)
		}
	}

	return numbers
}
