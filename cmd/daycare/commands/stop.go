package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// Stop ends the daemon and waits until its process is gone.
func Stop(c *term.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the daemon and wait until it has exited",
		Long: "Shut the daemon down and wait until it has exited. Turns in progress are suspended\n" +
			"and continue at the next start. Succeeds if no daemon is running.",
		Example: "  daycare stop",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			ended, err := stop(ctx, c, timeout)
			switch {
			case err != nil:
				return err
			case c.JSON:
				return c.PrintJSON(ended)
			case ended.Stopped:
				c.Print("stopped (pid %d)\n", ended.PID)
			default:
				c.Print("no daemon is running in %s\n", ended.at.Dir)
			}

			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait for it to exit")

	return cmd
}

// Restart ends the daemon and starts it again, for a new version, or for settings
// that need it.
func Restart(c *term.App) *cobra.Command {
	var timeout time.Duration
	var listen string
	cmd := &cobra.Command{
		Use:   "restart",
		Short: "Stop the daemon, if running, and start it again as it was started",
		Long: "Shut the daemon down, wait until it has exited, and start it again: through the service manager if it\n" +
			"runs as a service (daycare service install), else in the background, with the same --listen.",
		Example: "  daycare restart",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			kept, err := setup.RestartService(ctx, c, at, cmd.Flags().Changed("listen"))
			if kept || err != nil {
				return err
			}

			ended, err := stop(ctx, c, timeout)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("listen") {
				listen = ended.listen
			}

			return startAgain(cmd.Context(), c, at, listen)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait for it to exit")
	cmd.Flags().StringVar(&listen, "listen", "",
		"also serve the API at `ADDR` (HOST:PORT); needs control.token in settings (default: as before)")

	return cmd
}

func startAgain(ctx context.Context, c *term.App, at workspace.Place, listen string) error {
	if err := setup.EnsureHome(c, at); err != nil {
		return err
	}
	if c.NobodyRuns(at) != nil {
		c.Note("another process started it again; see: daycare status")
		return nil
	}

	c.WarnOfSettings()

	return StartBackground(ctx, c, at, StartFlags{Listen: listen})
}

type stopResult struct {
	Stopped bool `json:"stopped"` // false: none ran
	PID     int  `json:"pid,omitempty"`

	at     workspace.Place
	listen string
}

// stop ends the daemon of the workspace, if one runs.
func stop(ctx context.Context, c *term.App, timeout time.Duration) (stopResult, error) {
	at, err := c.Place()
	if err != nil {
		return stopResult{}, err
	}
	holder, err := disk.ReadHolder(at.Lock())
	if _, closed := errors.AsType[*fs.PathError](err); closed && !errors.Is(err, fs.ErrNotExist) {
		return stopResult{}, fmt.Errorf("check whether a daemon runs: %w", err) // one of another user, perhaps
	}
	if !disk.Held(at.Lock()) {
		return stopResult{at: at}, nil
	}

	err = askToEnd(ctx, at, holder.PID)
	if err == nil {
		err = untilEnded(ctx, at.Lock(), holder.PID)
	}

	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return stopResult{}, &term.Problem{Code: fault.ExitTimeout,
			Err: fmt.Errorf("pid %d did not exit within %s", holder.PID, timeout),
			Do:  fmt.Sprintf("end it with: kill -9 %d   (acknowledged messages are on disk)", holder.PID)}
	case err != nil:
		return stopResult{}, err
	}

	return stopResult{Stopped: true, PID: holder.PID, at: at, listen: holder.Listen}, nil
}

// askToEnd asks by the API, or, where a process holds the lock without serving
// it, with SIGTERM: the lock proves that the process lives and is daycare. Which version it has
// does not matter here.
func askToEnd(ctx context.Context, at workspace.Place, pid int) error {
	client, err := control.Dial(at.Data)
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
// process, however that ended) and, for up to a second more, the process has ended.
// No longer: its number may be that of another process by now.
func untilEnded(ctx context.Context, lock string, pid int) error {
	for disk.Held(lock) {
		if err := term.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}

	for range 50 {
		if pid <= 1 || !(disk.Holder{PID: pid}).Alive() {
			return nil
		}
		if err := term.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}

	return nil
}
