package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
	"daycare/tools/toolstest"
)

// hands are the two tools as one agent uses them.
type hands struct {
	t       *testing.T
	exec    *Exec
	process *Process
	jobs    *Jobs
	access  permission.Set
}

func newHands(t *testing.T, level sandbox.Level) *hands {
	e, p, jobs := held(t, level)
	return &hands{t, e, p, jobs, workspace(t)}
}

func (h *hands) run(args a) tools.Result {
	h.t.Helper()
	return run(h.t, h.t.Context(), h.exec, newCall(h.t, h.access, args))
}

func (h *hands) do(args a) string {
	h.t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := tools.Validate(processSpec, data); err != nil {
		h.t.Fatal(err)
	}

	res, err := h.process.Run(h.t.Context(),
		tools.Call{ID: "c", Name: "process", Arguments: data, Agent: agent, Access: h.access, Progress: func(string) {}})
	if err != nil {
		h.t.Fatal(err)
	}
	return res.Text
}

func (h *hands) wants(got string, parts ...string) {
	h.t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			h.t.Errorf("%q is not in:\n%s", p, got)
		}
	}
}

// until polls from the beginning until all parts were printed.
func (h *hands) until(parts ...string) {
	h.t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		got = h.do(a{"action": "poll", "id": "1", "cursor": 0})
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(got, p) }) {
			return
		}
		h.do(a{"action": "poll", "id": "1", "waitMs": 200}) // sleeps until there is more
	}
	h.wants(got, parts...)
}

func TestProcessContract(t *testing.T) {
	t.Parallel()
	h := newHands(t, sandbox.None)
	h.run(a{"command": "echo there; sleep 60", "background": true})
	h.until("there\n")
	h.do(a{"action": "poll", "id": "1"}) // up to here it was read: only a poll that is cancelled ends
	toolstest.Run(t, h.process, toolstest.Options{Access: h.access, Agent: agent,
		Good: []string{`{"action":"list"}`, `{"action":"status","id":"1"}`, `{"action":"poll","id":"1"}`},
		Bad:  []string{`{"action":"poll","id":"7"}`, `{"action":"kill"}`, `{"action":"signal","id":"1"}`},
		Slow: `{"action":"poll","id":"1","waitMs":60000}`})
}

func TestBackgroundProcess(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			h := newHands(t, level)
			h.wants(h.run(a{"command": `echo ready; while read -r line; do echo "got $line"; done; echo bye; exit 3`,
				"background": true}).Text, "Process 1")
			h.wants(h.do(a{"action": "list"}), "1  echo ready;", "running")
			h.until("ready\n")
			h.do(a{"action": "poll", "id": "1"}) // up to here it was read
			h.do(a{"action": "input", "id": "1", "input": "one\n"})
			h.wants(h.do(a{"action": "poll", "id": "1", "waitMs": 60_000}), "got one\n[Process 1 has been running")
			h.wants(h.do(a{"action": "poll", "id": "1", "cursor": 0}), "ready\ngot one\n")
			h.do(a{"action": "input", "id": "1", "input": "two\n", "close": true})
			h.until("got two", "bye", "exit code 3")
			h.wants(h.do(a{"action": "status", "id": "1"}), "exit code 3", "bye")
			if got := h.do(a{"action": "kill", "id": "1"}); !strings.Contains(got, "ended") {
				t.Errorf("kill of what has ended: %s", got)
			}
		})
	}
}

