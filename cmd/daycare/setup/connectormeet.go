package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/message"
)

// Ask records who wrote to the connector during setup, and tells them to look at the terminal.
func (a *addition) Ask(_ context.Context, s chat.Stranger) (chat.Reply, bool) {
	select {
	case a.knocks <- s:
	default: // enough strangers are queued
		return chat.Reply{}, true
	}

	return chat.Reply{Text: "I am being set up right now. If you are doing that, confirm in the terminal that this is you."}, true
}

// Admit rejects everyone: the connector has no owner yet.
func (a *addition) Admit(context.Context, string, string, bool, string) (string, error) {
	return "", errNotYet
}

// errNotYet: the connector is being set up.
var errNotYet = errors.New("the connector is being set up")

// meet waits for a message whose sender the user confirms to be themselves.
func (a *addition) meet(ctx context.Context, c *term.App, conn connectors.Connector) (chat.Stranger, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- conn.Run(ctx, nothingYet)
	}()
	defer func() {
		cancel()
		for range ended { // wait until it has closed its connections
		}
	}()

	signals := c.TakeSignals()
	c.Warn("Now send it a message from your own account. Ctrl-C stops without saving.")
	for {
		select {
		case <-signals:
			return chat.Stranger{}, term.ErrInterrupted
		case err := <-ended:
			return chat.Stranger{}, fmt.Errorf("wait for a message: %w\nnothing was saved", orError(err, "the connection ended"))
		case s := <-a.knocks:
			yes := make(chan bool, 1)
			go func() {
				yes <- c.Agrees(fmt.Sprintf("Message from %q, id %s. Is this you?", s.Name, term.OneLine(s.From.UserID, 200)))
			}()

			select {
			case <-signals:
				return chat.Stranger{}, term.ErrInterrupted
			case is := <-yes:
				if is {
					return s, nil
				}
				c.Note("waiting for another message …")
			}
		}
	}
}

// nothingYet accepts no message: the allow list is still empty.
func nothingYet(context.Context, message.Incoming) (message.Receipt, error) {
	return message.Receipt{}, errNotYet
}

// greetTime limits sending the last message of the setup.
const greetTime = 10 * time.Second

// greet tells the user in the chat that the setup is complete. An error does not matter.
func (a *addition) greet(ctx context.Context, conn connectors.Connector, to chat.Stranger) {
	p, ok := conn.(chat.Platform)
	if !ok || to.From.UserID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	_ = p.Say(ctx, to.From, "", "Setup is complete. I answer you as soon as daycare runs.")
}
