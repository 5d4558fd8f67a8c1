package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// maxText is the longest text of a message, in UTF-16 units as a user reads it.
const maxText = 4096

// A Connector is one bot.
type Connector struct {
	pen

	o     Options
	api   *api
	desk  *chat.Desk
	log   *slog.Logger
	pause time.Duration // after the first failure of anything that is tried again

	hook   *receiver
	poller *poller
	reader *reader
	out    sender

	sent    chat.Progress
	strikes chat.Strikes
}

// Kind is how settings make a connector.
var Kind = connectors.Of("telegram", &connectors.Setup{
	Secrets: []connectors.Secret{{What: "Bot token of @BotFather", Env: "tokenEnv"}},
}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Secret(o.TokenEnv, o.ID), m.Host, m.Log)
})

// New makes the connector that o describes.
func New(o Options, token string, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("telegram %q: %w", o.ID, err)
	}
	if token == "" {
		return nil, fmt.Errorf("telegram %q has no token\nget one from @BotFather, then: daycare auth set %s", o.ID, o.ID)
	}
	if strings.ContainsAny(token, "/?# \t\n") {
		return nil, fmt.Errorf("telegram %q: not a bot token (expected 123456:ABC…)\n"+
			"set it again: daycare auth set %s", o.ID, o.ID)
	}

	c := &Connector{o: o, api: newAPI(o.BaseURL, token), log: log.With("connector", o.ID), pause: time.Second}
	c.strikes.Log = c.log
	c.reader, c.out = &reader{api: c.api}, sender{c.api}
	c.poller = &poller{c.api, c.log, c.pause, c.take}
	c.hook = &receiver{o: o, api: c.api, log: c.log, take: c.take}
	c.hook.ingress.Name, c.hook.ingress.Log = "telegram", c.log
	c.desk = chat.New(chat.Options{Settings: o.Settings}, host, c, c.log)
	c.pen = pen{c, chat.Attaching{Desk: c.desk}, chat.Named{Settings: o.Settings}}

	return c, nil
}

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int { return format.Length(s, format.UTF16) })
}

// Run receives until ctx ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() { c.desk.Run(ctx, deliver, c.pause) })
	defer c.api.HTTP.CloseIdleConnections()
	err := c.receive(ctx, deliver)
	if err == nil || ctx.Err() != nil {
		return nil
	}

	var no *apiError
	if errors.As(err, &no) { // Telegram may ask for it
		select {
		case <-time.After(no.RetryAfter):
		case <-ctx.Done():
		}
	}

	return c.explain(err)
}

func (c *Connector) receive(ctx context.Context, deliver message.Deliver) error {
	if err := c.introduce(ctx); err != nil {
		return err
	}
	if c.o.Webhook.URL != "" {
		return c.hook.serve(ctx, deliver)
	}

	return c.poller.poll(ctx, deliver)
}

// introduce learns the bot's own name and gives Telegram the menu of commands.
func (c *Connector) introduce(ctx context.Context) error {
	var me user
	if err := c.api.call(ctx, "getMe", struct{}{}, &me); err != nil {
		return err
	}
	c.reader.mu.Lock()
	c.reader.me = me
	c.reader.mu.Unlock()
	type entry struct {
		Command     string `json:"command"`
		Description string `json:"description"`
	}
	var menu []entry
	for _, k := range chat.Commands {
		menu = append(menu, entry{k.Name, c.desk.Text(k.About)})
	}

	if err := c.api.call(ctx, "setMyCommands", map[string]any{"commands": menu}, nil); err != nil && ctx.Err() == nil {
		c.log.Warn("cannot set the command menu", "err", err)
	}

	return nil
}

// explain says what to do about errors that no repetition heals.
func (c *Connector) explain(err error) error {
	switch {
	case is(err, http.StatusUnauthorized), is(err, http.StatusNotFound):
		return fmt.Errorf("%w\nthe token is not valid; get one from @BotFather, then: daycare auth set %s", err, c.o.ID)
	case is(err, http.StatusConflict):
		return fmt.Errorf("%w\nanother program uses this bot: stop it, or use another token", err)
	}

	return err
}

// Probe asks Telegram who the bot is, for `daycare connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	var me struct {
		user
		ReadsAll bool `json:"can_read_all_group_messages"`
	}
	if err := c.api.call(ctx, "getMe", struct{}{}, &me); err != nil {
		return "", c.explain(err)
	}

	var hook struct {
		URL     string `json:"url"`
		Pending int    `json:"pending_update_count"`
		Last    string `json:"last_error_message"`
	}
	if err := c.api.call(ctx, "getWebhookInfo", struct{}{}, &hook); err != nil {
		return "", err
	}

	verdict := "@" + me.Username + " (" + strconv.FormatInt(me.ID, 10) + ") answers; " + strconv.Itoa(hook.Pending) +
		" messages wait at Telegram"
	if hook.URL != "" && c.o.Webhook.URL == "" {
		verdict += "; another program has set a webhook, which daycare start will remove"
	}
	if hook.Last != "" && c.o.Webhook.URL != "" {
		verdict += "; Telegram could not post: " + hook.Last
	}

	return verdict, nil
}
