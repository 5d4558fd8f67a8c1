package term

import (
	"context"
	"fmt"
	"time"

	"daycare/cmd/daycare/version"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/release"
	"daycare/engine/workspace"
)

// Dial connects to the daemon of a workspace, or gives control.ErrNotRunning.
// A daemon of another version is reported once.
func (c *App) Dial(_ context.Context, at workspace.Place) (*control.Client, error) {
	client, err := control.Dial(at.Data)
	if err == nil {
		client.Introduce(version.Number, c.otherVersion)
		client.OnSilence(func() { c.silentDaemon(at) })
	}

	return client, err
}

// DialQuietly is Dial for a full-screen UI: it prints nothing, and calls differs with the
// version of a daemon that is not of this program's.
func DialQuietly(at workspace.Place, differs func(theirs string)) (*control.Client, error) {
	client, err := control.Dial(at.Data)
	if err == nil {
		client.Introduce(version.Number, differs)
	}

	return client, err
}

// otherVersion warns, once, that the daemon is not of the version of this program.
func (c *App) otherVersion(theirs string) {
	c.versionSaid.Do(func() {
		what, do := OtherVersion(theirs)
		c.Warn("%s; %s", what, do)
	})
}

// OtherVersion says how the version of the daemon differs from this program's, and the remedy.
func OtherVersion(theirs string) (what, do string) {
	if release.Compare(theirs, version.Number) < 0 {
		return fmt.Sprintf("the daemon is daycare %s, older than this program (%s)", theirs, version.Number),
			"restart it with: daycare restart"
	}
	return fmt.Sprintf("the daemon is daycare %s, newer than this program (%s)", theirs, version.Number),
		"use the newer program, or: daycare update"
}

// silentDaemon warns, once, that the daemon does not answer.
func (c *App) silentDaemon(at workspace.Place) {
	c.silenceSaid.Do(func() {
		holder, _ := disk.ReadHolder(at.Lock())
		c.Warn("daycare (pid %d) has not answered for 5 s: it is very busy, suspended or hangs\n"+
			"if that lasts, end it with: kill -9 %d   (everything that it accepted is on disk)", holder.PID, holder.PID)
	})
}

// startingWait is how long a process that holds the lock and does not answer yet
// is waited for.
const startingWait = 10 * time.Second

// JoinStarting waits for the socket of a process that just starts, or ends; nil if
// there is none.
func (c *App) JoinStarting(ctx context.Context, at workspace.Place) (*control.Client, error) {
	for deadline := time.Now().Add(startingWait); disk.Held(at.Lock()); {
		if client, err := c.Dial(ctx, at); err == nil {
			return client, nil
		}
		if time.Now().After(deadline) {
			return nil, AlreadyRunning(at)
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
