package folders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/record"
)

var (
	// ErrTaken: another agent has the id or the address.
	ErrTaken = fault.Taken
	// ErrNoTrash: nothing of that name is in the trash.
	ErrNoTrash = fault.NoTrash
)

// trashTime begins the name of a folder in the trash: trash/<time>-<id>.
const trashTime = "20060102T150405.000Z"

// Trash lists the agents that were removed, the newest first.
func (f *Folders) Trash() ([]event.Trashed, error) {
	entries, err := os.ReadDir(filepath.Join(f.Root, "trash"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list trash: %w", err)
	}
	list := []event.Trashed{}
	for _, e := range slices.Backward(entries) {
		at, id, ok := strings.Cut(e.Name(), "-")
		when, err := time.Parse(trashTime, at)
		if !ok || err != nil || !address.ValidID(id) || !e.IsDir() {
			continue // a user keeps something here
		}

		t := event.Trashed{Name: e.Name(), ID: id, At: when, Handle: f.Index.Handle(id)}
		path := filepath.Join(f.Root, "trash", e.Name(), address.File)
		if data, err := beneath.Whole(path); err == nil {
			d, _ := address.Decode(path, data)
			t.Type, t.Title = string(d.Type), address.NameOf(d)
		}

		list = append(list, t)
	}

	return list, nil
}

// inTrash finds the agent in the trash that a ref means: by the name of its folder,
// else its id, its former handle, its name, or the beginning of its id. Errors:
// ErrNoTrash, *address.Ambiguous.
func (f *Folders) inTrash(ref string) (event.Trashed, error) {
	list, err := f.Trash()
	if err != nil {
		return event.Trashed{}, err
	}

	for _, fits := range []func(event.Trashed) bool{
		func(t event.Trashed) bool { return t.Name == ref },
		func(t event.Trashed) bool { return t.ID == ref },
		func(t event.Trashed) bool {
			return t.Handle != "" && strings.TrimSuffix(t.Handle, "/") == strings.TrimSuffix(ref, "/")
		},
		func(t event.Trashed) bool { return ref != "" && t.Title == ref },
		func(t event.Trashed) bool { return len(ref) >= address.MinPrefix && strings.HasPrefix(t.ID, ref) },
	} {
		several := &address.Ambiguous{Ref: ref}
		var found event.Trashed
		for _, t := range list {
			if fits(t) {
				found = t
				several.Candidates = append(several.Candidates,
					fmt.Sprintf("%s (%s %s, removed %s)", t.Name, t.Handle, t.Title, t.At.Local().Format("2006-01-02 15:04:05")))
			}
		}

		switch len(several.Candidates) {
		case 0:
		case 1:
			return found, nil
		default:
			return event.Trashed{}, several
		}
	}

	return event.Trashed{}, fmt.Errorf("%w: %s", ErrNoTrash, ref)
}

// Restore brings an agent back from the trash; ref is as inTrash takes it. It is the
// same agent with the same handle, and what had waited for it waits again. Errors:
// ErrTaken, and those of inTrash.
func (f *Folders) Restore(ref string) (id string, err error) {
	lost, err := f.inTrash(ref)
	if err != nil {
		return "", err
	}
	from := filepath.Join(f.Root, "trash", lost.Name)
	if err := f.restorable(from, lost.ID); err != nil {
		return "", fmt.Errorf("%s: %w", lost.Name, err)
	}

	// The mark that ended it is taken off while it still is in the trash: agents/
	// never holds it half alive.
	if err := record.UpdateState(f.Volume, from, func(st *record.State) { st.Ended = nil }); err != nil {
		return "", fmt.Errorf("%s: %w", lost.Name, err)
	}
	if err := f.Volume.Rename("trash", from, f.folder(lost.ID)); err != nil {
		return "", fmt.Errorf("%s: %w", lost.Name, err)
	}

	return lost.ID, nil
}

// restorable reports why an agent cannot come back: a newer one has its address.
func (f *Folders) restorable(dir, id string) error {
	if meta, ok := f.Index.Get(id); ok {
		return fmt.Errorf("%w: %s", ErrTaken, meta.Handle)
	}
	path := filepath.Join(dir, address.File)
	data, err := beneath.Whole(path)
	if err != nil {
		return err
	}

	d, _ := address.Decode(path, data)
	if other, ok := f.Index.Lookup(d); ok && d.Type != "" {
		meta, _ := f.Index.Get(other)
		return fmt.Errorf("%w: %s now receives the messages; remove it first", ErrTaken, meta.Handle)
	}

	return nil
}
