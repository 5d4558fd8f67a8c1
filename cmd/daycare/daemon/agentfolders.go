package daemon

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"daycare/engine/changes"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/finding"
	agentfolders "daycare/engine/folders"
)

// folders is the engine as the API wants it for what is done with agents' folders.
type folders struct{ *backend }

// Fork makes an agent that continues from a record of another's history.
func (h folders) Fork(ctx context.Context, id string, at int64, name string) (event.Agent, error) {
	a, err := h.System.Fork(ctx, id, at, name)
	return a, inWords(err)
}

// Rewindable says whether a conversation has a place to go back to.
func (h folders) Rewindable(ctx context.Context, id, to string) error {
	return inWords(h.System.Rewindable(ctx, id, to))
}

// Undoable lists files of rewound turns.
func (h folders) Undoable(ctx context.Context, id string, place *string) (list []event.Rewound, err error) {
	takes, err := h.System.Undoable(ctx, id, place)
	for _, t := range takes {
		path := h.parts.at.Shown(t.File())
		list = append(list, event.Rewound{Path: path, Standing: string(t.Standing), Turns: t.Turns})
	}

	return list, inWords(err)
}

// TakeBack takes some of them back.
func (h folders) TakeBack(ctx context.Context, id string, paths []string, merge bool) (list []event.TakenBack, err error) {
	results, err := h.System.TakeBack(ctx, id, paths, merge)
	for _, r := range results {
		path := h.parts.at.Shown(r.File())
		list = append(list, event.TakenBack{Path: path, Outcome: string(r.Outcome), Why: r.Why})
	}

	return list, inWords(err)
}

// Trash lists the agents that were removed.
func (h folders) Trash(ctx context.Context) ([]event.Trashed, error) { return h.System.Trash(ctx) }

// Restore brings one back.
func (h folders) Restore(ctx context.Context, ref string) (event.Agent, error) {
	a, err := h.System.Restore(ctx, ref)
	return a, inWords(err)
}

// Export writes an agent as a tar.
func (h folders) Export(_ context.Context, id string, to io.Writer) error {
	return agentfolders.Export(h.parts.at.Data, id, to)
}

// Import makes an agent of an exported one.
func (h folders) Import(ctx context.Context, tar io.Reader, name string) (event.Agent, error) {
	a, err := h.System.Import(ctx, tar, name)
	return a, inWords(err)
}

// ReadFile reads a file that users edit.
func (h folders) ReadFile(ctx context.Context, id, name string) ([]byte, string, error) {
	v, err := h.System.ReadFile(ctx, id, name)
	return v.Content, v.Hash, inWords(err)
}

// WriteFile publishes one. With no daemon it is an editor like any other.
func (h folders) WriteFile(ctx context.Context, id, name string, content []byte, hash string) (string, error) {
	if name == "state.json" {
		if err := h.unfitChoice(filepath.Join(h.parts.at.Data, "agents", id, name), content); err != nil {
			return "", err
		}
	}
	v, err := h.System.WriteFile(ctx, id, name, content, hash)

	return v.Hash, inWords(err)
}

// inWords makes errors of the API of those errors of the engine that have details.
func inWords(err error) error {
	var changed *agentfolders.Changed
	var bad finding.Finding
	var none *changes.NoFile
	switch {
	case err == nil:
		return nil
	case errors.As(err, &changed):
		return &control.Conflict{Content: string(changed.Now.Content), Hash: changed.Now.Hash}
	case errors.As(err, &bad):
		return &control.Unfit{Findings: findingsOf(err)}
	case errors.As(err, &none):
		return &control.Invalid{Field: "paths", Reason: err.Error(), Hint: "list the files with: daycare agents undo ID"}
	case errors.Is(err, agentfolders.ErrBadArchive):
		return &control.Invalid{Reason: err.Error(), Hint: "use a file written by daycare agents export"}
	}

	return err
}

// findingsOf lists the findings that an error was joined from.
func findingsOf(err error) (found []finding.Finding) {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return nil
	}

	for _, one := range joined.Unwrap() {
		var f finding.Finding
		if errors.As(one, &f) {
			found = append(found, f)
		}
	}

	return found
}
