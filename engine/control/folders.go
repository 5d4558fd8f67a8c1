package control

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// Folders is what the API needs for the folders and files of agents.
type Folders interface {
	// Fork creates an agent that continues from a record of another's history; 0: the
	// end of its newest turn.
	Fork(ctx context.Context, id string, at int64, name string) (event.Agent, error)
	// Rewindable reports whether the conversation can be rewound to a place: a seq, the
	// name of a checkpoint, "" for before the newest turn. Errors: ErrNoRecord.
	Rewindable(ctx context.Context, id, to string) error
	// Undoable lists the files that an agent's tools wrote in turns that are rewound; with a place also those
	// that a rewind to there would add. Errors: ErrNoRecord.
	Undoable(ctx context.Context, id string, place *string) ([]event.Rewound, error)
	// TakeBack takes such files back; no paths: those that nobody else changed. With merge, a change that others
	// made since stays, where the lines differ. Errors: *Invalid, fault.Applying.
	TakeBack(ctx context.Context, id string, paths []string, merge bool) ([]event.TakenBack, error)
	// Trash lists the removed agents, newest first.
	Trash(ctx context.Context) ([]event.Trashed, error)
	// Restore moves an agent back from the trash; ref is its name there, its id or handle.
	Restore(ctx context.Context, ref string) (event.Agent, error)
	// Export writes an agent as a tar.
	Export(ctx context.Context, id string, to io.Writer) error
	// Import creates an agent from an exported one; name "": the name it had.
	Import(ctx context.Context, tar io.Reader, name string) (event.Agent, error)
	// ReadFile and WriteFile access editable files. WriteFile replaces the content if the
	// file still has that hash. Errors: *Conflict, *Unfit.
	ReadFile(ctx context.Context, id, name string) (content []byte, hash string, err error)
	WriteFile(ctx context.Context, id, name string, content []byte, hash string) (newHash string, err error)
	// Switch changes the model of an agent from its next turn on. model is the id of
	// a provider, a model, or PROVIDER/MODEL; "default": as in the settings; "": no change.
	// Errors: *Invalid, which suggests similar names.
	Switch(ctx context.Context, id, model string) (Choice, error)
}

// A Choice is the model of an agent's next turn.
type Choice struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Chosen   bool   `json:"chosen"`            // chosen for this agent; false: by the settings
	Problem  string `json:"problem,omitempty"` // why the choice cannot be used
}

var (
	// ErrNoRecord: the history has no such record or mark.
	ErrNoRecord = fault.NoRecord
	// ErrNoTrash: nothing in the trash has that name.
	ErrNoTrash = fault.NoTrash
	// ErrTaken: another agent has the id or the address.
	ErrTaken = fault.Taken
	// ErrNotEditable: the file cannot be edited through the API.
	ErrNotEditable = fault.NotEditable
)

// Conflict says that a file is no longer the version that an edit was made from.
type Conflict struct {
	Content string `json:"content"` // as it is now
	Hash    string `json:"hash"`
}

func (e *Conflict) Error() string { return fault.Conflict.Text }

// Unwrap returns the fault.
func (e *Conflict) Unwrap() error { return fault.Conflict }

// Unfit says what is wrong with the new content of a file.
type Unfit struct{ Findings []finding.Finding }

func (e *Unfit) Error() string { return finding.Join(e.Findings).Error() }

// Unwrap returns the fault.
func (e *Unfit) Unwrap() error { return fault.InvalidFile }

// Bodies of these routes.
type (
	forkBody struct {
		At   int64  `json:"at,omitempty"`
		Name string `json:"name,omitempty"`
	}
	rewindBody struct {
		To string `json:"to,omitempty"` // a seq, the name of a mark; "": before the newest turn
	}
	markBody struct {
		Name string `json:"name"`
	}
	undoBody struct {
		Paths []string `json:"paths,omitempty"` // none: all that nobody else changed
		Merge bool     `json:"merge,omitempty"`
	}
	rewoundBody struct {
		Files []event.Rewound `json:"files"`
	}
	takenBody struct {
		Results []event.TakenBack `json:"results"`
	}
	trashListBody struct {
		Trash []event.Trashed `json:"trash"`
	}
	modelBody struct {
		Model string `json:"model"`
	}
	fileBody struct {
		Hash string `json:"hash"`
	}
)

// maxImport bounds the body of an import, in bytes.
const maxImport = 1 << 30

// folderRoutes serve the folders and files of agents.
type folderRoutes struct {
	api     *api
	folders Folders
}

