package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// maxText is the longest text of a message, in UTF-16 units.
const maxText = 2000

// A Connector is one bot.
type Connector struct {
	pen

	o     Options
	api   *api
	desk  *chat.Desk
	log   *slog.Logger
	pause time.Duration // after the first failure of anything that is tried again

	gate    *gateway
	backlog *chat.Backlog[incoming]
	in      reader
	out     sender
	talks   *talks
	sent    chat.Progress
}

// Kind is how settings make a connector.
var Kind = connectors.Of("discord", &connectors.Setup{
	Secrets: []connectors.Secret{{What: "Bot token (discord.com/developers, your application, Bot)", Env: "tokenEnv"}},
}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Secret(o.TokenEnv, o.ID), m.Host, m.Log)
})

// New makes the connector that o describes.
func New(o Options, token string, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("discord %q: %w", o.ID, err)
	}
	if token == "" {
		return nil, fmt.Errorf("discord %q has no token\nget one at https://discord.com/developers, then: daycare auth set %s", o.ID,
			o.ID)
	}
	if !validToken(token) {
		return nil, fmt.Errorf("discord %q: not a bot token\nset it again: daycare auth set %s", o.ID, o.ID)
	}

	c := &Connector{o: o, api: newAPI(o.BaseURL, token), log: log.With("connector", o.ID), pause: time.Second}
	channels := newRooms(c.api)
	c.in, c.out = reader{channels, o}, sender{channels}
	c.gate = &gateway{api: c.api, log: c.log, intents: intentsMentioned, pause: c.pause}
	if o.readsAll() {
		c.gate.intents |= intentMessageContent
	}
	c.desk = chat.New(chat.Options{Settings: o.Settings, Prefix: "!"}, host, c, c.log)
	c.pen = pen{c, chat.Attaching{Desk: c.desk}, chat.Named{Settings: o.Settings}}
	c.talks = &talks{api: c.api, desk: c.desk, log: c.log, open: map[string]*talk{}, busy: make(chan struct{}, maxTalks)}
	c.backlog = c.newBacklog(host.Waiting)

	return c, nil
}

// newBacklog makes the backlog of messages, whose positions are Discord's ids.
func (c *Connector) newBacklog(k chat.Keeper) *chat.Backlog[incoming] {
	return chat.NewBacklog(chat.Source[incoming]{Connector: c.o.ID, Keeper: k, Now: idAt(time.Now()),
		Then: idAt(time.Now().Add(-24 * time.Hour)), Margin: int64(time.Minute/time.Millisecond) << 22,
		Take: c.take, Fetch: c.in.rooms.fetch}, c.pause, c.log)
}

// epoch is when Discord's ids begin, in ms since 1970.
const epoch = 1420070400000

// idAt is the first id of a moment.
func idAt(t time.Time) int64 { return (t.UnixMilli() - epoch) << 22 }

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int { return format.UTF16(format.Discord(s)) })
}

// Run receives until ctx ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer c.api.HTTP.CloseIdleConnections()
	defer beside.Wait()
	defer cancel()
	if err := c.introduce(ctx); err != nil {
		return c.explain(ctx, err)
	}
	beside.Go(func() { c.desk.Run(ctx, deliver, c.pause) })
	beside.Go(func() { c.backlog.Run(ctx, deliver) })
	c.gate.dispatch = func(name string, data json.RawMessage) {
		if name == "READY" || name == "RESUMED" {
			message.Up(ctx)
		}
		err := c.happened(ctx, deliver, &beside, name, data)
		if err != nil {
			c.log.Warn("cannot read an event", "event", name, "err", err)
		}
	}

	return c.explain(ctx, c.gate.run(ctx))
}

// An application is the bot as Discord knows it.
type application struct {
	ID    string `json:"id"`
	Flags int    `json:"flags"`
	Bot   user   `json:"bot"`
}

// Flags of an application that may read messages that do not mention it.
const readsMessages = 1<<18 | 1<<19

func (a *api) self(ctx context.Context) (me application, err error) {
	err = a.call(ctx, request{name: "ask who the bot is", method: http.MethodGet, path: "/applications/@me"}, &me)
	return me, err
}

// introduce learns who the bot is and gives Discord the menu of commands.
func (c *Connector) introduce(ctx context.Context) error {
	me, err := c.api.self(ctx)
	if err != nil {
		return err
	}
	if c.in.rooms.setSelf(me) {
		return nil // it was done by this process
	}

	err = c.api.call(ctx, request{name: "set the command menu", method: http.MethodPut,
		path: "/applications/" + me.ID + "/commands", params: menu()}, nil)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("cannot set the command menu", "err", err)
	}

	return nil
}

