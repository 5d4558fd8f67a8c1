package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Two kinds of hidden names are in a folder while a file is being replaced.
//
//	.tmp-NAME-RANDOM                 ours, perhaps not written to its end
//	.swap-NAME-RANDOM.BASE.OURS      trades places with NAME
//
// BASE and OURS begin the SHA-256 of what NAME held and of what is put in its place.
// So after a crash it is known what a .swap- file is: base and ours can go; anything
// else is a save of a user that came between the look and the swap.
const (
	tempPrefix = ".tmp-"
	swapPrefix = ".swap-"
	tagLength  = 16
)

// Hidden reports whether a name is one that replacements use while they are made.
func Hidden(name string) bool {
	return strings.HasPrefix(name, tempPrefix) || strings.HasPrefix(name, swapPrefix)
}

// OnKept has tell called with the path of a file and of the copy of it that was
// kept because two saves could not be brought together. It is set before the volume
// is used.
func (x *exchanges) OnKept(tell func(path, kept string)) { x.onKept = tell }

func tag(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:tagLength]
}

// stepAside gives a finished temporary file the name under which it trades places
// with path.
func stepAside(temp, path string, base, ours []byte) (aside string, err error) {
	random := strings.TrimPrefix(filepath.Base(temp), tempPrefix)
	aside = filepath.Join(filepath.Dir(path), swapPrefix+random+"."+tag(base)+"."+tag(ours))
	return aside, os.Rename(temp, aside)
}

// parts are what the name of a .swap- file says.
func parts(aside string) (name, base, ours string, ok bool) {
	rest, ok1 := strings.CutPrefix(filepath.Base(aside), swapPrefix)
	rest, ours, ok2 := cutLast(rest, ".")
	rest, base, ok3 := cutLast(rest, ".")
	name, _, ok4 := cutLast(rest, "-")
	return name, base, ours, ok1 && ok2 && ok3 && ok4
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}

	return s[:i], s[i+len(sep):], true
}

// keep gives a user's version that cannot be put in place the name
// NAME.conflict-TIME. If even that fails it stays where it is, for Recover.
func (x *exchanges) keep(aside, path string) (kept string) {
	for now := time.Now().UTC(); ; now = now.Add(time.Millisecond) {
		kept = path + ".conflict-" + now.Format("20060102T150405.000Z")
		err := os.Link(aside, kept)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			kept = aside
			break
		}

		os.Remove(aside)
		break
	}

	if x.onKept != nil {
		x.onKept(path, kept)
	}

	return kept
}

// Recover ends what a crash left half done in dir: unfinished files go, and a save
// of a user that had been swapped out and not yet been looked at comes back. With
// names only what belongs to those files is touched; the caller keeps other writers
// of them out. A nil volume, of who only looks, can remove unfinished files.
func (v *Volume) Recover(dir string, names ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case !Hidden(e.Name()) || !belongs(e.Name(), names):
		case strings.HasPrefix(e.Name(), tempPrefix):
			err = os.Remove(path)
		default:
			err = v.recoverSwap(path)
		}

		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("recover %s: %w", path, err)
		}
	}

	return nil
}

// belongs reports whether a hidden name is of one of the files; none: of any.
func belongs(hidden string, names []string) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(hidden, tempPrefix), swapPrefix)
	for _, name := range names {
		if rest == name || strings.HasPrefix(rest, name+"-") { // a draft has no random part
			return true
		}
	}

	return len(names) == 0
}

func (x *exchanges) recoverSwap(aside string) error {
	name, base, ours, ok := parts(aside)
	if !ok {
		return nil // a name that we do not give
	}
	content, err := os.ReadFile(aside)
	if err != nil {
		return err
	}
	if is := tag(content); is == base || is == ours {
		return os.Remove(aside)
	}

	path := filepath.Join(filepath.Dir(aside), name)
	now, err := os.ReadFile(path)
	if err == nil && tag(now) == ours {
		_, err = x.putBack(aside, path, now)
		if errors.Is(err, ErrChanged) {
			err = nil
		}
	} else {
		x.keep(aside, path)
		err = nil
	}

	return errors.Join(err, x.disk.SyncDir("log.dirsync", filepath.Dir(aside)))
}
