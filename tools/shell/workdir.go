package shell

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/permission"
	"daycare/engine/sensitive"
	"daycare/tools"
)

// errNoFolder: the folder of a call is not there, which no right would change.
var errNoFolder = errors.New("no such folder")

// workdir is where the command starts: inside a permitted folder, symbolic links
// resolved. It keeps a command where it belongs; it is no wall, which only a
// sandbox can be.
func (e *Exec) workdir(call tools.Call, path string) (string, error) {
	set := call.Access
	if !filepath.IsAbs(set.WorkingDir) {
		return "", fmt.Errorf("there is no working folder to run a command in")
	}
	asked := path
	if !filepath.IsAbs(path) {
		path = filepath.Join(set.WorkingDir, path)
	}
	real, err := filepath.EvalSymlinks(filepath.Clean(path))
	if err != nil {
		return "", fmt.Errorf("workdir %s: %w", asked, errNoFolder)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("workdir %s is a file: %w", asked, errNoFolder)
	}
	if e.ownTask(call.Agent, real) {
		return real, nil
	}
	for part := range strings.SplitSeq(real, string(filepath.Separator)) {
		if sensitive.Fold(part) == sensitive.Data {
			return "", fmt.Errorf("workdir %s is never open to agents", asked)
		}
	}
	inside := func(root string) bool {
		root, err := filepath.EvalSymlinks(root)
		return err == nil && permission.Beneath(root, real)
	}
	if slices.ContainsFunc(e.options.Denied, inside) {
		return "", fmt.Errorf("workdir %s is never open to agents", asked)
	}
	var replaced *permission.Replaced
	granted := func(root string) bool {
		root, _, err := e.options.Folders.Locate(root)
		errors.As(err, &replaced)
		return err == nil && permission.Beneath(root, real)
	}
	switch {
	case slices.ContainsFunc(set.ReadRoots(), granted):
		return real, nil
	case replaced != nil:
		return "", replaced
	}
	return "", fmt.Errorf("workdir %s is outside the folders you may use; ask with request_permission for %s", asked,
		permission.Read{Path: real}.Tag())
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
func (e *Exec) environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || slices.Contains(e.options.Keep, name) {
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
