package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

func stopCommand(c *term.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the daemon and wait until it has ended",
		Long: "Stop the daemon in order and wait until it has ended. Turns that are under way\n" +
			"are suspended and go on at the next start. Without a daemon there is nothing to do.",
		Example: "  daycare stop",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return stop(ctx, c, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait for its end")
	return cmd
}

type stopResult struct {
	Stopped bool `json:"stopped"` // false: none ran
	PID     int  `json:"pid,omitempty"`
}

func stop(ctx context.Context, c *term.App, timeout time.Duration) error {
	root, err := c.Root()
	if err != nil {
		return err
	}
	if !disk.Held(workspace.Lock(root)) {
		if c.JSON {
			return c.PrintJSON(stopResult{})
		}
		c.Print("no daemon runs in %s\n", root)
		return nil
	}
	holder, _ := disk.ReadHolder(workspace.Lock(root))
	if err := askToEnd(ctx, c, root, holder.PID); err != nil {
		return err
	}
	if err := untilEnded(ctx, workspace.Lock(root), holder.PID); err != nil {
		return &term.Problem{Code: term.ExitTimeout,
			Err: fmt.Errorf("pid %d did not end within %s", holder.PID, timeout),
			Do:  fmt.Sprintf("end it with: kill -9 %d   (what was acknowledged is on disk)", holder.PID)}
	}
	if c.JSON {
		return c.PrintJSON(stopResult{true, holder.PID})
	}
	c.Print("stopped (pid %d)\n", holder.PID)
	return nil
}

// askToEnd asks by the API, or, where a process holds the lock without serving
// it, with SIGTERM: the lock proves that the process lives and is daycare.
func askToEnd(ctx context.Context, c *term.App, root string, pid int) error {
	client, err := c.Dial(ctx, root)
	if err == nil {
		err = client.Shutdown(ctx)
	}
	if !errors.Is(err, control.ErrNotRunning) || pid <= 1 {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end pid %d: %w", pid, err)
	}
	return nil
}

// untilEnded returns when no process holds the lock (the kernel frees it with the
// process, however that ended) and, for up to a second more, the process is gone.
// No longer: where nobody collects it, an ended process keeps its pid.
func untilEnded(ctx context.Context, lock string, pid int) error {
	for disk.Held(lock) {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	for range 50 {
		if pid <= 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
