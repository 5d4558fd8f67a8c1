package term

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"daycare/engine/fault"
)

// Run runs one command line and returns the exit code. A signal ends it at once with
// 130, unless the command took the signals. A command whose output could not be written has failed.
func (c *App) Run(ctx context.Context, newRoot func(*App) *cobra.Command, args []string) int {
	arrived := make(chan os.Signal, 4)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(arrived)

	out := &output{Writer: c.Out}
	if !IsTerminal(c.Out) {
		c.Out = out
	}
	done := make(chan error, 1)
	go func() {
		cmd := newRoot(c)
		cmd.SetArgs(args)
		done <- cmd.ExecuteContext(ctx)
	}()

	for {
		select {
		case err := <-done:
			if err == nil {
				err = out.lost()
			}
			c.JSON = c.JSON || err != nil && wantsJSON(args) // where a flag before it was wrong, nobody read it
			return c.Report(err)
		case sig := <-arrived:
			if !c.signalsTaken.Load() {
				if restore := c.leaving.Load(); restore != nil {
					(*restore)()
				}
				return fault.ExitInterrupted
			}

			select {
			case c.Interrupts() <- sig:
			default: // the command has four of them to look at already
			}
		}
	}
}

// wantsJSON reports whether --json is among the flags.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json")
}

// TakeSignals gives the command Ctrl-C and SIGTERM to answer by itself.
func (s *signalling) TakeSignals() <-chan os.Signal {
	s.signalsTaken.Store(true)
	return s.Interrupts()
}

// TakesSignals reports whether the command answers signals by itself.
func (s *signalling) TakesSignals() bool { return s.signalsTaken.Load() }

// beforeLeaving has a signal call restore before it ends the program; nil: no more.
func (s *signalling) beforeLeaving(restore func()) {
	if restore == nil {
		s.leaving.Store(nil)
		return
	}
	s.leaving.Store(&restore)
}

// Interrupts is where signals come to the command that took them.
func (s *signalling) Interrupts() chan os.Signal {
	s.signalsMade.Do(func() { s.signals = make(chan os.Signal, 4) })
	return s.signals
}
