package acp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"daycare/engine/control"
)

// Options are what the command gives.
type Options struct {
	Workspace string // absolute
	Version   string
	// Connect joins the daemon, and starts one if none runs; Dial only joins.
	Connect, Dial func(context.Context) (*control.Client, error)
	// Left reports whether a daemon that does not run has left its socket: it was killed. nil: that is not known.
	Left func() bool
	Log  *slog.Logger
}

// patience is how long a daemon that was stopped may take to come back while a prompt waits.
const patience = 10 * time.Second

// dying is a pause in which a process that was killed comes to its end: until then the system lets others connect to it.
const dying = 100 * time.Millisecond

// A link is the way to the daemon.
type link struct {
	o      Options
	mu     sync.Mutex
	client *control.Client // nil: not connected
	killed bool            // so the daemon ended that was lost last
}

// connected is a client of the daemon, which is started if none runs.
func (l *link) connected(ctx context.Context) (*control.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == nil {
		c, err := l.o.Connect(ctx)
		if err != nil {
			return nil, err
		}
		l.client = c
	}

	return l.client, nil
}

// forget lets go of a connection that is gone.
func (l *link) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil {
		l.client.Close()
	}
	l.client = nil
}

// with calls f with a client, and again after a daemon that went away was replaced.
func (l *link) with(ctx context.Context, f func(*control.Client) error) error {
	for tries := 0; ; tries++ {
		c, err := l.connected(ctx)
		if err == nil {
			err = f(c)
		}
		if !errors.Is(err, control.ErrNotRunning) || tries == 2 {
			return err
		}
		l.forget()
		select {
		case <-time.After(dying):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// back waits for the next daemon. One that was killed is started again; one that was stopped is
// given the time of a restart.
func (l *link) back(ctx context.Context, lost error) error {
	l.forget()
	start := func() error {
		_, err := l.connected(ctx)
		return err
	}
	try := func() error {
		c, err := l.o.Dial(ctx)
		if err == nil {
			c.Close()
		} else if errors.Is(err, control.ErrNotRunning) && l.o.Left != nil && l.o.Left() {
			return start()
		}
		return err
	}
	if l.wasKilled(lost) {
		try = start
	}

	until := time.Now().Add(patience)
	for pause := dying; ; pause = min(2*pause, time.Second) {
		if err := try(); !errors.Is(err, control.ErrNotRunning) || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wasKilled reports whether a connection was lost because the daemon was killed, or because another one was met that
// had been killed and was not gone yet.
func (l *link) wasKilled(lost error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(lost, io.ErrUnexpectedEOF), errors.Is(lost, syscall.ECONNRESET):
		l.killed = true
	case errors.Is(lost, io.EOF): // it ended what it said
		l.killed = false
	}

	return l.killed
}
