package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/watch"
)

// watchFolders notices agents that a person made, took away or changed by hand:
// a folder that was copied in is an agent from then on, one that is gone has ended.
func (s *System) watchFolders(ctx context.Context, w *watch.Watcher) {
	hints := make(chan struct{}, 1)
	hints <- struct{}{} // what was changed since the index was loaded gives no hint
	dir := filepath.Join(s.root, "agents")
	w.Add(dir, watch.Options{}, func(h watch.Hint) {
		if h.Overflow || slices.ContainsFunc(h.Names, s.unexpected) { // else the engine made or removed them itself
			poke(hints)
		}
	})
	defer w.Remove(dir)
	var refused []string
	for {
		select {
		case <-hints:
			s.unwatchRefused(w, refused)
			s.rescan()
			if refused = s.refused(); len(refused) > 0 {
				for _, id := range refused {
					w.Add(s.folder(id), watch.Options{}, func(watch.Hint) { poke(hints) })
				}
				s.rescan() // what was mended before the watches stood
			}
		case <-ctx.Done():
			s.unwatchRefused(w, refused)
			return
		}
	}
}

// refused are the folders that are no agents yet, for a mistake in the descriptor.
func (s *System) refused() (ids []string) {
	entries, err := os.ReadDir(filepath.Join(s.root, "agents"))
	if err != nil {
		s.log.Error("agents cannot be read again", "err", err)
	}
	for _, e := range entries {
		if s.unexpected(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// unwatchRefused leaves the watch of a folder that is an agent by now: it may be
// the agent's own.
func (s *System) unwatchRefused(w *watch.Watcher, ids []string) {
	for _, id := range ids {
		if _, known := s.index.Get(id); !known {
			w.Remove(s.folder(id))
		}
	}
}

// unexpected reports a folder that is there and not known, or known and not there.
func (s *System) unexpected(name string) bool {
	_, known := s.index.Get(name)
	return address.ValidID(name) && known != disk.Exists(s.folder(name))
}

func (s *System) rescan() {
	before := map[string]address.Descriptor{}
	for _, meta := range s.index.All() {
		before[meta.ID] = meta.Descriptor
	}
	diff, found, err := s.index.Rescan()
	NoteAgents(s.board, s.root, found)
	if err != nil {
		s.log.Error("agents cannot be read again", "err", err)
		return
	}
	for _, id := range diff.Added {
		s.board.Read(id, filepath.Join(s.folder(id), address.File), nil)
		s.events.Emit(event.Event{Type: event.AgentCreated, Agent: id})
		if !s.settled(id) {
			s.rouse(id)
		}
	}
	for _, id := range diff.Removed {
		s.board.Forget(id)
		if e, ok := s.awake(id); ok {
			e.end()
		}
		s.events.Emit(event.Event{Type: event.AgentEnded, Agent: id, Body: event.Reason{Reason: "its folder is gone"}})
	}
	for _, id := range diff.Changed {
		s.index.Keep(id)
		if now, ok := s.index.Get(id); ok {
			s.descriptorEdited(id, address.Changed(before[id], now.Descriptor))
		}
	}
}
