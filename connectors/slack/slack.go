package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// maxText is the longest text of a message, in characters of mrkdwn: Slack takes more and
// shows it badly.
const maxText = 3900

// A Connector is one app in one workspace.
type Connector struct {
	pen

	o     Options
	api   *api
	desk  *chat.Desk
	log   *slog.Logger
	pause time.Duration // after the first failure of anything that is tried again

	hook   receiver // of posted events
	socket socket
	order  sync.Mutex // held while an event is taken

	strikes chat.Strikes
	sent    chat.Progress

	identity
}

// An identity is who the bot is.
type identity struct {
	mu sync.Mutex
	me string // its member id
}

// Kind is how settings make a connector.
var Kind = connectors.Of("slack", &connectors.Setup{Secrets: []connectors.Secret{
	{What: "Bot token (xoxb-…)", Env: "tokenEnv"},
	{Name: "app", What: "App token (xapp-…) for Socket Mode", Env: "appEnv", Without: "listen"},
	{Name: "signing", What: "Signing secret", Env: "signingEnv", With: "listen"},
}}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, Secrets{Bot: m.Secret(o.TokenEnv, o.ID), App: m.Secret(o.AppEnv, o.ID+"-app"),
		Signing: m.Secret(o.SigningEnv, o.ID+"-signing")},
		m.Host, m.Log)
})

// New makes the connector that o describes.
func New(o Options, s Secrets, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("slack %q: %w", o.ID, err)
	}
	if err := o.missing(s); err != nil {
		return nil, err
	}

	c := &Connector{o: o, api: newAPI(o.BaseURL, s), log: log.With("connector", o.ID), pause: time.Second}
	c.strikes.Log = c.log
	c.socket = socket{c.api, c.log, c.take, silence}
	c.hook = receiver{listen: o.Listen, secret: s.Signing, log: c.log, take: c.take}
	c.hook.ingress.Name, c.hook.ingress.Log = "slack", c.log
	c.desk = chat.New(chat.Options{Settings: o.Settings, Prefix: "!"}, host, c, c.log)
	c.pen = pen{c, chat.Attaching{Desk: c.desk}, chat.Named{Settings: o.Settings}}

	return c, nil
}

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int { return len([]rune(format.Slack(s))) })
}

// Run receives until ctx ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	defer c.api.HTTP.CloseIdleConnections()
	watch.Go(func() { c.desk.Run(ctx, deliver, c.pause) })

	for ctx.Err() == nil {
		err := c.stay(ctx, deliver)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errRefresh): // Slack renews its connections every few hours
			continue
		case is(err, "invalid_auth", "not_authed", "account_inactive", "token_revoked", "not_allowed_token_type", "missing_scope"):
			return fmt.Errorf("%w\ncheck the tokens: daycare connectors test %s", err, c.o.ID)
		}
		return err
	}

	return nil
}

// stay receives over one connection.
func (c *Connector) stay(ctx context.Context, deliver message.Deliver) error {
	var me struct {
		UserID string `json:"user_id"`
	}
	if err := c.api.call(ctx, "auth.test", struct{}{}, &me); err != nil {
		return err
	}

	c.mu.Lock()
	c.me = me.UserID
	c.mu.Unlock()
	if c.o.Listen != "" {
		return c.hook.serve(ctx, deliver)
	}

	return c.socket.read(ctx, deliver)
}

func (c *Connector) self() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.me
}

// Probe asks Slack who the bot is, for `daycare connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	var me struct {
		Team string `json:"team"`
		User string `json:"user"`
	}
	if err := c.api.call(ctx, "auth.test", struct{}{}, &me); err != nil {
		return "", err
	}

	verdict := "@" + me.User + " is in " + me.Team
	if c.o.Listen != "" {
		return verdict + "; events are posted to " + c.o.Listen, nil
	}
	if _, err := c.socket.open(ctx); err != nil {
		return "", fmt.Errorf("%s, but Socket Mode is refused: %w\ncheck the app token: daycare auth set %s-app", verdict, err, c.o.ID)
	}

	return verdict + "; Socket Mode is open", nil
}
