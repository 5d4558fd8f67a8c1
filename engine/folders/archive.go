package folders

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/lazyregexp"
	"daycare/engine/record"
	"daycare/engine/tarball"
	"daycare/engine/workspace"
)

// An exported agent is a tar of one folder, <id>/, with the files of the agent's
// folder that are needed to continue elsewhere. What only the running process needs
// (drafts, rendered prompts, temporary files) is not in it.

// ErrBadArchive: the file was not written by an export.
var ErrBadArchive = errors.New("not an exported agent")

// archived are the names that an archive may hold, relative to its folder.
var archived = lazyregexp.New(`^(descriptor\.json|state\.json|history\.jsonl|inbox\.jsonl|sessions\.jsonl|` +
	`history/[0-9]{6}\.jsonl|blobs/[0-9a-f]{64})$`)

// Replicated reports whether another machine needs a file of an agent's folder, by its name with slashes, to
// continue: everything in an archive except the list of sessions, which is rebuilt from the history.
func Replicated(name string) bool { return name != "sessions.jsonl" && archived.MatchString(name) }

// limits of an archive: one file, all of them in bytes, and how many.
var limits = tarball.Limits{File: 512 << 20, Total: 8 << 30, Files: 1 << 20}

// Export writes an agent of a workspace as a tar, from its files alone. home is the
// workspace's .daycare. A line that is being appended at this moment is left out.
func Export(home, id string, to io.Writer) error {
	agents, err := beneath.Dir(home, "agents")
	if err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}
	defer agents.Close()
	at := workspace.OfData(home)

	return ExportFrom(agents, id, to, func(file string, data []byte) ([]byte, error) {
		if file != "state.json" {
			return data, nil
		}

		// Older versions wrote whole paths; a broken file stays as it is.
		if relative, err := record.ChangeState(at, data, func(*record.State) {}); err == nil {
			data = relative
		}
		return data, nil
	})
}

// ExportFrom is Export of an agent in an open folder of agents, which may be anybody's: no link
// in it is followed. change returns what a file has in the archive.
func ExportFrom(agents *os.Root, id string, to io.Writer, change func(file string, data []byte) ([]byte, error)) error {
	dir, err := beneath.Sub(agents, id)
	if err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}
	defer dir.Close()
	a := archiver{dir: dir, id: id, w: tarball.NewWriter(to), change: change}
	err = a.all()
	if err == nil {
		err = a.w.Close()
	}
	if err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}

	return nil
}

// An archiver exports an agent, which may be at work: what it reads is as a crash could leave it.
type archiver struct {
	dir    *os.Root
	id     string
	w      tarball.Writer
	change func(file string, data []byte) ([]byte, error)
}

// begins are the files that are read first: the inbox before the history, where a turn is on the
// disk before its items are done, and the end of the history before the parts that it becomes, and
// before the texts that it names.
var begins = []string{"inbox.jsonl", "history.jsonl"}

// all writes all files, state.json last: an archive without it was cut.
func (a archiver) all() error {
	var end fs.FileInfo // of the history
	for _, rel := range begins {
		info, err := a.dir.Lstat(rel)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err == nil {
			end, err = a.add(rel)
		}
		if err != nil {
			return err
		}
	}

	return fs.WalkDir(a.dir.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !archived.MatchString(rel) || slices.Contains(begins, rel) {
			return err
		}
		if info, _ := a.dir.Lstat(filepath.FromSlash(rel)); os.SameFile(info, end) {
			return nil // the end became a part after it was read
		}
		_, err = a.add(rel)

		return err
	})
}

// add writes a file.
func (a archiver) add(rel string) (fs.FileInfo, error) {
	data, info, err := beneath.Read(a.dir, filepath.FromSlash(rel), limits.File)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(rel, ".jsonl") {
		data = data[:bytes.LastIndexByte(data, '\n')+1]
	}
	if data, err = a.change(rel, data); err != nil {
		return nil, err
	}

	return info, a.w.Add(tarball.Entry{Name: path.Join(a.id, rel), Mode: 0o600, Size: int64(len(data)),
		ModTime: info.ModTime()}, bytes.NewReader(data))
}

