package shell

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/tools/shell/sandbox"
)

// A program of the owner ends with everything that it started, however it ends, and what it
// prints arrives apart: the answer here, what went wrong there.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		command  string
		out, err string
		end      ProgramEnd
	}{
		"answers":         {"cat; echo apart >&2", "input", "apart\n", ProgramEnd{}},
		"denies":          {"echo no >&2; exit 2", "", "no\n", ProgramEnd{Code: 2}},
		"is missing":      {"./no-such-program", "", "no-such-program", ProgramEnd{Code: 127}},
		"cannot be run":   {"./plain.txt", "", "plain.txt", ProgramEnd{Code: 126}},
		"hangs":           {"sleep 60 & sleep 60 # MARK", "", "", ProgramEnd{TimedOut: true}},
		"cannot be ended": {"trap '' TERM; while :; do sleep 1; done # MARK", "", "", ProgramEnd{TimedOut: true}},
		"leaves children": {"setsid sh -c 'sleep 61; : MARK' >/dev/null 2>&1 & echo begun", "begun\n", "", ProgramEnd{}},
		"keeps the pipes": {"setsid sh -c 'sleep 62; : MARK' & echo begun", "begun\n", "", ProgramEnd{}},
		"dies":            {"kill -KILL $$", "", "", ProgramEnd{}},
	} {
		for _, level := range []sandbox.Level{sandbox.None, sandbox.Landlock} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				t.Parallel()
				e, _, _ := held(t, level)
				set := workspace(t)
				mark := "survivor-" + rand.Text()
				if err := os.WriteFile(filepath.Join(set.WorkingDir, "plain.txt"), nil, 0o600); err != nil {
					t.Fatal(err)
				}

				var out, errs bytes.Buffer
				began := time.Now()
				timeout := 20 * time.Second
				if tt.end.TimedOut {
					timeout = 500 * time.Millisecond
				}
				end, err := Program{Command: strings.ReplaceAll(tt.command, "MARK", mark), Stdin: "input", Dir: set.WorkingDir,
					Timeout: timeout, Mark: mark, As: "hooks", Access: set, Bare: level == sandbox.None,
					Out: &out, Err: &errs}.Run(t.Context(), e)
				if err != nil {
					t.Fatal(err)
				}

				if name == "dies" {
					if end.Signal == "" && end.Code < 128 {
						t.Errorf("a program that died ended with %+v", end)
					}
					return
				}
				if end.TimedOut != tt.end.TimedOut || !end.TimedOut && end.Code != tt.end.Code || out.String() != tt.out ||
					!strings.Contains(errs.String(), tt.err) {
					t.Errorf("%+v, printed %q and %q", end, out.String(), errs.String())
				}
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("it took %v", took)
				}
				if pids := survivors(mark); len(pids) > 0 {
					t.Errorf("%v are left", pids)
				}
			})
		}
	}
}

// A program that prints forever is read and ended; its turn ends it too.
func TestAProgramThatPrintsAndIsStopped(t *testing.T) {
	t.Parallel()
	e, _, _ := held(t, sandbox.Landlock)
	set := workspace(t)
	var n counting
	end, err := Program{Command: "head -c 100000000 /dev/zero; echo done >&2", Dir: set.WorkingDir,
		Timeout: time.Minute, As: "hooks", Access: set, Out: &n, Err: io.Discard}.Run(t.Context(), e)
	if err != nil || end.Code != 0 || n != 100_000_000 {
		t.Errorf("%+v, %v after %d bytes", end, err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	began := time.Now()
	if _, err := (Program{Command: "yes", Dir: set.WorkingDir, Timeout: time.Minute, As: "hooks", Access: set,
		Out: &n, Err: io.Discard}).Run(ctx, e); err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("stopped after %v: %v", time.Since(began), err)
	}
}

type counting int64

func (c *counting) Write(p []byte) (int, error) { *c += counting(len(p)); return len(p), nil }

// In the sandbox a program has the folders of its set and a scrubbed environment; where none
// works it is not run, unless its owner said so.
func TestProgramsInTheSandbox(t *testing.T) {
	t.Parallel()
	e, _, _ := held(t, sandbox.Landlock)
	set, secret := workspace(t), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("canary-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(e *Exec, bare bool) (string, error) {
		var out bytes.Buffer
		_, err := Program{Command: fmt.Sprintf("cat %s; env", secret), Dir: set.WorkingDir, Timeout: time.Minute,
			As: "hooks", Access: set, Bare: bare, Env: []string{"DAYCARE_HOOK=before_tool"}, Out: &out, Err: io.Discard}.Run(t.Context(), e)
		return out.String(), err
	}
	if out, err := run(e, false); err != nil || strings.Contains(out, "canary") || !strings.Contains(out, "DAYCARE_HOOK=before_tool") {
		t.Errorf("in the sandbox: %v\n%s", err, out)
	}
	if out, err := run(e, true); err != nil || !strings.Contains(out, "canary-file") || strings.Contains(out, "canary-env") {
		t.Errorf("without: %v\n%s", err, out)
	}
	none := newExec(Options{Mode: Sandbox, SandboxOptions: SandboxOptions{Sandbox: "auto", Helper: sandbox.Self()}})
	none.confine.once.Do(func() { none.confine.runner = sandbox.Plain(sandbox.Self()) })
	if _, err := run(none, false); !errors.Is(err, ErrNoSandbox) {
		t.Errorf("where no sandbox works: %v", err)
	}
}
