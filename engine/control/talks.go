package control

import (
	"context"
	"fmt"
	"strings"

	"daycare/engine/message"
)

// talks post what is said to an agent, and the orders about its conversation.
type talks struct {
	agents  Agents
	folders Folders
}

// reset is stop and reset: who asks for an empty slate does not want to wait for
// the current turn.
func (t talks) reset(ctx context.Context, in anAgent) (message.Receipt, error) {
	return t.order(ctx, in.ID, message.Reset, "")
}

func (t talks) compact(ctx context.Context, in anAgent) (message.Receipt, error) {
	return t.order(ctx, in.ID, message.Compact, "")
}

// order posts an item that is not a message.
func (t talks) order(ctx context.Context, id string, kind message.Kind, text string) (message.Receipt, error) {
	return t.deliver(ctx, message.Incoming{Agent: id, Kind: kind, Text: strings.TrimSpace(text), From: callerAddress(ctx)})
}

// deliver hands an item to the engine. A reset also stops the current turn:
// before, so that the reset is what comes next; after, where only the engine
// knows which agent the message is for.
func (t talks) deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	if in.Kind == message.Reset && in.Agent != "" {
		if _, err := t.agents.Stop(ctx, in.Agent, ""); err != nil {
			return message.Receipt{}, err
		}
	}

	r, err := t.agents.Deliver(ctx, in)
	if err == nil && in.Kind == message.Reset && in.Agent == "" && !r.Duplicate {
		_, err = t.agents.Stop(ctx, r.Agent, "")
	}

	return r, err
}

// rewind posts the order: only the agent itself writes its history.
func (t talks) rewind(ctx context.Context, in agentBody[rewindBody]) (message.Receipt, error) {
	to := strings.TrimSpace(in.Body.To)
	if err := t.folders.Rewindable(ctx, in.ID, to); err != nil {
		return message.Receipt{}, err
	}

	return t.order(ctx, in.ID, message.Rewind, to)
}

func (t talks) mark(ctx context.Context, in agentBody[markBody]) (message.Receipt, error) {
	if err := checkpoint("name", in.Body.Name); err != nil {
		return message.Receipt{}, err
	}
	return t.order(ctx, in.ID, message.Mark, in.Body.Name)
}

// checkpoint refuses a name that a rewind would take for something else: a number is that of a record, nothing is the newest turn.
func checkpoint(field, name string) error {
	if strings.Trim(strings.TrimSpace(name), "0123456789") != "" {
		return nil
	}
	return &Invalid{Field: field, Reason: fmt.Sprintf("found %q; the name of a checkpoint must not be a number", name)}
}
