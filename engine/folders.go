package engine

import (
	"context"
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
		if !h.Overflow && !slices.ContainsFunc(h.Names, s.unexpected) {
			return // agents that the engine made or removed itself
		}
		select {
		case hints <- struct{}{}:
		default:
		}
	})
	defer w.Remove(dir)
	for {
		select {
		case <-hints:
			s.rescan()
		case <-ctx.Done():
			return
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
	s.report("", found)
	if err != nil {
		s.log.Error("agents cannot be read again", "err", err)
		return
	}
	for _, id := range diff.Added {
		s.events.Emit(event.Event{Type: event.AgentCreated, Agent: id})
		if !s.settled(id) {
			s.rouse(id)
		}
	}
	for _, id := range diff.Removed {
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
