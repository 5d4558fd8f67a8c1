package control

import (
	"encoding/json"
	"fmt"
	"time"

	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// Limits of one request, in bytes.
const (
	// MaxFileBytes bounds the files of one message together, decoded.
	MaxFileBytes = 20 << 20
	// maxMessageBody fits MaxFileBytes in base64 and a text of 1 MiB in which
	// every byte is escaped (\u0000).
	maxMessageBody = MaxFileBytes/3*4 + 7<<20
	// maxBody bounds every other body.
	maxBody = 2 << 20
)

// A Message is the body of POST /v1/agents/{id}/messages and /v1/messages.
type Message struct {
	Text  string       `json:"text"`
	Kind  message.Kind `json:"kind,omitempty"` // message (default), system_message, reset, compact
	Files []File       `json:"files,omitempty"`
	// Origin and Silent apply to system_message: who sends it (default "system"), and
	// whether it is added to the conversation without starting a turn.
	Origin string `json:"origin,omitempty"`
	Silent bool   `json:"silent,omitempty"`
	// Queue overrides how a working agent handles the message: steer, in the current turn,
	// or followup, in a separate turn after it.
	Queue message.Queue `json:"queue,omitempty"`
	// Untrusted says that the text comes from a stranger: the turn that reads it is marked,
	// and asks again before it uses permissions granted "always" outside the workspace.
	Untrusted bool `json:"untrusted,omitempty"`
	// ID is the id of the item, if the caller chooses one: 16 to 64 of a-z and 0-9. A message with
	// the id of another one is that one, sent again.
	ID string `json:"id,omitempty"`
	// Dedupe makes sending again harmless: the same key for the same agent within
	// 7 days is the same item.
	Dedupe string `json:"dedupe,omitempty"`
	// Context is the message id, the id of the message that it answers, and the sender's name.
	Context message.Context `json:"context,omitzero"`
	// Route is where the answer goes, if not to the address of the descriptor.
	Route *message.Address `json:"route,omitempty"`
	// The descriptor selects the agent. /v1/messages requires it; on the route of an agent it
	// only says who the sender is.
	Connector string `json:"connector,omitempty"`
	UserID    string `json:"userId,omitempty"`
	ChannelID string `json:"channelId,omitempty"`
	ThreadID  string `json:"threadId,omitempty"`
	// Wait requests a stream of the item's turn instead of a receipt.
	Wait bool `json:"wait,omitempty"`
}

// A File of a Message: a path on this machine (unix socket only), a name with its content, or the
// id of a file that daycare already stores.
type File struct {
	Path string `json:"path,omitempty"` // absolute
	Name string `json:"name,omitempty"`
	Data []byte `json:"data,omitempty"` // base64 in JSON
	ID   string `json:"id,omitempty"`
}

// An Answer is the body of POST /v1/permissions/{token}.
type Answer struct {
	Decision string `json:"decision"` // once, always, prefix, deny
	// By says who decided, if the caller knows better than the API. It is ignored except on
	// the unix socket.
	By string `json:"by,omitempty"`
}

// Bodies of answers that are not a snapshot of package event.
type (
	agentsBody struct {
		Agents []event.Agent `json:"agents"`
	}
	inboxBody struct {
		Items []event.Waiting `json:"items"`
	}
	asksBody struct {
		Permissions []event.Ask `json:"permissions"`
	}
	toolsBody struct {
		Tools []ToolInfo `json:"tools"`
	}
	stoppedBody struct {
		Stopped bool `json:"stopped"`
	}
	trashBody struct {
		Trash string `json:"trash"`
	}
	reloadBody struct {
		Findings []finding.Finding `json:"findings"`
	}
	empty struct{}
)

// A Gap is the data of `event: gap`: events after From and before To can no longer be replayed.
// Both are event ids; one that is not known is empty.
type Gap struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// GapType is the Type of a RawEvent that contains a Gap.
const GapType event.Type = "gap"

// A RawEvent is an event as a client reads it: its head, and its data as JSON.
type RawEvent struct {
	ID    string          `json:"id"`
	Type  event.Type      `json:"type"`
	At    time.Time       `json:"at"`
	Agent string          `json:"agent"`
	Turn  string          `json:"turn"`
	Data  json.RawMessage `json:"-"`
}

// Decode decodes the event's data into v, one of the bodies of package event or a Gap.
func (e RawEvent) Decode(v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("decode event %s: %w", e.Type, err)
	}
	return nil
}

// Body decodes the event's data as a T: Body[event.Delta](e).
func Body[T any](e RawEvent) (T, error) {
	var v T
	err := e.Decode(&v)
	return v, err
}
