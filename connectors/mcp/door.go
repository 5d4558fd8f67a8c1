package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/plain"
)

// Connector is the connector id of messages from MCP clients. No connector in the settings can
// have it.
const Connector = "mcp"

// An Offer is what the settings let clients reach.
type Offer struct {
	Agents []string // handles, names or ids
	Memory bool     // the notes of .daycare/memory
}

// Options of a Door.
type Options struct {
	Version string       // of daycare
	Home    string       // the .daycare folder
	Offer   func() Offer // as the settings are now
	Log     *slog.Logger // nil: says nothing
}

// A Peer is who is connected.
type Peer struct {
	Name string // stands for it in history: stdio, api, token:phone
	// API is the control API with the peer's rights.
	API *control.Client
	// Some: its rights are about some agents only, so it has nothing that is of all agents.
	Some bool
}

// A Door serves MCP clients.
type Door struct {
	o      Options
	server *sdk.Server
	local  Peer // of a pair of streams; those of requests come with each
}

// New makes a door. It starts nothing.
func New(o Options) *Door {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Door{o: o}
	d.server = sdk.NewServer(&sdk.Implementation{Name: "daycare", Title: "daycare", Version: o.Version}, &sdk.ServerOptions{
		Instructions: instructions, Logger: o.Log,
		// Lists are made when they are asked for, so nothing announces that one changed.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
	})
	d.addSend()
	d.addReaders()
	d.addResources()
	d.server.AddReceivingMiddleware(d.identify) // the last one runs first
	return d
}

const instructions = "daycare runs long-lived agents: each has an ongoing conversation, memory and tools. " +
	"Call list_agents to see whom you can talk to, then send_message. The conversation of an agent is shared with its other " +
	"users, so say who you are and what you need. An agent asks its owner before it does something risky; you cannot answer that."

// Serve talks with one client over a pair of streams until the client closes them or ctx ends.
func (d *Door) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, p Peer) error {
	d.local = p
	words := &oneAtATime{WriteCloser: out}
	err := d.server.Run(ctx, patient{&sdk.IOTransport{Reader: newSieve(in, words), Writer: words, MaxLineLength: maxBody + 1}})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the MCP client: %w", err)
	}

	return nil
}

type peerKey struct{}

// identify tells the handlers who calls.
func (d *Door) identify(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		p := d.local
		if extra := r.GetExtra(); extra != nil && extra.TokenInfo != nil {
			p, _ = extra.TokenInfo.Extra[tokenPeer].(Peer)
		}
		if p.API == nil {
			return nil, errNobody
		}
		return next(context.WithValue(ctx, peerKey{}, p), method, r)
	}
}

// errNobody: a request came without its peer, which is a mistake of this package.
var errNobody = errors.New("nobody is known to have sent this request")

// peerOf is who calls. Every handler runs behind identify.
func peerOf(ctx context.Context) Peer { return ctx.Value(peerKey{}).(Peer) }

// offered are the agents that a peer reaches, in the order of the settings. Those that are not
// there, or not for this peer, are left out.
func (d *Door) offered(ctx context.Context, p Peer) (list []event.Agent, _ error) {
	seen := map[string]bool{}
	for _, ref := range d.o.Offer().Agents {
		a, err := p.API.Agent(ctx, ref)
		switch {
		case errors.Is(err, fault.UnknownAgent) || errors.Is(err, fault.Ambiguous):
			continue
		case err != nil:
			return nil, say(err)
		}
		if !seen[a.ID] {
			seen[a.ID] = true
			list = append(list, a)
		}
	}

	return list, nil
}

// agent is the offered agent that a client means by a handle, a name or an id. One that is not
// offered is the same as one that is not there.
func (d *Door) agent(ctx context.Context, p Peer, ref string) (event.Agent, error) {
	list, err := d.offered(ctx, p)
	if err != nil {
		return event.Agent{}, err
	}
	for _, named := range []func(event.Agent) bool{
		func(a event.Agent) bool { return a.ID == ref },
		func(a event.Agent) bool { return strings.TrimSuffix(a.Handle, "/") == strings.TrimSuffix(ref, "/") },
		func(a event.Agent) bool { return a.Name == ref },
	} {
		if i := slices.IndexFunc(list, named); i >= 0 {
			return list[i], nil
		}
	}

	return event.Agent{}, fmt.Errorf("no agent %q is offered here; list_agents lists those that are", ref)
}

// say is an error of the API as a client reads it: what happened and what to do.
func say(err error) error {
	e := control.Describe(err)
	if e.Hint == "" {
		return errors.New(e.Message)
	}

	return fmt.Errorf("%s; %s", e.Message, e.Hint)
}

// oneLine makes a stranger's words fit for a line.
func oneLine(s string) string { return strings.Join(strings.Fields(plain.Text(s)), " ") }
