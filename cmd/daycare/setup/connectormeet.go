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

// Ask notes who wrote to a connector that lets nobody in yet, and tells them where to look.
func (a *addition) Ask(_ context.Context, s chat.Stranger) (chat.Reply, bool) {
	select {
	case a.knocks <- s:
	default: // there are enough to ask about
		return chat.Reply{}, true
	}
	return chat.Reply{Text: "Somebody is setting me up right now. If that is you: the terminal asks whether this is you."}, true
}

// Admit lets nobody in: there is nobody yet who could say so.
func (a *addition) Admit(context.Context, string, string, bool, string) (string, error) {
	return "", errNotYet
}

// errNotYet: the connector is being set up.
var errNotYet = errors.New("the connector is being set up")

// meet waits until somebody writes who says that they are the user.
func (a *addition) meet(ctx context.Context, c *term.App, conn connectors.Connector) (chat.Stranger, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- conn.Run(ctx, nothingYet)
	}()
	defer func() {
		cancel()
		for range ended { // until it has closed what it opened
		}
	}()
	signals := c.TakeSignals()
	c.Warn("Now write to it, from your own account. Ctrl-C ends this, and nothing is saved.")
	for {
		select {
		case <-signals:
			return chat.Stranger{}, term.ErrInterrupted
		case err := <-ended:
			return chat.Stranger{}, fmt.Errorf("wait for a message: %w\nnothing was saved", orError(err, "the connection ended"))
		case s := <-a.knocks:
			yes := make(chan bool, 1)
			go func() {
				yes <- c.Agrees(fmt.Sprintf("%q, id %s, wrote. Is this you?", s.Name, term.OneLine(s.From.UserID, 200)))
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

// nothingYet takes no message: nobody is on the allow list.
func nothingYet(context.Context, message.Incoming) (message.Receipt, error) {
	return message.Receipt{}, errNotYet
}

// greetTime bounds what the last word of the set-up may take.
const greetTime = 10 * time.Second

// greet tells the person whom the connector met that it is done. Nothing depends on it.
func (a *addition) greet(ctx context.Context, conn connectors.Connector, to chat.Stranger) {
	p, ok := conn.(chat.Platform)
	if !ok || to.From.UserID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	_ = p.Say(ctx, to.From, "", "It is done: I work for you now. I answer as soon as daycare runs.")
}
