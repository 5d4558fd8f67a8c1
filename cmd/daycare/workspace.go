package main

import (
	"context"
	"daycare/engine/workspace"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"daycare/engine/control"
)

const home = workspace.Home

// root is the workspace: what --workspace says, else the nearest folder upwards
// that holds .daycare, else the current folder.
func (c *cli) root() (string, error) {
	if c.workspace != "" {
		dir, err := filepath.Abs(c.workspace)
		if err != nil {
			return "", fmt.Errorf("find workspace %s: %w", c.workspace, err)
		}
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return "", notFound("make the folder first, or name another with --workspace", "there is no folder %s", dir)
		case err != nil:
			return "", fmt.Errorf("find workspace: %w", err)
		case !info.IsDir():
			return "", notFound("name the folder that holds .daycare", "%s is not a folder", dir)
		}
		return dir, nil
	}
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find workspace: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, home)); err == nil && info.IsDir() {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return start, nil
		}
	}
}

// madeRoot is root for commands that need a workspace which was set up.
func (c *cli) madeRoot() (string, error) {
	dir, err := c.root()
	if err != nil {
		return "", err
	}
	if !exists(filepath.Join(dir, home)) {
		return "", notFound("make one with: daycare init   (or name its folder with --workspace)",
			"there is no .daycare in %s or above it", dir)
	}
	return dir, nil
}

// reader is a client for commands that read, or edit as a person would: of the daemon
// if one runs, else of the files.
func (c *cli) reader(ctx context.Context) (*control.Client, error) {
	dir, err := c.madeRoot()
	if err != nil {
		return nil, err
	}
	client, err := c.dial(ctx, dir)
	if errors.Is(err, control.ErrNotRunning) {
		return c.offline(dir, c.warn)
	}
	return client, err
}

// daemon is a client for commands that need the daemon.
func (c *cli) daemon(ctx context.Context) (*control.Client, error) {
	dir, err := c.root()
	if err != nil {
		return nil, err
	}
	return c.dial(ctx, dir)
}
