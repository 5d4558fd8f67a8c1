package main

import (
	"context"

	"daycare/cmd/daycare/daemon"
	"daycare/engine/control"
)

// wiring is what the commands need of the engine and cannot ask of a running
// daemon. Tests put fakes here.
type wiring struct {
	// start runs the daemon in the foreground until ctx ends; then it shuts down
	// in order and returns nil. It calls ready once, when the socket answers.
	// Another daemon's lock is disk.ErrLocked, failed storage disk.ErrFailed.
	start func(ctx context.Context, o daemon.Options, ready func(daemon.Banner)) error
	// offline serves the control API from the files of a workspace, with no
	// daemon; what would change something is control.ErrNotRunning.
	offline func(root string, warn func(format string, args ...any)) (*control.Client, error)
	// inProcess runs the engine inside this process. It holds the lock until stop
	// returned; stop ends or suspends what is under way.
	inProcess func(ctx context.Context, root string) (client *control.Client, stop func() error, err error)
}
