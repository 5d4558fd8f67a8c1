package engine

import (
	"context"
	"io"

	"daycare/engine/address"
	"daycare/engine/changes"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/folders"
	"daycare/engine/message"
	"daycare/engine/workspace"
)

// An archive copies, keeps and brings back the folders of agents, and has the rest of
// the engine know of it.
type archive struct {
	place
	folders     *folders.Folders
	actors      *actors
	directory   *directory
	folderWatch *folderWatch
	descriptors *descriptors
}

// Fork makes a new agent that continues from a record of another's history, 0: from the
// end of its newest turn. Errors: those of folders.Fork.
func (ar *archive) Fork(_ context.Context, id string, at int64, name string) (event.Agent, error) {
	meta, err := ar.folders.Fork(id, at, name)
	if err != nil {
		return event.Agent{}, err
	}

	return ar.directory.look(meta), nil
}

// Rewindable says whether an agent's conversation has a place. Errors: record.ErrNoRecord.
func (ar *archive) Rewindable(_ context.Context, id, to string) error {
	_, err := ar.folders.Rewindable(id, to)
	return err
}

// Undoable lists the files that an agent's tools wrote in turns that are rewound. With a place, "" for before the newest
// turn, also those that a rewind to there would add. Errors: record.ErrNoRecord.
func (ar *archive) Undoable(_ context.Context, id string, place *string) ([]changes.Take, error) {
	undoing, err := ar.undoing(id)
	var after int64
	if err == nil && place != nil {
		after, err = ar.folders.Rewindable(id, *place)
	}
	if err != nil {
		return nil, err
	}

	return undoing.Takes(after)
}

// TakeBack takes files back that an agent's tools wrote in turns that are rewound; no paths: those that nobody else
// changed. Errors: changes.ErrBusy, *changes.NoFile.
func (ar *archive) TakeBack(_ context.Context, id string, paths []string, merge bool) ([]changes.Result, error) {
	undoing, err := ar.undoing(id)
	if err != nil {
		return nil, err
	}

	return undoing.TakeBack(paths, merge)
}

func (ar *archive) undoing(id string) (changes.Undoing, error) {
	if _, ok := ar.index.Get(id); !ok {
		return changes.Undoing{}, message.ErrUnknownAgent
	}
	vol := ar.vol
	if vol == nil { // nothing runs
		vol = disk.NewVolume(ar.root)
	}

	return changes.UndoingOf(vol, workspace.OfData(ar.root), id), nil
}

// Import makes an agent of what Export wrote, and wakes it if it has work. Errors:
// folders.ErrBadArchive.
func (ar *archive) Import(_ context.Context, from io.Reader, name string) (event.Agent, error) {
	meta, err := ar.folders.Import(from, name)
	if err != nil {
		return event.Agent{}, err
	}
	if !ar.settled(meta.ID) {
		ar.actors.wake(meta.ID)
	}

	return ar.directory.look(meta), nil
}

// Trash lists the agents that were removed, the newest first.
func (ar *archive) Trash(context.Context) ([]event.Trashed, error) { return ar.folders.Trash() }

// Restore brings an agent back from the trash. Errors: those of folders.Restore.
func (ar *archive) Restore(ctx context.Context, ref string) (event.Agent, error) {
	id, err := ar.folders.Restore(ref)
	if err != nil {
		return event.Agent{}, err
	}
	ar.folderWatch.rescan(id)

	return ar.directory.Agent(ctx, id)
}

// ReadFile reads a file of an agent that users edit.
func (ar *archive) ReadFile(_ context.Context, id, name string) (folders.Version, error) {
	return ar.folders.Read(id, name)
}

// WriteFile publishes a user's version of a file; it counts as if an editor had saved
// it. Errors: those of folders.Write.
func (ar *archive) WriteFile(_ context.Context, id, name string, content []byte, hash string) (folders.Version, error) {
	v, err := ar.folders.Write(id, name, content, hash)
	if err != nil || ar.vol == nil {
		return v, err
	}
	if name == address.File {
		ar.descriptors.reread(id, true)
		return v, nil
	}
	if !ar.actors.runs(id) && v.Hash != hash { // one that runs notices it, and says what changed
		ar.events.Emit(event.Event{Type: event.FileEdited, Agent: id,
			Body: event.File{File: name, Text: "changed; takes effect with the next turn"}})
	}

	return v, nil
}