// Import makes an agent of what Export wrote: the same one, if neither its id nor
// its address is known here, else a new one that stands by itself. Its rights come
// along and are shown to whoever imports it. Errors: ErrBadArchive.
func (f *Folders) Import(from io.Reader, name string) (address.Meta, error) {
	if f.Volume.Full() {
		return address.Meta{}, disk.ErrFull
	}

	// The next start removes what begins so: a crash may leave it.
	temp, err := os.MkdirTemp(filepath.Join(f.Root, "agents"), ".new-import-")
	if err != nil {
		return address.Meta{}, fmt.Errorf("unpack archive: %w", err)
	}
	defer os.RemoveAll(temp)
	id, err := unpack(from, temp)
	if err != nil {
		return address.Meta{}, err
	}

	in, err := f.importable(temp, id, name)
	if err != nil {
		return address.Meta{}, err
	}

	return f.Make(in.descriptor, in.state, func(dir string) error { return f.moveInto(temp, dir, in.same) })
}

// Unpack writes the files of an exported agent into a folder, so that they can be read there.
func Unpack(from io.Reader, dir, id string) error {
	found, err := unpack(from, dir)
	if err == nil && found != id {
		err = fmt.Errorf("unpack archive: it is of agent %s, want %s", found, id)
	}

	return err
}

// unpack writes the files of an archive into dir and returns the agent's id.
func unpack(from io.Reader, dir string) (id string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("unpack archive: %w", err)
	}
	defer root.Close()
	err = tarball.Read(from, limits, func(e tarball.Entry, content io.Reader) error {
		owner, rel, _ := strings.Cut(e.Name, "/")
		if !address.ValidID(owner) || !archived.MatchString(rel) || id != "" && owner != id {
			return fmt.Errorf("it contains %q", e.Name)
		}
		id, e.Name, e.Mode = owner, rel, 0o600
		e.ModTime = time.Time{} // its files are as new as the agent is here

		return tarball.Put(root, e, content)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrBadArchive, err)
	case id == "":
		return "", fmt.Errorf("%w: it is empty", ErrBadArchive)
	}

	return id, nil
}

// An arrival is an unpacked agent as it will be here.
type arrival struct {
	descriptor address.Descriptor
	state      []byte
	same       bool // the descriptor counts as it is written
}

// importable reads who an unpacked agent is, and who it will be here.
func (f *Folders) importable(dir, id, name string) (in arrival, err error) {
	var d address.Descriptor
	for _, file := range editableFiles {
		full := filepath.Join(dir, file)
		content, err := os.ReadFile(full)
		if errors.Is(err, fs.ErrNotExist) && file != address.File {
			continue
		}
		if err != nil {
			return in, fmt.Errorf("%w: %w", ErrBadArchive, err)
		}

		found, err := CheckFile(file, content)
		if err == nil && file != "history.jsonl" { // a damaged line there is skipped as ever
			err = finding.Join(found)
		}
		if err != nil {
			return in, err
		}
		if file == address.File {
			d, _ = address.Decode(file, content)
		}
	}

	state, raw, _, err := record.ReadState(dir)
	if err != nil || raw == nil {
		return in, errors.Join(err, fmt.Errorf("%w: it has no state.json", ErrBadArchive))
	}
	at := workspace.OfData(f.Root)
	old, moved := Elsewhere(at, id, d, state.Permissions)
	if in.state, err = record.ChangeState(at, raw, func(s *record.State) {
		if s.Ended = nil; moved {
			s.Move(workspace.At(old), at)
		}
	}); err != nil {
		return in, err
	}

	in.same = name == "" || name == d.Name
	if name != "" {
		d.Name = name
	}
	_, addressTaken := f.Index.Lookup(d)
	_, idTaken := f.Index.Get(id)
	_, parentKnown := f.Index.Get(d.ParentAgentID)
	switch {
	case addressTaken || idTaken || d.ParentAgentID != "" && !parentKnown:
		if d.Name == "" {
			d.Name = "import of " + id[:8]
		}
		d, in.same = f.byHand(d, d.Name), false
	case d.ID == "":
		d.ID = id // createFresh keeps the id of the folder
	}

	in.descriptor = d
	return in, nil
}

// moveInto moves the unpacked files into the folder of the new agent, durably. With
// same its descriptor is the one that was unpacked, to the last byte.
func (f *Folders) moveInto(from, dir string, same bool) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}

	for _, e := range entries {
		if e.Name() == "state.json" || e.Name() == address.File && !same {
			continue // written by who makes the folder
		}
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}

	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return f.Volume.SyncDir("import.dirsync", name)
		}

		return f.Volume.SyncFile("import.sync", name)
	})
}
