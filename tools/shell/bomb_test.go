//go:build !race

package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/tools/shell/sandbox"
)

// bombs multiply, MOST processes at the most: a test must not depend on the limit
// that it tests. MARK is a number that no other command sleeps for.
var bombs = map[string]string{
	"one by one": fmt.Sprintf(`i=0; while [ $i -lt %d ]; do sleep MARK & i=$((i+1)); done; wait`, sandbox.MaxProcesses+300),
	"doubling":   `b() { if [ $1 -gt 0 ]; then b $(($1-1)) & b $(($1-1)) & fi; sleep MARK; }; b 10`,
	"orphans":    `b() { if [ $1 -gt 0 ]; then (b $(($1-1)) &); (b $(($1-1)) &); fi; setsid env -i sleep MARK; }; b 10`,
}

// long plays what loads the machine for a minute, too.
var long = os.Getenv("DAYCARE_LONG") != ""

// TestForkBomb: what multiplies is ended at the limit, the model is told, nothing is
// left, and meanwhile this process, the daemon, has its turns. Without DAYCARE_LONG=1
// it is one bomb in each sandbox: what runs beside it has to live with the load.
// The race detector tells nothing new of processes, and beside all other tests a bomb holds them up.
func TestForkBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("it loads the machine for a moment")
	}
	n := 0
	for _, level := range levels {
		for name, script := range bombs {
			if n++; name != "doubling" && !long {
				continue
			}
			mark := fmt.Sprintf("%d.%d", 200_000+n, os.Getpid())
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				e, _, _ := held(t, level)
				late := watchTurns(t)
				start := time.Now()
				res := run(t, t.Context(), e,
					newCall(t, workspace(t), a{"timeoutMs": 30_000, "command": strings.ReplaceAll(script, "MARK", mark)}))
				took := time.Since(start)

				// Either it was counted, or it met the bound of the kernel before.
				counted := fmt.Sprintf("processes at once; a command may have %d]", sandbox.MaxProcesses)
				bound := fmt.Sprintf("[a command may have %d processes and", sandbox.MaxProcesses)
				if took > 25*time.Second || !strings.Contains(res.Text, counted) && !strings.Contains(res.Text, bound) {
					t.Errorf("after %v it was not stopped at the limit: %.300s", took, res.Text)
				}
				if gap := late(); gap > 5*time.Second {
					t.Errorf("the daemon had no turn for %v", gap)
				} else {
					t.Logf("after %v, the daemon's longest wait %v: %s", took.Round(time.Millisecond),
						gap.Round(time.Millisecond), res.Text[max(0, len(res.Text)-90):])
				}

				none(t, mark, time.Second)
				attacktest.Held(t, attacktest.Row{Class: "bombs", Level: asWhom(level), How: "bound", Name: name})
			})
		}
	}
}

// watchTurns measures, until the function it returns is called, the longest time in
// which a goroutine that wants a turn every 10 ms got none.
func watchTurns(t *testing.T) (longest func() time.Duration) {
	stop, done := make(chan struct{}), make(chan time.Duration)
	go func() {
		var gap time.Duration
		for last := time.Now(); ; {
			select {
			case <-stop:
				done <- gap
				return
			case <-time.After(10 * time.Millisecond):
			}
			now := time.Now()
			gap, last = max(gap, now.Sub(last)-10*time.Millisecond), now
		}
	}()

	return func() time.Duration {
		close(stop)
		return <-done
	}
}

// TestForkBombElsewhere plays TestForkBomb where the kernel's limits are other ones: for
// root without control groups, so that only counting is left (DAYCARE_LONG=1: it takes
// its time), and for someone else.
func TestForkBombElsewhere(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("SKIPPED, NOTHING IS PROVED: root on Linux is needed to become somebody else")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	dir, err := os.MkdirTemp("", "daycare-bomb-") // t.TempDir lets nobody else in
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	copied := filepath.Join(dir, "shell.test")
	if out, err := exec.Command("cp", self, copied).CombinedOutput(); err != nil {
		t.Fatalf("copy the test: %v\n%s", err, out)
	}
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(copied, 0o755)); err != nil {
		t.Fatal(err)
	}

	for name, place := range map[string]func(*exec.Cmd){
		"without control groups": func(cmd *exec.Cmd) {
			cmd.Args = []string{"unshare", "--mount", "sh", "-c",
				`mount -t tmpfs none /sys/fs/cgroup && exec "$0" "$@"`, copied,
				"-test.run=^TestForkBomb$/(none|landlock)/doubling", "-test.v"}
			cmd.Path, cmd.Err = exec.LookPath("unshare")
		},
		"somebody": func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		},
	} {
		if name == "without control groups" && !long {
			continue
		}
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), copied, "-test.run=^TestForkBomb$/./doubling", "-test.v")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
			place(cmd)
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "unshare failed") {
				t.Skipf("SKIPPED, NOTHING IS PROVED: %s", out)
			}
			if err != nil || !strings.Contains(string(out), "--- PASS: TestForkBomb/landlock/doubling") {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
