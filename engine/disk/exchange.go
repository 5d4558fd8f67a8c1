package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"daycare/engine/crash"
)

// exchanges replace files that users write too.
type exchanges struct {
	disk     *flusher
	exchange func(a, b string) (ok bool, err error) // of the system; not every file system has it
	onKept   func(path, kept string)
}

// Exchange publishes content at path if what stands there is still base (nil: no
// file). It is for files that users write too. The two names are swapped in one
// step and what came out is looked at, so a save that a user made in between is
// never lost: the user's version is put back and returned with ErrChanged, for
// the caller to merge and try again. What came out and is neither base nor ours is
// never removed, whatever goes wrong: it is put back, or kept beside the file as
// NAME.conflict-TIME, of which OnKept tells. A process that dies in between leaves
// a file that Recover brings back.
//
// A link is written through, or not at all (Through).
//
// Failpoints are step.write, .sync, .rename (the swap) and .dirsync.
func (x *exchanges) Exchange(step, path string, content, base []byte) (found []byte, err error) {
	to, err := Through(x.disk.dir, path)
	if err != nil {
		return nil, err
	}
	temp, err := x.disk.temp(step, to, content)
	if err != nil {
		return nil, err
	}
	if found, err = x.publish(step, temp, to, content, base); err != nil {
		return found, err
	}

	return nil, x.disk.put(Content{path, content})
}

