package term

import (
	"context"
	"path/filepath"
	"time"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// Dial connects to the daemon of a workspace, or gives control.ErrNotRunning.
func (c *App) Dial(_ context.Context, root string) (*control.Client, error) {
	return control.Dial(filepath.Join(root, workspace.Home))
}

// startingWait is how long a process that holds the lock and does not answer yet
// is waited for.
const startingWait = 10 * time.Second

// JoinStarting waits for the socket of a process that just starts, or ends; nil if
// there is none.
func (c *App) JoinStarting(ctx context.Context, root string) (*control.Client, error) {
	for deadline := time.Now().Add(startingWait); disk.Held(workspace.Lock(root)); {
		if client, err := c.Dial(ctx, root); err == nil {
			return client, nil
		}
		if time.Now().After(deadline) {
			return nil, AlreadyRunning(root)
		}
		if err := Pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Pause waits for d or the end of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
