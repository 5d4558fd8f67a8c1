package files

import (
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
	if !write || r.Accept == nil || r.looking {
		return
	}
	if sensitive.Anchor("/", path, r.table.Later) != "" || sensitive.GitAnchor("/", path) != "" {
		r.Accept(beneath.Real(path))
	}
}

// given reports whether a right reaches a path that holds secrets.
func (r *rights) given(path string) bool {
	return slices.ContainsFunc(r.set.ReadRoots(), func(root string) bool { return permission.Beneath(root, path) }) &&
		r.set.Withheld(permission.Read{Path: path}, r.table) == ""
}
