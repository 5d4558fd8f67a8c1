package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"daycare/connectors/chat"
	"daycare/engine/address"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// chats is the engine as chat connectors see it. Connectors are made before the
// system that they belong to, so it looks for the system when it is asked.
type chats struct{ r *Daemon }

// chatHost is what every chat connector is given.
func (r *Daemon) chatHost() chat.Host {
	c := chats{r}
	return chat.Host{Directory: c, Agents: c, Asks: c, Events: r.events, Files: r.files, Hints: hints{r},
		Waiting: unlost{hints{r}}, Session: c.session, Owners: authority{c.r}.owners, Switch: c.switchModel, Own: ownCommands{choices{r}},
		Admission: admission{r}}
}

// Amend edits or drops a queued message.
func (c chats) Amend(ctx context.Context, a message.Amendment) (bool, error) {
	return c.r.system.Amend(ctx, a)
}

// Find is the agent that an address maps to, if it was made already.
func (c chats) Find(from message.Address) (string, bool) {
	return c.r.index.Lookup(address.Descriptor{Type: address.User, Connector: from.Connector,
		UserID: from.UserID, ChannelID: from.ChannelID})
}

// Home is where the user is reached that answers for an agent: its own chat, that
// of its nearest ancestor that has one, else that of the agent an owner wrote to last.
func (c chats) Home(agent string) (message.Address, bool) {
	meta, ok := c.r.family.Overseer(agent)
	if !ok {
		return message.Address{}, false
	}
	d := meta.Descriptor

	return message.Address{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID}, true
}

// Agent is one agent by its id.
func (c chats) Agent(ctx context.Context, id string) (event.Agent, error) {
	return c.r.system.Agent(ctx, id)
}

// Agents lists all agents.
func (c chats) Agents(ctx context.Context) ([]event.Agent, error) { return c.r.system.Agents(ctx) }

// Known are the agents that an agent may know of.
func (c chats) Known(ctx context.Context, asker string) ([]event.Agent, error) {
	return c.r.family.List(ctx, asker)
}

// Item is an item that an agent accepted, and how it ended.
func (c chats) Item(ctx context.Context, agent, item string) (event.Posted, error) {
	return c.r.system.Item(ctx, agent, item)
}

// Stop cancels the turn that an agent is in.
func (c chats) Stop(ctx context.Context, id string) (bool, error) { return c.r.system.Stop(ctx, id) }

// List is the permission requests that wait.
func (c chats) List() []permission.Pending { return c.r.asks.List() }

// Decide answers a permission request, or says who did before.
func (c chats) Decide(ctx context.Context, token string, d permission.Decision, by string) (*permission.Pending, error) {
	return c.r.system.Decide(ctx, token, d, by)
}

// switchModel gives an agent another model.
func (c chats) switchModel(ctx context.Context, agent, to string) (string, error) {
	now, err := folders{&backend{System: c.r.system, parts: c.r}}.Switch(ctx, agent, to)
	var bad *control.Invalid
	if errors.As(err, &bad) {
		return "", errors.New(strings.TrimSuffix(bad.Reason+". "+bad.Hint, ". "))
	}

	return now.Provider + "/" + now.Model, err
}

// session counts the conversation of an agent.
func (c chats) session(agent string) (chat.Session, error) {
	state, _, _, err := record.ReadState(filepath.Join(c.r.root, "agents", agent))
	if err != nil {
		return chat.Session{}, fmt.Errorf("read state of %s: %w", agent, err)
	}
	n := state.Session
	s := chat.Session{Title: n.Title, Since: n.StartedAt.Time, Messages: n.Messages,
		Tokens: n.PromptTokens + n.CompletionTokens, Cost: n.Cost}
	if t := state.Tokens; t != nil {
		s.Context = t.Input + t.CacheRead + t.CacheWrite
	}

	for _, p := range c.r.models.Load().Settings {
		s.Providers = append(s.Providers, p.ID+": "+p.Model)
	}
	return s, nil
}

// hints are the files in .daycare/connectors/<id>/: what a connector remembers and may
// lose. They are written without a barrier.
type hints struct{ r *Daemon }

func (h hints) path(connector, name string) string {
	return filepath.Join(h.r.root, "connectors", connector, name)
}

// Load reads a file.
func (h hints) Load(connector, name string) ([]byte, error) {
	return os.ReadFile(h.path(connector, name))
}

// unlost are files beside the hints that must not be lost: messages that a platform was
// told are received.
type unlost struct{ hints }

// Save replaces a file durably.
func (u unlost) Save(connector, name string, data []byte) error {
	path := u.path(connector, name)
	if err := u.r.vol.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return u.r.vol.WriteFile("waiting", path, data)
}

// Save replaces a file.
func (h hints) Save(connector, name string, data []byte) error {
	path := h.path(connector, name)
	if err := h.r.vol.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return h.r.vol.WriteDraft("hints", path, data)
}
