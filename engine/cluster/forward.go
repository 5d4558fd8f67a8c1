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
	"daycare/engine/event"
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
	Long  bool       `json:"long,omitempty"` // that of the item
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
	var a answer
	if err := n.inquire(ctx, callSubject, node, call{agent, it, it.Long}, &a); err != nil {
		return message.Receipt{}, err
	}

	return a.Receipt, a.wrong(node)
}

// inquire sends something to a subject of another machine, and decodes its answer. *message.Elsewhere: it does not answer.
func (n *requests) inquire(ctx context.Context, subject, node string, what, into any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, forwardFor)
	defer cancel()
	reply, err := n.conn.RequestWithContext(asking, subject+node, data)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", &message.Elsewhere{Node: node}, err)
	}
	if err := json.Unmarshal(reply.Data, into); err != nil {
		return fmt.Errorf("answer of machine %s: %w", node, err)
	}

	return nil
}

// wrong is the error in an answer of a machine; nil: none is.
func (a answer) wrong(node string) error {
	switch {
	case a.Moved:
		return &message.Elsewhere{Node: node}
	case a.Error == "":
		return nil
	}
	if f := fault.ByCode(a.Code); f != nil {
		return f.Says("%s", a.Error)
	}

	return errors.New(a.Error)
}

// refusal is an answer with an error; nil: without one.
func refusal(err error) answer {
	switch {
	case err == nil:
		return answer{}
	case errors.Is(err, disk.ErrFenced), errors.As(err, new(*message.Elsewhere)):
		return answer{Moved: true}
	}
	code, _ := fault.Find(err).Wire()

	return answer{Code: code, Error: err.Error()}
}

// Serve answers the machines that forward items, with posted, until ctx ends.
func (n *requests) Serve(ctx context.Context, posted func(context.Context, string, inbox.Item) (message.Receipt, error)) error {
	return n.serve(ctx, callSubject, func(data []byte) any { return accept(ctx, data, posted) })
}

// serve answers what other machines send to a subject of this one, until ctx ends. They ask again where they get no answer.
func (n *requests) serve(ctx context.Context, subject string, answer func(data []byte) any) error {
	sub, err := n.conn.Subscribe(subject+n.boot, func(m *nats.Msg) {
		n.work.Go(func() {
			data, err := json.Marshal(answer(m.Data))
			if err == nil {
				err = m.Respond(data)
			}
			if err != nil {
				n.says.Info("another machine was not answered; it asks again", "subject", subject, "err", err)
			}
		})
	})
	if err != nil {
		return fmt.Errorf("answer the other machines: %w", err)
	}

	<-ctx.Done()
	unsubscribed(sub)

	return nil
}

// A question is about an item of an agent that another machine owns.
type question struct {
	Agent string `json:"agent"`
	Item  string `json:"item"`
}

// An itemAnswer is what became of it.
type itemAnswer struct {
	Posted event.Posted `json:"posted"`
	answer
}

// Item is that of engine.Peers.
func (n *requests) Item(ctx context.Context, node, agent, item string) (event.Posted, error) {
	var a itemAnswer
	if err := n.inquire(ctx, itemSubject, node, question{agent, item}, &a); err != nil {
		return event.Posted{}, err
	}

	return a.Posted, a.wrong(node)
}

// ServeItems answers the machines that ask what became of an item, with read, until ctx ends.
func (n *requests) ServeItems(ctx context.Context, read func(ctx context.Context, agent, item string) (event.Posted, error)) error {
	return n.serve(ctx, itemSubject, func(data []byte) any {
		var q question
		if err := json.Unmarshal(data, &q); err != nil {
			return itemAnswer{answer: answer{Error: fmt.Sprintf("a question about an item cannot be read: %v", err)}}
		}
		p, err := read(ctx, q.Agent, q.Item)

		return itemAnswer{p, refusal(err)}
	})
}

// A stateAnswer is the state of an agent.
type stateAnswer struct {
	State []byte `json:"state"`
	answer
}

// State is that of engine.Peers.
func (n *requests) State(ctx context.Context, node, agent string) ([]byte, error) {
	var a stateAnswer
	if err := n.inquire(ctx, stateSubject, node, question{Agent: agent}, &a); err != nil {
		return nil, err
	}

	return a.State, a.wrong(node)
}

// ServeStates answers the machines that ask for the state of an agent, with read, until ctx ends.
func (n *requests) ServeStates(ctx context.Context, read func(agent string) ([]byte, error)) error {
	return n.serve(ctx, stateSubject, func(data []byte) any {
		var q question
		if err := json.Unmarshal(data, &q); err != nil {
			return stateAnswer{answer: answer{Error: fmt.Sprintf("a question about an agent cannot be read: %v", err)}}
		}
		state, err := read(q.Agent)

		return stateAnswer{state, refusal(err)}
	})
}

// accept has posted make an item durable that another machine forwarded.
func accept(ctx context.Context, data []byte, posted func(context.Context, string, inbox.Item) (message.Receipt, error)) answer {
	var c call
	if err := json.Unmarshal(data, &c); err != nil {
		return answer{Error: fmt.Sprintf("a forwarded item cannot be read: %v", err)}
	}
	c.Item.Long = c.Long
	if crash.Bug("blindforward") {
		c.Item.ID, c.Item.Dedupe = cuid.New(), ""
	}
	receipt, err := posted(ctx, c.Agent, c.Item)
	a := refusal(err)
	if !a.Moved {
		a.Receipt = receipt
	}

	return a
}
