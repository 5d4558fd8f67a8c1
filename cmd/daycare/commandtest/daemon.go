package commandtest

import (
	"context"
	"testing"
)

// A Runner is a daemon that was opened.
type Runner interface {
	Run(ctx context.Context, connect bool, listen string, ready func()) error
}

// Start runs a daemon until the test ends. It returns when the daemon is ready.
func Start(t *testing.T, d Runner) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- d.Run(ctx, true, "", func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	<-ready
}