// What a process reads decides what it does: where a user had to allow the command,
// the input is asked for too.
func TestInputIsAskedFor(t *testing.T) {
	t.Parallel()
	h := newHands(t, sandbox.None)
	needs := func(args a) *permission.Request {
		t.Helper()
		data, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		need, err := h.process.Needs(tools.Call{ID: "c", Name: "process", Arguments: data, Agent: agent, Access: h.access})
		if err != nil {
			t.Fatal(err)
		}

		return need
	}

	for _, mode := range []Mode{Ask, Off} {
		h.exec.options.Mode = mode
		h.run(a{"command": "sh -s", "background": true})
	}
	need := needs(a{"action": "input", "id": "1", "input": "rm -rf x\n"})
	if need == nil || need.Tag != "@exec:sh" || !need.AskAlways ||
		!strings.HasPrefix(need.Detail.Command, "sh -s\n[process] 1, running since 2") ||
		!strings.HasSuffix(need.Detail.Command, "Z\n[standard input]\nrm -rf x\n") {
		t.Fatalf("input to a process that a person had to allow asks %+v", need)
	}
	if other := needs(a{"action": "input", "id": "1", "input": "rm -rf y\n"}); other.SHA256(agent) == need.SHA256(agent) {
		t.Error("the approval of one input covers another")
	}

	for _, args := range []a{
		{"action": "input", "id": "2", "input": "x"}, // the owner has switched the sandbox off: nobody is asked
		{"action": "input", "id": "1", "close": true}, {"action": "poll", "id": "1"}, {"action": "kill", "id": "1"},
		{"action": "input", "id": "7", "input": "x"},
	} {
		if need := needs(args); need != nil {
			t.Errorf("%v asks %+v", args, need)
		}
	}
}

func TestKillAndSignal(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			h := newHands(t, level)
			h.run(a{"command": `trap 'echo hup' HUP; trap 'echo term; exit 9' TERM; echo up; while :; do sleep 0.05; done`,
				"background": true})
			h.until("up\n")
			h.do(a{"action": "signal", "id": "1", "signal": "HUP"})
			h.until("hup\n")
			h.wants(h.do(a{"action": "kill", "id": "1"}), "exit code 9")
			h.wants(h.do(a{"action": "poll", "id": "1", "cursor": 0}), "up", "term")
		})
	}
}

