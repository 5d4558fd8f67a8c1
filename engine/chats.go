package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/message"
)

// chats are where agents speak of their own accord.
type chats struct {
	relations  *relations
	connectors *connectors
	senders    *senders
}

// sayLimit is how long Say waits until a chat has taken a message.
const sayLimit = time.Minute

// ErrNoChat: there is no chat that a message could be sent to.
var ErrNoChat = errors.New("the user reads this conversation directly, so there is no chat to send to: just answer")

// Say sends a text of an agent, and files with it, to its own chat, at the address to, or to the chat
// of another agent of the same user. key is the same at every try, for the
// platforms that know such keys.
func (ch *chats) Say(ctx context.Context, asker, ref string, to message.Address, key, text string,
	files ...message.File) error {
	if ref != "" {
		id, err := ch.relations.place.index.Resolve(ref)
		if err != nil {
			return err
		}
		if !ch.relations.knows(asker, id) {
			return ErrStranger
		}

		meta, _ := ch.relations.place.index.Get(id)
		to = meta.Descriptor.Address()
	}
	if to.Connector == "" || !ch.connectors.answers(to) {
		return ErrNoChat
	}

	results := make(chan message.Result, 64)
	ch.senders.send(message.Promise{Agent: asker,
		Outgoing: message.Outgoing{ID: key, To: to, Text: text, Files: files}, Since: crash.Now(), Urgent: true,
		Report: func(result message.Result) {
			select {
			case results <- result:
			default: // nobody reads it any more
			}
		}})

	return delivered(ctx, results)
}

// ErrNoReaction: the chat does not take reactions.
var ErrNoReaction = errors.New("this chat does not support reactions: say it in words")

// Speaks reports whether an agent can send a message to a chat at all: to its own, or, if any platform with chats
// is connected, to the chat of another agent of the same user.
func (ch *chats) Speaks(d address.Descriptor) bool {
	return ch.connectors.answers(d.Address()) || ch.connectors.any(func(c Connector) bool {
		_, partly := c.(Answerer) // a hook, which has no chats
		return !partly
	})
}

// Reacts reports whether a connector's platform takes reactions.
func (ch *chats) Reacts(connector string) bool {
	c, _ := ch.connectors.get(connector)
	_, ok := c.(Reactor)
	return ok
}

// React puts an emoji under a message of a chat.
func (ch *chats) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	c, _ := ch.connectors.get(to.Connector)
	r, ok := c.(Reactor)
	if !ok {
		return ErrNoReaction
	}
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()

	return guard(func() error { return r.React(ctx, to, messageID, emoji) })
}

// delivered waits until all parts of a message are delivered or one is given up.
func delivered(ctx context.Context, results <-chan message.Result) error {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	last := "no answer from the chat yet"
	for parts := 0; ; {
		select {
		case result := <-results:
			switch {
			case result.Delivered():
				if parts++; parts >= result.Parts {
					return nil
				}
			case result.Final:
				return errors.New(result.Error)
			case result.Error != "":
				last = result.Error
			}
		case <-ctx.Done():
			return fmt.Errorf("not delivered yet, and tried further: %s", last)
		}
	}
}