// Withdraw removes the file at path if what stands there is still base. A save that a user made in between is put
// back, or kept beside the file if there is another one already, and the error is ErrChanged. One that is gone is not
// an error. The failpoints are step.unlink and .dirsync.
func (x *exchanges) Withdraw(step, path string, base []byte) error {
	if err := x.disk.Err(); err != nil {
		return err
	}
	dir, err := openFolder(step+".dirsync", filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	random := fmt.Sprintf("%s-%d", filepath.Base(path), time.Now().UnixNano())
	aside := filepath.Join(filepath.Dir(path), swapPrefix+random+"."+tag(base)+"."+tag(base))
	err = crash.Do(step+".unlink", func() error { return os.Rename(path, aside) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return x.disk.classifyName(fmt.Errorf("remove %s: %w", path, err))
	}
	out, busy, err := whatCameOut(aside)
	if err == nil && !busy && bytes.Equal(out, base) {
		os.Remove(aside)
		return errors.Join(x.disk.syncFolder(step+".dirsync", dir), x.disk.replication.remove(path))
	}
	if lerr := os.Link(aside, path); lerr == nil {
		os.Remove(aside)
	} else {
		x.keep(aside, path)
	}

	return errors.Join(fmt.Errorf("%w: %s", ErrChanged, path), err)
}

// Amend is Exchange for a change of the runtime's own in a user's file, which is no
// save of theirs: the file keeps the time at which it was saved.
func (x *exchanges) Amend(step, path string, content, base []byte) (found []byte, err error) {
	to, err := Through(x.disk.dir, path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is gone", ErrChanged, to)
	}
	if err != nil {
		return nil, fmt.Errorf("stat %s: %w", to, err)
	}
	temp, err := x.disk.tempOf(step, to, content, info.ModTime())
	if err != nil {
		return nil, err
	}
	if found, err = x.publish(step, temp, to, content, base); err != nil {
		return found, err
	}

	return nil, x.disk.put(Content{path, content})
}

// publish gives temp, which holds content, the name path in the place of base, durably.
func (x *exchanges) publish(step, temp, path string, content, base []byte) (found []byte, err error) {
	dir, err := openFolder(step+".dirsync", filepath.Dir(path))
	if err != nil {
		os.Remove(temp)
		return nil, err
	}
	defer dir.Close()
	if found, err = x.swap(step, temp, path, content, base); err != nil {
		return found, err
	}

	return nil, x.disk.syncFolder(step+".dirsync", dir)
}

// swap is publish without the barrier.
func (x *exchanges) swap(step, temp, path string, content, base []byte) (found []byte, err error) {
	if base == nil {
		defer os.Remove(temp)
		return x.publishNew(step, temp, path)
	}
	aside, err := stepAside(temp, path, base, content)
	if err != nil {
		os.Remove(temp)
		return nil, x.disk.classifyName(fmt.Errorf("publish %s: %w", path, err))
	}
	swapped := false
	err = crash.Do(step+".rename", func() (err error) { swapped, err = x.exchange(aside, path); return err })
	if err != nil {
		os.Remove(aside) // still ours
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s is gone", ErrChanged, path)
		}
		return nil, x.disk.classifyName(fmt.Errorf("publish %s: %w", path, err))
	}
	if !swapped {
		defer os.Remove(aside)
		return x.checkedRename(step, aside, path, base)
	}
	out, busy, err := whatCameOut(aside)
	switch {
	case err != nil:
		x.keep(aside, path)
		return nil, fmt.Errorf("read what %s held: %w", path, err)
	case !bytes.Equal(out, base):
		return x.putBack(aside, path, content)
	case busy:
		// A program has the old file open and may still write to it.
		x.keep(aside, path)
	default:
		os.Remove(aside)
	}

	return nil, nil
}

// publishNew gives temp the name path, if nothing has it.
func (x *exchanges) publishNew(step, temp, path string) ([]byte, error) {
	err := crash.Do(step+".rename", func() error { return os.Link(temp, path) })
	if errors.Is(err, syscall.EEXIST) {
		found, rerr := os.ReadFile(path)
		return found, errors.Join(ErrChanged, rerr)
	}
	if err != nil {
		return nil, x.disk.classifyName(fmt.Errorf("publish %s: %w", path, err))
	}

	return nil, nil
}

// writing is how long Exchange waits for a program that has the displaced file open
// for writing: one that opened it before the swap and writes after it.
const writing = time.Second

// whatCameOut reads a displaced file once nobody writes to it any more. busy: after
// a second someone still had it open.
func whatCameOut(aside string) (content []byte, busy bool, err error) {
	if info, err := os.Stat(aside); err != nil || !info.Mode().IsRegular() {
		return nil, false, errors.Join(err, fmt.Errorf("%s is not a regular file", aside))
	}
	f, err := os.Open(aside)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for end := time.Now().Add(writing); ; time.Sleep(writing / 200) {
		if busy = OpenForWriting(f); !busy || time.Now().After(end) {
			break
		}
	}
	content, err = os.ReadFile(aside)
	return content, busy, err
}

// putBack swaps the user's version in again and returns it with ErrChanged. If
// another save landed on ours meanwhile, that newer one comes out and is swapped
// back in turn, and the older one is kept beside the file.
func (x *exchanges) putBack(aside, path string, ours []byte) ([]byte, error) {
	back, err := os.ReadFile(aside)
	for out := ours; err == nil; {
		var swapped, busy bool
		if swapped, err = x.exchange(aside, path); err == nil && !swapped {
			err = errors.ErrUnsupported // although it was done a moment ago
		}
		if err != nil {
			break
		}
		var now []byte
		if now, busy, err = whatCameOut(aside); err != nil {
			break
		}
		if !bytes.Equal(now, out) {
			out, back = back, now
			continue
		}
		if bytes.Equal(out, ours) && !busy {
			os.Remove(aside)
		} else {
			x.keep(aside, path)
		}
		return back, fmt.Errorf("%w: %s", ErrChanged, path)
	}
	x.keep(aside, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is gone", ErrChanged, path)
	}

	return nil, fmt.Errorf("put back %s: %w", path, err)
}

// checkedRename is the second best, where names cannot be swapped.
func (x *exchanges) checkedRename(step, temp, path string, base []byte) ([]byte, error) {
	now, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(now, base) {
		return now, fmt.Errorf("%w: %s", ErrChanged, path)
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, x.disk.classifyName(err)
	}

	return nil, nil
}
