package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/sjson"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
)

// A FolderClient has the operations on the folders and files of agents.
type FolderClient struct{ c *wire }

// Folders returns the operations on the folders and files of agents.
func (c *Client) Folders() FolderClient { return FolderClient{c.wire} }

// Fork creates an agent that continues from a record of another's history; 0: the end of its newest
// turn.
func (f FolderClient) Fork(ctx context.Context, ref string, at int64, name string) (event.Agent, error) {
	return fork.call(ctx, f.c, agentBody[forkBody]{ref, forkBody{at, name}})
}

// Rewind removes everything after a record or a checkpoint from the context; "": the newest turn.
func (f FolderClient) Rewind(ctx context.Context, ref, to string) (message.Receipt, error) {
	return rewind.call(ctx, f.c, agentBody[rewindBody]{ref, rewindBody{to}})
}

// Undoable lists the files that an agent's tools wrote in turns that are rewound; with a place, as for Rewind, also those
// that a rewind to there would add.
func (f FolderClient) Undoable(ctx context.Context, ref string, place *string) ([]event.Rewound, error) {
	in := undoableIn{ID: ref, Rewind: place != nil}
	if place != nil {
		in.To = *place
	}
	b, err := undoable.call(ctx, f.c, in)
	return b.Files, err
}

// TakeBack takes such files back; no paths: those that nobody else changed.
func (f FolderClient) TakeBack(ctx context.Context, ref string, paths []string, merge bool) ([]event.TakenBack, error) {
	b, err := undo.call(ctx, f.c, agentBody[undoBody]{ref, undoBody{paths, merge}})
	return b.Results, err
}

// askAgain is how often RewindFiles looks whether the agent has carried out its order.
const askAgain = 100 * time.Millisecond

// RewindFiles is Rewind; it waits until the agent has carried it out, between two turns, and takes back the files that
// nobody else changed.
func (f FolderClient) RewindFiles(ctx context.Context, ref, to string) ([]event.TakenBack, error) {
	order, err := f.Rewind(ctx, ref, to)
	for err == nil {
		var left inboxBody
		if left, err = waiting.call(ctx, f.c, anAgent{ref}); err != nil {
			break
		}
		if !slices.ContainsFunc(left.Items, func(w event.Waiting) bool { return w.ID == order.Item }) {
			return f.TakeBack(ctx, ref, nil, false)
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}

	return nil, err
}

// Mark sets a checkpoint at the end of the conversation.
func (f FolderClient) Mark(ctx context.Context, ref, name string) (message.Receipt, error) {
	return mark.call(ctx, f.c, agentBody[markBody]{ref, markBody{name}})
}

// Trash lists the removed agents, newest first.
func (f FolderClient) Trash(ctx context.Context) ([]event.Trashed, error) {
	b, err := trash.call(ctx, f.c, nothing{})
	return b.Trash, err
}

// Restore moves an agent back from the trash.
func (f FolderClient) Restore(ctx context.Context, ref string) (event.Agent, error) {
	return restore.call(ctx, f.c, restoreIn{ref})
}

// Export writes an agent as a tar, as `daycare agents export`.
func (f FolderClient) Export(ctx context.Context, ref string, to io.Writer) error {
	resp, err := exportAgent.send(ctx, f.c, anAgent{ref}, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close() // all of it was read
	end := &tarEnd{to: to}
	if _, err = io.Copy(end, resp.Body); err == nil && !end.whole() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("export agent: %w", gone(err))
	}

	return nil
}

// tarEndSize is how many zeros a tar ends with, in bytes.
const tarEndSize = 1024

// A tarEnd passes a tar on and knows whether it came to its end.
type tarEnd struct {
	to    io.Writer
	zeros int // at the end of what came
}

func (t *tarEnd) Write(p []byte) (int, error) {
	if rest := bytes.TrimRight(p, "\x00"); len(rest) > 0 {
		t.zeros = len(p) - len(rest)
	} else {
		t.zeros += len(p)
	}

	return t.to.Write(p)
}

func (t *tarEnd) whole() bool { return t.zeros >= tarEndSize }

// Import creates an agent from an exported one; name "": the name it had.
func (f FolderClient) Import(ctx context.Context, tar io.Reader, name string) (event.Agent, error) {
	return importAgent.call(ctx, f.c, importIn{name, tar})
}

// ReadFile reads an editable file of an agent, and its hash.
func (f FolderClient) ReadFile(ctx context.Context, ref, name string) (content []byte, hash string, err error) {
	resp, err := readFile.send(ctx, f.c, fileIn{ref, name}, "")
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	content, err = io.ReadAll(resp.Body)

	return content, strings.Trim(resp.Header.Get("ETag"), `"`), err
}

// WriteFile replaces a file of an agent if it still has that hash. Errors: *Conflict with the
// current content, *Unfit.
func (f FolderClient) WriteFile(ctx context.Context, ref, name string, content []byte, hash string) error {
	if hash != "" {
		hash = `"` + hash + `"`
	}
	_, err := writeFile.call(ctx, f.c, writeIn{ref, name, hash, bytes.NewReader(content)})
	return err
}

// Rename changes the name in the descriptor of an agent, and nothing else there; "" takes it away.
// Errors: *Invalid for an agent that can have no other name, or needs one.
func (f FolderClient) Rename(ctx context.Context, a event.Agent, name string) error {
	switch t := address.Type(a.Type); {
	case t == address.Cron:
		return &Invalid{Field: "name", Reason: "is that of its task", Hint: "change that: daycare cron edit --help"}
	case t == address.Heartbeat:
		return &Invalid{Field: "name", Reason: "the agent of the heartbeat has no other"}
	case name == "" && t != address.User:
		return &Invalid{Field: "name", Reason: "must not be empty, except for an agent of a chat"}
	}
	if err := checkName(name); err != nil {
		return err
	}

	for { // until nobody else changed the file in between
		text, hash, err := f.ReadFile(ctx, a.ID, address.File)
		if err != nil {
			return err
		}
		if text, err = renamed(text, name); err != nil {
			return fmt.Errorf("change the name: %w", err)
		}
		err = f.WriteFile(ctx, a.ID, address.File, text, hash)
		if _, conflict := errors.AsType[*Conflict](err); !conflict {
			return err
		}
	}
}

// renamed is a descriptor with another name; all else stays, in its order.
func renamed(descriptor []byte, name string) (text []byte, err error) {
	if name == "" {
		text, err = sjson.DeleteBytes(descriptor, "name")
	} else {
		text, err = sjson.SetBytes(descriptor, "name", name)
	}
	if err != nil {
		return nil, err
	}

	var indented bytes.Buffer
	err = json.Indent(&indented, bytes.TrimSpace(text), "", "  ")
	return append(indented.Bytes(), '\n'), err
}

// Switch changes the model of an agent; see Folders.
func (f FolderClient) Switch(ctx context.Context, ref, model string) (Choice, error) {
	return switchModel.call(ctx, f.c, agentBody[modelBody]{ref, modelBody{model}})
}
