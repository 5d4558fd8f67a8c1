package files

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"daycare/engine/beneath"
	"daycare/engine/permission"
	"daycare/engine/sensitive"
)

// withheld refuses what the tables of package sensitive keep from a right to a wider
// folder: reading secrets, and writing what runs later, which a user is asked for.
func (r *reach) withheld(access permission.Access, path string) error {
	_, write := access.(permission.Write)
	why, anchor := "holds secrets", r.set.Withheld(access, r.table)
	if write {
		why = "runs something later, or tells programs of your user what to run"
		if anchor == "" {
			anchor = cmp.Or(r.repository(path), r.namedByGit(path))
		}
	}

	switch {
	case anchor == "":
	case (write || r.asks) && r.looking:
		r.wanted = append(r.wanted, path)
	case !slices.Contains(r.approved, path):
		return refuse("%s %s, so a right to a folder around it is not enough; ask with request_permission for %s",
			r.shown(anchor), why, access.Tag())
	}

	return nil
}

// accept has a path that runs something later stay, as the agent may write it.
func (r *reach) accept(path string, write bool) {
	if write && r.Accept != nil && !r.looking && sensitive.Anchor("/", path, r.table.Later) != "" {
		r.Accept(beneath.Real(path))
	}
}

// given reports whether a right reaches a path that holds secrets.
func (r *rights) given(path string) bool {
	return slices.ContainsFunc(r.set.ReadRoots(), func(root string) bool { return permission.Beneath(root, path) }) &&
		r.set.Withheld(permission.Read{Path: path}, r.table) == ""
}

// inRepository are the entries of a repository that make it one or that git obeys, beside
// HEAD.
var inRepository = []string{"objects", "refs", "config", "config.worktree", "commondir", "gitdir", "hooks", "modules", "worktrees"}

// repository is the folder above path that is a repository without being called .git, or
// becomes one with path, unless a right names it or something in it. Git finds such a
// folder by what is in it, whatever its name.
func (r *rights) repository(path string) string {
	for _, root := range r.set.WriteRoots() {
		if !permission.Beneath(root, path) {
			continue
		}
		for name := path; name != root; name = filepath.Dir(name) {
			dir := filepath.Dir(name)
			if !slices.Contains(inRepository, sensitive.Fold(filepath.Base(name))) || r.namedBetween(dir, path) {
				continue
			}
			if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
				return dir
			}
		}
	}

	return ""
}

// namedByGit is what a repository above path names to be run, if path
// is that or is in it and no right names it.
func (r *rights) namedByGit(path string) string {
	for _, root := range r.set.WriteRoots() {
		if !permission.Beneath(root, path) {
			continue
		}
		for at := path; at != root; at = filepath.Dir(at) {
			dir := filepath.Dir(at)
			for _, name := range sensitive.GitNames(dir) {
				if permission.Beneath(name, path) && !r.namedBetween(name, path) {
					return name
				}
			}
		}
	}

	return ""
}

// namedBetween reports whether a right to write names a path between dir, which counts,
// and path.
func (r *rights) namedBetween(dir, path string) bool {
	_, write := r.set.Named()
	return slices.ContainsFunc(write, func(name string) bool { return permission.Beneath(dir, name) && permission.Beneath(name, path) })
}
