package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// forwardFor bounds how long the owner of an agent may take to accept an item. The item has
// its id by then, so it can be offered again.
const forwardFor = 2 * time.Second

// A call is an item for an agent that another machine owns.
type call struct {
	Agent string     `json:"agent"`
	Item  inbox.Item `json:"item"`
}

// An answer is what became of it.
type answer struct {
	Receipt message.Receipt `json:"receipt"`
	Moved   bool            `json:"moved,omitempty"` // that machine does not own the agent
	Code    string          `json:"code,omitempty"`  // of the fault
	Error   string          `json:"error,omitempty"`
}

// Forward is that of engine.Peers.
func (n *requests) Forward(ctx context.Context, node, agent string, it inbox.Item) (message.Receipt, error) {
	data, err := json.Marshal(call{agent, it})
	if err != nil {
		return message.Receipt{}, err
	}
	asking, cancel := context.WithTimeout(ctx, forwardFor)
	defer cancel()
	reply, err := n.conn.RequestWithContext(asking, callSubject+node, data)
	if err != nil {
		if ctx.Err() != nil {
			return message.Receipt{}, ctx.Err()
		}
		return message.Receipt{}, fmt.Errorf("%w: %w", &message.Elsewhere{Node: node}, err)
	}

	var a answer
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return message.Receipt{}, fmt.Errorf("answer of machine %s: %w", node, err)
	}
	switch {
	case a.Moved:
		return message.Receipt{}, &message.Elsewhere{Node: node}
	case a.Error == "":
		return a.Receipt, nil
	}
	if f := fault.ByCode(a.Code); f != nil {
		return a.Receipt, f.Says("%s", a.Error)
	}

	return a.Receipt, errors.New(a.Error)
}

// Serve answers the machines that forward items, with posted, until ctx ends.
func (n *requests) Serve(ctx context.Context, posted func(context.Context, string, inbox.Item) (message.Receipt, error)) error {
	sub, err := n.conn.Subscribe(callSubject+n.boot, func(m *nats.Msg) {
		n.work.Go(func() {
			data, err := json.Marshal(accept(ctx, m.Data, posted))
			if err == nil {
				err = m.Respond(data)
			}
			if err != nil {
				n.says.Info("forwarded item not answered; it is offered again", "err", err)
			}
		})
	})
	if err != nil {
		return fmt.Errorf("accept forwarded items: %w", err)
	}

	<-ctx.Done()
	return unsubscribed(sub)
}

// accept has posted make an item durable that another machine forwarded.
func accept(ctx context.Context, data []byte, posted func(context.Context, string, inbox.Item) (message.Receipt, error)) answer {
	var c call
	if err := json.Unmarshal(data, &c); err != nil {
		return answer{Error: fmt.Sprintf("a forwarded item cannot be read: %v", err)}
	}
	if crash.Bug("blindforward") {
		c.Item.ID, c.Item.Dedupe = cuid.New(), ""
	}
	receipt, err := posted(ctx, c.Agent, c.Item)
	switch {
	case err == nil:
		return answer{Receipt: receipt}
	case errors.Is(err, disk.ErrFenced), errors.As(err, new(*message.Elsewhere)):
		return answer{Moved: true}
	}
	code, _ := fault.Find(err).Wire()

	return answer{Receipt: receipt, Code: code, Error: err.Error()}
}
