package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// Place is where the workspace is: what --workspace says, else the nearest folder upwards
// that holds .daycare, else the current folder.
func (c *App) Place() (workspace.Place, error) {
	dir, err := c.folder()
	return workspace.At(dir), err
}

// folder is the folder of the workspace.
func (c *App) folder() (string, error) {
	if c.Workspace != "" {
		dir, err := filepath.Abs(c.Workspace)
		if err != nil {
			return "", fmt.Errorf("find workspace %s: %w", c.Workspace, err)
		}
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return "", NotFound("create the folder first, or name another one with --workspace", "there is no folder %s", dir)
		case err != nil:
			return "", fmt.Errorf("find workspace: %w", err)
		case !info.IsDir():
			return "", NotFound("name the folder that contains .daycare", "%s is not a folder", dir)
		}
		return dir, nil
	}

	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find workspace: %w", err)
	}

	for dir := start; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, workspace.Home)); err == nil && info.IsDir() {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return start, nil
		}
	}
}

// MadePlace is Place for commands that need a workspace which was set up.
func (c *App) MadePlace() (workspace.Place, error) {
	at, err := c.Place()
	if err == nil && !Exists(at.Data) {
		err = NotFound(createHome, noHome, at.Dir)
	}

	return at, err
}

// What is said, and advised, in a folder without a workspace.
const (
	noHome     = "there is no .daycare in %s or above it"
	createHome = "create one with: daycare init   (or name its folder with --workspace)"
)

// Reader is a client for commands that read, or edit as a user would: of the daemon
// if one runs, else of the files.
func (c *App) Reader(ctx context.Context) (*control.Client, error) {
	at, err := c.MadePlace()
	if err != nil {
		return nil, err
	}
	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) {
		return c.Offline(at, c.Warn)
	}

	return client, err
}

// Daemon is a client for commands that need the daemon.
func (c *App) Daemon(ctx context.Context) (*control.Client, error) {
	at, err := c.Place()
	if err != nil {
		return nil, err
	}
	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) && !Exists(at.Data) {
		return nil, fault.NotRunning.Advises(createHome+"\n"+fault.NotRunning.Hint).Says(noHome+": the daemon is not running", at.Dir)
	}

	return client, err
}
