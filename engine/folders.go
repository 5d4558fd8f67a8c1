package engine

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/watch"
)

// A folderWatch notices agents that a user makes, takes away or changes by hand.
type folderWatch struct {
	place
	actors      *actors
	descriptors *descriptors
	recent      *recent
}

// watchFolders notices agents that a user made, took away or changed by hand:
// a folder that was copied in is an agent from then on, one that is gone has ended. looked is
// called whenever it has looked at folders.
func (fw *folderWatch) watchFolders(ctx context.Context, w *watch.Watcher, looked func()) {
	changed := newEdits()
	changed.hint(anyFolder) // what was changed since the index was loaded gives no hint
	dir := filepath.Join(fw.root, "agents")
	w.Add(dir, watch.Options{}, func(h watch.Hint) {
		if h.Overflow {
			changed.hint(anyFolder)
		}
		for _, name := range h.Names {
			if fw.unexpected(name) { // else the engine made or removed it itself
				changed.hint(name)
			}
		}
	})
	defer w.Remove(dir)
	refused := map[string]bool{}
	for {
		select {
		case <-changed.hints:
			ids := changed.take()
			if slices.Contains(ids, anyFolder) {
				ids = nil
			} else {
				ids = slices.AppendSeq(ids, maps.Keys(refused)) // what stood in their way may be gone
				slices.Sort(ids)
				ids = slices.Compact(ids)
			}

			fw.rescan(ids...)
			fw.watchRefused(w, refused, fw.refused(ids), changed.hint)
			looked()
		case <-ctx.Done():
			return
		}
	}
}

// anyFolder hints that any folder of an agent may have changed.
const anyFolder = ""

// refused are the folders that are no agents yet, for a mistake in the descriptor: of
// these ids; without ids of all.
func (fw *folderWatch) refused(ids []string) (now []string) {
	if len(ids) > 0 {
		return slices.DeleteFunc(ids, func(id string) bool { return !fw.unexpected(id) })
	}
	entries, err := os.ReadDir(filepath.Join(fw.root, "agents"))
	if err != nil {
		fw.log.Error("cannot rescan agents", "err", err)
	}
	for _, e := range entries {
		if fw.unexpected(e.Name()) {
			now = append(now, e.Name())
		}
	}

	return now
}

// watchRefused watches the folders that are refused now, and leaves those that are not
// any more. That of an agent may be watched by the agent itself.
func (fw *folderWatch) watchRefused(w *watch.Watcher, refused map[string]bool, now []string, hint func(id string)) {
	for id := range refused {
		if _, known := fw.index.Get(id); !known && !slices.Contains(now, id) {
			w.Remove(fw.folder(id))
		}
		if !slices.Contains(now, id) {
			delete(refused, id)
		}
	}

	for _, id := range now {
		if !refused[id] {
			refused[id] = true
			w.Add(fw.folder(id), watch.Options{}, func(watch.Hint) { hint(id) })
			fw.rescan(id) // what was mended before the watch stood
		}
	}
}

// unexpected reports a folder that is there and not known, or known and not there.
func (fw *folderWatch) unexpected(name string) bool {
	_, known := fw.index.Get(name)
	return address.ValidID(name) && known != disk.Exists(fw.folder(name))
}

// rescan takes over what a user changed in the folders of these agents, without ids in
// those of all.
func (fw *folderWatch) rescan(ids ...string) {
	diff, found, err := fw.index.Rescan(ids...)
	NoteAgents(fw.problems, fw.root, found)
	if err != nil {
		fw.log.Error("cannot rescan agents", "err", err)
		return
	}

	for _, id := range slices.Concat(diff.Added, diff.Removed, diff.Changed) {
		fw.recent.look(id)
		fw.actors.spent.Delete(id)
	}

	for _, id := range diff.Added {
		fw.problems.Set(id, filepath.Join(fw.folder(id), address.File), nil)
		fw.events.Emit(event.Event{Type: event.AgentCreated, Agent: id})
		if err := fw.actors.introduce(id); err != nil {
			fw.log.Warn("a new agent is not known to the other machines yet; they learn of it when it is used", "agent", id, "err", err)
		}
		if e, ok := fw.actors.awake(id); ok {
			closing{e}.returned()
		}
		if !fw.settled(id) {
			fw.actors.wake(id)
		}
	}

	for _, id := range diff.Removed {
		fw.problems.Forget(id)
		if e, ok := fw.actors.awake(id); ok {
			e.end()
		}
		fw.events.Emit(event.Event{Type: event.AgentEnded, Agent: id, Body: event.Reason{Reason: "its folder is gone"}})
	}

	for _, id := range diff.Changed {
		fw.index.Keep(id)
		if now, ok := fw.index.Get(id); ok {
			fw.descriptors.descriptorEdited(id, address.Changed(diff.Before[id], now.Descriptor))
		}
	}
}
