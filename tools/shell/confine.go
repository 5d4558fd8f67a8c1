package shell

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"daycare/engine/beneath"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// A confinement is the sandbox of all commands of a runtime. It is looked for when
// the first command is to run.
type confinement struct {
	options Options
	once    sync.Once
	runner  *sandbox.Runner
	err     error
}

// Level says which sandbox commands would run in here, and why that one. want is
// the setting; helper is the daycare binary.
func Level(want, helper string) (level sandbox.Level, why string, err error) {
	if want == "off" {
		return sandbox.None, "tools.exec.sandbox is off", nil
	}
	r, err := sandbox.Choose(want, helper)
	if err != nil {
		return sandbox.None, "", err
	}
	return r.Level, r.Why, nil
}

// find returns the sandbox. An error means that the one of the settings does not
// work here; level none, that auto found nothing or that none is wanted.
func (c *confinement) find() (*sandbox.Runner, error) {
	c.once.Do(func() {
		c.runner = sandbox.Plain(c.options.Helper)
		if c.options.Sandbox == "" || c.options.Sandbox == "off" || c.options.Mode == Off || c.options.Helper == "" {
			return
		}
		runner, err := sandbox.Choose(c.options.Sandbox, c.options.Helper)
		if c.err = err; err == nil {
			c.runner = runner
		}
	})
	return c.runner, c.err
}

// view is what the call's command may see and change.
func (c *confinement) view(call tools.Call, dir string) (sandbox.View, error) {
	v := sandbox.View{Dir: dir, Hidden: slices.Clone(c.options.Denied), Pinned: map[string]beneath.ID{}}
	v.Read = c.located(call.Access.ReadRoots(), v.Pinned)
	v.Write = c.located(call.Access.WriteRoots(), v.Pinned)
	if c.options.Shown != nil {
		v.Shown, v.Own = c.options.Shown(call.Agent)
	}
	for _, root := range v.Write {
		v.Locked = append(v.Locked, repository(root)...)
		entries, err := os.ReadDir(root)
		if err != nil {
			continue // a file, or nothing yet
		}
		for _, e := range entries {
			if e.IsDir() {
				v.Locked = append(v.Locked, repository(filepath.Join(root, e.Name()))...)
			}
		}
	}
	v.Read = append(v.Read, searched()...)
	if c.options.Home == nil {
		v.Home = filepath.Join(os.TempDir(), fmt.Sprintf("daycare-%d", os.Getuid()))
	} else {
		v.Home = c.options.Home(call.Agent)
	}
	return v, os.MkdirAll(v.Home, 0o700)
}

// located are granted paths as they are now, without symbolic links, those left out that
// lead elsewhere than when they were granted. pinned gets what they are.
func (c *confinement) located(roots []string, pinned map[string]beneath.ID) (paths []string) {
	for _, root := range roots {
		real, id, err := c.options.Folders.Locate(root)
		if err != nil {
			continue // nothing yet, or not what was granted, which its owner is told
		}
		paths, pinned[real] = append(paths, real), id
	}
	return paths
}

// repository is what git runs or obeys in a work tree: a command may commit, but
// not leave behind what runs when a person uses git there.
func repository(dir string) []string {
	git := filepath.Join(dir, ".git")
	if info, err := os.Lstat(git); err != nil || !info.IsDir() {
		return nil
	}
	hooks := filepath.Join(git, "hooks")
	if _, err := os.Lstat(hooks); err != nil {
		os.Mkdir(hooks, 0o755) // what is not there cannot be held; git makes it, too
	}
	var locked []string
	for _, name := range []string{"config", "hooks", "config.worktree", "modules", "worktrees"} {
		if path := filepath.Join(git, name); exists(path) {
			locked = append(locked, path)
		}
	}
	return locked
}

// searched are the folders of PATH: people keep programs in their home, too.
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

// within reports whether path is dir or lies in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
