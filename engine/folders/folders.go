package folders

import (
	"log/slog"
	"path/filepath"

	"daycare/engine/address"
	"daycare/engine/disk"
)

// Folders are those of the agents of one .daycare directory.
type Folders struct {
	Root   string
	Volume *disk.Volume // nil: nothing runs, and files are edited as by anybody
	Index  *address.Index
	Log    *slog.Logger
	User   string // who sits at the terminal
	// Make makes an agent that was not there before, and has its folder filled before
	// anybody can see it. Errors: ErrTaken.
	Make func(d address.Descriptor, state []byte, fill func(dir string) error) (address.Meta, error)
}

func (f *Folders) folder(id string) string { return filepath.Join(f.Root, "agents", id) }
