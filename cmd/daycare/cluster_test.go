//go:build !race && natsserver

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/control"
)

// startServer runs a NATS server as a process of its own and returns its URL.
func startServer(t *testing.T) string {
	t.Helper()
	var said loudspeaker
	cmd := exec.Command("daycare", "cluster", "server", "--store", filepath.Join(t.TempDir(), "nats"), "--listen", "127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	url := ""
	waitFor(t, "the NATS server", func() bool {
		_, rest, ok := strings.Cut(said.String(), " ready on ")
		if ok {
			url, _, ok = strings.Cut(rest, "\n")
		}
		return ok
	})

	return url
}

// A crew is machines of one cluster: processes on this one, each with a workspace of its own.
type crew struct {
	t    *testing.T
	mu   sync.Mutex
	all  []*process
	down map[*process]bool
}

// newCrew starts n machines.
func newCrew(t *testing.T, n int) *crew {
	c := &crew{t: t, down: map[*process]bool{}}
	url := startServer(t)
	for i := range n {
		p := &process{t: t, workspace: t.TempDir(), args: []string{"--join", url}}
		write(t, filepath.Join(p.workspace, "script.yaml"), `rules: [ { reply: [ { delay: 5ms, text: "heard {{.Text}}" } ] } ]`)
		write(t, filepath.Join(p.workspace, home, "settings.yaml"), fmt.Sprintf("cluster: { name: m%d }\n", i)+
			"providers: [ { id: scripted, type: scripted, options: { script: script.yaml } } ]\n")
		p.start()
		c.all = append(c.all, p)
	}
	t.Cleanup(func() {
		for _, p := range c.all {
			p.kill()
		}
	})

	return c
}

// client connects to a machine that runs, the nth of them or one after it.
func (c *crew) client(n int) (*control.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.all {
		if p := c.all[(n+i)%len(c.all)]; !c.down[p] {
			return control.Dial(filepath.Join(p.workspace, home))
		}
	}
	return nil, errors.New("no machine runs")
}

// replace kills a machine in the middle of its work and starts it again.
func (c *crew) replace(p *process) {
	c.mu.Lock()
	c.down[p] = true
	c.mu.Unlock()
	p.kill()
	p.start()
	c.mu.Lock()
	c.down[p] = false
	c.mu.Unlock()
}

// owner is the machine that has the newest folder of an agent that works.
func (c *crew) owner() *process {
	best, at := c.all[0], time.Time{}
	for _, p := range c.all {
		files, err := filepath.Glob(filepath.Join(p.workspace, home, "agents", "*", "history.jsonl"))
		if err != nil {
			c.t.Fatal(err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.t.Fatal(err)
			}
			if err == nil && info.ModTime().After(at) {
				best, at = p, info.ModTime()
			}
		}
	}

	return best
}

// post sends a message until some machine accepts it, as a client does that repeats what was not
// acknowledged.
func (c *crew) post(machine int, channel, text string) error {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); machine++ {
		client, err := c.client(machine)
		if err == nil {
			ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
			_, err = client.Send(ctx, "", control.Message{Connector: "api", ChannelID: channel, UserID: "u", Text: text, Dedupe: text})
			cancel()
			client.Close()
		}
		if err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}

	return fmt.Errorf("%s was never accepted", text)
}

// texts are the messages that an agent has read, as a machine shows them.
func (c *crew) texts(machine int, ref string) (list []string, err error) {
	client, err := c.client(machine)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for before := int64(0); ; {
		page, err := client.History(c.t.Context(), ref, before, 200)
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Backward(page.Records) {
			var rec struct{ Type, Text string }
			if err := json.Unmarshal(r, &rec); err != nil {
				return nil, err
			}
			if rec.Type == "user_message" {
				list = append(list, rec.Text)
			}
		}
		if page.Before == nil {
			slices.Reverse(list)
			return list, nil
		}
		before = *page.Before
	}
}

