package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/folders"
)

// agentFiles are the files of an agent, for commands that read them.
type agentFiles struct {
	home    string // a folder with agents/ID in it: the .daycare of this workspace, or a copy
	machine string // the machine of the cluster that the agent is on; "": this one
	close   func() // removes a copy
}

// filesOf finds the files of an agent. Those of one that another machine of the cluster works on are copied from there. Close
// them.
func filesOf(ctx context.Context, c *term.App, client *control.Client, a event.Agent) (f agentFiles, err error) {
	at, err := c.MadePlace()
	if err != nil {
		return f, err
	}
	f = agentFiles{home: at.Data, close: func() {}}
	if f.machine, err = client.Machine(ctx, a.ID); err != nil || f.machine == "" {
		return f, err
	}
	if f.home, err = os.MkdirTemp("", "daycare-copy-"); err != nil {
		return f, fmt.Errorf("copy the files of %s: %w", a.Handle, err)
	}
	home := f.home
	f.close = func() { os.RemoveAll(home) }
	dir := filepath.Join(home, "agents", a.ID)
	if err = os.MkdirAll(dir, 0o700); err == nil {
		from, to := io.Pipe()
		go func() { to.CloseWithError(client.Folders().Export(ctx, a.ID, to)) }()
		err = errors.Join(folders.Unpack(from, dir, a.ID), from.Close())
	}
	if err != nil {
		f.close()
		return f, fmt.Errorf("copy the files of %s from machine %s: %w", a.Handle, f.machine, err)
	}

	return f, nil
}

// onlyThere is the error of a command that an agent's machine alone can do, if that is another one.
func onlyThere(ctx context.Context, client *control.Client, a event.Agent, what string) error {
	machine, err := client.Machine(ctx, a.ID)
	if err != nil || machine == "" {
		return err
	}
	return &term.Problem{Code: fault.ExitFailure,
		Err: fmt.Errorf("%s is on machine %s of the cluster, and so are the files that it wrote", a.Handle, machine),
		Do:  "on that machine: " + what}
}
