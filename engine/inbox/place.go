package inbox

import (
	"slices"

	"daycare/engine/workspace"
)

// store makes an item what is written of it: paths in the workspace are relative.
func (it *Item) store(p workspace.Place) {
	it.move(p.Store, p.StoreTag)
}

// resolve makes an item what is worked on: its paths are absolute.
func (it *Item) resolve(p workspace.Place) {
	it.move(p.ResolveFile, p.ResolveTag)
}

// move leaves the list of files as it was for whoever else has it.
func (it *Item) move(path, tag func(string) string) {
	it.Files = slices.Clone(it.Files)
	for i := range it.Files {
		it.Files[i].Path = path(it.Files[i].Path)
	}
	it.Tag = tag(it.Tag)
}
