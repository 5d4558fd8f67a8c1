package shell

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/changes"
	"daycare/engine/permission"
	"daycare/engine/sensitive"
	"daycare/tools"
)

// errNoFolder: the folder of a call is not there, which no right would change.
var errNoFolder = errors.New("no such folder")

// workdir is where the command starts, symbolic links resolved. It keeps a command where it
// belongs; it is no wall, which only a sandbox can be. beyond: no right of the agent reaches
// the folder, so a user has to allow it, and whether there is such a folder is not said
// before.
func (e *Exec) workdir(call tools.Call, path string) (dir string, beyond bool, err error) {
	set := call.Access
	if !filepath.IsAbs(set.WorkingDir) {
		return "", false, fmt.Errorf("there is no working folder to run a command in")
	}
	asked := path
	if !filepath.IsAbs(path) {
		path = filepath.Join(set.WorkingDir, path)
	}
	if set.Profile == permission.DryRun {
		path = changes.Inside(set.WorkingDir, path)
	}
	real := beneath.Real(path)
	if e.ownTask(call.Agent, real) {
		return real, false, isFolder(asked, real)
	}
	for part := range strings.SplitSeq(real, string(filepath.Separator)) {
		if sensitive.Fold(part) == sensitive.Data {
			return "", false, fmt.Errorf("workdir %s is never open to agents", asked)
		}
	}
	inside := func(root string) bool {
		root, err := filepath.EvalSymlinks(root)
		return err == nil && permission.Beneath(root, real)
	}
	if slices.ContainsFunc(e.options.Denied, inside) {
		return "", false, fmt.Errorf("workdir %s is never open to agents", asked)
	}
	var replaced *permission.Replaced
	granted := func(root string) bool {
		root, _, err := e.options.Folders.Locate(root)
		errors.As(err, &replaced)
		return err == nil && permission.Beneath(root, real)
	}
	switch {
	case slices.ContainsFunc(set.ReadRoots(), granted):
		return real, false, isFolder(asked, real)
	case replaced != nil:
		return "", false, replaced
	}

	return real, true, nil
}

func isFolder(asked, real string) error {
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("workdir %s: %w", asked, errNoFolder)
	}
	if !info.IsDir() {
		return fmt.Errorf("workdir %s is a file: %w", asked, errNoFolder)
	}

	return nil
}

// start is where the command of a call starts, and what is open to it there: a folder
// beyond the agent's own is to the one call for which a user allowed it, if nothing
// leads elsewhere by now.
func (e *Exec) start(call tools.Call, path string) (dir string, open permission.Set, err error) {
	open = call.Access
	dir, beyond, err := e.workdir(call, path)
	if err != nil || !beyond {
		return dir, open, err
	}
	if e.asked.Take(call.ID) != dir {
		return "", open, fmt.Errorf("workdir %s is outside the folders you may use; ask with request_permission for %s", path,
			permission.Read{Path: dir}.Tag())
	}
	open.ReadDirs = append(slices.Clone(open.ReadDirs), dir)
	return dir, open, isFolder(path, dir)
}

// beyondReason is the reason of the request of a command that starts in a folder beyond the agent's own.
func beyondReason(dir string) string {
	if sensitive.Anchor("/", dir, sensitive.Here().Secret) != "" {
		return "run a command where secrets are kept"
	}
	return "run a command in a folder outside its own"
}

// ownTask reports whether a folder is one in .daycare that the agent's commands
// may write: that of its own scheduled task.
func (e *Exec) ownTask(agent, real string) bool {
	if e.options.Shown == nil {
		return false
	}
	_, write := e.options.Shown(agent)
	return slices.ContainsFunc(write, func(dir string) bool {
		dir, err := filepath.EvalSymlinks(dir)
		return err == nil && permission.Beneath(dir, real)
	})
}

// passed are the variables that commands may see. The daemon's own environment
// holds keys, so all else is left out.
var passed = []string{"PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR"}

// environment is what every command gets.
func (o Options) environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || slices.Contains(o.Keep, name) {
			env = append(env, kv)
		}
	}

	return env
}

// environment is what the call adds, in the order of names.
func (a arguments) environment() []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		env = append(env, name+"="+a.Env[name])
	}

	return env
}
