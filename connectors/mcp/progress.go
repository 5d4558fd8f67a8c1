package mcp

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/control"
	"daycare/engine/event"
)

// writingEvery is how often a client hears that an answer grows.
const writingEvery = 2 * time.Second

// A progress tells a client what the agent does while it waits.
type progress struct {
	ctx   context.Context
	call  *sdk.CallToolRequest
	token any
	steps float64
	bytes int       // of the answer so far
	last  time.Time // when the growing answer was last reported
}

func newProgress(ctx context.Context, r *sdk.CallToolRequest) *progress {
	return &progress{ctx: ctx, call: r, token: r.Params.GetProgressToken()}
}

// tell passes an event on, if the client asked for progress. Events are hints: one that does not
// arrive is not a failure.
func (p *progress) tell(e control.RawEvent) {
	if p.token == nil {
		return
	}
	text := p.text(e)
	if text == "" {
		return
	}

	p.steps++
	_ = p.call.Session.NotifyProgress(p.ctx, &sdk.ProgressNotificationParams{ProgressToken: p.token, Progress: p.steps, Message: text})
}

func (p *progress) text(e control.RawEvent) string {
	switch e.Type {
	case event.ItemQueued:
		return "accepted"
	case event.TurnStarted:
		return "the agent reads it"
	case event.ToolStarted:
		tool, _ := control.Body[event.Tool](e)
		return "uses the tool " + oneLine(tool.Name)
	case event.PermissionRequested:
		asked, _ := control.Body[event.Asked](e)
		return "asks its owner for the permission " + oneLine(asked.Tag)
	case event.Retry:
		return "the model's service failed; it is tried again"
	case event.MessageDelta:
		delta, _ := control.Body[event.Delta](e)
		p.bytes = delta.Offset + len(delta.Text)
		if time.Since(p.last) < writingEvery {
			return ""
		}
		p.last = time.Now()
		return fmt.Sprintf("writes its answer, %d bytes so far", p.bytes)
	}

	return ""
}
