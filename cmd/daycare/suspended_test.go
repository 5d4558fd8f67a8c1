package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/fault"
)

// TestASuspendedDaemonIsNamed: a process that is stopped (Ctrl-Z, a full machine, a hang)
// still accepts connections. Commands say so instead of waiting in silence, and those that
// need no answer of it end.
func TestASuspendedDaemonIsNamed(t *testing.T) {
	t.Parallel()
	d := &process{t: t, workspace: t.TempDir()}
	d.start()
	defer d.kill()
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	run := func(args ...string) (code int, said string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		args = append([]string{"--no-input", "--workspace", d.workspace}, args...)
		out, err := exec.CommandContext(ctx, "daycare", args...).CombinedOutput()
		if ctx.Err() != nil {
			t.Errorf("daycare %q never ended: %s", args, out)
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		}

		return code, string(out)
	}

	if code, said := run("start"); code == 0 || !strings.Contains(said, "already") {
		t.Errorf("a second start ended with %d: %s", code, said)
	}

	var status loudspeaker
	cmd := exec.Command("daycare", "--workspace", d.workspace, "status")
	cmd.Stdout, cmd.Stderr = &status, &status
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	waitFor(t, "a word that nobody answers", func() bool { return strings.Contains(status.String(), "has not answered") })
	if err := d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("status after it goes on: %v\n%s", err, status.String())
	}

	// At the end, as the daemon does what it was asked to once it goes on.
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if code, said := run("stop", "--timeout", "1s"); code != int(fault.ExitTimeout) || !strings.Contains(said, "kill -9") {
		t.Errorf("stop ended with %d: %s", code, said)
	}
}
