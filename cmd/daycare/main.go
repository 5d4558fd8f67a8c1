package main

import (
	"context"
	"io"
	"os"

	"daycare/cmd/daycare/daemon"
	_ "daycare/cmd/daycare/early" // answers what is asked most before the rest is initialised
	"daycare/cmd/daycare/term"
)

func main() { main1() }

// main1 is main in the shape that testscript wants.
func main1() {
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute is the whole program: it returns the exit code. A signal ends it at once
// with 130, unless the command took the signals (term.App.TakeSignals); then the
// command decides.
func execute(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &term.App{Streams: term.Streams{In: stdin, Out: stdout, Err: stderr}, Offline: daemon.Look, InProcess: daemon.Inside}
	return c.Run(context.Background(), newRoot, args)
}
