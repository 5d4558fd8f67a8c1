package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"daycare/engine/disk"
	"daycare/engine/fault"
)

// ErrBusy: another command applies changes of the copy now.
var ErrBusy = fault.Applying

// Locked runs do while no other process applies changes kept in a folder. An apply that a kill cut
// is finished first, which settle takes note of.
func (s Store) Locked(settle func([]Result) error, do func() error) (err error) {
	lock, _, err := disk.TryLock(filepath.Join(s.Dir, "apply.lock"), disk.Holder{PID: os.Getpid(), StartedAt: disk.StampOf(time.Now())})
	if errors.Is(err, disk.ErrLocked) {
		return ErrBusy
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if Pending(s.Dir) {
		results, err := s.Resume()
		if err == nil {
			err = settle(results)
		}
		if err == nil {
			err = s.Finish()
		}
		if err != nil {
			return fmt.Errorf("finish the interrupted apply: %w", err)
		}
	}

	return do()
}

func (c Copy) store() Store { return Store{disk.NewVolume(c.Dir), c.Dir} }

// Apply carries changes into the folder that was copied, as one step: after a kill the next Apply,
// or Resume, does the rest. With merge, a text that changed meanwhile gets both changes. What does
// not fit is left alone and is among the results. Errors: ErrBusy.
func (c Copy) Apply(ctx context.Context, list []Change, merge bool) (results []Result, err error) {
	s := c.store()
	err = s.Locked(c.settle, func() error {
		var steps []Step
		for _, one := range list {
			more, refused, err := c.steps(s, one, merge)
			if err != nil {
				return err
			}
			if refused != "" {
				results = append(results, Result{Step{c.Of, one.Path, one.There, one.Now}, Refused, refused})
			}
			steps = append(steps, more...)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		carried, err := s.Carry(steps)
		if err == nil {
			err = c.settle(carried)
		}
		if err == nil {
			err = s.Finish()
		}
		results = append(results, slices.DeleteFunc(carried, func(r Result) bool { return r.Folder != c.Of })...)
		return err
	})
	slices.SortFunc(results, func(a, b Result) int { return strings.Compare(a.Path, b.Path) })

	return results, err
}

// Resume finishes an apply that a kill cut.
func (c Copy) Resume() error { return c.store().Locked(c.settle, func() error { return nil }) }

// steps are what carries a change; refused is why it is not.
func (c Copy) steps(s Store, one Change, merge bool) (steps []Step, refused string, err error) {
	step := Step{Folder: c.Of, Path: one.Path, From: one.Base, To: one.Now}
	if one.Fits() {
		_, now, _, err := c.Contents(one)
		if err == nil && !one.Now.Missing() {
			err = s.Put(now)
		}
		return []Step{step}, "", err
	}
	if !merge || one.Why() != Meanwhile {
		return nil, one.Why(), nil
	}
	merged, refused, err := c.merged(one)
	if refused != "" || err != nil {
		return nil, refused, err
	}
	mode, ok := one.mergedMode()
	if !ok {
		return nil, "it has changed since and cannot be merged: both sides changed its mode", nil
	}
	step.From, step.To = one.There, StateOf(merged, mode)
	own := Step{Folder: c.Tree(), Path: one.Path, From: one.Now, To: step.To} // the copy goes on from there

	return []Step{step, own}, "", s.Put(merged)
}

// merged is a text with both changes.
func (c Copy) merged(one Change) (text []byte, refused string, err error) {
	before, now, there, err := c.Contents(one)
	switch {
	case err != nil:
		return nil, "", err
	case one.There.Missing() || one.Now.Missing():
		return nil, "one side removed it, the other changed it", nil
	case before == nil && !one.Base.Missing():
		return nil, "it has changed since and cannot be merged: it is too large or not text", nil
	}
	both, err := Merge(string(before), string(now), string(there))
	if err != nil {
		return nil, "it has changed since and cannot be merged: " + err.Error(), nil
	}

	return []byte(both), "", nil
}

// mergedMode is the mode of a file with both changes; ok is false if both sides changed it, each to another one.
func (c Change) mergedMode() (mode fs.FileMode, ok bool) {
	base, now, there := c.Base.Mode, c.Now.Mode, c.There.Mode
	if there == base {
		return now, true
	}

	return there, now == base || now == there || c.Base.Missing()
}

// settle makes what was applied the base of what the agent does from here on. Where a merged text
// did not get into the copy, because the agent wrote there again, the base stays: what the agent
// has does not contain the other change.
func (c Copy) settle(results []Result) error {
	base, err := c.base()
	if err != nil {
		return err
	}
	behind := map[string]bool{}
	for _, r := range results {
		behind[r.Path] = behind[r.Path] || r.Outcome == Refused
	}
	for _, r := range results {
		if behind[r.Path] || r.Folder != c.Of {
			continue
		}
		if r.To.Missing() {
			delete(base, r.Path)
			continue
		}
		base[r.Path] = file{Path: r.Path, SHA256: r.To.SHA256, Mode: r.To.Mode} // it is read again the next time
		content, err := c.store().Get(r.To)
		if err != nil {
			return err
		}
		if len(content) <= maxText && utf8.Valid(content) {
			err = disk.NewVolume(c.Dir).WriteFile("changes", filepath.Join(c.Dir, textsDir, r.To.SHA256), content)
		}
		if err != nil {
			return err
		}
	}
	files := make([]file, 0, len(base))
	for _, f := range base {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.Path, b.Path) })

	return c.writeBase(disk.NewVolume(c.Dir), files)
}
