package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"daycare/engine/config"
	"daycare/engine/control"
)

// production is the wiring of the real program.
func production() wiring {
	return wiring{start: runDaemon, offline: lookAtFiles, inProcess: runInside}
}

// runDaemon runs the daemon in the foreground until ctx ends.
func runDaemon(ctx context.Context, o startOptions, ready func(banner)) error {
	r, err := openRuntime(ctx, o.Workspace, slog.LevelWarn)
	if err != nil {
		return err
	}
	return r.run(ctx, true, o.Listen, func() { ready(r.banner(o.Listen)) })
}

func (r *runtimeParts) banner(listen string) banner {
	c := r.settings.Current()
	if listen == "" {
		listen = c.Control.Listen
	}
	first := r.models.Load().first()
	b := banner{Socket: filepath.Join(r.root, control.SocketName), Listen: listen,
		Provider: first.ID, Model: first.Model, Why: first.Why, Notes: r.notes}
	if path := filepath.Join(r.root, config.Name); exists(path) {
		b.Settings = path
	}
	for _, k := range c.Connectors {
		b.Connectors = append(b.Connectors, k.ID)
	}
	b.Agents, _, b.Waiting = r.system.Counts()
	return b
}

// lookAtFiles serves the API from the files, with nothing running.
func lookAtFiles(root string, warn func(format string, args ...any)) (*control.Client, error) {
	r, err := openFiles(context.Background(), root, warn)
	if err != nil {
		return nil, err
	}
	return r.client(), nil
}

// runInside runs the engine in this process, with the socket, so that other
// commands join it, but without receiving from connectors: that is the daemon's.
func runInside(ctx context.Context, root string) (*control.Client, func() error, error) {
	r, err := openRuntime(ctx, root, slog.LevelError)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- r.run(ctx, false, "", func() { close(ready) }) }()
	stop := func() error {
		cancel()
		return <-done
	}
	select {
	case <-ready:
		return r.client(), stop, nil
	case err := <-done:
		cancel()
		return nil, nil, fmt.Errorf("start the engine: %w", err)
	}
}