func folderRows(a *api, f folderRoutes, t talks) []row {
	return []row{
		on(a, rewind, t.rewind),
		on(a, undoable, f.undoable),
		on(a, undo, f.undo),
		on(a, fork, f.fork),
		on(a, switchModel, f.switchModel),
		stream(a, readFile, f.readFile),
		stream(a, writeFile, f.writeFile),
		on(a, trash, f.trash),
		on(a, restore, f.restore),
		stream(a, exportAgent, f.exportAgent),
		stream(a, importAgent, f.importAgent),
	}
}

func (f folderRoutes) fork(ctx context.Context, in agentBody[forkBody]) (event.Agent, error) {
	if in.Body.At < 0 {
		return event.Agent{}, &Invalid{Field: "at", Reason: "must be the seq of a record, or absent"}
	}
	if err := checkName(in.Body.Name); err != nil {
		return event.Agent{}, err
	}

	return f.folders.Fork(ctx, in.ID, in.Body.At, in.Body.Name)
}

func (f folderRoutes) undoable(ctx context.Context, in undoableIn) (rewoundBody, error) {
	var place *string
	if in.Rewind {
		place = &in.To
	} else if in.To != "" {
		return rewoundBody{}, &Invalid{Field: "to", Reason: "needs rewind=true"}
	}
	list, err := f.folders.Undoable(ctx, in.ID, place)
	return rewoundBody{some(list)}, err
}

func (f folderRoutes) undo(ctx context.Context, in agentBody[undoBody]) (takenBody, error) {
	list, err := f.folders.TakeBack(ctx, in.ID, in.Body.Paths, in.Body.Merge)
	return takenBody{some(list)}, err
}

func (f folderRoutes) switchModel(ctx context.Context, in agentBody[modelBody]) (Choice, error) {
	return f.folders.Switch(ctx, in.ID, in.Body.Model)
}

func (f folderRoutes) trash(ctx context.Context, _ nothing) (trashListBody, error) {
	list, err := f.folders.Trash(ctx)
	return trashListBody{some(list)}, err
}

func (f folderRoutes) restore(ctx context.Context, in restoreIn) (event.Agent, error) {
	return f.folders.Restore(ctx, in.Name)
}

func (f folderRoutes) exportAgent(w http.ResponseWriter, r *http.Request, in anAgent) {
	f.api.sendArchive(w, r, "application/x-tar", func(to io.Writer) error { return f.folders.Export(r.Context(), in.ID, to) })
}

func (f folderRoutes) importAgent(w http.ResponseWriter, r *http.Request, in importIn) {
	if err := f.api.ready(Route(importAgent)); err != nil {
		f.api.fail(w, r, err)
		return
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(10 * bodyTimeout)) // only a socket has deadlines
	made, err := f.folders.Import(r.Context(), http.MaxBytesReader(w, r.Body, maxImport), in.Name)
	if err != nil {
		f.api.fail(w, r, err)
		return
	}

	f.api.send(w, r, Route(importAgent).Status(), made)
}

func (f folderRoutes) readFile(w http.ResponseWriter, r *http.Request, in fileIn) {
	content, hash, err := f.folders.ReadFile(r.Context(), in.ID, in.Name)
	f.api.sendFile(w, r, content, hash, err)
}

func (f folderRoutes) writeFile(w http.ResponseWriter, r *http.Request, in writeIn) {
	f.api.takeFile(w, r, in.Match, func(content []byte, hash string) (string, error) {
		return f.folders.WriteFile(r.Context(), in.ID, in.Name, content, hash)
	})
}

// sendFile answers with the content itself; its hash is the ETag.
func (a *api) sendFile(w http.ResponseWriter, r *http.Request, content []byte, hash string, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}

	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", "attachment")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("ETag", `"`+hash+`"`)
	_, _ = w.Write(content) // an error means that the client went away
}

// takeFile publishes the body of a request, if the file still is the version of If-Match.
func (a *api) takeFile(w http.ResponseWriter, r *http.Request, match string, write func(content []byte, hash string) (string, error)) {
	hash := strings.Trim(strings.TrimPrefix(match, "W/"), `"`)
	if hash == "" {
		a.fail(w, r, &malformed{Invalid{Field: "If-Match", Reason: "is missing",
			Hint: "GET the file first and send its ETag, so that no edit is lost"}})
		return
	}

	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessageBody))
	if err != nil {
		a.fail(w, r, explain(err))
		return
	}
	if hash, err = write(content, hash); err != nil {
		a.fail(w, r, err)
		return
	}

	w.Header().Set("ETag", `"`+hash+`"`)
	a.send(w, r, http.StatusOK, fileBody{hash})
}
