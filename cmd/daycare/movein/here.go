package movein

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/folders"
	"daycare/engine/schedule"
	"daycare/engine/workspace"
)

// here is the workspace that an import goes into.
type here struct {
	at      workspace.Place
	vol     *disk.Volume
	agents  *address.Index  // for looking
	tasks   *schedule.Store // as files, which a daemon watches
	enable  bool            // tasks that run at home run here, too
	now     time.Time
	planned map[string]*item // by their places

	bring func(tar io.Reader) error // makes an agent
	done  func()                    // ends what open began
}

// openHere opens a workspace: agents are made by its daemon, else by this process, which then
// keeps daemons from starting until close is called.
func openHere(ctx context.Context, c *term.App, at workspace.Place, change bool) (*here, error) {
	w := &here{at: at, now: time.Now().UTC(),
		planned: map[string]*item{}, done: func() {}}
	w.vol = disk.NewVolume(w.at.Data)
	w.tasks = &schedule.Store{Root: w.at.Data, Volume: w.vol, Now: time.Now,
		Zone: func() *time.Location { return time.Local }, Every: func() time.Duration { return 0 }}
	if change {
		client, err := c.JoinStarting(ctx, at)
		if err != nil {
			return nil, err
		}
		if client != nil {
			w.bring = func(tar io.Reader) error { _, err := client.Folders().Import(ctx, tar, ""); return err }
			w.done = func() { client.Close() }
		} else if err := w.alone(); err != nil {
			return nil, err
		}
	}

	var err error
	if w.agents, _, err = address.Look(w.at.Data, slog.New(slog.DiscardHandler)); err != nil {
		w.close()
		return nil, fmt.Errorf("read agents: %w", err)
	}

	return w, nil
}

// alone has this process make the agents.
func (w *here) alone() error {
	lock, _, err := disk.TryLock(w.at.Lock(), disk.Holder{PID: os.Getpid(), StartedAt: disk.StampOf(w.now)})
	if errors.Is(err, disk.ErrLocked) {
		return term.AlreadyRunning(w.at)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", w.at.Data, err)
	}

	log := slog.New(slog.DiscardHandler)
	index, _, err := address.Load(w.vol, w.at.Data, log)
	if err != nil {
		return errors.Join(fmt.Errorf("read agents: %w", err), lock.Release())
	}

	f := &folders.Folders{Root: w.at.Data, Volume: w.vol, Index: index, Log: log, User: engine.Terminal().UserID,
		Make: index.CreateWith}
	w.bring = func(tar io.Reader) error { _, err := f.Import(tar, ""); return err }
	w.done = func() { index.Close(); lock.Release() }

	return nil
}

func (w *here) close() {
	if w.agents != nil {
		w.agents.Close()
	}
	w.done()
}

// content is what a file of .daycare has, or will have after this import.
func (w *here) content(rel string) ([]byte, error) {
	if i := w.planned[rel]; i != nil {
		if f, ok := i.put.(file); ok {
			return []byte(f.content), nil
		}
		return nil, errors.New("another item is imported to that place")
	}
	data, _, err := beneath.Own(filepath.Join(w.at.Data, filepath.FromSlash(rel)), maxText)

	return data, err
}

// has reports whether there is something at a place in .daycare.
func (w *here) has(rel string) bool {
	return disk.Exists(filepath.Join(w.at.Data, filepath.FromSlash(rel)))
}

// final reports an error after which nothing more can be placed.
func final(err error) bool {
	return errors.Is(err, disk.ErrFull) || errors.Is(err, disk.ErrFailed) || errors.Is(err, control.ErrNotRunning)
}
