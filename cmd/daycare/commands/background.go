package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"daycare/cmd/daycare/doctor"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// StartFlags are the flags of start that a background daemon gets, too.
type StartFlags struct {
	Listen string
	Join   []string
}

// StartBackground runs `daycare start` as a process in its own session, so that closing the terminal does not end
// it, and returns when its socket answers.
func StartBackground(ctx context.Context, c *term.App, at workspace.Place, f StartFlags) error {
	pid, log, err := background(ctx, c, at, f)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(struct {
			PID       int    `json:"pid"`
			Workspace string `json:"workspace"`
			Log       string `json:"log"`
		}{pid, at.Dir, log})
	}

	c.Print("daycare runs in the background: pid %d\n", pid)
	c.Note("log %s; stop it with: daycare stop", log)
	doctor.CautionSandbox(c) // beside the start it would take the processors that the daemon needs

	return nil
}

// startPoll is how often a daemon that starts is asked whether it is there: a start takes some 60 ms.
const startPoll = 5 * time.Millisecond

// background starts the daemon and waits until its socket answers.
func background(ctx context.Context, c *term.App, at workspace.Place, f StartFlags) (pid int, log string, err error) {
	log = filepath.Join(at.Data, "logs", "daycare.log")
	child, from, err := launch(at, f, log)
	if err != nil {
		return 0, log, err
	}

	ended := make(chan struct{})
	go func() {
		child.Wait() // how it ended is in its log
		close(ended)
	}()

	ctx, cancel := context.WithTimeout(ctx, term.StartWait)
	defer cancel()
	for {
		if client, err := c.Dial(ctx, at); err == nil {
			if s, err := client.Status(ctx); err == nil && s.PID == child.Process.Pid {
				return s.PID, log, nil
			}
		}

		select {
		case <-ended:
			return 0, log, startFailed(c, at, log, from, child.ProcessState.ExitCode())
		case <-ctx.Done():
			return 0, log, &term.Problem{Code: fault.ExitTimeout,
				Err: fmt.Errorf("start in the background: pid %d did not answer within %s", child.Process.Pid, term.StartWait),
				Do:  "see " + log}
		case <-time.After(startPoll):
		}
	}
}

// launch starts the child with its output appended to the log; from is where
// its part of the log begins.
func launch(at workspace.Place, f StartFlags, path string) (child *exec.Cmd, from int64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, fmt.Errorf("find own program: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, 0, fmt.Errorf("make log folder: %w", err)
	}

	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK, 0o600) // a pipe needs a reader
	if err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	defer log.Close() // the child has its own descriptor
	if info, err := log.Stat(); err == nil {
		from = info.Size()
	}

	args := []string{"start", "--no-input", "--workspace", at.Dir}
	if at.Elsewhere() {
		args = append(args, "--data", at.Data)
	}
	if f.Listen != "" {
		args = append(args, "--listen", f.Listen)
	}
	for _, url := range f.Join {
		args = append(args, "--join", url)
	}
	child = exec.Command(self, args...)
	child.Dir = at.Dir
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return nil, 0, fmt.Errorf("start in the background: %w", err)
	}

	return child, from, nil
}

// startFailed repeats what the child said.
func startFailed(c *term.App, at workspace.Place, path string, from int64, code int) error {
	if err := c.NobodyRuns(at); err != nil {
		return err // another start was faster
	}
	said := ""
	if data, err := os.ReadFile(path); err == nil && int64(len(data)) >= from {
		said = strings.TrimSpace(string(data[from:]))
	}
	if code < 0 || code == fault.ExitOK {
		code = fault.ExitFailure
	}

	what, do, _ := strings.Cut(lastLines(said, 2), "\n")
	what = strings.TrimPrefix(what, "daycare: ")
	return &term.Problem{Code: code, Err: fmt.Errorf("start in the background: %s", cmp.Or(what, "it exited without an error message")),
		Do: term.Join("\n", do, "its log: "+path)}
}

func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// EnsureDaemon joins the daemon of a workspace, or starts it in the background. It
// says nothing: the screen belongs to the UI.
func EnsureDaemon(ctx context.Context, c *term.App, at workspace.Place) error {
	client, err := c.Dial(ctx, at)
	if err == nil {
		client.Close()
		return nil
	}
	if !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	if client, err := c.JoinStarting(ctx, at); client != nil || err != nil {
		return err
	}
	quiet := &term.App{Streams: term.Streams{In: c.In, Out: io.Discard, Err: io.Discard}, Workspace: c.Workspace, Data: c.Data,
		Offline: c.Offline, InProcess: c.InProcess}
	_, _, err = background(ctx, quiet, at, StartFlags{})

	return err
}
