package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

const (
	// usualWait is below the minute after which the official clients give a call up.
	usualWait = 50 * time.Second
	longWait  = time.Hour
	maxID     = 200
)

type sendIn struct {
	Agent string `json:"agent" jsonschema:"handle, name or id of an agent, from list_agents"`
	Text  string `json:"text" jsonschema:"the message, up to 1 MiB"`
	ID    string `json:"id,omitempty" jsonschema:"your own id: sent again with it, the message is delivered once and its answer returned"`
	Wait  *bool  `json:"wait,omitempty" jsonschema:"wait for the answer (default true)"`
	Limit int    `json:"timeoutSeconds,omitempty" jsonschema:"how long to wait, 1 to 3600 (default 50). The agent works on afterwards"`
}

// States of a message.
const (
	answered = "answered"
	working  = "working"  // queued, or in a turn
	approval = "approval" // its turn waits for its owner
	ended    = "ended"    // without an answer
	unknown  = "unknown"  // whether it was delivered
)

type sendOut struct {
	State     string `json:"state" jsonschema:"answered, working, approval (its owner is asked), ended (no answer), or unknown"`
	Answer    string `json:"answer,omitempty" jsonschema:"what the agent says, Markdown"`
	ID        string `json:"id" jsonschema:"the id of the message: send it again with this id to keep waiting"`
	Agent     string `json:"agent"`
	Item      string `json:"item,omitempty" jsonschema:"the message in the agent's inbox"`
	Duplicate bool   `json:"duplicate,omitempty" jsonschema:"the id was used before: this is about the message that was sent first"`
	Note      string `json:"note,omitempty" jsonschema:"what to know or do"`
}

func (d *Door) addSend() {
	sdk.AddTool(d.server, &sdk.Tool{
		Name: "send_message", Title: "Send a message to an agent",
		Description: "Send a message to an agent of daycare and wait for its answer. The message is durable once it is accepted: the " +
			"agent answers it even if this call is cancelled or the connection breaks. If the answer takes longer than you wait, " +
			"call again with the same id, or look with read_history. Give an id when you may have to repeat a call: it is kept for " +
			"7 days.",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(false), IdempotentHint: false, OpenWorldHint: new(true)},
	}, d.send)
}

func (d *Door) send(ctx context.Context, r *sdk.CallToolRequest, in sendIn) (*sdk.CallToolResult, sendOut, error) {
	limit := time.Duration(cmp.Or(in.Limit, int(usualWait/time.Second))) * time.Second
	switch {
	case len(in.ID) > maxID:
		return nil, sendOut{}, fmt.Errorf("id has %d bytes, allowed: %d", len(in.ID), maxID)
	case limit < time.Second || limit > longWait:
		return nil, sendOut{}, fmt.Errorf("timeoutSeconds is %d, allowed: 1 to %d", in.Limit, longWait/time.Second)
	}
	p := peerOf(ctx)
	agent, err := d.agent(ctx, p, in.Agent)
	if err != nil {
		return nil, sendOut{}, err
	}

	out := sendOut{ID: cmp.Or(in.ID, rand.Text()), Agent: agent.Handle}
	m := d.message(r, p, in.Text, out.ID)
	if in.Wait != nil && !*in.Wait {
		receipt, err := p.API.Send(ctx, agent.ID, m)
		if err != nil {
			return nil, out, say(err)
		}
		out.State, out.Item, out.Duplicate = working, receipt.Item, receipt.Duplicate
		out.Note = "accepted; the answer will be in read_history, or send it again with this id to wait for it"
		return shown(out), out, nil
	}

	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	progress := newProgress(ctx, r)
	outcome, err := p.API.Stream(waiting, agent.ID, m, func(e control.RawEvent) {
		if e.Type == event.ItemQueued {
			item, _ := control.Body[event.Item](e)
			out.Item, out.Duplicate = item.Item, item.Duplicate
		}
		progress.tell(e)
	})
	if err := out.end(outcome, err, waiting); err != nil {
		return nil, out, err
	}

	return shown(out), out, nil
}

// message is what goes into the inbox. It has a turn of its own, so that its answer is an answer
// to it, and its answer goes to whoever waits for it and not to the agent's chat.
func (d *Door) message(r *sdk.CallToolRequest, p Peer, text, id string) control.Message {
	from := message.Address{Connector: Connector, ChannelID: p.Name}
	return control.Message{
		Text: text, Kind: message.Text, Queue: message.Followup, Untrusted: true,
		Dedupe:    Connector + ":" + p.Name + ":" + id,
		Connector: from.Connector, ChannelID: from.ChannelID, UserID: p.Name, Route: &from,
		Context: message.Context{MessageID: id, Sender: sender(r)},
	}
}

// sender is what the client calls itself.
func sender(r *sdk.CallToolRequest) string {
	name := ""
	if init := r.Session.InitializeParams(); init != nil && init.ClientInfo != nil {
		name = cmp.Or(init.ClientInfo.Title, init.ClientInfo.Name)
	}
	name = oneLine(name)
	if runes := []rune(name); len(runes) > 60 {
		name = string(runes[:60])
	}

	return strings.TrimSpace(name + " (MCP client)")
}

// end fills in how the waiting ended. The error is one of a message that was not accepted.
func (s *sendOut) end(o event.Outcome, err error, waiting context.Context) error {
	const again = "call send_message again with this id to keep waiting, or look with read_history"
	switch {
	case err == nil:
		s.outcome(o)
	case s.Item == "" && waiting.Err() == nil && !errors.Is(err, control.ErrNotRunning):
		return say(err)
	case s.Item == "":
		s.State = unknown
		s.Note = "it is not known whether the message arrived: call send_message again with this id, which delivers it once"
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		s.State, s.Note = working, "the agent is still working on it; "+again
	case waiting.Err() != nil:
		s.State, s.Note = working, "the call was cancelled, but the message was accepted and the agent continues with it; "+again
	default:
		s.State, s.Note = working, "daycare stopped or the connection to it broke. The message is safe; "+again
	}

	return nil
}

// outcome fills in the end of a turn.
func (s *sendOut) outcome(o event.Outcome) {
	s.State, s.Answer = ended, o.Text
	switch o.Reason {
	case "done":
		s.State = answered
	case "waiting":
		s.State = approval
		s.Note = "the agent asked its owner for an approval (list_approvals shows it). It continues when the owner has answered; " +
			"the answer will be in read_history"
	case "budget":
		s.Note = "the agent's budget is used up; its owner has to raise it"
	case "canceled":
		s.Note = "the turn was stopped"
	case "limit", "loop":
		s.Note = "the turn ended at a limit of its tool calls; another message continues it"
	case "dropped":
		s.Note = "the message was removed from the inbox"
	default:
		s.Note = cmp.Or(o.Error, "the turn ended: "+o.Reason)
	}
	if s.Duplicate {
		s.Note = strings.TrimSpace("this id was used before: this is the answer to the message sent first. " + s.Note)
	}
}

// shown is the result for clients that show text only.
func shown(s sendOut) *sdk.CallToolResult {
	var parts []string
	if s.Answer != "" {
		parts = append(parts, s.Answer)
	}
	if s.State != answered || s.Note != "" {
		parts = append(parts, fmt.Sprintf("[%s: %s (id %s)]", s.State, s.Note, s.ID))
	}

	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(parts, "\n\n")}}}
}
