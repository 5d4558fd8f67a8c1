package inbox

import (
	"slices"

	"daycare/engine/workspace"
)

// stored is an item as it is written: paths in the workspace are relative.
func (it Item) stored(p workspace.Place) Item {
	return it.at(p.Store, p.StoreTag)
}

// resolved is an item as it is worked on: its paths are absolute.
func (it Item) resolved(p workspace.Place) Item {
	return it.at(p.ResolveFile, p.ResolveTag)
}

func (it Item) at(path, tag func(string) string) Item {
	it.Files = slices.Clone(it.Files)
	for i := range it.Files {
		it.Files[i].Path = path(it.Files[i].Path)
	}
	it.Tag = tag(it.Tag)

	return it
}
