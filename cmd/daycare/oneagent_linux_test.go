//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/talk"
	"daycare/engine/address"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// What is done for one agent looks at that agent: it opens no more files of other agents
// with 2,000 of them than with 10, and looks at no more entries of the index. Whoever
// adds a loop over all agents to the way of a message, of a turn, of a new agent or of a
// command about one agent fails here.
func TestWhatOneAgentCostsDoesNotGrowWithTheNumberOfAll(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes 2,000 agents")
	}

	var few, many []footprint
	t.Run("measured", func(t *testing.T) {
		for others, costs := range map[int]*[]footprint{10: &few, 2_000: &many} {
			t.Run(fmt.Sprint("beside ", others), func(t *testing.T) {
				t.Parallel()
				*costs = costsBeside(t, others)
			})
		}
	})
	if t.Failed() {
		return
	}

	for i, c := range few {
		m := many[i]
		t.Logf("%-44s files of others opened %4d with 10, %4d with 2,000; entries looked at %4d, %4d",
			c.name, c.opened, m.opened, c.looked, m.looked)
		if m.opened > c.opened+moreAtMost || m.looked > c.looked+moreAtMost && !c.family {
			t.Errorf("%s: the cost grows with the number of agents: with 10 others %d files and %d entries, with 2,000 %d and %d",
				c.name, c.opened, c.looked, m.opened, m.looked)
		}
	}
}

// moreAtMost is what may be looked at more often: a list of colleagues, which is bounded, is
// longer if there are more of them. Of each kind of agents there are three times as many, so that a loop over one is noticed.
const moreAtMost = 64

// With nothing running, a command about one agent reads the files of that agent.
func TestACommandAboutOneAgentReadsNoOtherWhileNothingRuns(t *testing.T) {
	t.Parallel()
	h := newCrowdedHouse(t, 500)
	for _, line := range []string{"agents show ID", "agents show 0/", "agents tail 0/", "agents sessions ID",
		"agents export ID", "inbox ls ID", "permissions ls ID",
		"permissions grants ID", "permissions why ID @web:example.org", "logs --agent ID"} {
		before := h.opened.count()
		h.run(line)
		time.Sleep(50 * time.Millisecond) // the kernel's count comes from another goroutine
		n := h.opened.count() - before
		t.Logf("daycare %s: %d files of others opened", line, n)
		if n > 10 {
			t.Errorf("daycare %s opened %d files of 500 other agents", line, n)
		}
	}
}

// A footprint is what something done for one agent looked at.
type footprint struct {
	name           string
	opened, looked int64 // files of other agents, entries of the index
	family         bool
}

// crowdedHouse is a daemon with many agents beside the one that is talked to.
type crowdedHouse struct {
	*testing.T
	r      *daemon.Daemon
	client *control.Client
	dir    string
	own    string // the agent that is talked to
	opened *openCount
}

// costsBeside measures everything that is done for one agent, with so many others.
func costsBeside(t *testing.T, others int) (list []footprint) {
	h := newCrowdedHouse(t, others)
	h.start()
	for _, round := range []string{"first", "counted"} { // what is remembered is read in the first round
		list = nil
		h.quiet()
		for _, op := range h.operations(round) {
			opened, looked := h.opened.count(), h.r.Index().Visited()
			op.do()
			if round == "counted" {
				h.quiet()
			}
			list = append(list, footprint{op.name, h.opened.count() - opened, h.r.Index().Visited() - looked, op.family})
		}
	}

	return list
}

type operation struct {
	name   string
	family bool // it looks at the agent's own descendants, too
	do     func()
}

