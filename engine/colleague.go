package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidwall/sjson"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
)

// ErrNotMaker: only the agent that made a permanent agent may change it.
var ErrNotMaker = errors.New("another agent or a user made that agent: ask them to change it")

// Update changes the description and the system prompt of a permanent agent that the
// asker made; the rest of its descriptor stays as it is, byte for byte. It takes effect
// with the agent's next turn. Errors: ErrNotMaker, *Changed if someone saved the
// descriptor at the same time, disk.ErrAway if another machine has the agent.
func (f *Family) Update(ctx context.Context, asker, id, description, systemPrompt string) (event.Agent, error) {
	meta, _ := f.place.index.Get(id) // of one that is not there nothing is true
	if meta.Descriptor.Type != address.Permanent || meta.Descriptor.CreatedBy != asker {
		return event.Agent{}, ErrNotMaker
	}
	release, err := f.actors.hold(id)
	if there, ok := errors.AsType[*message.Elsewhere](err); ok {
		return event.Agent{}, fmt.Errorf("%w: it can be changed when its work is done: %w", disk.ErrAway, there)
	}
	if err != nil {
		return event.Agent{}, err
	}
	defer release()
	now, err := f.archive.ReadFile(ctx, id, address.File)
	if err != nil {
		return event.Agent{}, err
	}

	changed := now.Content
	for member, value := range map[string]string{"description": description, "systemPrompt": systemPrompt} {
		if value == "" {
			continue // not said: it stays
		}
		if changed, err = sjson.SetBytes(changed, member, value); err != nil {
			return event.Agent{}, fmt.Errorf("change %s of agent %s: %w", member, id, err)
		}
	}

	if _, err := f.archive.WriteFile(ctx, id, address.File, changed, now.Hash); err != nil {
		return event.Agent{}, err
	}

	return f.directory.Agent(ctx, id)
}

// Work returns the newest unfinished item of an agent; "" if there is none.
func (f *Family) Work(_ context.Context, asker, id string) (item string, err error) {
	if _, ok := f.place.index.Get(id); !ok {
		return "", message.ErrUnknownAgent
	}
	if !f.Reads(asker, id) {
		return "", ErrStranger
	}
	if open := f.actors.waiting(id); len(open) > 0 {
		item = open[len(open)-1].ID
	}

	return item, nil
}

// Session is the conversation of an agent that the asker may know of.
func (f *Family) Session(ctx context.Context, asker, id string) (event.Session, error) {
	if !f.Reads(asker, id) {
		return event.Session{}, ErrStranger
	}
	a, err := f.directory.Agent(ctx, id)
	if err != nil {
		return event.Session{}, err
	}

	n, err := record.SessionOf(f.place.folder(id)) // also what came since the agent slept
	if err != nil {
		return event.Session{}, err
	}
	s := event.Session{Agent: id, State: a.State, Queued: a.Queued, Title: n.Title, Messages: n.Messages,
		PromptTokens: n.PromptTokens, CompletionTokens: n.CompletionTokens,
		Context: a.Context, Cost: n.Cost}
	if !n.StartedAt.IsZero() {
		s.StartedAt = &n.StartedAt.Time
	}

	return s, nil
}
