package shell

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"daycare/engine/permission"
	"daycare/tools/shell/sandbox"
)

// A Program is a command of the owner's settings, which no model wrote: a hook. It runs as
// commands of agents do: supervised, in the same sandbox, with the same scrubbed environment.
type Program struct {
	Command string
	Stdin   string
	Dir     string // where it starts
	Timeout time.Duration
	Env     []string // beside the usual variables
	Mark    string   // an id of this run
	Agent   string   // whose work it runs for
	As      string   // whose home and folders in .daycare it gets
	Access  permission.Set
	Bare    bool // without the sandbox
	// Out and Err take what it prints.
	Out, Err io.Writer
}

// A ProgramEnd is how a program ended.
type ProgramEnd struct {
	Code     int
	Signal   string // name of the signal that ended it; "" for none
	TimedOut bool
}

// ErrNoSandbox: the program was not run because no sandbox works here to hold it.
var ErrNoSandbox = errors.New("no sandbox works here")

// Run runs the program with what e has, and returns when nothing of it is left. An error means
// that it did not start.
func (o Program) Run(ctx context.Context, e *Exec) (ProgramEnd, error) {
	p, err := o.process(e)
	if err != nil {
		return ProgramEnd{}, err
	}
	end, err := p.run(ctx, o.Timeout, o.Out)
	return ProgramEnd{Code: end.code, Signal: end.signal, TimedOut: end.timedOut}, err
}

// process is that of the program, ready to start.
func (o Program) process(e *Exec) (process, error) {
	runner, err := o.runner(e)
	if err != nil {
		return process{}, err
	}
	p := process{
		commandLine: commandLine{shell: e.shell, command: o.Command, stdin: o.Stdin, mark: o.Mark},
		isolation:   isolation{runner: runner, view: sandbox.View{Dir: o.Dir}},
		stderr:      o.Err, grace: min(e.options.grace, programGrace),
		began: e.began(o.Agent, runner), refused: e.refused(o.Agent)}
	env := e.options.environment()
	if runner.Level != sandbox.None {
		if p.view, p.watch, err = e.confine.view(o.As, o.Access, o.Dir); err != nil {
			return p, err
		}
		env = p.confined(env)
	}
	p.room = newRoom(e.options.Reserve, append(slices.Clone(p.view.Write), o.Dir, cmp.Or(p.view.Home, os.TempDir()))...)
	p.env = append(env, o.Env...)
	return p, nil
}

// programGrace is the time that a program gets between SIGTERM and SIGKILL: a turn waits.
const programGrace = time.Second

// runner is what holds the program.
func (o Program) runner(e *Exec) (*sandbox.Runner, error) {
	if o.Bare {
		return sandbox.Plain(e.options.Helper), nil
	}
	runner, err := e.confine.find()
	if err != nil {
		return nil, err
	}
	if runner.Level == sandbox.None && e.confine.wanted() {
		return nil, ErrNoSandbox
	}

	return runner, nil
}
