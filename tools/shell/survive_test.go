package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
	"daycare/tools/shell/sandbox/probe"
)

// held makes the tools at a level of the sandbox, with a supervisor.
func held(t *testing.T, level sandbox.Level) (*Exec, *Process, *Jobs) {
	t.Helper()
	self, dir := sandbox.Self(), t.TempDir()
	o := Options{Mode: Sandbox, grace: time.Second, SandboxOptions: SandboxOptions{Sandbox: string(level), Helper: self},
		AgentFolders: AgentFolders{
			Home: func(string) string { return dir + "/home" },
			Jobs: func(agent string) string { return filepath.Join(dir, agent) }}}
	if level == sandbox.None {
		o.Mode = Off
	}
	list, jobs := New(o)
	e := list[0].(*Exec)
	runner, err := probed[level]()
	switch {
	case err != nil && level != sandbox.Bwrap:
		t.Fatalf("the kernel that tests run on must have Landlock: %v", err)
	case err != nil:
		t.Skipf("SKIPPED, NOTHING IS PROVED: no %s here: %v (apt-get install bubblewrap)", level, err)
	}
	e.confine.once.Do(func() { e.confine.runner = runner })
	t.Cleanup(jobs.Close)
	return e, list[1].(*Process), jobs
}

// probed are the levels, each looked for once for all tests.
var probed = map[sandbox.Level]func() (*sandbox.Runner, error){}

func init() {
	for _, level := range levels {
		probed[level] = sync.OnceValues(func() (*sandbox.Runner, error) { return choose(level, sandbox.Self()) })
	}
}

// choose looks for a level with a helper.
func choose(level sandbox.Level, helper string) (*sandbox.Runner, error) {
	if level == sandbox.None {
		return sandbox.Plain(helper), nil
	}
	if level == noSpaces {
		r, err := probe.Choose(string(sandbox.Landlock), helper)
		if err == nil {
			r = r.WithoutNamespaces()
		}
		return r, err
	}

	return probe.Choose(string(level), helper)
}

// survivors are the processes whose command line holds mark.
func survivors(mark string) (pids []string) {
	// With more behind the id the kernel would list what there is to know of each, and forget it again when that ends.
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		data, err := os.ReadFile(path + "/cmdline")
		if err == nil && bytes.Contains(data, []byte(mark)) {
			pids = append(pids, filepath.Base(path))
		}
	}
	return pids
}

// none fails unless everything is gone within the time that G15 gives.
func none(t *testing.T, mark string, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		left := survivors(mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%d processes survived: %v", len(left), left)
			for _, p := range left {
				exec.Command("kill", "-9", p).Run()
			}
			return
		}
	}
}

var levels = []sandbox.Level{sandbox.None, noSpaces, sandbox.Landlock, sandbox.Bwrap}

// asEverybody runs a test at each level, and if root runs it once more as an ordinary user,
// all beside each other. With -short it is run once, at the best level that works here.
func asEverybody(t *testing.T, test func(t *testing.T, level sandbox.Level)) {
	t.Parallel()
	for _, level := range sandboxed {
		if testing.Short() && level != best() {
			continue
		}
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			test(t, level)
		})
	}
	if !testing.Short() {
		attacktest.AsUser(t)
	}
}

// best is the level that daycare chooses here.
func best() sandbox.Level {
	if _, err := probed[sandbox.Bwrap](); err == nil {
		return sandbox.Bwrap
	}
	return sandbox.Landlock
}

// noSpaces is Landlock where the system lets daycare make no namespaces.
const noSpaces = sandbox.Level("alone")

// sandboxed are those that hold a command.
var sandboxed = levels[1:]

// hydras are commands that do not want to end. MARK is a number that no other
// command sleeps for.
var hydras = map[string]string{
	"trap TERM":         `trap '' TERM INT HUP; while :; do sleep MARK; done`,
	"double fork":       `(sleep MARK & (sleep MARK &) ) & sleep 0.1; sleep MARK`,
	"left behind":       `sleep MARK & (sleep MARK &) ; exit 0`,
	"session":           `setsid setsid sh -c 'trap "" TERM; sleep MARK & sleep MARK' & sleep MARK`,
	"closed files":      `setsid sleep MARK >/dev/null 2>&1 </dev/null & sleep MARK`,
	"clean environment": `env -i setsid sleep MARK >/dev/null 2>&1 </dev/null & env -i sleep MARK`,
	"orphans":           `for i in 1 2 3 4 5; do (setsid env -i sh -c 'sleep MARK & exit' &) ; done; sleep MARK`,
	"stopped":           `sleep MARK & kill -STOP $!; kill -STOP $$`,
	"kills its parent":  `env -i setsid sleep MARK & sleep 0.1; kill -9 $PPID; sleep MARK`,
}