func TestLongCommandGoesOnInTheBackground(t *testing.T) {
	t.Parallel()
	h := newHands(t, sandbox.None)
	h.jobs.yieldAfter = 300 * time.Millisecond
	res := h.run(a{"command": "echo first; while [ ! -e go ]; do sleep 0.05; done; echo second", "timeoutMs": 100_000})
	h.wants(res.Text, "process 1")
	if strings.Contains(res.Text, "second") {
		t.Error("it was waited for")
	}
	if err := os.WriteFile(filepath.Join(h.access.WorkingDir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	h.until("first\nsecond\n")
	// What ends in time leaves nothing behind.
	h.jobs.yieldAfter = time.Minute
	h.wants(h.run(a{"command": "echo quick", "timeoutMs": 100_000}).Text, "quick\n[exit code 0]")
	if list := h.do(a{"action": "list"}); strings.Contains(list, "quick") {
		t.Errorf("a command that ended is listed:\n%s", list)
	}
}

func TestProcessesEndWithTheRuntime(t *testing.T) {
	t.Parallel()
	h := newHands(t, sandbox.None)
	mark := fmt.Sprintf("400000.%d", os.Getpid())
	h.run(a{"command": "echo kept; sleep " + mark, "background": true})
	h.until("kept\n")
	if r := h.jobs.Running(agent); len(r) != 1 || !strings.Contains(r[0], "process 1") {
		t.Errorf("running: %v", r)
	}
	h.jobs.Close()
	none(t, mark, 0)
	again := &Process{newJobs(h.jobs.folder)} // the next runtime
	h.process = again
	h.wants(h.do(a{"action": "list"}), "1  echo kept", "signal")
	h.wants(h.do(a{"action": "poll", "id": "1"}), "kept")
}

func TestLimitOfProcesses(t *testing.T) {
	t.Parallel()
	h := newHands(t, sandbox.None)
	var all sync.WaitGroup
	for range maxJobs { // together: each start is watched for a moment
		all.Go(func() { h.run(a{"command": "sleep 100", "background": true}) })
	}
	all.Wait()
	h.wants(h.run(a{"command": "true", "background": true}).Text, "end one first")
}

func TestOnlyOwnProcesses(t *testing.T) {
	t.Parallel()
	h := newHands(t, sandbox.None)
	h.run(a{"command": "sleep 100", "background": true})
	res, err := h.process.Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{"action":"kill","id":"1"}`), Agent: "another"})
	if err != nil || res.Status != tools.Failed {
		t.Errorf("another agent's process: %+v %v", res, err)
	}
}

// The newest output stays when there is too much of it, and cursors stay right.
func TestLogKeepsTheNewest(t *testing.T) {
	t.Parallel()
	l, err := openJobLog(filepath.Join(t.TempDir(), "1.log"), nil)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 1000)
	var total int64
	for i := 0; total < maxLog+maxLog/4; i++ {
		n, _ := fmt.Fprintf(l, "%09d %s\n", i, line)
		total += int64(n)
	}

	text, next, skipped := l.read(0)
	if skipped == 0 || next != skipped+int64(len(text)) {
		t.Errorf("skipped %d, next %d, %d bytes", skipped, next, len(text))
	}
	if last := l.last(1011); !regexp.MustCompile(`^\d{9} x+\n$`).MatchString(last) {
		t.Errorf("the end is %.40q", last)
	}
	if info, err := os.Stat(l.path); err != nil || info.Size() > maxLog {
		t.Errorf("the file has %d bytes", info.Size())
	}
	if _, end, _ := l.read(total); end != total {
		t.Errorf("the end is at %d, want %d", end, total)
	}
}

// A process is stopped when its time is up, also in the background.
func TestBackgroundTimeout(t *testing.T) {
	t.Parallel()
	h := newHands(t, sandbox.None)
	h.run(a{"command": "sleep 100", "background": true, "timeoutMs": 700})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	for ctx.Err() == nil {
		if strings.Contains(h.do(a{"action": "status", "id": "1"}), "too long") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error(h.do(a{"action": "status", "id": "1"}))
}

// A background process ends when a right that it runs by is taken back, and no other one
// does: the rule of its command, its host, its folder, the approval of the exact call.
func TestRightTakenBackEndsItsProcesses(t *testing.T) {
	t.Parallel()
	h := newHands(t, sandbox.Landlock)
	h.exec.options.Mode = Ask
	other := filepath.Join(t.TempDir(), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}

	call := a{"command": "sleep 60", "background": true}
	for name, tt := range map[string]struct {
		give permission.Grant
		tag  string // taken back
		ends bool
	}{
		"its rule":        {permission.Grant{Tag: "@exec:sleep"}, "@exec:sleep", true},
		"another rule":    {permission.Grant{Tag: "@exec:sleep"}, "@exec:git", false},
		"its folder":      {permission.Grant{Tag: "@exec:sleep"}, "@write:" + other, true},
		"another folder":  {permission.Grant{Tag: "@exec:sleep"}, "@read:/srv/none", false},
		"the exact call":  {permission.Grant{Tag: "@exec:sleep 60", SHA256: "exact"}, "@exec:sleep 60", true},
		"nothing, unsaid": {permission.Grant{Tag: "@web:example.com"}, "@web:example.com", false},
	} {
		access, err := workspace(t).Grant(permission.Grant{Tag: "@write:" + other})
		if err != nil {
			t.Fatal(err)
		}
		if tt.give.SHA256 != "" {
			need, err := h.exec.Needs(newCall(t, access, call))
			if err != nil || need == nil {
				t.Fatalf("needs %+v, %v", need, err)
			}
			tt.give.SHA256, tt.give.Tag, tt.tag = need.SHA256(agent), need.Tag, need.Tag
		}
		if access, err = access.Grant(tt.give); err != nil {
			t.Fatal(err)
		}

		h.access = access
		if res := h.run(call); res.Status != "" && res.Status != tools.OK {
			t.Fatalf("%s: %+v", name, res)
		}
		left, err := access.Revoke(tt.tag)
		if err != nil {
			t.Fatal(err)
		}

		ended := h.jobs.Narrow(agent, left)
		if (len(ended) == 1) != tt.ends {
			t.Errorf("%s was taken back: ended %q, want it to end: %v", name, ended, tt.ends)
		}
		h.jobs.End(agent)
	}
}
