// Command daycare runs long-lived agents from a directory of plain files and is
// the command line to talk to them.
//
// One file holds one command or one group of commands. A command parses its
// arguments, asks the control API (engine/control) and prints what came back;
// it decides nothing that another user interface would have to decide again.
// What builds and runs a workspace is in cmd/daycare/daemon.
package main

import (
	"context"
	"io"
	"os"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
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
// with 130, unless the command took the signals (term.App.TakeSignals); then the
// command decides.
func execute(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &term.App{In: stdin, Out: stdout, Err: stderr, Offline: daemon.Look, InProcess: daemon.Inside}
	return c.Run(context.Background(), newRoot, args)
}
