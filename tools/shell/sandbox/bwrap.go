package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	// helperInside is where the view has the helper: in its own /dev, where it can be
	// put whatever is granted.
	helperInside = "/dev/daycare-helper"
	// proxyInside is where it has the socket of the proxy.
	proxyInside = "/dev/daycare-proxy.sock"
	// tmpBytes bounds the private /tmp, which lives in memory.
	tmpBytes = 1 << 30
)

// A mount is one step of making the view. Where it takes something from is found
// by bubblewrap outside of the view, so it must be a path that no command can
// change meanwhile: a grant, an entry of a folder that is not writable, or the
// system's. What lies deeper in a grant is the helper's business (lock).
type mount struct {
	at   string
	args []string
}

// bwrapArgs is the command line of bubblewrap up to the command.
func (r *Runner) bwrapArgs(v View) ([]string, error) {
	v, err := v.prepare()
	if err != nil {
		return nil, err
	}
	args := []string{r.bwrap, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session",
		// For the helper, which holds paths in place and then gives them up.
		"--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"}
	mounts, err := v.mounts()
	if err != nil {
		return nil, err
	}
	mounts = append(mounts, mount{helperInside, []string{"--ro-bind", r.helper, helperInside}})
	if v.Proxy != "" {
		mounts = append(mounts, mount{proxyInside, []string{"--ro-bind", v.Proxy, proxyInside}})
	}
	// What lies deeper covers what lies above it. (The order of equals stays.)
	slices.SortStableFunc(mounts, func(a, b mount) int { return cmp.Compare(depth(a.at), depth(b.at)) })
	for _, m := range mounts {
		args = append(args, m.args...)
	}
	for _, path := range v.Hidden { // only now, when what is shown in it is in place
		if isDir(path) && v.visible(path) {
			args = append(args, "--remount-ro", path)
		}
	}
	if !slices.Contains(v.Write, "/") {
		args = append(args, "--remount-ro", "/")
	}
	return append(args, "--chdir", v.Dir), nil
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
	ms := []mount{
		{"/proc", []string{"--proc", "/proc"}},
		{"/dev", []string{"--dev", "/dev"}},
		{"/tmp", []string{"--size", strconv.Itoa(tmpBytes), "--tmpfs", "/tmp"}},
		{"/var/tmp", []string{"--size", strconv.Itoa(tmpBytes), "--tmpfs", "/var/tmp"}},
	}
	for _, dir := range systemDirs {
		ms = append(ms, v.system(dir)...)
	}
	for _, path := range v.Read {
		ms = append(ms, bind("--ro-bind", path))
	}
	for _, path := range v.Write {
		w, err := v.writable(path)
		if err != nil {
			return nil, err
		}
		ms = append(ms, w...)
	}
	if !v.homeGranted() {
		ms = append(ms, bind("--bind", v.Home))
	}
	for _, path := range v.Hidden {
		if v.visible(path) {
			ms = append(ms, cover(path))
		}
	}
	for _, path := range v.Shown {
		ms = append(ms, bind("--ro-bind", path))
	}
	for _, path := range v.Own {
		ms = append(ms, bind("--bind", path))
	}
	return ms, nil
}

func bind(how, path string) mount { return mount{path, []string{how, path, path}} }

// system binds a folder of the system, or makes the link that it is, where no granted
// folder brings it along.
func (v View) system(dir string) []mount {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return []mount{bind("--ro-bind", dir)}
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
	return []mount{{dir, []string{"--symlink", target, dir}}}
}

// writable binds a granted folder. If something hidden does not exist yet in one of
// its folders, a command could make it; that folder is then read only, and its
// entries are bound one by one.
func (v View) writable(root string) ([]mount, error) {
	parts, opened, err := without(root, v.missing(root))
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", root, err)
	}
	var ms []mount
	for _, dir := range opened {
		ms = append(ms, bind("--ro-bind", dir))
	}
	for _, part := range parts {
		ms = append(ms, bind("--bind", part))
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
	if !exists(path) {
		return false
	}
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
		return mount{path, []string{"--tmpfs", path}}
	}
	return mount{path, []string{"--ro-bind", "/dev/null", path}}
}
