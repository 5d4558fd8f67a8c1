package inbox

import (
	"slices"

	"daycare/engine/workspace"
)

// stored is an item of the agent's folder dir as it is written: paths in the workspace
// are relative.
func (it Item) stored(dir string) Item {
	return it.at(workspace.Of(dir), workspace.Store, workspace.StoreTag)
}

// resolved is an item as it is worked on: its paths are absolute.
func (it Item) resolved(dir string) Item {
	return it.at(workspace.Of(dir), workspace.ResolveFile, workspace.ResolveTag)
}

func (it Item) at(root string, path, tag func(root, path string) string) Item {
	it.Files = slices.Clone(it.Files)
	for i := range it.Files {
		it.Files[i].Path = path(root, it.Files[i].Path)
	}
	it.Tag = tag(root, it.Tag)

	return it
}
