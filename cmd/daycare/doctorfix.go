package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/record"
)

// A repairer is what repairs need. The volume is nil while a daemon runs: files
// that it owns are left to it.
type repairer struct{ vol *disk.Volume }

// repair does every repair that is safe now and returns what it was for. One that
// fails is left as it is; the next examination shows it again.
func (d *doctor) repair() ([]finding.Finding, error) {
	r := &repairer{}
	lock, _, err := disk.TryLock(lockPath(d.workspace), disk.Holder{PID: os.Getpid(), StartedAt: d.now.UTC(), Socket: filepath.Join(d.root, control.SocketName)})
	switch {
	case err == nil:
		r.vol = disk.NewVolume(d.root)
		defer lock.Release()
	case !errors.Is(err, disk.ErrLocked):
		return nil, fmt.Errorf("repair: %w", err)
	}
	var fixed []finding.Finding
	var failed error
	for _, a := range d.ailments {
		if a.fix == nil || !a.live && r.vol == nil {
			continue
		}
		if err := a.fix(r); err != nil {
			failed = errors.Join(failed, fmt.Errorf("repair %s: %w", a.Place(), err))
			continue
		}
		fixed = append(fixed, a.Finding)
	}
	if len(fixed) == 0 {
		return nil, failed
	}
	return fixed, nil
}

// chmod closes one file to others.
func chmod(path string, mode fs.FileMode) func(*repairer) error {
	return func(*repairer) error { return os.Chmod(path, mode) }
}

// closeAll closes files and folders to others.
func closeAll(paths []string) func(*repairer) error {
	return func(*repairer) error {
		var failed error
		for _, path := range paths {
			info, err := os.Lstat(path)
			if err == nil {
				err = os.Chmod(path, info.Mode().Perm()&^0o077)
			}
			failed = errors.Join(failed, err)
		}
		return failed
	}
}

// remove removes what a crash left, folder or file.
func remove(path string) func(*repairer) error {
	return func(*repairer) error { return os.RemoveAll(path) }
}

// repairLog does what the next start would do to a file whose last line is torn:
// cut it off, and keep it beside the file. dir is the agent's folder, "" for
// other files.
func repairLog(path, dir string) func(*repairer) error {
	return func(r *repairer) error {
		switch {
		case dir == "":
			log, _, err := r.vol.OpenLog(path, disk.LogOptions{Name: "runs", Valid: json.Valid})
			if err != nil {
				return err
			}
			return errors.Join(log.Barrier(), log.Close())
		case filepath.Base(path) == inbox.FileName:
			box, _, err := inbox.Open(r.vol, dir, inbox.NewQuota(0), time.Now)
			if err != nil {
				return err
			}
			return box.Close()
		}
		history, _, err := record.Open(r.vol, dir, time.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return errors.Join(history.Barrier(), history.Close())
	}
}

// finishItems adds the line that says that items are done.
func finishItems(dir string, items []string) func(*repairer) error {
	return func(r *repairer) error {
		box, _, err := inbox.Open(r.vol, dir, inbox.NewQuota(0), time.Now)
		if err != nil {
			return err
		}
		return errors.Join(box.Done(items...), box.Close())
	}
}
