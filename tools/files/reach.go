package files

import (
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

// reach is what one call may touch, and what it has touched.
type reach struct {
	rights
	trial *trial // nil: what is changed is changed

	looking  bool     // for what a user must be asked: nothing is refused for that
	wanted   []string // what was found so
	outside  []string // what of it is outside of its folders
	approved []string // paths that a user was asked for

	turn, call string // ids
}

// rights are what an agent may touch.
type rights struct {
	*base
	set    permission.Set
	agent  string
	table  sensitive.Table
	denied []forbiddenPath
	asks   bool // also for paths outside of its folders
}

// forbiddenPath is out of reach whatever was granted: by the file it is now, so
// that no other name of it helps, and by its path, so that it cannot be made.
type forbiddenPath struct {
	path string      // without symbolic links as far as it exists
	info os.FileInfo // nil: it does not exist
}

func (b *base) reach(call tools.Call) *reach {
	r := &reach{rights: rights{base: b, set: call.Access, agent: call.Agent, asks: call.Unasked}, turn: call.Turn, call: call.ID}
	paths := slices.Clone(b.Denied)
	if b.Data != "" {
		paths = append(paths, b.Data)
	}

	r.table = sensitive.Here().And(b.Home)

	for _, path := range sensitive.With(b.Home).Secrets() {
		if _, err := os.Lstat(path); err == nil && !r.given(path) {
			paths = append(paths, path) // so that another name of the file does not help
		}
	}

	for _, path := range paths {
		f := forbiddenPath{path: beneath.Real(path)}
		f.info, _ = os.Stat(f.path) // nil if it does not exist
		r.denied = append(r.denied, f)
	}

	return r
}

// forbidden reports whether the file at path, which holds no symbolic link, is
// out of reach whatever was granted. info is nil if the file does not exist yet.
func (r *rights) forbidden(path string, info os.FileInfo) bool {
	return closed(path) || r.isDenied(path, info)
}

// closed reports whether a path names what is never open.
func closed(path string) bool {
	inGit := false
	for part := range strings.SplitSeq(path, string(filepath.Separator)) {
		// Names are compared without case because some file systems do.
		switch part = sensitive.Fold(part); {
		case part == sensitive.Data:
			return true
		case inGit && (part == "hooks" || part == "config"):
			return true // git runs what stands there
		case part == ".git":
			inGit = true
		}
	}

	return false
}

func (r *rights) isDenied(path string, info os.FileInfo) bool {
	for _, d := range r.denied {
		if permission.Beneath(sensitive.Fold(d.path), sensitive.Fold(path)) || os.SameFile(d.info, info) {
			return true
		}
	}

	return false
}

// forbiddenIn is forbidden for an entry of a folder that is not forbidden and
// not in .git: it looks at the name alone, because it is asked for every entry.
func (r *rights) forbiddenIn(folder, name string, info os.FileInfo) bool {
	if sensitive.Fold(name) == sensitive.Data {
		return true
	}
	if r.table.Secret(folder, name) && !r.given(filepath.Join(folder, name)) {
		return true
	}

	for _, d := range r.denied {
		if d.info != nil && os.SameFile(d.info, info) {
			return true
		}
		if len(d.path) == len(folder)+1+len(name) && strings.EqualFold(d.path, filepath.Join(folder, name)) {
			return true
		}
	}

	return false
}

// own are the folders in .daycare that the agent may use.
func (r *rights) own(write bool) []string {
	var dirs []string
	if r.TaskDir != nil {
		if dir := r.TaskDir(r.agent); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	if !write && r.Data != "" {
		dirs = append(dirs, filepath.Join(r.Data, "skills"))
		if filepath.IsLocal(r.agent) {
			dirs = append(dirs, filepath.Join(r.Data, "agents", r.agent, "blobs"))
		}
	}

	return dirs
}

// attached reports whether a path is an attachment of the agent's own conversation. Those
// of others are in the same folder, which can therefore not be listed.
func (r *rights) attached(path string) bool {
	if r.Attached == nil || filepath.Dir(path) != filepath.Join(r.Data, "files") {
		return false
	}
	return r.Attached(r.agent, filepath.Base(path))
}

// abs makes a path of the model absolute.
func (r *rights) abs(path string) (string, error) {
	switch {
	case strings.ContainsRune(path, 0):
		return "", refuse("a path cannot hold a zero byte")
	case path == "~" || strings.HasPrefix(path, "~/"):
		path = filepath.Join(r.Home, path[1:])
	}

	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(r.set.WorkingDir) {
			return "", refuse("you have no working folder; use an absolute path")
		}
		path = filepath.Join(r.set.WorkingDir, path)
	}

	path = filepath.Clean(path)
	if r.set.Profile == permission.DryRun {
		path = changes.Inside(r.set.WorkingDir, path)
	}

	return path, nil
}

// shown is how a path is named to the model: relative to its working folder if
// it is in there.
func (r *rights) shown(abs string) string {
	if rel, err := filepath.Rel(r.set.WorkingDir, abs); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return abs
}

// A ground is a permitted folder or file; own tells that it is one of the agent's own in .daycare.
type ground struct {
	root string
	own  bool
}

// ground is where path is permitted.
func (r *reach) ground(path string, write bool) (ground, error) {
	for _, dir := range r.own(write) {
		if permission.Beneath(dir, path) {
			return ground{dir, true}, nil
		}
	}

	if !write && r.attached(path) {
		return ground{filepath.Dir(path), true}, nil
	}

	roots, access := r.set.ReadRoots(), permission.Access(permission.Read{Path: path})
	if write {
		roots, access = r.set.WriteRoots(), permission.Write{Path: path}
	}
	if closed(path) {
		return ground{}, r.never(path)
	}
	if err := r.withheld(access, path); err != nil {
		return ground{}, err
	}
	if r.isDenied(path, nil) {
		return ground{}, r.never(path)
	}

	for _, root := range roots {
		if permission.Beneath(root, path) {
			r.accept(path, write)
			return ground{root: root}, nil
		}
	}

	if root, ok := r.beyond(path); ok {
		r.accept(path, write)
		return ground{root: root}, nil
	}

	return ground{}, missing(access, r.shown(path))
}

func (r *rights) never(path string) error {
	return refuse("%s is never open to agents", r.shown(path))
}
