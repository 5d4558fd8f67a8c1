package cluster

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"daycare/engine/watch"
)

// A looking knows which files were changed here: their folders are watched. The loop alone uses it, but for hints.
type looking struct {
	watcher *watch.Watcher
	folders map[string]bool // that are watched, by their names
	seen    map[string]sight

	hinting sync.Mutex
	hints   []string // names of what was changed
}

// A sight is by what a changed file is known, where no hint names it.
type sight struct {
	at   time.Time
	size int64
}

// sharedYoung is for how long a file may be changed again without showing it.
const sharedYoung = 2 * time.Second

// begin looks at all files, and watches their folders from now on.
func (l *looking) begin(s *sharing) {
	l.watcher = watch.New(s.log)
	clear(l.folders)
	clear(l.seen)
	l.watcher.Add(s.root, watch.Options{Ignore: func(name string) bool { return !s.isTop(name) }}, l.hinted(s, ".", s.Tops...))
	for _, top := range s.Tops {
		l.walk(s, top)
	}
	for name := range s.base {
		s.note(name) // it may be gone
	}
}

// hinted hears what was changed in a folder; all is what to look at where that is not known.
func (l *looking) hinted(s *sharing, dir string, all ...string) func(watch.Hint) {
	return func(h watch.Hint) {
		names := h.Names
		if h.Overflow {
			names = append(names, all...)
		}
		l.hinting.Lock()
		for _, name := range names {
			l.hints = append(l.hints, path.Join(dir, name))
		}
		l.hinting.Unlock()
		s.wake()
	}
}

// lookAtHints looks at what was changed here.
func (l *looking) lookAtHints(s *sharing) {
	l.hinting.Lock()
	hints := l.hints
	l.hints = nil
	l.hinting.Unlock()
	for _, name := range hints {
		delete(l.seen, name)
		l.walk(s, name)
	}
}

// walk looks at a file, or at the files in a folder and those below it.
func (l *looking) walk(s *sharing, name string) {
	found := map[string]bool{}
	_ = filepath.WalkDir(filepath.Join(s.root, filepath.FromSlash(name)), func(at string, d fs.DirEntry, err error) error {
		one := nameIn(s.root, at)
		switch {
		case err != nil:
			return nil // gone, or not ours to read
		case d.IsDir():
			if !s.isTop(one) && !s.covers(one+"/x") {
				return fs.SkipDir
			}
			if found[one] = true; !l.folders[one] {
				l.folders[one] = true
				l.watcher.Add(at, watch.Options{Ignore: func(name string) bool { // what is never shared
					return !s.covers(path.Join(one, name)) && !s.covers(path.Join(one, name, "x"))
				}}, l.hinted(s, one, ".")) // before its files are listed
			}
			return nil
		case !d.Type().IsRegular() || !s.covers(one):
			return nil
		}
		found[one] = true
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if now := (sight{info.ModTime(), info.Size()}); l.seen[one] != now || time.Since(now.at) < sharedYoung {
			l.seen[one] = now
			s.note(one)
		}

		return nil
	})

	gone := func(one string) bool { return !found[one] && (one == name || strings.HasPrefix(one, name+"/")) }
	maps.DeleteFunc(l.folders, func(one string, _ bool) bool {
		if gone(one) {
			l.watcher.Remove(filepath.Join(s.root, filepath.FromSlash(one)))
		}
		return gone(one)
	})
	maps.DeleteFunc(l.seen, func(one string, _ sight) bool { return gone(one) })
	for one := range s.base {
		if gone(one) {
			s.note(one)
		}
	}
}
