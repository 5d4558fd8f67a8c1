package folders

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/address"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// Fork makes a new agent that continues from a record of another's history (0: from
// the end of its newest turn), with its rights, model, queue and budget. Children,
// schedules, promises and approvals of single requests stay with the other. It reads
// files alone, so the other may be in the middle of a turn. Errors:
// record.ErrNoRecord.
func (f *Folders) Fork(id string, at int64, name string) (address.Meta, error) {
	source, ok := f.Index.Get(id)
	if !ok {
		return address.Meta{}, message.ErrUnknownAgent
	}
	if f.Volume.Full() {
		return address.Meta{}, disk.ErrFull
	}

	now := time.Now().UTC()
	cut, err := record.CutAt(f.folder(id), id, at, cuid.New(), now)
	if err != nil {
		return address.Meta{}, err
	}

	state, err := f.forkState(id, cut, now)
	if err != nil {
		return address.Meta{}, err
	}
	if name == "" {
		name = "fork of " + source.Handle
	}

	return f.Make(f.byHand(source.Descriptor, name), state, func(dir string) error {
		return f.fillFork(f.folder(id), dir, cut)
	})
}

// Rewindable finds a place of an agent's conversation, a seq, the name of a mark, or "" for before its newest turn, and
// returns its seq. A mark that waits to be set has that of the newest record: orders are carried out in the order in
// which they came. Errors: record.ErrNoRecord.
func (f *Folders) Rewindable(id, to string) (int64, error) {
	if _, ok := f.Index.Get(id); !ok {
		return 0, message.ErrUnknownAgent
	}
	seq, err := record.Rewindable(f.folder(id), to)
	if !errors.Is(err, record.ErrNoRecord) {
		return seq, err
	}

	waiting, rerr := inbox.ReadAll(f.folder(id))
	if rerr != nil {
		return 0, rerr
	}

	for _, it := range waiting {
		if it.Kind == message.Mark && it.Text == to {
			return record.LastSeq(f.folder(id))
		}
	}

	return 0, fmt.Errorf("cannot rewind: %w", err)
}

// forkState is the state.json of a fork.
func (f *Folders) forkState(id string, cut record.Cut, now time.Time) ([]byte, error) {
	of, _, err := record.CurrentState(f.Volume, f.folder(id))
	if err != nil {
		return nil, err
	}
	rights := of.Permissions

	// A grant for one exact request is bound to the agent that asked.
	rights.Grants = slices.DeleteFunc(slices.Clone(rights.Grants), func(g permission.Grant) bool { return g.SHA256 != "" })
	return record.EncodeState(workspace.OfData(f.Root),
		record.State{Permissions: rights, Provider: of.Provider, Queue: of.Queue, Budget: of.Budget,
			Session: cut.Session, Seq: cut.Last, CreatedAt: disk.StampOf(now), UpdatedAt: disk.StampOf(now), Announced: &rights})
}

func (f *Folders) fillFork(from, to string, cut record.Cut) error {
	for _, sha := range cut.Blobs {
		text, err := record.ReadBlob(from, sha)
		if disk.Transient(err) {
			return err
		}
		if err != nil {
			f.Log.Warn("a long output is missing", "err", err)
			continue
		}
		if _, err := record.PutBlob(f.Volume, to, text); err != nil {
			return err
		}
	}

	return f.Volume.WriteFile("fork", filepath.Join(to, "history.jsonl"), cut.Content)
}

// byHand is the descriptor of an agent that a user makes of another: one that
// stands by itself.
func (f *Folders) byHand(of address.Descriptor, name string) address.Descriptor {
	if of.Type == address.Permanent {
		return address.Descriptor{Type: address.Permanent, ID: cuid.New(), Name: name,
			Description: of.Description, SystemPrompt: of.SystemPrompt, WorkspaceDir: of.WorkspaceDir}
	}

	return address.Descriptor{Type: address.User, Connector: "terminal", UserID: f.User, Name: name}
}
