package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// A repairer is what repairs need. The volume is nil while a daemon runs: files
// that it owns are left to it.
type repairer struct{ vol *disk.Volume }

// treatWait bounds how long a daemon may take to wake the agents whose files need it.
const treatWait = 20 * time.Second

// treat repairs what can be repaired and looks again. The files of agents that a
// running daemon owns are repaired by it: it is asked to wake those agents.
func treat(ctx context.Context, d *doctor, reload func(context.Context) error) (*doctor, error) {
	fixed, err := d.repair()
	if err != nil {
		return nil, err
	}
	after, err := examine(d.at)
	if err != nil {
		return nil, err
	}
	if left := after.asleep(); d.held && len(left) > 0 {
		if err := reload(ctx); err != nil && !errors.As(err, new(*control.APIError)) { // bad settings are already reported
			return nil, fmt.Errorf("have the daemon repair: %w", err)
		}

		for deadline := time.Now().Add(treatWait); len(after.asleep()) > 0 &&
			time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if after, err = examine(d.at); err != nil {
				return nil, err
			}
		}

		for _, f := range left {
			if !slices.Contains(after.asleep(), f) {
				fixed = append(fixed, f)
			}
		}
	}

	after.fixed = fixed
	return after, nil
}

// reloading has the daemon of a workspace look at the files of all agents.
func reloading(c *term.App, at workspace.Place) func(context.Context) error {
	return func(ctx context.Context) error {
		client, err := c.Dial(ctx, at)
		if err == nil {
			_, err = client.Reload(ctx)
		}
		return err
	}
}

// asleep are the ailments that a running daemon repairs itself when an agent wakes.
func (d *doctor) asleep() (all []finding.Finding) {
	for _, a := range d.ailments {
		if a.asleep {
			all = append(all, a.Finding)
		}
	}

	return all
}

// repair does every repair that is safe now and returns what it was for. One that
// fails is left as it is; the next examination shows it again.
func (d *doctor) repair() ([]finding.Finding, error) {
	r := &repairer{}
	lock, _, err := disk.TryLock(d.at.Lock(),
		disk.Holder{PID: os.Getpid(), StartedAt: disk.StampOf(d.now), Socket: filepath.Join(d.at.Data, control.SocketName)})
	switch {
	case err == nil:
		r.vol = disk.NewVolume(d.at.Data)
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

// kept is in the names of files that hold what a repair took out of another.
const kept = ".set-aside-"

// setAside moves the lines that cannot be read out of a ledger, to a file beside it.
func setAside(path string) func(*repairer) error {
	return func(r *repairer) error {
		return r.setAside(path, func(_ int, raw []byte) bool { return !goodLine(raw) })
	}
}

// setAsideBroken does the same for a file of an agent, whose own reader says which lines
// it cannot read.
func setAsideBroken(dir, path string, check func(dir string) ([]finding.Finding, error)) func(*repairer) error {
	return func(r *repairer) error {
		found, err := check(dir)
		if err != nil {
			return err
		}
		broken := map[int]bool{}
		for _, f := range found {
			if f.File == path && (f.ID == "history-bad-line" || f.ID == inbox.BrokenLine) {
				broken[f.Line] = true
			}
		}

		return r.setAside(path, func(line int, _ []byte) bool { return broken[line] })
	}
}

// setAside moves the bad lines of a file to a file beside it.
func (r *repairer) setAside(path string, isBad func(line int, raw []byte) bool) error {
	data, err := beneath.Whole(path)
	if err != nil {
		return err
	}
	var good, bad []byte
	line := 0
	for _, raw := range disk.Lines(data) {
		if line++; isBad(line, raw) {
			bad = append(append(bad, raw...), '\n')
		} else {
			good = append(append(good, raw...), '\n')
		}
	}

	if len(bad) == 0 {
		return nil // several lines, and the repair of the first took all
	}
	if err := r.vol.WriteFile("doctor.aside", path+kept+time.Now().UTC().Format("20060102T150405"), bad); err != nil {
		return err
	}

	_, err = r.vol.Exchange("doctor.lines", path, good, data)
	return err
}

// toTrash moves a file to where removed things lie, and whence they come back.
func toTrash(root, path string) func(*repairer) error {
	return func(r *repairer) error {
		trash := filepath.Join(root, "trash")
		if err := r.vol.MkdirAll(trash); err != nil {
			return err
		}
		return r.vol.Rename("trash", path, filepath.Join(trash, time.Now().UTC().Format(trashTime)+"-"+filepath.Base(path)))
	}
}

// refer writes the reference of an attachment from its content.
func refer(root, name string) func(*repairer) error {
	return func(r *repairer) error {
		vol := r.vol
		if vol == nil {
			vol = disk.NewVolume(root)
		}
		return control.Refer(vol, root, name)
	}
}

// nothing is the repair of what taking the lock repairs.
func nothing(*repairer) error { return nil }
