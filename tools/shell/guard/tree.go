package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"daycare/engine/sensitive"
)

// A tree is what is known of a granted folder.
type tree struct {
	users   int // commands that look into it; of the Guard's lock
	mu      sync.Mutex
	folders map[string]folder // as they were looked at last
	known   map[string]string // items that were there before the commands that run, by path: see linkAt
	running int               // commands that may write in it
}

// noLink is what is known of an item that is not a symbolic link.
const noLink = ""

// linkAt says where the symbolic link at a path leads: what it says, and what is found there, if anything is. A command can
// make another link with the same inode, replace a link on the way, and make what a link led to in vain. What else is known
// stays itself, as it can only be read while a command runs; a link is the one thing that nothing can be mounted on.
func linkAt(path string) string {
	target, err := os.Readlink(path)
	if err != nil {
		return noLink
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = "" // it leads to nothing that anyone could read
	}

	return target + "\x00" + real
}

// knows reports whether an item was there before.
func (t *tree) knows(path string) bool {
	link, ok := t.known[path]
	return ok && (link == noLink || link == linkAt(path))
}

// A folder is what was found in one. It holds as long as nothing was made in it or
// renamed, which its change time tells; no program can set that.
type folder struct {
	node    node
	read    time.Time // when it was looked into
	folders []string  // names of those to look into
	later   []string  // and of those that are items: what is in there counts if it is hidden
	items   []Item
}

// node identifies what is at a path, and its state.
type node struct {
	dev, ino      uint64
	changed, nsec int64
}

// grain is how coarse the change times of a file system are: what changes within it
// twice has the same one.
const grain = 50 * time.Millisecond

// maxFolders bounds how many folders are looked into beneath a granted one.
var maxFolders = 1_000_000

// ErrTooMany: what a command made, or could run, in so many folders cannot be judged.
var ErrTooMany = errors.New("it has too many folders to be watched")

// look returns the items below root, without root itself. What is skipped is ignored. With
// ErrTooMany the items are those that were found until then.
func (t *tree) look(root string, table sensitive.Table, skip map[string]bool) (found []Item, err error) {
	type place struct {
		path  string
		later bool // in an item of that kind
	}
	seen := make(map[string]folder, len(t.folders))
	for next := []place{{root, false}}; len(next) > 0; {
		p := next[len(next)-1]
		next = next[:len(next)-1]
		n, ok := nodeOf(p.path)
		if !ok || skip[p.path] {
			continue // a file, gone, or a link by now
		}
		if len(seen) == maxFolders {
			t.folders = seen
			return found, fmt.Errorf("%s: %w (more than %d); remove some", root, ErrTooMany, maxFolders)
		}

		f, had := t.folders[p.path]
		if !had || f.node != n || f.read.Sub(time.Unix(n.changed, n.nsec)) < grain {
			f = survey(p.path, n, table)
		}
		seen[p.path] = f
		for _, item := range f.items {
			if isGit(item.Path) && !p.later { // not remembered: an editor changes a file without its folder
				found = append(found, namedBy(filepath.Dir(item.Path), table)...)
			}
			if !p.later || item.Kind == Secret || item.Kind == Data || item.Kind == Socket {
				found = append(found, item)
			}
		}

		for _, name := range f.folders {
			next = append(next, place{filepath.Join(p.path, name), p.later})
		}

		for _, name := range f.later {
			next = append(next, place{filepath.Join(p.path, name), true})
		}
	}

	t.folders = seen
	return found, nil
}

// nodeOf is the node of a folder.
func nodeOf(path string) (n node, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return n, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return n, false
	}

	sec, nsec := changedAt(st)

	return node{uint64(st.Dev), st.Ino, sec, nsec}, true
}

// survey looks into a folder.
func survey(path string, n node, table sensitive.Table) folder {
	f := folder{node: n, read: time.Now()}
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrNotExist) { // it was there a moment ago
		return f
	}
	if err != nil { // by its mode: a command may have made it so
		return folder{items: []Item{{path, Sealed}}}
	}

	has := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		low := sensitive.Fold(name)
		at := filepath.Join(path, name)
		switch {
		case low == sensitive.Data:
			f.items = append(f.items, Item{at, Data})
		case table.Secret(path, name):
			f.items = append(f.items, Item{at, Secret})
		case e.Type()&os.ModeSocket != 0:
			f.items = append(f.items, Item{at, Socket})
		case low == "head": // one alone makes no repository
		case table.Later(path, name) && (low != ".git" || !e.IsDir()):
			f.items = append(f.items, Item{at, Later})
			if e.IsDir() {
				f.later = append(f.later, name)
			}
		case e.IsDir():
			f.folders = append(f.folders, name)
		}

		has[low] = true
	}

	if isGit(path) || has["head"] && (has["commondir"] || has["objects"] && has["refs"]) {
		f.items = append(append([]Item{{path, Repository}}, inner(path)...), f.items...)
	}

	return f
}
