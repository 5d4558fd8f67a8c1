package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/form"
	"daycare/engine/message"
)

// Options are the settings of the connector:
//
//	connectors:
//	  - id: openai
//	    type: openai
//	    agentId: ""   # the agent behind the model "openai"; "": one per conversation
type Options struct {
	ID      string `json:"id"`
	AgentID string `json:"agentId,omitempty"`
}

// Validate reports what is wrong with o.
func (o Options) Validate() error {
	if o.ID == "" {
		return errors.New("connector without an id")
	}
	return nil
}

// Kind is how settings make a connector.
var Kind = connectors.Of("openai", nil, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Host.Directory)
})

// A Connector translates between OpenAI's API and agents.
type Connector struct {
	id, agent string
	directory chat.Directory // nil: no agent of a conversation is found before its first message
}

var _ control.Translator = (*Connector)(nil)

// New makes the connector that o describes.
func New(o Options, directory chat.Directory) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("openai %q: %w", o.ID, err)
	}
	return &Connector{id: o.ID, agent: o.AgentID, directory: directory}, nil
}

// ID is the connector's id in settings, and the model that has an agent for each conversation.
func (c *Connector) ID() string { return c.id }

// Run waits until ctx ends: requests come through the control API.
func (c *Connector) Run(ctx context.Context, _ message.Deliver) error {
	message.Up(ctx)
	<-ctx.Done()
	return nil
}

// Answers is false: an answer goes out on the request that asked, and stays in history.
func (c *Connector) Answers(message.Address) bool { return false }

// Send refuses: nobody can be reached who did not ask.
func (c *Connector) Send(context.Context, message.Outgoing) (string, error) {
	return "", &message.NotSent{Final: true, Err: errors.New("clients of the OpenAI format read answers from their own requests")}
}

// Models are the connector's own model, then the agents that users talk to.
func (c *Connector) Models(ctx context.Context, line control.Line) ([]control.ForeignModel, error) {
	agents, err := line.Agents(ctx)
	if err != nil {
		return nil, err
	}
	list := []control.ForeignModel{}
	if !line.Restricted() {
		list = append(list, c.own())
	}
	for _, a := range agents {
		if (a.Type == "user" || a.Type == "permanent") && a.State != event.Ended {
			list = append(list, model(a, agents))
		}
	}

	return list, nil
}

// own is the model that stands for the connector.
func (c *Connector) own() control.ForeignModel {
	return control.ForeignModel{ID: c.id, Object: "model", OwnedBy: "daycare", Name: c.id}
}

// model is an agent as a model: under its name if no other agent has it, else under its handle.
func model(a event.Agent, all []event.Agent) control.ForeignModel {
	id := a.Handle
	same := func(b event.Agent) bool { return b.ID != a.ID && strings.EqualFold(b.Name, a.Name) }
	if a.Type == "permanent" && a.Name != "" && !slices.ContainsFunc(all, same) {
		id = a.Name
	}
	m := control.ForeignModel{ID: id, Object: "model", OwnedBy: "daycare", Name: cmp.Or(a.Name, a.Handle)}
	if a.LastAt != nil {
		m.Created = a.LastAt.Unix()
	}

	return m
}

// Model is the model with a name, by which any agent can be meant that the caller knows.
func (c *Connector) Model(ctx context.Context, line control.Line, name string) (control.ForeignModel, error) {
	if name == c.id && !line.Restricted() {
		return c.own(), nil
	}
	id, err := c.resolve(ctx, line, name)
	if err != nil {
		return control.ForeignModel{}, err
	}
	m := c.own()
	m.ID, m.Name = name, name
	agents, err := line.Agents(ctx)
	for _, a := range agents {
		if a.ID == id {
			m = model(a, agents)
			m.ID = name
		}
	}

	return m, err
}

// resolve finds the agent that a model names. Its error suggests others.
func (c *Connector) resolve(ctx context.Context, line control.Line, name string) (string, error) {
	id, err := line.Resolve(ctx, name)
	if !errors.Is(err, message.ErrUnknownAgent) {
		return id, err
	}
	models, lerr := c.Models(ctx, line)
	if lerr != nil {
		return "", lerr
	}
	var names []string
	for _, m := range models {
		names = append(names, m.ID)
	}

	const most = 10
	hint := "there are: " + strings.Join(names[:min(len(names), most)], ", ")
	if len(names) == 0 {
		hint = "this token may talk to no agent"
	} else if near := form.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}

	return "", fmt.Errorf("%w: %q; %s", message.ErrUnknownAgent, name, hint)
}
