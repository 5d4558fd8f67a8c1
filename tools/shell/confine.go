package shell

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"daycare/engine/beneath"
	"daycare/engine/permission"
	"daycare/tools/shell/guard"
	"daycare/tools/shell/sandbox"
	"daycare/tools/shell/sandbox/probe"
)

// A confinement is the sandbox of all commands of a runtime. It is looked for when
// the first command is to run.
type confinement struct {
	options Options
	once    sync.Once
	runner  *sandbox.Runner
	err     error
}

// find returns the sandbox. An error means that the one of the settings does not
// work here; level none, that auto found nothing or that none is wanted.
func (c *confinement) find() (*sandbox.Runner, error) {
	c.once.Do(func() {
		c.runner = sandbox.Plain(c.options.Helper)
		if !c.wanted() || c.options.Helper == "" {
			return
		}
		runner, err := probe.Choose(c.options.Sandbox, c.options.Helper)
		if c.err = err; err == nil {
			c.runner = runner
		}
	})
	return c.runner, c.err
}

// wanted reports whether the settings ask for a sandbox.
func (c *confinement) wanted() bool {
	return c.options.Sandbox != "" && c.options.Sandbox != "off" && c.options.Mode != Off
}

// view is what an agent's command may see and change. The watch is to be ended when
// nothing of the command is left.
func (c *confinement) view(agent string, set permission.Set, dir string) (sandbox.View, *guard.Watch, error) {
	v := sandbox.View{Dir: dir, Hidden: slices.Clone(c.options.Denied), Pinned: map[string]beneath.ID{}}
	v.Read = c.located(set.ReadRoots(), v.Pinned)
	v.Write = c.located(set.WriteRoots(), v.Pinned)
	if bwrap := c.runner.Outside(); bwrap != "" &&
		slices.ContainsFunc(v.Write, func(root string) bool { return within(root, beneath.Real(bwrap)) }) {
		return v, nil, fmt.Errorf("%s makes the sandbox and is in a folder that you can write, so nothing is run; "+
			"your user must move one of them", bwrap)
	}
	if c.options.Shown != nil {
		v.Shown, v.Own = c.options.Shown(agent)
	}
	if c.options.Home == nil {
		v.Home = filepath.Join(os.TempDir(), fmt.Sprintf("daycare-%d", os.Getuid()))
	} else {
		v.Home = c.options.Home(agent)
	}
	if err := makeHome(v.Home); err != nil {
		return v, nil, err
	}
	read, write := set.Named()
	for _, list := range [][]string{read, write} {
		for i, path := range list {
			list[i] = beneath.Real(path)
		}
	}
	watch, found, err := c.options.Guard.Begin(v.Read, v.Write, read, write)
	if err != nil {
		return v, nil, fmt.Errorf("nothing is run: %w", err)
	}
	for _, item := range found {
		switch item.Kind {
		case guard.Data, guard.Secret:
			v.Found = append(v.Found, item.Path)
		case guard.Socket:
			if c.runner.HasView() { // else no command can make a socket to connect with
				v.Found = append(v.Found, item.Path)
			}
		case guard.Later, guard.Inner, guard.Unfinished:
			v.Locked = append(v.Locked, locked(item.Path, v.Write)...)
		case guard.Repository: // but for what is in it
			continue
		}
		// A right that names something in it opens that alone.
		v.Own = append(v.Own, in(item.Path, write)...)
		v.Shown = append(v.Shown, in(item.Path, read)...)
	}
	v.Read = append(v.Read, searched()...)
	return v, watch, nil
}

// makeHome makes the private folder of commands.
func makeHome(dir string) error { return os.MkdirAll(dir, 0o700) }

// locked is what is only read for an item: where it is a link, what that leads to. Whether
// the link stays is seen afterwards. A link called .git leads to a repository, in which
// the rest can be written.
func locked(path string, roots []string) []string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		return []string{path}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || filepath.Base(path) == ".git" || !slices.ContainsFunc(roots, func(root string) bool { return within(root, real) }) {
		return nil // or it leads to what a command cannot write anyway
	}

	return []string{real}
}

// located are granted paths as they are now, without symbolic links, those left out that
// lead elsewhere than when they were granted. pinned gets what they are.
func (c *confinement) located(roots []string, pinned map[string]beneath.ID) (paths []string) {
	for _, root := range roots {
		real, id, err := c.options.Folders.Locate(root)
		if err != nil {
			continue // it does not exist yet, or is not what was granted, which is reported to its owner
		}
		paths, pinned[real] = append(paths, real), id
	}

	return paths
}

// in returns the paths inside a folder, without the folder itself.
func in(dir string, paths []string) (inside []string) {
	for _, path := range paths {
		if path != dir && within(dir, path) {
			inside = append(inside, path)
		}
	}

	return inside
}

// searched are the folders of PATH: users keep programs in their home, too.
func searched() []string {
	var dirs []string
	home, _ := os.UserHomeDir() // "": nothing is above it
	for _, dir := range filepath.SplitList(cmp.Or(os.Getenv("PATH"), "/usr/bin:/bin")) {
		dir = filepath.Clean(dir)
		if !filepath.IsAbs(dir) || !exists(dir) || slices.Contains(dirs, dir) {
			continue
		}
		if home != "" && within(dir, home) || within("/usr", dir) || dir == "/bin" || dir == "/sbin" {
			continue // too much, or there anyway
		}
		dirs = append(dirs, dir)
	}

	return dirs
}

// within reports whether path is dir or is in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
