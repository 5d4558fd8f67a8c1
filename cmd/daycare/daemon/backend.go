package daemon

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"daycare/cmd/daycare/version"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// A backend is the engine as the API wants it: its methods, with the words of the API where the
// two differ. Without a daemon the handler keeps from it what only the holder of the lock may do
// (control.Backend.Offline).
type backend struct {
	*engine.System
	parts *Daemon
}

// Resolve turns what a user typed into an agent's id.
func (b *backend) Resolve(ref string) (string, error) {
	return b.parts.index.Resolve(ref)
}

// Create makes an agent by hand, and posts its first message.
func (b *backend) Create(ctx context.Context, n control.NewAgent) (event.Agent, error) {
	d, err := b.descriptor(n)
	if err != nil {
		return event.Agent{}, err
	}
	create := b.System.Create
	if n.Spawned {
		create = b.parts.family.Spawn
	}
	a, err := create(ctx, d)
	if err != nil || n.Prompt == "" {
		return a, inWords(err)
	}
	if _, err := b.Deliver(ctx, message.Incoming{Agent: a.ID, Text: n.Prompt}); err != nil {
		return a, err
	}

	return b.Agent(ctx, a.ID)
}

func (b *backend) descriptor(n control.NewAgent) (address.Descriptor, error) {
	switch address.Type(n.Type) {
	case "", address.User:
		own := engine.Terminal()
		return address.Descriptor{Type: address.User, Connector: cmp.Or(n.Connector, own.Connector), ChannelID: n.ChannelID,
			UserID: own.UserID, Name: n.Name}, nil
	case address.Permanent:
		if n.Name == "" {
			return address.Descriptor{}, &control.Invalid{Field: "name", Reason: "a permanent agent needs a name"}
		}
		return address.Descriptor{Type: address.Permanent, Name: n.Name, Description: n.Description,
			SystemPrompt: n.SystemPrompt, WorkspaceDir: n.WorkspaceDir}, nil
	case address.Subagent:
		parent, err := b.Resolve(n.Parent)
		if err != nil {
			return address.Descriptor{}, err
		}
		name := n.Name
		if name == "" {
			name = "subagent"
		}
		return address.Descriptor{Type: address.Subagent, ParentAgentID: parent, Name: name}, nil
	}

	return address.Descriptor{}, &control.Invalid{Field: "type", Reason: "found " + n.Type + ", allowed: user, permanent, subagent"}
}

// Deliver hands a message to the engine.
func (b *backend) Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	r, err := b.System.Deliver(ctx, in)
	if errors.Is(err, engine.ErrEmpty) {
		return r, &control.Invalid{Field: "text", Reason: "is empty", Hint: "enter some text"}
	}

	return r, err
}

// Decide answers a permission request.
func (b *backend) Decide(ctx context.Context, token, decision, by string) error {
	d := permission.Decision(decision)
	switch d {
	case permission.Once, permission.Always, permission.Prefix, permission.Deny:
	default:
		return &control.Invalid{Field: "decision", Reason: "found " + decision + ", allowed: once, always, deny, prefix"}
	}
	earlier, err := b.System.Decide(ctx, token, d, by)
	if errors.Is(err, permission.ErrNoPrefix) {
		return &control.Invalid{Field: "decision", Reason: err.Error()}
	}
	if err != nil {
		return err
	}
	if earlier != nil {
		return &control.Decided{Decision: string(earlier.Decision), By: earlier.DecidedBy, At: earlier.DecidedAt}
	}

	return nil
}

// Status is the daemon as a whole.
func (b *backend) Status(ctx context.Context) (event.Status, error) {
	p := b.parts
	asks, err := b.Asks(ctx)
	if err != nil {
		return event.Status{}, err
	}
	s := event.Status{Running: p.lock != nil, Version: version.Number, Workspace: p.at.Dir, Asks: len(asks), Connectors: b.connectors()}
	s.Agents, s.Awake, s.Queued = b.Counts()
	if s.Running {
		s.PID, s.UptimeMS = os.Getpid(), time.Since(p.startAt).Milliseconds()
		at := p.startAt.UTC()
		s.StartedAt = &at
		s.DiskFull = p.vol.Full()
	}
	if !s.Running {
		if err := p.lookAtAll(); err != nil {
			return event.Status{}, err
		}
	}
	if free, size, err := disk.Space(p.at.Data); err == nil {
		s.Disk = &event.Disk{Free: free, Size: size}
	}
	s.MCP = workbench{p}.mcpStates()
	s.Machines = p.machines.States()
	s.Problems = Problems(p.problems.All())
	s.Providers = p.models.Load().Services(s.Running)
	return s, nil
}

// connectors are those of the settings, with how they do.
func (b *backend) connectors() []event.Service {
	state := map[string]event.Service{}
	for _, s := range b.System.Connectors() {
		state[s.ID] = s
	}
	list := []event.Service{}
	for _, c := range b.parts.settings.Current().Connectors {
		s := event.Service{ID: c.ID, Type: c.Type, State: "off"}
		if live, ok := state[c.ID]; ok {
			live.Type = c.Type
			s = live
		}
		if why := b.parts.connectors.problem(c.ID); why != "" {
			s.LastError = why
		}
		list = append(list, s)
	}

	return list
}

// Reload reads the settings again, and has agents whose files were damaged look at
// them.
func (b *backend) Reload(ctx context.Context) ([]finding.Finding, error) {
	found := reloader{b.parts}.reload(ctx)
	b.System.WakeAll(ctx)

	return found, nil
}

// Shutdown begins the orderly end.
func (b *backend) Shutdown(context.Context) error {
	b.parts.shutdown()
	return nil
}

// Config is the active configuration, secrets masked.
func (b *backend) Config(context.Context) (any, error) {
	return b.parts.settings.Current().Masked(), nil
}

// Tools lists the tools that agents have.
func (b *backend) Tools(context.Context) ([]control.ToolInfo, error) {
	list := []control.ToolInfo{}
	b.parts.toolset.each(func(s tools.Spec, prompt string) {
		list = append(list, control.ToolInfo{Name: s.Name, Description: s.Description, Replay: string(s.Replay),
			Tokens: (len(s.Name) + len(s.Description) + len(s.Schema)) / 4, Prompt: prompt})
	})
	return list, nil
}
