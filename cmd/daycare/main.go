// Command daycare runs long-lived agents from a directory of plain files and is
// the command line to talk to them.
//
// One file holds one command or one group of commands. A command parses its
// arguments, asks the control API (engine/control) and prints what came back;
// it decides nothing that another user interface would have to decide again.
// What builds and runs a workspace is in cmd/daycare/daemon; wiring.go lists the few
// things of it that commands need.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"daycare/tools/shell/sandbox"
)

func main() { main1() }

// main1 is main in the shape that testscript wants.
func main1() {
	if code, ours := sandbox.Main(os.Args); ours { // the shell tool calls this binary as its helper
		os.Exit(code)
	}
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute is the whole program: it returns the exit code. A signal ends it at once
// with 130, unless the command took the signals (cli.takeSignals); then the
// command decides.
func execute(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{
		wiring: production(),
		stdin:  stdin, stdout: stdout, stderr: stderr,
		signals: make(chan os.Signal, 4),
	}
	return c.run(context.Background(), args)
}

func (c *cli) run(ctx context.Context, args []string) int {
	arrived := make(chan os.Signal, 4)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(arrived)

	done := make(chan error, 1)
	go func() {
		cmd := newRoot(c)
		cmd.SetArgs(args)
		done <- cmd.ExecuteContext(ctx)
	}()
	for {
		select {
		case err := <-done:
			return c.report(err)
		case sig := <-arrived:
			if !c.signalsTaken.Load() {
				if restore := c.leaving.Load(); restore != nil {
					(*restore)()
				}
				return exitInterrupted
			}
			select {
			case c.signals <- sig:
			default: // the command has four of them to look at already
			}
		}
	}
}

// takeSignals gives the command Ctrl-C and SIGTERM to answer by itself.
func (c *cli) takeSignals() <-chan os.Signal {
	c.signalsTaken.Store(true)
	return c.signals
}
