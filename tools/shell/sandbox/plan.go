package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const (
	// proxyInside is where the view has the socket of the proxy: in its own /dev, where
	// it can be put whatever is granted.
	proxyInside = "/dev/daycare-proxy.sock"
	// emptyFile and emptyFolder are what the helper puts over Covered. They are there, too.
	emptyFile   = "/dev/daycare-hidden-file"
	emptyFolder = "/dev/daycare-hidden-folder"
	// tmpBytes bounds each private folder for temporary files, which live in memory.
	tmpBytes = 1 << 30
)

// A plan is how a view of the file system is made: by bubblewrap, or by the helper.
type plan struct {
	Mounts   []mount  `json:"mounts"`   // in this order
	ReadOnly []string `json:"readOnly"` // mounts that become read only when all are in place
	// Covered are hidden by the helper, inside of the view, if they still exist by then. A
	// mount of the plan would fail without them, or make them.
	Covered []string `json:"covered"`
}

// A mount is one step of making the view. Where it takes something from is found
// outside of the view, so it must be a path that no command can change meanwhile: a
// grant, an entry of a folder that is not writable, or the system's. What lies deeper
// in a grant is the helper's business (lock).
type mount struct {
	At   string `json:"at"`
	Kind kind   `json:"kind"`
	From string `json:"from,omitempty"`
	Gone bool   `json:"gone,omitempty"` // From can be gone by now: there is nothing to mount then
}

// A kind of mount, spelled as bubblewrap's option.
type kind string

const (
	readOnly kind = "ro-bind"
	writable kind = "bind"
	tmpFS    kind = "tmpfs"
	procFS   kind = "proc"
	devFS    kind = "dev"
	link     kind = "symlink"
)

// plan returns the steps in their order.
func (v View) plan() (*plan, error) {
	v, err := v.prepare()
	if err != nil {
		return nil, err
	}
	mounts, err := v.mounts()
	if err != nil {
		return nil, err
	}
	if v.Proxy != "" {
		mounts = append(mounts, mount{At: proxyInside, Kind: readOnly, From: v.Proxy})
	}

	p := &plan{ReadOnly: []string{emptyFolder}}
	for _, path := range v.Found {
		if v.shows(path) {
			p.Covered = append(p.Covered, path)
		}
	}

	// What lies deeper covers what is above it. (The order of equals stays.)
	slices.SortStableFunc(mounts, func(a, b mount) int { return cmp.Compare(depth(a.At), depth(b.At)) })
	p.Mounts = mounts
	for _, path := range v.Hidden { // only then, when what is shown in it is in place
		if isDir(path) && v.visible(path) {
			p.ReadOnly = append(p.ReadOnly, path)
		}
	}

	if !slices.Contains(v.Write, "/") {
		p.ReadOnly = append(p.ReadOnly, "/")
	}

	return p, nil
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	n := 1
	for _, c := range path[1:] {
		if c == '/' {
			n++
		}
	}

	return n
}

// mounts are the steps, in no order.
func (v View) mounts() ([]mount, error) {
	ms := []mount{{At: "/tmp", Kind: tmpFS}, {At: "/var/tmp", Kind: tmpFS}}
	for _, dir := range systemDirs {
		ms = append(ms, v.system(dir)...)
	}
	for _, path := range v.Read {
		ms = append(ms, grant(readOnly, path))
	}

	for _, path := range v.Write {
		w, err := v.granted(path)
		if err != nil {
			return nil, err
		}
		ms = append(ms, w...)
	}

	if !v.homeGranted() {
		ms = append(ms, bind(writable, v.Home))
	}
	for _, path := range v.Hidden {
		if v.visible(path) {
			ms = append(ms, cover(path))
		}
	}

	for _, path := range v.Shown {
		ms = append(ms, grant(readOnly, path))
	}
	for _, path := range v.Own {
		ms = append(ms, grant(writable, path))
	}

	// Last, so that no grant brings the processes and devices of the system with it.
	return append(ms, mount{At: "/proc", Kind: procFS}, mount{At: "/dev", Kind: devFS}, mount{At: "/dev/shm", Kind: tmpFS},
		mount{At: emptyFile, Kind: readOnly, From: "/dev/null"}, mount{At: emptyFolder, Kind: tmpFS}), nil
}

func bind(how kind, path string) mount { return mount{At: path, Kind: how, From: path} }

// grant binds what someone can remove while the view is made.
func grant(how kind, path string) mount { return mount{At: path, Kind: how, From: path, Gone: true} }

// system binds a folder of the system, or makes the link that it is, where no granted
// folder brings it along.
func (v View) system(dir string) []mount {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return []mount{bind(readOnly, dir)}
	}

	for _, root := range slices.Concat(v.Read, v.Write) {
		if within(root, dir) {
			return nil
		}
	}

	target, err := os.Readlink(dir)
	if err != nil {
		return nil
	}

	return []mount{{At: dir, Kind: link, From: target}}
}

// granted binds a folder. If something hidden does not exist yet in one of
// its folders, a command could make it; that folder is then read only, and its
// entries are bound one by one.
func (v View) granted(root string) ([]mount, error) {
	parts, opened, err := without(root, v.missing(root))
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", root, err)
	}
	var ms []mount
	for _, dir := range opened {
		ms = append(ms, grant(readOnly, dir))
	}

	for _, part := range parts {
		ms = append(ms, grant(writable, part))
	}

	return ms, nil
}

// missing is what could be made beneath root and is hidden, or leads there.
func (v View) missing(root string) []string {
	var missing []string
	for _, h := range v.Hidden {
		if exists(h) || !within(root, h) {
			continue
		}
		for !exists(filepath.Dir(h)) {
			h = filepath.Dir(h)
		}
		if h != root && within(root, h) {
			missing = append(missing, h)
		}
	}

	return missing
}

// visible reports whether a hidden path exists where the view would show it.
func (v View) visible(path string) bool {
	return exists(path) && v.shows(path)
}

// shows reports whether the view would show what is at a path.
func (v View) shows(path string) bool {
	for _, roots := range [][]string{v.Read, v.Write, systemDirs} {
		for _, root := range roots {
			if within(root, path) {
				return true
			}
		}
	}

	return false
}

// cover puts something empty over a path.
func cover(path string) mount {
	if isDir(path) {
		return mount{At: path, Kind: tmpFS}
	}
	return mount{At: path, Kind: readOnly, From: "/dev/null"}
}
