package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/crash"
)

// A Cut says what of the things that were not synced a power cut leaves. A disk may
// leave any part of them; these are the corners.
type Cut string

// Cuts.
const (
	Nothing Cut = "none"  // only what was synced is there
	Names   Cut = "names" // all names are there, and of bytes only the synced ones
	Data    Cut = "data"  // all bytes are there, and only the synced names
	Half    Cut = "half"  // half of the bytes that were not synced
	// Without a journal a rename is a name that comes and a name that goes, each by itself.
	Both Cut = "both" // of what was renamed and not synced, the old and the new name
	Gone Cut = "gone" // of it neither; what was replaced is the old one
)

var cuts = []Cut{Nothing, Names, Data, Half, Both, Gone}

// A picture is a folder as it will be found after a power cut.
type picture struct {
	mirror *crash.Mirror
	cut    Cut
	live   map[string]string // what is there now, by id
	made   map[string]string // files that are made already, by id: one with two names stays one file
}

// cutPower puts in the place of root what a power cut leaves of it. Everything in
// the mirror is durable, so the mirror begins anew with what is found.
func cutPower(root, mirrorDir string, cut Cut) error {
	p := picture{mirror: crash.OpenMirror(mirrorDir), cut: cut, live: map[string]string{}, made: map[string]string{}}
	id, err := crash.FileID(root)
	if err != nil {
		return err
	}
	if err := p.walk(root); err != nil {
		return err
	}

	after := root + ".after"
	if cut == Names {
		err = p.copyNames(root, after)
	} else {
		err = p.build(id, after)
	}
	if err != nil {
		return fmt.Errorf("cut power: %w", err)
	}
	if err := lend(filepath.Join(root, ballastName), after); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(os.RemoveAll(root), os.Rename(after, root), os.RemoveAll(mirrorDir)); err != nil {
		return err
	}

	return seed(root, mirrorDir)
}

// seed makes the mirror of a folder that is durable as it is.
func seed(root, mirrorDir string) error {
	if err := os.MkdirAll(mirrorDir, 0o700); err != nil {
		return err
	}
	m := crash.OpenMirror(mirrorDir)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && (!d.Type().IsRegular() || ephemeral(d.Name())) {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()

		return m.Sync(f, func(*os.File) error { return nil })
	})
}

func (p *picture) walk(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		id, err := crash.FileID(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // whoever died has a child that lives a moment longer
		}

		p.live[id] = path

		return err
	})
}

// build makes the durable names of a directory.
func (p *picture) build(id, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	names, err := p.names(id)
	if err != nil {
		return err
	}

	for name, n := range names {
		path := filepath.Join(to, name)
		if n.Dir {
			err = p.build(n.ID, path)
		} else if !ephemeral(name) {
			err = p.write(n.ID, path)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// names are what a directory holds after the cut.
func (p *picture) names(id string) (map[string]crash.Name, error) {
	if p.cut != Both && p.cut != Gone {
		return p.mirror.Names(id)
	}
	durable, err := p.mirror.OwnNames(id)
	if err != nil || p.live[id] == "" {
		return durable, err
	}

	now, err := crash.List(p.live[id])
	if err != nil {
		return nil, err
	}
	if p.cut == Both {
		all := maps.Clone(now)
		for name, n := range durable {
			if _, ok := all[name]; !ok && (!n.Dir || p.live[n.ID] == "") { // a folder has one name
				all[name] = n
			}
		}
		return all, nil
	}

	maps.DeleteFunc(durable, func(name string, n crash.Name) bool {
		_, stays := now[name]
		return !stays && !n.Dir
	})
	return durable, nil
}

// copyNames makes the names as they are, with the bytes that are durable.
func (p *picture) copyNames(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}

		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.Mkdir(target, 0o700)
		case !d.Type().IsRegular() || ephemeral(d.Name()):
			return nil
		}

		id, err := crash.FileID(path)
		if err != nil {
			return err
		}
		return p.write(id, target)
	})
}

// ephemeral are files that mean nothing to the next start, whatever is in them.
func ephemeral(name string) bool { return name == ballastName || name == "daycare.lock" }

// ballastName is the file in .daycare that keeps space back for a full disk.
const ballastName = ".ballast"

// write makes one file with what the cut leaves of its bytes.
func (p *picture) write(id, path string) error {
	if first, ok := p.made[id]; ok {
		return os.Link(first, path)
	}
	p.made[id] = path
	durable, err := os.ReadFile(p.mirror.Path(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	content := durable
	if from, ok := p.live[id]; ok && (p.cut == Data || p.cut == Half) {
		now, err := os.ReadFile(from)
		if err != nil {
			return err
		}

		switch {
		case p.cut == Data:
			content = now
		case strings.HasPrefix(string(now), string(durable)):
			content = now[:len(durable)+(len(now)-len(durable))/2]
		}
	}

	// Moved in, as files come to be that were not just written.
	temp := path + ".cut"
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return err
	}

	// Schedules count from when a file was saved.
	saved := p.mirror.Path(id)
	if from, ok := p.live[id]; ok && (p.cut == Data || p.cut == Half) {
		saved = from
	}
	if info, err := os.Stat(saved); err == nil {
		if err := os.Chtimes(temp, time.Time{}, info.ModTime()); err != nil {
			return err
		}
	}

	return os.Rename(temp, path)
}
