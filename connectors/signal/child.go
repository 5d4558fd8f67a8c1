package signal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long the daemon has to end by itself.
const stopGrace = 10 * time.Second

// child runs signal-cli's daemon until ctx ends or it ends by itself. Messages are
// fetched from Signal only while we listen ("manual"), so that none is fetched
// and lost.
func (c *Connector) child(ctx context.Context) error {
	at, err := url.Parse(c.o.URL)
	if err != nil {
		return fmt.Errorf("start signal-cli: %w", err)
	}
	cmd := exec.CommandContext(ctx, c.o.Command, "-a", c.o.Account, "daemon", "--http", at.Host, "--receive-mode", "manual")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	said, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("start signal-cli: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start signal-cli: %w", err)
	}

	c.log.Info("signal-cli was started", "pid", cmd.Process.Pid)
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			c.log.Debug("signal-cli", "said", lines.Text())
		}
		_, _ = io.Copy(io.Discard, said) // a line too long for the scanner ends it, and must not hold up signal-cli
	})

	reading.Wait()
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("signal-cli ended: %w", err)
	}
	if ctx.Err() == nil {
		return fmt.Errorf("signal-cli exited")
	}

	return nil
}
