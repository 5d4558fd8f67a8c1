package whatsapp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// maxText is the longest text of a message, in characters.
const maxText = 4096

// A Connector is one number.
type Connector struct {
	chat.Attaching
	chat.Named

	o     Options
	api   *api
	desk  *chat.Desk
	log   *slog.Logger
	pause time.Duration // after the first failure of anything that is tried again

	hook    receiver
	state   *state
	out     sender
	sent    chat.Progress
	strikes chat.Strikes
}

// Kind is how settings make a connector.
var Kind = connectors.Of("whatsapp", &connectors.Setup{
	Secrets: []connectors.Secret{
		{What: "Access token of a system user", Env: "tokenEnv"},
		{Name: "secret", What: "App secret (App settings, Basic)", Env: "secretEnv"},
	},
	Person: "Your number with its country, digits only, such as 4915112345678",
}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Secret(o.TokenEnv, o.ID), m.Secret(o.SecretEnv, o.ID+"-secret"), m.Host, m.Log)
})

// New makes the connector that o describes. token is for calls, secret is what Meta signs
// with.
func New(o Options, token, secret string, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("whatsapp %q: %w", o.ID, err)
	}
	if token == "" {
		return nil, fmt.Errorf("whatsapp %q has no access token\nset it with: daycare auth set %s", o.ID, o.ID)
	}
	if secret == "" {
		return nil, fmt.Errorf("whatsapp %q has no app secret; without it anyone could write\nset it with: daycare auth set %s-secret",
			o.ID, o.ID)
	}

	c := &Connector{Named: chat.Named{Settings: o.Settings}, o: o, api: newAPI(o.BaseURL, token, secret, o.Number),
		log: log.With("connector", o.ID), pause: time.Second}
	c.strikes.Log = c.log
	c.state = newState(o.ID, host.Waiting, c.log)
	c.out.api, c.out.state, c.out.template, c.out.broken = c.api, c.state, o.Template, make(chan error, 1)
	c.hook.listen, c.hook.secret, c.hook.verify = o.Listen, secret, verifyToken(secret, o.ID)
	c.hook.log, c.hook.take = c.log, c.take
	c.hook.ingress.Name, c.hook.ingress.Log = "whatsapp", c.log
	c.desk = chat.New(chat.Options{Settings: o.Settings}, host, c, c.log)
	c.Attaching = chat.Attaching{Desk: c.desk}

	return c, nil
}

// verifyToken is what Meta says when it asks whether an address is ours. It follows from the
// app secret, so there is nothing to set and nothing to forget.
func verifyToken(secret, id string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("daycare verify token of " + id))
	return hex.EncodeToString(mac.Sum(nil))[:32]
}

// Address is where Meta posts to, HOST:PORT; "" while it does not.
func (c *Connector) Address() string { return c.hook.ingress.Address() }

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int { return len([]rune(format.WhatsApp(s))) })
}

// Run receives until ctx ends, or Meta does not accept the token any more.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	running, cancel := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer c.api.HTTP.CloseIdleConnections()
	defer beside.Wait()
	defer cancel(nil)
	if _, err := c.api.self(running); code(err, badToken) {
		return c.explain(err)
	}
	beside.Go(func() { c.desk.Run(running, deliver, c.pause) })
	beside.Go(func() {
		select {
		case err := <-c.out.broken:
			cancel(c.explain(err))
		case <-running.Done():
		}
	})
	err := c.hook.serve(running, deliver)
	if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
		return cause
	}
	if ctx.Err() != nil {
		return nil
	}

	return err
}

// explain says what to do about errors that no repetition heals.
func (c *Connector) explain(err error) error {
	if code(err, badToken) {
		return fmt.Errorf("%w\nthe access token expired or was revoked: make one of a system user, without an expiry, then: "+
			"daycare auth set %s", err, c.o.ID)
	}

	return err
}

// Probe asks Meta about the number, for `daycare connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	me, err := c.api.self(ctx)
	if err != nil {
		return "", c.explain(err)
	}

	return fmt.Sprintf("%s (%s) answers; messages are posted to /whatsapp on %s, with the verify token %s", me.Shown, me.Name, c.o.Listen,
		c.hook.verify), nil
}
