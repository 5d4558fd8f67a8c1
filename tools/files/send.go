package files

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"

	"daycare/engine/beneath"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// maxSent is how large a file may be that is sent, in bytes: what most chats take.
const maxSent = 20 << 20

// A Say sends a file with a text to the chat that the call's answer goes to.
type Say func(ctx context.Context, call tools.Call, text string, f message.File) error

type sendArgs struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// The chat knows the call's id, so a call that is run again sends nothing twice.
var sendSpec = tools.Spec{Name: "send_file", Replay: tools.Idempotent,
	Description: "Send a file to the chat.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string"},
"text":{"type":"string"}},
"required":["path"],"additionalProperties":false}`)}

// NewSend makes the tool send_file. What is sent is a copy, made by o.Keep: what the
// agent may read now, however often it is tried.
func NewSend(o Options, say Say) tools.Tool {
	return sender{tool[sendArgs]{spec: sendSpec, base: newBase(o)}, say}
}

type sender struct {
	tool[sendArgs]
	say Say
}

// Needs is the approval of sending a file outside of the agent's folders.
func (t sender) Needs(call tools.Call) (*permission.Request, error) {
	return reading[sendArgs]{t.tool, func(a sendArgs) string { return a.Path }}.Needs(call)
}

// Run sends a file.
func (t sender) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	t.run = func(ctx context.Context, r *reach, a sendArgs) (tools.Result, error) { return t.send(ctx, r, call, a) }
	return t.tool.Run(ctx, call)
}

func (t sender) send(ctx context.Context, r *reach, call tools.Call, a sendArgs) (tools.Result, error) {
	p, err := r.file(a.Path, false)
	if err != nil {
		return tools.Result{}, err
	}
	defer p.close()
	name := r.shown(p.abs)
	if beneath.Links(p.info) > 1 { // it may be a file that is out of reach, under another name
		return tools.Result{}, refuse("%s has several names (hard links); it is not sent", name)
	}

	data, err := readAll(p, name, maxSent)
	if err != nil {
		return tools.Result{}, err
	}
	f, err := r.Keep(filepath.Base(p.abs), http.DetectContentType(data), data)
	if err != nil {
		return tools.Result{}, fmt.Errorf("keep %s: %w", name, err)
	}
	if a.Text == "" {
		a.Text = filepath.Base(p.abs)
	}
	if err := t.say(ctx, call, a.Text, f); err != nil {
		return tools.Result{}, fmt.Errorf("send %s: %w", name, err)
	}

	return tools.Result{Text: fmt.Sprintf("sent %s (%s)", name, size(f.Size))}, nil
}
