package shell

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
	"daycare/tools/toolstest"
)

const agent = "tz4a98xxat96iws9zmbrgj3a"

type a map[string]any

func TestMain(m *testing.M) {
	if os.Getenv(daemonEnv) != "" {
		daemon()
	}
	if runtime.GOOS == "linux" && os.Getenv("DAYCARE_CANARY") == "" {
		// What no command may see must be there from the start of the process:
		// /proc shows the environment that it began with.
		inMemory()
		err := syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), "DAYCARE_CANARY=canary-env"))
		fmt.Fprintln(os.Stderr, "run the tests again with a canary:", err)
		os.Exit(1)
	}

	// Most of them wait for processes: more go beside each other than there are processors.
	flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	os.Exit(m.Run())
}

func newExec(o Options) *Exec {
	list, _ := New(o)
	return list[0].(*Exec)
}

func workspace(t *testing.T) permission.Set {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return permission.Default(dir)
}

func newCall(t *testing.T, access permission.Set, args a) tools.Call {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	if err := tools.Validate(spec, data); err != nil {
		t.Fatal(err)
	}

	return tools.Call{ID: "call" + strconv.FormatInt(time.Now().UnixNano(), 36), Name: "exec", Arguments: data,
		Agent: agent, Access: access, Progress: func(string) {}}
}

func run(t *testing.T, ctx context.Context, e *Exec, call tools.Call) tools.Result {
	t.Helper()
	res, err := e.Run(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func sh(t *testing.T, args a) tools.Result {
	t.Helper()
	return run(t, t.Context(), newExec(Options{Mode: Off}), newCall(t, workspace(t), args))
}

func TestContract(t *testing.T) {
	t.Parallel()
	toolstest.Run(t, newExec(Options{}), toolstest.Options{Access: workspace(t),
		Good: []string{`{"command":"true"}`, `{"command":"cat","stdin":"x"}`},
		Bad:  []string{`{"command":" "}`, `{"command":"pwd","workdir":"/"}`, `{"command":"x","env":{"A B":"c"}}`},
		Slow: `{"command":"sleep 30"}`})
}

func TestResults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args   a
		status tools.Status
		want   string
	}{
		{a{"command": "echo hi"}, "", "hi\n[exit code 0]"},
		{a{"command": "true"}, "", "[no output, exit code 0]"},
		{a{"command": "echo out; echo err >&2; echo more; exit 3"}, tools.Failed, "out\nerr\nmore\n[exit code 3]"},
		{a{"command": "kill -9 $$"}, tools.Failed, "[ended by signal: killed]"},
		{a{"command": "printf 'a\\377b'"}, "", "a\uFFFDb\n[exit code 0]"},
		{a{"command": "cat; echo .", "stdin": "given <in>"}, "", "given <in>.\n[exit code 0]"},
		{a{"command": "head -c1", "stdin": strings.Repeat("x", 1<<20)}, "", "x\n[exit code 0]"},
		{a{"command": "echo $X$Y", "env": a{"X": "1", "Y": "2 3"}}, "", "12 3\n[exit code 0]"},
		{a{"command": "no-such-program-here"}, tools.Failed, "[exit code 127]"},
	} {
		res := sh(t, tc.args)
		if res.Status != tc.status || !strings.HasSuffix(res.Text, tc.want) {
			t.Errorf("%v: status %q\n got %q\nwant %q", tc.args, res.Status, res.Text, tc.want)
		}
	}
}

