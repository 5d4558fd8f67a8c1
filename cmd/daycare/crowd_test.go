package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/lazyregexp"
	"daycare/engine/record"
)

// crowdScript is parents that start ten agents each, five of them by spawn; those that
// are started look around first or answer at once.
func crowdScript(delay time.Duration) string {
	var calls strings.Builder
	for i := range 10 {
		if i%2 == 0 {
			fmt.Fprintf(&calls, "{ name: spawn, arguments: { task: 'look around %d', label: 'job %d' } }, ", i, i)
		} else {
			fmt.Fprintf(&calls, "{ name: start_background_agent, arguments: { prompt: 'answer %d', name: 'job %d' } }, ", i, i)
		}
	}

	return fmt.Sprintf(`
rules:
  - { contains: "[Subagent 'job", reply: [ { text: "Noted." } ] }
  - { contains: "This is the answer", reply: [ { text: "Noted." } ] }
  - { contains: "start ten", round: 1, reply: [ { calls: [ %s ] } ] }
  - { tool_result: spawn, reply: [ { text: "They are at work." } ] }
  - { tool_result: start_background_agent, reply: [ { text: "They are at work." } ] }
  - { contains: "look around", round: 1, reply: [ { delay: %[2]s, calls: [ { name: glob, arguments: { pattern: "*.go" } } ] } ] }
  - { tool_result: glob, reply: [ { text: "I looked around." } ] }
  - { contains: "answer ", reply: [ { delay: %[2]s, text: "This is the answer." } ] }
  - { reply: [ { text: "Noted." } ] }
`, calls.String(), delay)
}

// a crowd is what came of many agents at once.
type crowd struct {
	started, refused int
	refusedBy        map[string]int // limit -> starts
	turns            int
	atOnce           int // most children in a turn at the same time
	took             time.Duration
	usage            string
}

// play has parents start ten agents each, and looks in all histories that every agent
// which was started was heard of exactly once.
func (h *chatHouse) play(parents int) (c crowd) {
	t := h.t
	t.Helper()
	client := h.start()
	defer client.Close()
	var ids []string
	for i := range parents {
		a, err := client.Create(t.Context(), control.NewAgent{Name: fmt.Sprintf("p%02d", i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.ID)
	}
	began := time.Now()
	for _, id := range ids {
		if _, err := client.Send(t.Context(), id, control.Message{Text: "start ten"}); err != nil {
			t.Fatal(err)
		}
	}
	h.calm(client)
	c.took = time.Since(began)
	c.usage = usageOf(h.cmd.Process.Pid)
	c.refusedBy = map[string]int{}
	var edges []edge
	for _, id := range ids {
		started, heard := map[string]bool{}, map[string]int{}
		for _, e := range h.history(id) {
			switch r := e.Rec.(type) {
			case *record.ToolResult:
				if m := startedID.FindStringSubmatch(r.Output.Text); m != nil && r.Status == record.StatusOK {
					started[m[1]] = true
				} else if m := limitNamed.FindStringSubmatch(r.Output.Text); m != nil {
					c.refusedBy[m[1]]++
					c.refused++
				} else {
					t.Errorf("a start gave %s: %s", r.Status, r.Output.Text)
				}
			case *record.User:
				if r.Origin != "" {
					heard[r.Origin]++
				}
			case *record.TurnEnd:
				c.turns++
			}
		}
		c.started += len(started)
		for child := range started {
			if heard[child] != 1 {
				t.Errorf("parent %s heard %d times of child %s, want once", id, heard[child], child)
			}
			for _, e := range h.history(child) {
				switch e.Rec.(type) {
				case *record.TurnBegin:
					edges = append(edges, edge{e.At, 1})
				case *record.TurnEnd:
					edges = append(edges, edge{e.At, -1})
					c.turns++
				}
			}
		}
		if len(heard) != len(started) {
			t.Errorf("parent %s started %d agents and heard of %d", id, len(started), len(heard))
		}
	}
	c.atOnce = most(edges)
	return c
}

var (
	startedID  = lazyregexp.New(`(?i)started.* \(id: ([a-z0-9]+)`)
	limitNamed = lazyregexp.New(`the limit of (agents\.\w+)`)
)

// an edge is the begin (1) or end (-1) of a turn.
type edge struct {
	at   time.Time
	step int
}

// most is how many turns ran at the same time at most.
func most(edges []edge) (most int) {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step)) })
	n := 0
	for _, e := range edges {
		n += e.step
		most = max(most, n)
	}
	return most
}

func (h *chatHouse) history(agent string) (list []*record.Entry) {
	h.t.Helper()
	lines, _, err := record.Tail(filepath.Join(h.dir, home, "agents", agent), 0, 10_000)
	if err != nil {
		h.t.Fatal(err)
	}

	for _, line := range lines {
		if e, err := record.Decode(json.RawMessage(line)); err == nil {
			list = append(list, e)
		}
	}
	return list
}

// spacious is a folder for tests that write thousands of files, in memory if there is room: a disk takes most of their time.
func spacious(t *testing.T) string {
	t.Helper()
	const memory, enough = "/dev/shm", 2 << 30
	free, _, err := disk.Space(memory)
	if err != nil || free < enough {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "daycare-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// usageOf is the memory of a process, the most that it was, and the time of a processor
// that it took, as the system says.
func usageOf(pid int) string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "memory unknown here"
	}
	var said []string
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(line, ":"); name == "VmRSS" || name == "VmHWM" {
			said = append(said, name+" "+strings.TrimSpace(value))
		}
	}

	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if _, after, ok := strings.Cut(string(stat), ") "); ok && err == nil {
		var ticks [2]int // user and system, 100 a second
		fields := strings.Fields(after)
		for i := range ticks {
			ticks[i], _ = strconv.Atoi(fields[11+i])
		}
		said = append(said, fmt.Sprintf("processor %.1f s", float64(ticks[0]+ticks[1])/100))
	}

	return strings.Join(said, ", ")
}

// atTheDefaultLimits lets parents start ten background agents each: what is over a limit is refused at once and
// says so; what was started is not lost.
func atTheDefaultLimits(t *testing.T, parents int) (c crowd) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a while")
	}
	h := newChatHouse(t, crowdScript(200*time.Millisecond), "log: { level: error }")
	c = h.play(parents)
	if all := 10 * parents; c.started+c.refused != all || c.started < 32 {
		t.Errorf("%d were started and %d refused %v; want %d in all, and the limits to hold", c.started, c.refused, c.refusedBy, all)
	}
	if c.atOnce > 32 {
		t.Errorf("%d children were at work at the same time, the limit is 32", c.atOnce)
	}

	t.Logf("at the defaults: %d started, %d refused %v; at once %d; %d turns in %s; %s", c.started, c.refused, c.refusedBy, c.atOnce,
		c.turns, c.took.Round(time.Millisecond), c.usage)
	return c
}
