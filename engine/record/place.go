package record

import (
	"bytes"
	"slices"

	"daycare/engine/disk"
	"daycare/engine/message"
	"daycare/engine/workspace"
)

// stored is a record as it is written: paths in the workspace are relative.
func stored(at workspace.Place, rec Record) Record {
	return withPaths(rec, at.Store, at.StoreTag)
}

// resolved is a record as it is used: its paths are absolute.
func resolved(at workspace.Place, rec Record) Record {
	return withPaths(rec, at.ResolveFile, at.ResolveTag)
}

// withPaths is a record with other paths of its attachments, and of the right that it is
// about; the same record if it has none.
func withPaths(rec Record, path, tag func(string) string) Record {
	switch r := rec.(type) {
	case *User:
		if len(r.Files) > 0 {
			c := *r
			c.Files = filesAt(r.Files, path)
			return &c
		}
	case *ToolResult:
		if len(r.Files)+len(r.Output.Blocks) > 0 {
			c := *r
			c.Files, c.Output.Blocks = filesAt(r.Files, path), slices.Clone(r.Output.Blocks)
			for i, b := range c.Output.Blocks {
				if b.File != nil {
					c.Output.Blocks[i].File = &filesAt([]message.File{*b.File}, path)[0]
				}
			}
			return &c
		}
	case *Permission:
		if to := tag(r.Tag); to != r.Tag {
			c := *r
			c.Tag = to
			return &c
		}
	}

	return rec
}

// absolute is the line of an entry with absolute paths of its attachments, for readers
// who do not know where the workspace lies.
func absolute(at workspace.Place, e *Entry, line []byte) []byte {
	if e == nil {
		return line
	}
	sealed, before := disk.Sealed(line), line
	withPaths(e.Rec, func(p string) string {
		was, is := encoded(p), encoded(at.ResolveFile(p))
		line = bytes.ReplaceAll(line, append([]byte(`"path":`), was...), append([]byte(`"path":`), is...))
		return p
	}, func(tag string) string { return tag })

	if sealed && !bytes.Equal(line, before) {
		line = disk.Seal(slices.Clone(line[:len(line)-disk.SealLen]), 0)
	}

	return line
}

func filesAt(files []message.File, path func(string) string) []message.File {
	files = slices.Clone(files)
	for i := range files {
		files[i].Path = path(files[i].Path)
	}

	return files
}

// Move changes the paths in the permissions from one workspace to another.
func (s *State) Move(from, to workspace.Place) { *s = s.stored(from).resolved(to) }

// stored is a state as it is written.
func (s State) stored(at workspace.Place) State {
	s.Permissions = s.Permissions.Stored(at)
	if s.Announced != nil {
		a := s.Announced.Stored(at)
		s.Announced = &a
	}

	return s
}

// resolved is a state as it is used.
func (s State) resolved(at workspace.Place) State {
	s.Permissions = s.Permissions.Resolved(at)
	if s.Announced != nil {
		a := s.Announced.Resolved(at)
		s.Announced = &a
	}

	return s
}
