package permission

import (
	"slices"

	"daycare/engine/workspace"
)

// Stored returns the set as it is written to disk: paths inside the workspace are relative.
func (s Set) Stored(p workspace.Place) Set {
	return s.at(p.Store, p.StoreTag)
}

// Resolved returns the set with absolute paths, as it is used at run time.
func (s Set) Resolved(p workspace.Place) Set {
	return s.at(p.Resolve, p.ResolveTag)
}

func (s Set) at(path, tag func(string) string) Set {
	s.WorkingDir = path(s.WorkingDir)
	s.ReadDirs, s.WriteDirs, s.Grants = slices.Clone(s.ReadDirs), slices.Clone(s.WriteDirs), slices.Clone(s.Grants)
	for _, list := range [][]string{s.ReadDirs, s.WriteDirs} {
		for i := range list {
			list[i] = path(list[i])
		}
	}

	for i := range s.Grants {
		s.Grants[i].Tag = tag(s.Grants[i].Tag)
	}

	return s
}
