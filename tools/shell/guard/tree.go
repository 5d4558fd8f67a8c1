package guard

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"daycare/engine/sensitive"
)

// A tree is what is known of a granted folder.
type tree struct {
	folders map[string]folder // as they were looked at last
	known   map[string]bool   // items that were there before the commands that run, by path
	running int               // commands that may write in it
}

// A folder is what was found in one. It holds as long as nothing was made in it or
// renamed, which its change time tells; no program can set that.
type folder struct {
	node    node
	read    time.Time // when it was looked into
	folders []string  // names of those to look into
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

// look returns the items below root; root itself is none.
func (t *tree) look(root string, table sensitive.Table) (found []Item) {
	seen := make(map[string]folder, len(t.folders))
	for next := []string{root}; len(next) > 0; {
		path := next[len(next)-1]
		next = next[:len(next)-1]
		n, ok := nodeOf(path)
		if !ok {
			continue // a file, gone, or a link by now
		}
		f, had := t.folders[path]
		if !had || f.node != n || f.read.Sub(time.Unix(n.changed, n.nsec)) < grain {
			f = survey(path, n, table)
		}
		seen[path] = f
		found = append(found, f.items...)
		for _, name := range f.folders {
			next = append(next, filepath.Join(path, name))
		}
	}
	t.folders = seen
	return found
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
	if err != nil { // by its mode: a command may have made it so
		return folder{items: []Item{{path, Sealed}}}
	}
	has := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		low := strings.ToLower(name)
		at := filepath.Join(path, name)
		switch {
		case low == sensitive.Data:
			f.items = append(f.items, Item{at, Data})
		case table.Secret(path, name):
			f.items = append(f.items, Item{at, Secret})
		case low == "head": // one alone makes no repository
		case table.Later(path, name) && (low != ".git" || !e.IsDir()):
			f.items = append(f.items, Item{at, Later})
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