func TestNothingSurvivesAtAnyLevel(t *testing.T) {
	t.Parallel()
	n := 0
	for _, level := range levels {
		for name, script := range hydras {
			if level == sandbox.None && name == "kills its parent" {
				continue // nothing keeps a command from it there; the docs say so
			}
			n++
			mark := fmt.Sprintf("%d.%d", 100_000+n, os.Getpid())
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				t.Parallel()
				e, _, _ := held(t, level)
				start := time.Now()
				res := run(t, t.Context(), e,
					newCall(t, workspace(t), a{"command": strings.ReplaceAll(script, "MARK", mark), "timeoutMs": 500}))
				if took := time.Since(start); took > 9*time.Second {
					t.Errorf("took %v", took)
				}
				if strings.Contains(res.Text, "could not be made") {
					t.Error(res.Text)
				}
				none(t, mark, time.Second)
				attacktest.Held(t, attacktest.Row{Class: "processes that stay", Level: asWhom(level),
					How: "ended by the supervisor", Name: name})
			})
		}
	}
	attacktest.AsUser(t)
}

// TestWhatLeftTheGroupIsLookedForAfterASupervisorThatWasKilled: every process of the machine is looked at then. After any
// other command that would be in vain, and costs the more the more of them there are.
func TestWhatLeftTheGroupIsLookedForAfterASupervisorThatWasKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there are no supervisors")
	}
	for script, ends := range map[string]bool{"true": false, "exit 1": false, "exit 2": true, "kill -9 $$": true,
		"kill -9 $PPID; sleep 10": true} {
		e, _, _ := held(t, sandbox.None)
		call := newCall(t, workspace(t), a{"command": script})
		marked := exec.Command("sleep", "1000")
		marked.Env = []string{markName + "=" + call.ID}
		if err := marked.Start(); err != nil {
			t.Fatal(err)
		}
		run(t, t.Context(), e, call)
		marked.Process.Signal(syscall.SIGTERM)
		marked.Wait()
		if found := marked.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; found != ends {
			t.Errorf("%s: a process with its mark was ended: %v", script, found)
		}
	}
}

// daemonEnv makes the test binary a daemon that runs one command.
const daemonEnv = "SHELL_TEST_DAEMON"

func daemon() {
	parts := strings.SplitN(os.Getenv(daemonEnv), "|", 3)
	dir := parts[1]
	level := sandbox.Level(parts[0])
	o := Options{Mode: Sandbox, SandboxOptions: SandboxOptions{Sandbox: parts[0], Helper: sandbox.Self()}, AgentFolders: AgentFolders{
		Home: func(string) string { return dir + "/home" }, Jobs: func(string) string { return dir + "/jobs" }}}
	if level == sandbox.None {
		o.Mode = Off
	}
	if script, ok := strings.CutPrefix(parts[2], "service:"); ok {
		serveFor(o, level, script)
	}
	list, _ := New(o)
	if runner, err := probed[level](); err == nil {
		list[0].(*Exec).confine.once.Do(func() { list[0].(*Exec).confine.runner = runner })
	}
	args, _ := json.Marshal(a{"command": parts[2], "background": true})
	work := filepath.Join(dir, "work")
	os.MkdirAll(work, 0o755)
	res, err := list[0].Run(context.Background(),
		tools.Call{ID: "call", Name: "exec", Arguments: args, Agent: agent, Access: permission.Default(work), Progress: func(string) {}})
	fmt.Println(res.Text, err)
	time.Sleep(time.Hour)
}

// serveFor starts a service, and waits to be killed.
func serveFor(o Options, level sandbox.Level, script string) {
	s := NewServices(o)
	if runner, err := probed[level](); err == nil {
		s.confine.once.Do(func() { s.confine.runner = runner })
	}
	_, err := s.Start(Service{Name: "peer", Argv: []string{"sh", "-c", script}, Home: o.Home(""), Errors: os.Stderr})
	fmt.Println(err)
	time.Sleep(time.Hour)
}