// Machines that share agents are killed while messages come in over all of them: none is lost,
// none is there twice, and each conversation is in order. DAYCARE_LONG=1 kills for longer.
func TestMachinesAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs three daemons and a server")
	}
	t.Parallel()
	deaths, chats := 1, 4
	if os.Getenv("DAYCARE_LONG") != "" {
		deaths, chats = 60, 12
	}
	c := newCrew(t, 3)
	var sent [64]int
	var accepted atomic.Int32
	done := make(chan struct{})
	var sending sync.WaitGroup
	for chat := range chats {
		sending.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if err := c.post(chat+n, fmt.Sprint("c", chat), word(chat, n)); err != nil {
					t.Error(err)
					return
				}
				sent[chat] = n + 1
				accepted.Add(1)
			}
		})
	}
	for range deaths {
		before := accepted.Load()
		waitFor(t, "messages that are accepted", func() bool { return accepted.Load() >= before+int32(3*chats) })
		c.replace(c.owner())
	}
	close(done)
	sending.Wait()

	total := 0
	for chat := range chats {
		var want []string
		for n := range sent[chat] {
			want = append(want, word(chat, n))
		}
		total += len(want)
		var got []string
		waitFor(t, fmt.Sprintf("all %d messages of chat %d", len(want), chat), func() bool {
			list, err := c.texts(chat, fmt.Sprint("api:c", chat))
			got = list
			return err == nil && len(got) >= len(want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("chat %d has\n%q, want\n%q", chat, got, want)
		}
	}
	t.Logf("%d messages, %d deaths", total, deaths)
}

// Every command works on every machine, wherever the agent is: what one machine made another one
// lists, reads, writes to and removes; and a copy of all works alone.
func TestEveryMachineKnowsAll(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two daemons and a server")
	}
	t.Parallel()
	c := newCrew(t, 2)
	run := func(machine int, args ...string) string {
		t.Helper()
		cmd := exec.Command("daycare", append([]string{"--no-input", "--workspace", c.all[machine].workspace}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("daycare %q: %v\n%s", args, err, out)
		}
		return string(out)
	}

	if out := run(0, "chat", "hello"); !strings.Contains(out, "heard hello") {
		t.Errorf("the answer is %q", out)
	}
	waitFor(t, "the other machine to know the agent", func() bool { return strings.Contains(run(1, "agents", "ls"), "main") })
	file := filepath.Join(c.all[1].workspace, "note.txt")
	write(t, file, "what the file says")
	if out := run(1, "send", "main", "there", "--wait", "--file", file); !strings.Contains(out, "heard there") {
		t.Errorf("the answer on the other machine is %q", out)
	}
	for machine := range c.all {
		if got, err := c.texts(machine, "main"); err != nil || !slices.Equal(got, []string{"hello", "there"}) {
			t.Errorf("machine %d shows %q, %v", machine, got, err)
		}
	}
	if out := run(1, "cluster", "status"); !strings.Contains(out, "m0") || !strings.Contains(out, "m1") {
		t.Errorf("cluster status says %q", out)
	}

	alone := t.TempDir()
	if out := run(0, "cluster", "export", alone); !strings.Contains(out, "1 agent ") {
		t.Errorf("export says %q", out)
	}
	copied := &process{t: t, workspace: alone}
	copied.start()
	defer copied.kill()
	client, err := control.Dial(filepath.Join(alone, home))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	page, err := client.History(t.Context(), "main", 0, 100)
	if err != nil || !strings.Contains(fmt.Sprintf("%s", page.Records), "heard there") {
		t.Errorf("the copy has %s, %v", page.Records, err)
	}

	run(1, "agents", "rm", "main", "--force")
	waitFor(t, "the first machine to forget the agent", func() bool { return !strings.Contains(run(0, "agents", "ls"), "main") })
	if kept, err := filepath.Glob(filepath.Join(alone, home, "files", "*note.txt")); err != nil || len(kept) != 1 {
		t.Errorf("the copy has the attachments %q, %v", kept, err)
	}
}
