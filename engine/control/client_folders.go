package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"daycare/engine/event"
	"daycare/engine/message"
)

// Fork makes an agent that goes on from a record of another's history; 0 is the end
// of its newest turn.
func (c *Client) Fork(ctx context.Context, ref string, at int64, name string) (a event.Agent, err error) {
	return a, c.do(ctx, http.MethodPost, agentPath(ref, "fork"), forkBody{at, name}, &a)
}

// Rewind takes what follows a record or a mark out of the context; "" is the newest
// turn.
func (c *Client) Rewind(ctx context.Context, ref, to string) (r message.Receipt, err error) {
	return r, c.do(ctx, http.MethodPost, agentPath(ref, "rewind"), rewindBody{to}, &r)
}

// Mark names the place where the conversation is now.
func (c *Client) Mark(ctx context.Context, ref, name string) (r message.Receipt, err error) {
	return r, c.do(ctx, http.MethodPost, agentPath(ref, "mark"), markBody{name}, &r)
}

// Trash lists the agents that were removed, the newest first.
func (c *Client) Trash(ctx context.Context) ([]event.Trashed, error) {
	var b trashListBody
	err := c.do(ctx, http.MethodGet, "/v1/trash", nil, &b)
	return b.Trash, err
}

// Restore brings an agent back from the trash.
func (c *Client) Restore(ctx context.Context, ref string) (a event.Agent, err error) {
	return a, c.do(ctx, http.MethodPost, "/v1/trash/"+segment(ref)+"/restore", nil, &a)
}

// Import makes an agent of an exported one; name "" is the one it had.
func (c *Client) Import(ctx context.Context, tar io.Reader, name string) (a event.Agent, err error) {
	resp, err := c.upload(ctx, http.MethodPost, "/v1/import?name="+url.QueryEscape(name), tar, "application/x-tar", "")
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return a, fmt.Errorf("read answer of import: %w", gone(err))
	}
	return a, nil
}

// ReadFile reads a file of an agent that people edit, and its hash.
func (c *Client) ReadFile(ctx context.Context, ref, name string) (content []byte, hash string, err error) {
	resp, err := c.send(ctx, http.MethodGet, agentPath(ref, "files", name), nil, "")
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
	resp, err := c.upload(ctx, http.MethodPut, agentPath(ref, "files", name), bytes.NewReader(content), "text/plain", hash)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Switch changes the model of an agent; see Folders.
func (c *Client) Switch(ctx context.Context, ref, model string) (b Choice, err error) {
	return b, c.do(ctx, http.MethodPost, agentPath(ref, "model"), modelBody{model}, &b)
}

// upload sends a body that is not JSON.
func (c *Client) upload(ctx context.Context, method, path string, body io.Reader, kind, match string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://daycare"+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", kind)
	if match != "" {
		req.Header.Set("If-Match", `"`+match+`"`)
	}
	return c.roundTrip(req)
}
