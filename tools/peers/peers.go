package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// Agents is what the tools need of the engine. Agents are named by id, unique prefix
// of it, name or handle.
type Agents interface {
	// Post puts a message of agent in.Origin into the inbox of in.Agent; "" is the
	// sender's parent if that speaks with a person, else the agent that a person
	// wrote to last. It returns nil once the message is durable.
	Post(ctx context.Context, in message.Incoming) (message.Receipt, error)
	// Create makes an agent, or finds the one that has the id of d, and posts its
	// first message, unless the text is empty.
	Create(ctx context.Context, d address.Descriptor, first message.Incoming) (event.Agent, error)
	// List is all agents that asker may know of.
	List(ctx context.Context, asker string) ([]event.Agent, error)
	// Target is the agent that a message of asker to ref goes to.
	Target(asker, ref string) (id string, err error)
	// History is the newest records of an agent.
	History(ctx context.Context, asker, agent string, limit int) (event.Page, error)
	// Update changes the description and the system prompt of a permanent agent that
	// asker made, by its id; "" stays as it is.
	Update(ctx context.Context, asker, id, description, systemPrompt string) (event.Agent, error)
	// Session is the conversation of an agent, by its id.
	Session(ctx context.Context, asker, id string) (event.Session, error)
	// Stop ends an agent that asker started.
	Stop(ctx context.Context, asker, agent string) (event.Agent, error)
}

// An Awaiter is Agents whose answers can be waited for.
type Awaiter interface {
	// Work is the newest item that an agent has not finished, by its id; "" if it has
	// nothing to do.
	Work(ctx context.Context, asker, id string) (item string, err error)
	Await(ctx context.Context, agent, item string) (event.Outcome, error)
}

// A Courier brings a message of an agent to a chat of people.
type Courier interface {
	// Say sends text to the chat of an agent, asker's own if it is "", or to the
	// address where that is not empty. key is the same at every try.
	Say(ctx context.Context, asker, agent string, to message.Address, key, text string, files ...message.File) error
}

// A Reactor puts an emoji under a message of a chat. The same one again changes
// nothing.
type Reactor interface {
	React(ctx context.Context, to message.Address, messageID, emoji string) error
}

// New makes the tools. sessions_send can wait if a is an Awaiter, and there are
// message if it is a Courier, set_reaction if it is a Reactor.
func New(a Agents) []tools.Tool {
	p := &peers{a}
	list := []tools.Tool{
		p.startBackground(), p.spawn(), p.send(), p.sessionsSend(),
		p.list(), p.status("agent_status", "Show what an agent is doing, what is queued for it, and its cost."), p.stop(),
		p.sessionsList(), p.sessionsHistory(), p.sessionsStatus(),
		p.running(), p.createPermanent(),
	}
	if c, ok := a.(Courier); ok {
		list = append(list, p.message(c))
	}
	if r, ok := a.(Reactor); ok {
		list = append(list, p.react(r))
	}

	return list
}

// Strangers is the optional ability of Agents to tell whose agents are whose.
type Strangers interface {
	// Stranger is the id of the agent that ref names, if it works for someone who is
	// neither the asker's person nor an owner.
	Stranger(asker, ref string) (id string, ok bool)
	// Related reports whether two agents work for one person.
	Related(asker, ref string) bool
}

// needs is the approval of a message to someone else, in a turn that has read text from
// outside: what it says may be what that text said.
func (p *peers) needs(call tools.Call, ref, text string) *permission.Request {
	s, ok := p.agents.(Strangers)
	if !ok || len(call.Sources) == 0 {
		return nil
	}
	id, ok := s.Stranger(call.Agent, ref)
	if !ok {
		return nil
	}

	return &permission.Request{Tag: permission.Message{Agent: id}.Tag(), Reason: "write to another user's agent", AskAlways: true,
		Detail: permission.Detail{Command: text}}
}

type peers struct{ agents Agents }

// A tool is a spec and a function.
type tool struct {
	spec tools.Spec
	run  func(context.Context, tools.Call) (tools.Result, error)
	asks func(tools.Call) *permission.Request // nil: nothing is asked
}

// Needs is the approval that a call needs.
func (t *tool) Needs(call tools.Call) (*permission.Request, error) {
	if t.asks == nil {
		return nil, nil
	}
	return t.asks(call), nil
}

// Spec describes the tool.
func (t *tool) Spec() tools.Spec { return t.spec }

// Run runs it.
func (t *tool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	res, err := t.run(ctx, call)
	if err != nil && ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	if err != nil {
		return tools.Errorf("%s: %s", t.spec.Name, reason(err)), nil
	}

	return res, nil
}

// makeTool makes a tool whose arguments are an A.
func makeTool[A any](name, description, schema string, run func(context.Context, tools.Call, A) (tools.Result, error)) *tool {
	spec := tools.Spec{Name: name, Description: description, Replay: tools.Idempotent,
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,` + schema + `}`)}
	return &tool{spec: spec, run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
		var args A
		if err := json.Unmarshal(call.Arguments, &args); err != nil {
			return tools.Errorf("%s: the arguments do not fit: %v", name, err), nil
		}
		return run(ctx, call, args)
	}}
}

// reason puts an error into words that the model can act on.
func reason(err error) string {
	var several *address.Ambiguous
	switch {
	case errors.As(err, &several):
		return several.Error() + "; say which"
	case errors.Is(err, message.ErrUnknownAgent):
		return err.Error() + "; agents_list names those there are"
	}

	return err.Error()
}

// Key is the dedupe key of what a call posts.
func Key(call tools.Call) string { return "call:" + call.Agent + "/" + call.ID }

// text is what a call posts, as a message of the calling agent.
func text(call tools.Call, to, text string) message.Incoming {
	return message.Incoming{Agent: to, Kind: message.System, Origin: call.Agent, Dedupe: Key(call), Text: text, Hops: call.Hops,
		Source: message.Relayed(call.Agent, call.Sources)}
}

func said(format string, args ...any) (tools.Result, error) {
	return tools.Result{Text: fmt.Sprintf(format, args...)}, nil
}