// operations are what one agent is asked to do, and what is done about it.
func (h *crowdedHouse) operations(round string) []operation {
	ctx := h.Context()
	must := func(err error) {
		h.Helper()
		if err != nil {
			h.Error(err)
		}
	}
	chat := func(channel, user string) func() {
		return func() {
			from := message.Address{Connector: "hooks", ChannelID: channel, UserID: user}
			got, err := h.r.System().Deliver(ctx, message.Incoming{From: from, Text: "hello"})
			must(err)
			_, err = h.r.System().Await(ctx, got.Agent, got.Item)
			must(err)
		}
	}
	colleague := otherID(5)
	list := []operation{
		{"a turn of the terminal's agent", false, func() {
			_, err := h.client.Stream(ctx, h.own, control.Message{Text: "hello"}, func(control.RawEvent) {})
			must(err)
		}},
		{"a turn of a chat's agent", false, chat("0", "u0")},
		{"a chat's first message", false, chat("new "+round, "u new")},
		{"an agent by API", false, func() {
			_, err := h.client.Create(ctx, control.NewAgent{Name: "api " + round})
			must(err)
		}},
		{"an agent by /spawn", false, func() {
			_, err := h.client.Create(ctx, control.NewAgent{Name: "spawned " + round, Spawned: true})
			must(err)
		}},
		{"a sub-agent", false, func() {
			id := address.ChildID(h.own, round)
			d := address.Descriptor{Type: address.Subagent, ID: id, ParentAgentID: h.own, Name: round, CallID: round}
			_, err := h.r.Family().Create(ctx, d,
				message.Incoming{Origin: h.own, Text: "hello", Dedupe: round})
			must(err)
			waitFor(h.T, "the sub-agent", func() bool {
				a, err := h.r.System().Agent(ctx, id)
				return err == nil && a.Queued == 0 && a.State == event.Idle
			})
		}},
		{"a message to nobody in particular", false, func() {
			_, err := h.r.Family().Post(ctx, message.Incoming{Origin: colleague, Text: "hello " + round, Dedupe: "nobody " + round})
			must(err)
		}},
		{"an agent with many children looked at", true, func() {
			_, err := h.client.Agent(ctx, otherID(0))
			must(err)
		}},
		{"the family of an agent with many children", true, func() {
			_, err := h.client.Family(ctx, otherID(0))
			must(err)
		}},
		{"a right taken away", false, func() {
			if err := h.client.Revoke(ctx, colleague, "@web:example.org"); !errors.Is(err, fault.NotGranted) { // it is sought all the same
				must(err)
			}
		}},
		{"an agent killed and removed", false, func() {
			a, err := h.client.Create(ctx, control.NewAgent{Name: "short " + round})
			must(err)
			must(h.client.Kill(ctx, a.ID))
			_, err = h.client.Remove(ctx, a.ID, true)
			must(err)
			_, err = h.client.Folders().Restore(ctx, a.ID)
			must(err)
		}},
	}
	for _, line := range []string{"send ID hello", "chat --agent ID hello", "chat --agent ID --wait hello",
		"agents show ID", "agents tail ID", "agents sessions ID", "agents model ID", "agents mark ID here", "agents stop ID",
		"agents export ID", "agents fork ID", "agents reset ID", "inbox ls ID",
		"permissions ls ID", "permissions grants ID", "permissions why ID @web:example.org", "permissions grant ID @web:example.org",
		"permissions revoke ID @web:example.org"} {
		list = append(list, operation{"daycare " + line, false, func() {
			h.run(line)
		}})
	}
	return list
}

// run runs a command about the agent that is talked to.
func (h *crowdedHouse) run(line string) {
	var out, complaint bytes.Buffer
	args := append([]string{"--no-input", "--workspace", h.dir}, strings.Fields(strings.ReplaceAll(line, "ID", h.own))...)
	if code := execute(args, strings.NewReader(""), &out, &complaint); code != 0 {
		h.Errorf("daycare %s: exit code %d\n%s", line, code, complaint.String())
	}
}

// quiet waits until nothing was looked at for a while: hints of changed folders come late.
func (h *crowdedHouse) quiet() {
	const still = 300 * time.Millisecond
	opened, looked := h.opened.count(), h.r.Index().Visited()
	for since, end := time.Now(), time.Now().Add(time.Minute); time.Since(since) < still; time.Sleep(10 * time.Millisecond) {
		if o, l := h.opened.count(), h.r.Index().Visited(); o != opened || l != looked {
			opened, looked, since = o, l, time.Now()
		}
		if time.Now().After(end) {
			h.Fatal("agents are looked at without end")
		}
	}
}

func newCrowdedHouse(t *testing.T, others int) *crowdedHouse {
	h := &crowdedHouse{T: t, dir: spacious(t)}
	write(t, filepath.Join(h.dir, home, "settings.yaml"), fmt.Sprintf(`
agents: { subagentTTL: 24h, maxSpawned: 5 }
providers:
  - { id: echo, type: scripted, options: { script: %q } }
`, filepath.Join(h.dir, "script.yaml")))
	write(t, filepath.Join(h.dir, "script.yaml"), `rules: [ { reply: [ { text: "heard" } ] } ]`)
	t.Run(fmt.Sprint("preparing ", others), func(t *testing.T) {
		client, err := control.Dial(startRuntime(t, h.dir))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		o, err := client.Stream(t.Context(), "", talk.Own(control.Message{Text: "hello"}), func(control.RawEvent) {})
		if err != nil {
			t.Fatal(err)
		}
		h.own = o.Agent
	})

	h.fill(others)
	h.opened = watchOpens(t, filepath.Join(h.dir, home, "agents"), h.own)
	return h
}

