package control

import (
	"bytes"
	"context"
	"io"
	"strings"

	"daycare/engine/event"
	"daycare/engine/message"
)

// A FolderClient is what a Client says about the folders and files of agents.
type FolderClient struct{ c *wire }

// Folders is about the folders and files of agents.
func (c *Client) Folders() FolderClient { return FolderClient{c.wire} }

// Fork makes an agent that goes on from a record of another's history; 0 is the end
// of its newest turn.
func (f FolderClient) Fork(ctx context.Context, ref string, at int64, name string) (event.Agent, error) {
	return fork.call(ctx, f.c, agentBody[forkBody]{ref, forkBody{at, name}})
}

// Rewind takes what follows a record or a mark out of the context; "" is the newest
// turn.
func (f FolderClient) Rewind(ctx context.Context, ref, to string) (message.Receipt, error) {
	return rewind.call(ctx, f.c, agentBody[rewindBody]{ref, rewindBody{to}})
}

// Mark names the place where the conversation is now.
func (f FolderClient) Mark(ctx context.Context, ref, name string) (message.Receipt, error) {
	return mark.call(ctx, f.c, agentBody[markBody]{ref, markBody{name}})
}

// Trash lists the agents that were removed, the newest first.
func (f FolderClient) Trash(ctx context.Context) ([]event.Trashed, error) {
	b, err := trash.call(ctx, f.c, nothing{})
	return b.Trash, err
}

// Restore brings an agent back from the trash.
func (f FolderClient) Restore(ctx context.Context, ref string) (event.Agent, error) {
	return restore.call(ctx, f.c, restoreIn{ref})
}

// Import makes an agent of an exported one; name "" is the one it had.
func (f FolderClient) Import(ctx context.Context, tar io.Reader, name string) (event.Agent, error) {
	return importAgent.call(ctx, f.c, importIn{name, tar})
}

// ReadFile reads a file of an agent that people edit, and its hash.
func (f FolderClient) ReadFile(ctx context.Context, ref, name string) (content []byte, hash string, err error) {
	resp, err := readFile.send(ctx, f.c, fileIn{ref, name}, "")
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	content, err = io.ReadAll(resp.Body)

	return content, strings.Trim(resp.Header.Get("ETag"), `"`), err
}

// WriteFile publishes a file of an agent if it still has that hash. Errors:
// *Conflict with what stands there now, *Unfit.
func (f FolderClient) WriteFile(ctx context.Context, ref, name string, content []byte, hash string) error {
	if hash != "" {
		hash = `"` + hash + `"`
	}
	_, err := writeFile.call(ctx, f.c, writeIn{ref, name, hash, bytes.NewReader(content)})
	return err
}

// Switch changes the model of an agent; see Folders.
func (f FolderClient) Switch(ctx context.Context, ref, model string) (Choice, error) {
	return switchModel.call(ctx, f.c, agentBody[modelBody]{ref, modelBody{model}})
}