// happened handles an event of the gateway. It does not wait for Discord.
func (c *Connector) happened(ctx context.Context, deliver message.Deliver, beside *sync.WaitGroup,
	name string, data json.RawMessage) error {
	switch name {
	case "READY":
		c.backlog.Known(false)
		if err := c.in.rooms.ready(data); err != nil {
			return err
		}
		beside.Go(func() { c.directs(ctx) })
	case "GUILD_CREATE":
		newest, err := c.in.rooms.guild(data)
		for channel, id := range newest {
			c.backlog.Missed(channel, id)
		}
		c.backlog.Known(c.in.rooms.known())
		return err
	case "GUILD_DELETE":
		return c.in.rooms.leave(data)
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		return c.in.rooms.learn(data)
	case "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_REACTION_ADD":
		m := incoming{kind: name}
		if err := json.Unmarshal(data, &m); err != nil {
			return err
		}
		c.backlog.Put(chat.Arrival[incoming]{Channel: m.Channel, At: m.position(), What: m})
	case "MESSAGE_DELETE_BULK":
		var gone struct {
			IDs     []string `json:"ids"`
			Channel string   `json:"channel_id"`
			Guild   string   `json:"guild_id"`
		}
		if err := json.Unmarshal(data, &gone); err != nil {
			return err
		}
		for _, id := range gone.IDs {
			c.backlog.Put(chat.Arrival[incoming]{Channel: gone.Channel,
				What: incoming{kind: "MESSAGE_DELETE", ID: id, Channel: gone.Channel, Guild: gone.Guild}})
		}
	case "INTERACTION_CREATE":
		return c.talks.begin(ctx, deliver, beside, data)
	}

	return nil
}

// directs finds the private chats with the users of the allow list, and what they wrote
// while nobody listened.
func (c *Connector) directs(ctx context.Context) {
	for _, user := range c.o.Allow {
		for n := 0; ctx.Err() == nil; n++ {
			channel, newest, err := c.in.rooms.direct(ctx, user)
			if err == nil {
				c.backlog.Missed(channel, newest)
				break
			}
			if status(err, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusUnauthorized) {
				c.log.Debug("no private chat with a user", "user", user, "err", err)
				break
			}
			var no *apiError
			if errors.As(err, &no) && no.RetryAfter > 0 {
				chat.Rest(ctx, no.RetryAfter, 0)
				continue
			}
			chat.Rest(ctx, c.pause, n)
		}
	}
	if ctx.Err() == nil {
		c.in.rooms.directsKnown()
		c.backlog.Known(c.in.rooms.known())
	}
}

// explain says what to do about errors that no repetition heals.
func (c *Connector) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	var closed *closedError
	errors.As(err, &closed)
	switch {
	case closed != nil && closed.code == closeDisallowed:
		return fmt.Errorf("%w\nat https://discord.com/developers, your application, Bot: enable Message Content Intent, "+
			"or remove groups: always", err)
	case closed != nil && closed.code == closeUnauthorized, status(err, http.StatusUnauthorized):
		return fmt.Errorf("%w\nthe token is not valid (any more): reset it at https://discord.com/developers, your application, Bot, "+
			"then: daycare auth set %s", err, c.o.ID)
	}

	return err
}

// Probe asks Discord who the bot is, for `daycare connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	me, err := c.api.self(ctx)
	if err != nil {
		return "", c.explain(ctx, err)
	}
	if c.o.readsAll() && me.Flags&readsMessages == 0 {
		return "", c.explain(ctx, &closedError{closeDisallowed})
	}
	var in []struct{}
	if err := c.api.call(ctx, request{name: "list servers", method: http.MethodGet, path: "/users/@me/guilds"}, &in); err != nil {
		return "", err
	}
	at, err := c.api.starts(ctx)
	if err != nil {
		return "", err
	}
	verdict := fmt.Sprintf("%s answers; it is in %d servers; it can connect %d more times today", me.Bot.Name, len(in),
		at.Limit.Remaining)
	if len(in) == 0 {
		verdict += "; invite it: " + invitation(me.ID)
	}

	return verdict, nil
}

// invitation is where the bot is added to a server, with the rights it needs: view channels,
// send messages, in threads too, create public threads, embed links, attach files, read
// history, add reactions.
func invitation(id string) string {
	const rights = 1<<10 | 1<<11 | 1<<38 | 1<<35 | 1<<14 | 1<<15 | 1<<16 | 1<<6
	return fmt.Sprintf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=%d", id, rights)
}