// start runs the daemon.
func (h *crowdedHouse) start() {
	t := h.T
	h.r = started(t, h.dir)
	var err error
	if h.client, err = control.Dial(filepath.Join(h.dir, home)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.Close)
	h.quiet()
}

// fill writes agents as finished conversations leave them, of all kinds.
func (h *crowdedHouse) fill(others int) {
	root := filepath.Join(h.dir, home, "agents")
	files := map[string][]byte{}
	for _, name := range []string{"state.json", "inbox.jsonl", "history.jsonl", "handles.jsonl"} {
		dir := filepath.Join(root, h.own)
		if name == "handles.jsonl" {
			dir = root
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			h.Fatal(err)
		}
		files[name] = data
	}

	state, found := record.ParseState("state.json", files["state.json"])
	if len(found) > 0 {
		h.Fatal(found)
	}
	state.Ended = &record.Ended{At: disk.StampOf(time.Now()), Reason: "done"}
	ended, err := record.EncodeState(workspace.At(h.dir), state)
	if err != nil {
		h.Fatal(err)
	}

	for i := range others {
		id := otherID(i)
		d, over := h.other(i, id)
		dir := filepath.Join(root, id)
		data, err := json.Marshal(d)
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if err != nil {
			h.Fatal(err)
		}

		content := map[string][]byte{"descriptor.json": data, "state.json": files["state.json"],
			"inbox.jsonl": files["inbox.jsonl"], "history.jsonl": files["history.jsonl"]}
		if over {
			content["state.json"] = ended
		}

		for name, data := range content {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				h.Fatal(err)
			}
		}
		files["handles.jsonl"] = fmt.Appendf(files["handles.jsonl"],
			`{"handle":"%d/","id":"%s","at":"2026-01-01T00:00:00.000Z"}`+"\n", i+1, id)
	}

	write(h.T, filepath.Join(root, "handles.jsonl"), string(files["handles.jsonl"]))
}

func otherID(i int) string { return fmt.Sprintf("a%023d", i) }

// other is the ith of the other agents, and whether it has ended.
func (h *crowdedHouse) other(i int, id string) (d address.Descriptor, ended bool) {
	user := otherID(i - i%10)
	name := fmt.Sprint("agent ", i)
	permanent := address.Descriptor{Type: address.Permanent, ID: id, Name: name, Description: "knows"}
	child := address.Descriptor{Type: address.Subagent, ID: id, ParentAgentID: otherID(0), Name: name, CallID: id}
	d = address.Descriptor{Type: address.User, Connector: "hooks", ChannelID: fmt.Sprint(i), UserID: fmt.Sprint("u", i)}
	switch i % 10 {
	case 4:
		d.Connector, d.Spawned = "terminal", true
		return d, true
	case 5:
		return permanent, false
	case 6:
		return permanent, true
	case 7:
		permanent.CreatedBy = user
		return permanent, false
	case 8:
		return child, true
	case 9:
		child.ParentAgentID = user
		return child, false
	}

	return d, false
}

// openCount counts the files of other agents that anybody opens, the folder of all included.
type openCount struct{ n atomic.Int64 }

func (o *openCount) count() int64 { return o.n.Load() }

// watchOpens has the kernel count: no way to open a file is missed.
func watchOpens(t *testing.T, root, own string) *openCount {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}

	dirs := []string{root}
	for _, e := range entries {
		if e.IsDir() && e.Name() != own {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}

	for _, dir := range dirs {
		if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN); err != nil {
			unix.Close(fd)
			t.Skipf("this system cannot watch %d folders: %v", len(dirs), err)
		}
	}

	o := &openCount{}
	f := os.NewFile(uintptr(fd), "inotify")
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.read(f)
	}()

	t.Cleanup(func() {
		f.Close()
		<-done
	})
	return o
}

func (o *openCount) read(f io.Reader) {
	buf := make([]byte, 1<<16)
	for {
		n, err := f.Read(buf)
		if err != nil {
			return
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent + int(e.Len)
			o.n.Add(1)
		}
	}
}
