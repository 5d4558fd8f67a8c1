package term

import (
	"context"
	"path/filepath"

	"daycare/engine/control"
	"daycare/engine/workspace"
)

// Dial connects to the daemon of a workspace, or gives control.ErrNotRunning.
func (c *App) Dial(_ context.Context, root string) (*control.Client, error) {
	return control.Dial(filepath.Join(root, workspace.Home))
}
