package mattermost

import (
	"context"
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

// maxText is the longest text of a post, in characters: what servers take at least.
const maxText = 4000

// A Connector is one bot account.
type Connector struct {
	pen

	o     Options
	api   *api
	desk  *chat.Desk
	log   *slog.Logger
	pause time.Duration // after the first failure of anything that is tried again
	pings pings

	backlog *chat.Backlog[event]
	rooms   *rooms
	in      reader
	hook    *receiver // of pressed buttons; nil: none
	sent    chat.Progress
}

// Kind is how settings make a connector.
var Kind = connectors.Of("mattermost", &connectors.Setup{
	Secrets: []connectors.Secret{{What: "Token of the bot account", Env: "tokenEnv"}},
}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Secret(o.TokenEnv, o.ID), m.Host, m.Log)
})

// New makes the connector that o describes.
func New(o Options, token string, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("mattermost %q: %w", o.ID, err)
	}
	if !userID.MatchString(token) { // tokens look like ids
		return nil, fmt.Errorf("mattermost %q has no token of a bot account (26 letters and digits)\n"+
			"set it with: daycare auth set %s", o.ID, o.ID)
	}

	c := &Connector{o: o, api: newAPI(o.URL, token), log: log.With("connector", o.ID), pause: time.Second,
		pings: pings{every: 30 * time.Second, within: 20 * time.Second}}
	c.rooms = newRooms(c.api)
	c.in = reader{c.rooms, o}
	var platform chat.Platform = c
	if o.Buttons.Listen != "" {
		c.hook = &receiver{listen: o.Buttons.Listen, secret: buttonSecret(token, o.ID), log: c.log}
		c.hook.ingress.Name, c.hook.ingress.Log = "mattermost", c.log
		platform = &withButtons{c}
	}
	c.desk = chat.New(chat.Options{Settings: o.Settings, Prefix: "!"}, host, platform, c.log)
	c.pen = pen{c, chat.Attaching{Desk: c.desk}, chat.Named{Settings: o.Settings}}
	if c.hook != nil {
		c.hook.answer = c.desk.Answer
	}
	c.backlog = c.newBacklog(host.Waiting)

	return c, nil
}

// newBacklog makes the backlog of posts.
func (c *Connector) newBacklog(k chat.Keeper) *chat.Backlog[event] {
	now := time.Now()
	return chat.NewBacklog(chat.Source[event]{Connector: c.o.ID, Keeper: k, Now: place(now.UnixMilli(), 0),
		Then: place(now.Add(-24*time.Hour).UnixMilli(), 0), Margin: place(time.Minute.Milliseconds(), 0),
		Take: c.take, Fetch: c.rooms.fetch}, c.pause, c.log)
}

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int { return len([]rune(format.Mattermost(s))) })
}

// Run receives until ctx ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	running, cancel := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer c.api.HTTP.CloseIdleConnections()
	defer beside.Wait()
	defer cancel(nil)
	me, err := c.api.self(running)
	if err != nil {
		return c.explain(ctx, err)
	}
	c.rooms.setSelf(me)
	beside.Go(func() { c.desk.Run(running, deliver, c.pause) })
	beside.Go(func() { c.backlog.Run(running, deliver) })
	if c.hook != nil {
		beside.Go(func() {
			if err := c.hook.serve(message.WithUp(running, func() {})); err != nil {
				cancel(err)
			}
		})
	}

	err = c.listen(running)
	if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
		err = cause
	}

	return c.explain(ctx, err)
}

// explain says what to do about errors that no repetition heals.
func (c *Connector) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if status(err, http.StatusUnauthorized) {
		return fmt.Errorf("%w\nthe token is not valid (any more), or the bot account is disabled: check it under Integrations, "+
			"Bot Accounts, then: daycare auth set %s", err, c.o.ID)
	}

	return err
}

// Probe asks the server who the bot is, for `daycare connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	me, err := c.api.self(ctx)
	if err != nil {
		return "", c.explain(ctx, err)
	}
	in, err := c.api.joined(ctx)
	if err != nil {
		return "", err
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return "", fmt.Errorf("@%s answers, but %w", me.Name, err)
	}
	conn.CloseNow()
	verdict := fmt.Sprintf("@%s answers; it is in %d channels", me.Name, len(in))
	if !me.Bot {
		verdict += "; it is a user's account: better make a bot account"
	}

	return verdict, nil
}

// Loop posts a message to the bot itself, reads it back and deletes it, for
// `daycare connectors test --send`.
func (c pen) Loop(ctx context.Context) (string, error) {
	me, err := c.api.self(ctx)
	if err != nil {
		return "", c.explain(ctx, err)
	}
	var own room
	if err := c.api.call(ctx, "open a channel with itself", http.MethodPost, "/channels/direct", []string{me.ID, me.ID},
		&own); err != nil {
		return "", err
	}
	id, err := c.create(ctx, post{Channel: own.ID, Text: "daycare tests this connector"})
	if err != nil {
		return "", err
	}
	var back post
	err = c.api.call(ctx, "read the message", http.MethodGet, "/posts/"+id, nil, &back)
	if gone := c.api.call(ctx, "delete the message", http.MethodDelete, "/posts/"+id, nil, nil); err == nil {
		err = gone
	}
	if err == nil && back.ID != id {
		err = errors.New("the server accepted a message and did not keep it")
	}

	return "@" + me.Name + " sent a message to itself and read it", err
}
