package a2a

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/event"
	"daycare/engine/message"
)

// Options are the settings of the connector:
//
//	connectors:
//	  - id: a2a
//	    type: a2a
//	    agents:
//	      - agent: Ops
//	        description: Watches the servers and answers questions about them
//	    notify: ["nas.home:8443"]
type Options struct {
	ID     string      `json:"id"`
	Agents []Published `json:"agents"`
	// Notify are addresses in the owner's own network, as HOST:PORT, that notifications may go to.
	// To the Internet they go over https without being listed.
	Notify []string `json:"notify,omitempty"`
}

// A Published is an agent with a card.
type Published struct {
	Agent       string  `json:"agent" check:"required"` // handle, name or id
	Name        string  `json:"name,omitempty"`         // on the card; "": as the agent is called
	Description string  `json:"description" check:"required"`
	Skills      []Skill `json:"skills,omitempty"` // none: one that is the agent's description
}

// A Skill is what an agent can be asked for, as its card says it.
type Skill struct {
	ID          string   `json:"id" check:"required"`
	Name        string   `json:"name" check:"required"`
	Description string   `json:"description" check:"required"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"`
}

// Validate reports what is wrong with o.
func (o Options) Validate() error {
	var wrong []error
	if o.ID == "" {
		wrong = append(wrong, errors.New("connector without an id"))
	}
	if len(o.Agents) == 0 {
		wrong = append(wrong, errors.New("agents: missing, so no agent has a card"))
	}
	for i, a := range o.Agents {
		if a.Agent == "" || a.Description == "" {
			wrong = append(wrong, fmt.Errorf("agents[%d]: agent or description is missing", i))
		}
	}
	for i, to := range o.Notify {
		if !connectors.HostPort(to) {
			wrong = append(wrong, fmt.Errorf("notify[%d]: found %q, want HOST:PORT such as nas.home:8443", i, to))
		}
	}

	return errors.Join(wrong...)
}

// Kind is how settings make a connector.
var Kind = connectors.Of("a2a", nil, func(o Options, m connectors.Making) (connectors.Connector, error) {
	items, _ := m.Host.Agents.(Items)
	return New(o, items, m.Host.Waiting, m.Log)
})

// Items are the items of agents. Errors: inbox.ErrUnknown.
type Items interface {
	Item(ctx context.Context, agent, item string) (event.Posted, error)
}

// A Connector serves clients of A2A.
type Connector struct {
	o      Options
	items  Items // nil: notifications say less of a task
	log    *slog.Logger
	pushes pushes
	caller *http.Client
	routes func() routes // made with the first request
	busy   chan struct{} // a slot for each request
	large  chan struct{} // a slot for each large body that is read
}

// New makes the connector that o describes. What clients ask to be notified of is kept by keep.
func New(o Options, items Items, keep chat.Keeper, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("a2a %q: %w", o.ID, err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Connector{o: o, items: items, log: log.With("connector", o.ID), pushes: pushes{connector: o.ID, keep: keep},
		busy: make(chan struct{}, maxRequests), large: make(chan struct{}, maxLarge)}
	c.caller = newCaller(o.Notify, net.InterfaceAddrs)
	c.routes = sync.OnceValue(c.newRoutes)

	return c, nil
}

// ID is the connector's id in settings.
func (c *Connector) ID() string { return c.o.ID }

// Run waits until ctx ends: requests come through the control API.
func (c *Connector) Run(ctx context.Context, _ message.Deliver) error {
	message.Up(ctx)
	<-ctx.Done()
	return nil
}

// bad is the error of params that cannot be used.
func bad(format string, args ...any) error {
	return sdk.NewError(sdk.ErrInvalidParams, fmt.Sprintf(format, args...))
}

// unsupported is the error of what is allowed by the protocol and not done here.
func unsupported(format string, args ...any) error {
	return sdk.NewError(sdk.ErrUnsupportedOperation, fmt.Sprintf(format, args...))
}

// trimmed is a handle without its last slash, as it stands in a path.
func trimmed(handle string) string { return strings.TrimSuffix(handle, "/") }