func TestWorkdir(t *testing.T) {
	t.Parallel()
	access := workspace(t)
	sub := filepath.Join(access.WorkingDir, "sub")
	outside := t.TempDir()
	for _, dir := range []string{sub, filepath.Join(access.WorkingDir, ".daycare", "files"), filepath.Join(access.WorkingDir, "no")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Symlink(outside, filepath.Join(access.WorkingDir, "link")); err != nil {
		t.Fatal(err)
	}
	e := newExec(Options{Mode: Off, SandboxOptions: SandboxOptions{Denied: []string{filepath.Join(access.WorkingDir, "no")}}})
	for dir, want := range map[string]string{"": access.WorkingDir, "sub": sub, sub: sub, "sub/../sub/.": sub} {
		res := run(t, t.Context(), e, newCall(t, access, a{"command": "pwd; echo $PWD", "workdir": dir}))
		if !strings.HasPrefix(res.Text, want+"\n"+want+"\n") {
			t.Errorf("workdir %q: %s", dir, res.Text)
		}
	}

	for _, dir := range []string{"..", "/", outside, "link", "sub/../..", ".daycare", ".daycare/files", "no",
		"../" + filepath.Base(outside)} {
		res := run(t, t.Context(), e, newCall(t, access, a{"command": "pwd", "workdir": dir}))
		if res.Status != tools.Denied {
			t.Errorf("workdir %q: %q %s", dir, res.Status, res.Text)
		}
	}

	if res := run(t, t.Context(), e, newCall(t, access,
		a{"command": "pwd", "workdir": "none"})); res.Status != tools.Failed || res.Text != "exec: workdir none: no such folder" {
		t.Errorf("what is not there is no question of rights: %q %s", res.Status, res.Text)
	}
	if res := run(t, t.Context(), e, newCall(t, access, a{"command": "pwd", "workdir": "/"})); !strings.Contains(res.Text, "@read:/") {
		t.Errorf("the refusal does not name the tag: %s", res.Text)
	}
}

func TestEnvironmentIsScrubbed(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "canary-secret")
	t.Setenv("LC_MESSAGES", "C")
	t.Setenv("GOFLAGS", "-mod=mod")
	res := run(t, t.Context(), newExec(Options{Mode: Off, Keep: []string{"GOFLAGS"}}),
		newCall(t, workspace(t), a{"command": "env; cat /proc/$$/environ"}))
	if strings.Contains(res.Text, "canary-secret") || strings.Contains(res.Text, "ANTHROPIC") {
		t.Errorf("a secret of the daemon reached the command:\n%s", res.Text)
	}

	for _, want := range []string{"PATH=", "HOME=", "LC_MESSAGES=C", "GOFLAGS=-mod=mod"} {
		if !strings.Contains(res.Text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestTimeout(t *testing.T) {
	for limit := 200 * time.Millisecond; ; limit *= 2 {
		start := time.Now()
		res := sh(t, a{"command": "echo begun; sleep 60", "timeoutMs": limit.Milliseconds()})
		if !strings.Contains(res.Text, "begun") && limit < 20*time.Second {
			continue // a machine under load: the shell has not come to its first command
		}
		if res.Status != tools.TimedOut || !strings.Contains(res.Text, "begun\n[stopped: it ran longer than "+limit.String()) {
			t.Errorf("%q %s", res.Status, res.Text)
		}
		if took := time.Since(start); took > limit+3*time.Second {
			t.Errorf("took %v", took)
		}
		return
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call := newCall(t, workspace(t), a{"command": "echo begun; sleep 60"})
	call.Progress = func(text string) {
		if strings.Contains(text, "begun") {
			cancel()
		}
	}
	res := run(t, ctx, newExec(Options{Mode: Off}), call)
	if res.Status != tools.Canceled || res.Text != "begun\n[Cancelled]" {
		t.Errorf("%q %q", res.Status, res.Text)
	}
}

// G15: a shell that will not end, and what it starts behind its back, are gone
// seven seconds after its time.
func TestNothingSurvives(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"trap TERM":    `trap '' TERM; echo $$; while :; do sleep 0.1; done`,
		"double fork":  `(sleep 61 & echo $!) ; sleep 0.1; sleep 60`,
		"left behind":  `sleep 62 & echo $!`,
		"closed pipes": `sleep 63 >/dev/null 2>&1 </dev/null & echo $!`,
		"setsid":       `setsid sh -c 'trap "" TERM; echo $$; exec sleep 64' & sleep 0.3; sleep 60`,
		"nohup":        `nohup sleep 65 2>/dev/null & echo $!; sleep 60`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "setsid" && runtime.GOOS != "linux" {
				t.Skip("processes that leave the group are found on Linux alone")
			}
			start := time.Now()
			res := sh(t, a{"command": command, "timeoutMs": 500})
			if took := time.Since(start); took > 7*time.Second {
				t.Errorf("took %v", took)
			}

			first, _, _ := strings.Cut(res.Text, "\n")
			pid, err := strconv.Atoi(first)
			if err != nil {
				t.Fatalf("no process id in %q", res.Text)
			}
			if !gone(pid) {
				t.Errorf("process %d survived", pid)
				syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// gone waits a moment for the system to forget a killed process.
func gone(pid int) bool {
	for range 40 {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if syscall.Kill(pid, 0) == syscall.ESRCH || err == nil && strings.Contains(string(state), ") Z ") {
			return true
		}
		time.Sleep(25 * time.Millisecond)
	}

	return false
}

var outputBytes = flag.Int("output", 300_000_000, "how many bytes a command prints in the test of endless output")

func TestEndlessOutputNeedsLittleMemory(t *testing.T) {
	size := *outputBytes
	if testing.Short() {
		size = 30_000_000
	}
	spill := t.TempDir()
	e := newExec(Options{Mode: Off, AgentFolders: AgentFolders{Spill: func(string) string { return spill }}})
	call := newCall(t, workspace(t), a{"command": fmt.Sprintf("echo first; yes | head -c %d; echo last", size), "timeoutMs": 1_800_000})
	told := 0
	call.Progress = func(text string) { told = max(told, len(text)) }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := run(t, t.Context(), e, call)
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes of output: %d KB were allocated in all", size, (after.TotalAlloc-before.TotalAlloc)>>10)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes were allocated for %d bytes of output", grown, size)
	}
	if len(res.Text) > maxOutput+500 || !strings.HasPrefix(res.Text, "first\ny\n") || !strings.HasSuffix(res.Text, "last\n[exit code 0]") {
		t.Errorf("%d characters, from %.20q to %q", len(res.Text), res.Text, res.Text[len(res.Text)-20:])
	}
	if told == 0 || told > maxProgress {
		t.Errorf("people were told up to %d bytes at once", told)
	}

	files, err := os.ReadDir(spill)
	if err != nil || len(files) != 1 || len(files[0].Name()) != 64 {
		t.Fatalf("spilled files: %v %v", files, err)
	}
	info, err := files[0].Info()
	if err != nil || info.Size() != min(int64(size)+11, maxSpill) {
		t.Errorf("the file has %d bytes", info.Size())
	}
	if !strings.Contains(res.Text, " in blobs/"+files[0].Name()+" ") {
		t.Error("the marker does not name the file")
	}
}

func TestCaptureKeepsEverythingThatFits(t *testing.T) {
	for _, size := range []int{0, 1, half - 1, half, half + 1, maxOutput - 1, maxOutput, maxOutput + 1,
		maxOutput + half + 7, 3 * maxOutput} {
		for _, piece := range []int{1, 7, 4096, 1 << 20} {
			dir := t.TempDir()
			c := newCapture(dir, nil)
			text := strings.Repeat("0123456789", size/10+1)[:size]
			for rest := text; rest != ""; {
				n := min(piece, len(rest))
				c.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			c.finish()
			got, whole := c.text()
			if size <= maxOutput && (got != text || whole != nil) {
				t.Fatalf("size %d, piece %d: the text changed", size, piece)
			}
			if size <= maxOutput {
				continue
			}
			if !strings.HasPrefix(got, text[:half]) || !strings.HasSuffix(got, text[size-half:]) {
				t.Fatalf("size %d, piece %d: head or tail is wrong", size, piece)
			}
			if whole.Bytes != int64(size) || whole.Left != int64(size-2*half) ||
				whole.Blob != filepath.Base(c.saved) || !strings.Contains(got, whole.Marker) {
				t.Fatalf("size %d, piece %d: %+v", size, piece, whole)
			}
			if data, err := os.ReadFile(c.saved); err != nil || string(data) != text {
				t.Fatalf("size %d, piece %d: the file has %d bytes, %v", size, piece, len(data), err)
			}
		}
	}
}

func TestProgressWhileItRuns(t *testing.T) {
	t.Parallel()
	call := newCall(t, workspace(t), a{"command": "echo one; sleep 0.3; printf 'tw\\303'; sleep 0.3; printf '\\266'"})
	var told []string
	call.Progress = func(text string) { told = append(told, text) }
	run(t, t.Context(), newExec(Options{Mode: Off}), call)
	if len(told) < 2 || strings.Join(told, "") != "one\ntw\u00f6" {
		t.Errorf("told %q", told)
	}
}

func TestNeeds(t *testing.T) {
	access := workspace(t)
	access.Exec = []string{"git"} // counts only once there is a sandbox
	call := newCall(t, access, a{"command": "git push origin main", "env": a{"A": "it's"}, "stdin": "in"})
	got, err := newExec(Options{}).Needs(call)
	if err != nil {
		t.Fatal(err)
	}
	want := permission.Request{Tag: "@exec:git push", Reason: "run a command", Workdir: access.WorkingDir,
		AskAlways: true, Sandbox: permission.NoSandbox, Programs: []string{"git: " + program("git", "/")},
		Detail: permission.Detail{Command: "git push origin main\n[environment] A='it'\\''s'\n[standard input]\nin"}}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	for _, mode := range []Mode{Off, Deny} {
		if got, err := newExec(Options{Mode: mode}).Needs(call); got != nil || err != nil {
			t.Errorf("mode %s asks: %v %v", mode, got, err)
		}
	}
	if _, err := newExec(Options{}).Needs(newCall(t, access, a{"command": "x", "workdir": "none"})); err == nil {
		t.Error("a call that cannot run must not be asked for")
	}
	if res := run(t, t.Context(), newExec(Options{Mode: Deny}), call); res.Status != tools.Denied {
		t.Errorf("mode deny ran it: %+v", res)
	}
}

// An approval holds for one exact call. What differs in any member is another one, and
// no text of one member reads like another member.
func TestApprovalIsOfTheExactCall(t *testing.T) {
	access := workspace(t)
	if err := os.Mkdir(filepath.Join(access.WorkingDir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	command := "make deploy"
	calls := []a{
		{"command": command},
		{"command": command + " "},
		{"command": command, "background": true},
		{"command": command, "workdir": "sub"},
		{"command": command, "env": a{"A": "1"}},
		{"command": command, "env": a{"A": "2"}},
		{"command": command, "env": a{"A": "1", "B": "2"}},
		{"command": command, "env": a{"A": "1 B=2"}},
		{"command": command, "env": a{"A": "1' B='2"}},
		{"command": command, "stdin": "yes"},
		{"command": command, "stdin": "yes\n"},
		{"command": command, "allowedDomains": []string{"a.example"}},
		{"command": command, "allowedDomains": []string{"a.example", "b.example"}},
		{"command": command, "timeoutMs": 1000},
		{"command": command, "timeoutMs": 1500},
		{"command": command, "timeoutMs": 1000, "background": true},
		{"command": "A='1' " + command},
		{"command": command + "\n[environment] A='1'"},
		{"command": command + "\n\\[environment] A='1'"},
		{"command": command + "\n[network] a.example"},
		{"command": command + "\n[background] it continues after the call"},
		{"command": command + "\n[time limit] 1s"},
		{"command": command + "\n[standard input]\nyes"},
		{"command": command, "env": a{"A": "1'\n[network] a.example\n'"}},
		{"command": command, "env": a{"A": "1"}, "allowedDomains": []string{"a.example"}},
		{"command": command, "stdin": "x\n[background] it continues after the call"},
	}
	seen := map[string]a{}
	for _, args := range calls {
		need, err := newExec(Options{}).Needs(newCall(t, access, args))
		if err != nil || need == nil {
			t.Fatalf("%v asks %v, %v", args, need, err)
		}
		need.Tag = "@exec:make" // even where the rule is the same
		sha := need.SHA256("tz4a98xxat96iws9zmbrgj3a")
		if other, twice := seen[sha]; twice {
			t.Errorf("the approval of %v covers %v", other, args)
		}
		seen[sha] = args
	}
	for _, same := range [][2]a{ // two ways to write the same call
		{{"command": command, "workdir": "sub"}, {"command": command, "workdir": "sub/../sub/"}},
		{{"command": command, "allowedDomains": []string{"A.example."}}, {"command": command, "allowedDomains": []string{"a.example"}}},
		{{"command": command, "background": false, "stdin": "", "env": a{}}, {"command": command}},
	} {
		one, err := newExec(Options{}).Needs(newCall(t, access, same[0]))
		two, err2 := newExec(Options{}).Needs(newCall(t, access, same[1]))
		if err != nil || err2 != nil || !reflect.DeepEqual(*one, *two) {
			t.Errorf("%v is asked as %+v (%v), %v as %+v (%v)", same[0], one, err, same[1], two, err2)
		}
	}
}

func TestTagsAreValid(t *testing.T) {
	for command, want := range map[string]string{
		"ls":                     "@exec:ls",
		"ls -la":                 "@exec:ls",
		"git push --force":       "@exec:git push",
		"go test ./...":          "@exec:go test",
		"rm file.txt":            "@exec:rm",
		"./run.sh now":           "@exec:./run.sh now",
		"FOO=1 make":             "@exec:FOO=1 make",
		"$(evil)":                "@exec:$(evil)",
		"\"a b\"\n\tc\x01":       "@exec:\"a b\" c",
		strings.Repeat("é", 300): "@exec:" + strings.Repeat("é", 100),
	} {
		r := permission.Exec{Prefix: firstWords(command)}
		if r.Tag() != want {
			t.Errorf("%q: tag %q, want %q", command, r.Tag(), want)
		}
		if _, err := permission.Parse(r.Tag()); err != nil {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// A command that may start no more processes is told how many it may have.
func TestTooManyThreadsAreExplained(t *testing.T) {
	t.Parallel()
	e, _, _ := held(t, sandbox.Landlock)
	for says, told := range map[string]bool{
		"bash: fork: retry: Resource temporarily unavailable": true, "sh: 1: Cannot fork": true,
		"pthread_create failed: Resource temporarily unavailable": true, "read: Resource temporarily unavailable": false, "fork it": false,
	} {
		res := run(t, t.Context(), e, newCall(t, workspace(t), a{"command": "echo '" + says + "'; exit 1"}))
		if strings.Contains(res.Text, "[a command may have 512 processes and 2048 threads at once]") != told {
			t.Errorf("%q: %s", says, res.Text)
		}
	}
}

// Whoever watches is told of each command before it begins and when nothing of it is left.
func TestCommandsTellThatTheyBegin(t *testing.T) {
	var told []string
	e := newExec(Options{Mode: Off, Began: func(agent string, sandboxed bool) func() {
		told = append(told, fmt.Sprint("begins ", agent == "", sandboxed))
		return func() { told = append(told, "ended") }
	}})
	run(t, t.Context(), e, newCall(t, workspace(t), a{"command": "true"}))
	e.shell = "/nonexistent"
	run(t, t.Context(), e, newCall(t, workspace(t), a{"command": "true"}))
	if got := strings.Join(told, ", "); got != "begins false false, ended, begins false false, ended" {
		t.Error(got)
	}
}
