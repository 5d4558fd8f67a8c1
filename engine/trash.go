package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/record"
)

var (
	// ErrTaken: another agent has the id or the address.
	ErrTaken = errors.New("there is such an agent already")
	// ErrNoTrash: nothing of that name lies in the trash.
	ErrNoTrash = errors.New("not in the trash")
)

// trashTime begins the name of a folder in the trash: trash/<time>-<id>.
const trashTime = "20060102T150405.000Z"

// Trash lists the agents that were removed, the newest first.
func (s *System) Trash(context.Context) ([]event.Trashed, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, "trash"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list trash: %w", err)
	}
	list := []event.Trashed{}
	for _, e := range slices.Backward(entries) {
		at, id, ok := strings.Cut(e.Name(), "-")
		when, err := time.Parse(trashTime, at)
		if !ok || err != nil || !address.ValidID(id) || !e.IsDir() {
			continue // a person keeps something here
		}
		t := event.Trashed{Name: e.Name(), ID: id, At: when, Handle: s.index.Handle(id)}
		path := filepath.Join(s.root, "trash", e.Name(), address.File)
		if data, err := os.ReadFile(path); err == nil {
			d, _ := address.Decode(path, data)
			t.Type, t.Title = string(d.Type), d.Name
		}
		list = append(list, t)
	}
	return list, nil
}

// Restore brings an agent back from the trash; ref is its name there, its id or its
// former handle, the newest of several. It is the same agent with the same handle,
// and what had waited for it waits again. Errors: ErrNoTrash, ErrTaken.
func (s *System) Restore(ctx context.Context, ref string) (event.Agent, error) {
	list, err := s.Trash(ctx)
	if err != nil {
		return event.Agent{}, err
	}
	i := slices.IndexFunc(list, func(t event.Trashed) bool {
		return ref != "" && (t.Name == ref || t.ID == ref || t.Handle != "" && strings.TrimSuffix(t.Handle, "/") == strings.TrimSuffix(ref, "/"))
	})
	if i < 0 {
		return event.Agent{}, fmt.Errorf("%w: %s", ErrNoTrash, ref)
	}
	from := filepath.Join(s.root, "trash", list[i].Name)
	if err := s.restorable(from, list[i].ID); err != nil {
		return event.Agent{}, fmt.Errorf("%s: %w", list[i].Name, err)
	}
	// The mark that ended it is taken off while it still lies in the trash: agents/
	// never holds it half alive.
	if err := record.UpdateState(s.vol, from, func(st *record.State) { st.Ended = nil }); err != nil {
		return event.Agent{}, fmt.Errorf("%s: %w", list[i].Name, err)
	}
	if err := os.Rename(from, s.folder(list[i].ID)); err != nil {
		return event.Agent{}, fmt.Errorf("%s: %w", list[i].Name, err)
	}
	if err := errors.Join(s.vol.SyncDir("trash.dirsync", filepath.Join(s.root, "agents")),
		s.vol.SyncDir("trash.dirsync", filepath.Join(s.root, "trash"))); err != nil {
		return event.Agent{}, err
	}
	s.rescan()
	return s.Agent(ctx, list[i].ID)
}

// restorable reports why an agent cannot come back: a newer one has its address.
func (s *System) restorable(dir, id string) error {
	if meta, ok := s.index.Get(id); ok {
		return fmt.Errorf("%w: %s", ErrTaken, meta.Handle)
	}
	path := filepath.Join(dir, address.File)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d, _ := address.Decode(path, data)
	if other, ok := s.index.Lookup(d); ok && d.Type != "" {
		meta, _ := s.index.Get(other)
		return fmt.Errorf("%w: %s got the messages meanwhile; remove it first", ErrTaken, meta.Handle)
	}
	return nil
}
