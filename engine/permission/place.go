package permission

import (
	"slices"

	"daycare/engine/workspace"
)

// Stored returns the set as it is written to disk: paths inside the workspace root are relative.
func (s Set) Stored(root string) Set {
	return s.at(root, workspace.Store, workspace.StoreTag)
}

// Resolved returns the set with absolute paths, as it is used at run time.
func (s Set) Resolved(root string) Set {
	return s.at(root, workspace.Resolve, workspace.ResolveTag)
}

func (s Set) at(root string, path, tag func(root, path string) string) Set {
	s.WorkingDir = path(root, s.WorkingDir)
	s.ReadDirs, s.WriteDirs, s.Grants = slices.Clone(s.ReadDirs), slices.Clone(s.WriteDirs), slices.Clone(s.Grants)
	for _, list := range [][]string{s.ReadDirs, s.WriteDirs} {
		for i := range list {
			list[i] = path(root, list[i])
		}
	}

	for i := range s.Grants {
		s.Grants[i].Tag = tag(root, s.Grants[i].Tag)
	}

	return s
}
