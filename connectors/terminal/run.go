package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/engine/control"
)

// Options are what the UI needs from its caller.
type Options struct {
	// Dial connects to the daemon, or gives control.ErrNotRunning.
	Dial func(context.Context) (*control.Client, error)
	// Start starts the daemon in the background and returns when it answers.
	Start func(context.Context) error
	// Own completes a message with who speaks: without an agent it goes to the
	// person's own one.
	Own func(control.Message) control.Message
	// Hints is the folder for what may be deleted: drafts, what was typed. It is
	// made when it is needed; "" keeps nothing.
	Hints string
	// Setup sets up a model; nil: that cannot be done here.
	Setup *Setup
	// Workspace is where commands run and files are completed.
	Workspace string

	Input  io.Reader
	Output io.Writer
}

// framesPerSecond bounds how often the screen is drawn: a key is seen within 17 ms.
// What streams comes in at half of that, see batchEvery.
const framesPerSecond = 60

// Run shows the UI until the user leaves. The agents continue.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	l := newLink(o.Dial)
	m := newModel(o, l, callOver(ctx, l), func(f func(context.Context) tea.Msg) tea.Cmd {
		return func() tea.Msg { return f(ctx) }
	})
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithFPS(framesPerSecond),
		tea.WithInput(o.Input), tea.WithOutput(o.Output), tea.WithEnvironment(os.Environ()))
	wg.Go(func() { l.run(ctx, p.Send) })
	_, err := p.Run()
	m.memory.save(hintsOf(m))
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run the terminal UI: %w", err)
	}
	fmt.Fprint(o.Output, m.world.farewell())
	return nil
}

// callTimeout bounds one call of the API. Long waits are streams, not calls.
const callTimeout = 20 * time.Second

// A caller makes a command of a call of the API. While there is no connection the
// command answers with what is wrong.
type caller func(f func(context.Context, *control.Client) tea.Msg) tea.Cmd

// background makes a command of what takes time and needs no connection.
type background func(f func(context.Context) tea.Msg) tea.Cmd

func callOver(ctx context.Context, l *link) caller {
	return func(f func(context.Context, *control.Client) tea.Msg) tea.Cmd {
		return func() tea.Msg {
			client := l.current()
			if client == nil {
				return failed{err: control.ErrNotRunning}
			}
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			return f(ctx, client)
		}
	}
}
