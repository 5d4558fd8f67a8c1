package control

import (
	"bytes"
	"context"
	"io"
	"strings"

	"daycare/engine/event"
	"daycare/engine/message"
)

// Fork makes an agent that goes on from a record of another's history; 0 is the end
// of its newest turn.
func (c *Client) Fork(ctx context.Context, ref string, at int64, name string) (event.Agent, error) {
	return fork.call(ctx, c, agentBody[forkBody]{ref, forkBody{at, name}})
}

// Rewind takes what follows a record or a mark out of the context; "" is the newest
// turn.
func (c *Client) Rewind(ctx context.Context, ref, to string) (message.Receipt, error) {
	return rewind.call(ctx, c, agentBody[rewindBody]{ref, rewindBody{to}})
}

// Mark names the place where the conversation is now.
func (c *Client) Mark(ctx context.Context, ref, name string) (message.Receipt, error) {
	return mark.call(ctx, c, agentBody[markBody]{ref, markBody{name}})
}

// Trash lists the agents that were removed, the newest first.
func (c *Client) Trash(ctx context.Context) ([]event.Trashed, error) {
	b, err := trash.call(ctx, c, nothing{})
	return b.Trash, err
}

// Restore brings an agent back from the trash.
func (c *Client) Restore(ctx context.Context, ref string) (event.Agent, error) {
	return restore.call(ctx, c, restoreIn{ref})
}

// Import makes an agent of an exported one; name "" is the one it had.
func (c *Client) Import(ctx context.Context, tar io.Reader, name string) (event.Agent, error) {
	return importAgent.call(ctx, c, importIn{name, tar})
}

// ReadFile reads a file of an agent that people edit, and its hash.
func (c *Client) ReadFile(ctx context.Context, ref, name string) (content []byte, hash string, err error) {
	resp, err := readFile.send(ctx, c, fileIn{ref, name}, "")
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	content, err = io.ReadAll(resp.Body)
	return content, strings.Trim(resp.Header.Get("ETag"), `"`), err
}

// WriteFile publishes a file of an agent if it still has that hash. Errors:
// *Conflict with what stands there now, *Unfit.
func (c *Client) WriteFile(ctx context.Context, ref, name string, content []byte, hash string) error {
	if hash != "" {
		hash = `"` + hash + `"`
	}
	_, err := writeFile.call(ctx, c, writeIn{ref, name, hash, bytes.NewReader(content)})
	return err
}

// Switch changes the model of an agent; see Folders.
func (c *Client) Switch(ctx context.Context, ref, model string) (Choice, error) {
	return switchModel.call(ctx, c, agentBody[modelBody]{ref, modelBody{model}})
}
