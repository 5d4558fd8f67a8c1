package email

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/message"
)

// A Connector is one mailbox.
type Connector struct {
	chat.Named

	o        Options
	password string
	desk     *chat.Desk
	log      *slog.Logger
	pause    time.Duration // after the first failure of anything that is tried again
	strikes  chat.Strikes
}

// Kind is how settings make a connector.
var Kind = connectors.Of("email", &connectors.Setup{
	Person:  "Your own mail address, which gets access",
	Secrets: []connectors.Secret{{What: "Password of the mailbox", Env: "secretEnv"}},
}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Secret(o.SecretEnv, o.ID), m.Host, m.Log)
})

// New makes the connector that o describes.
func New(o Options, password string, host chat.Host, log *slog.Logger) (*Connector, error) {
	if o.User == "" {
		o.User = o.Address
	}
	if o.Mailbox == "" {
		o.Mailbox = "INBOX"
	}
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("email %q: %w", o.ID, err)
	}
	if password == "" {
		return nil, fmt.Errorf("email %q has no password\nset it with: daycare auth set %s", o.ID, o.ID)
	}

	settings := o.Settings
	settings.Allow = make([]string, len(o.Allow))
	for i, a := range o.Allow {
		settings.Allow[i] = strings.ToLower(a)
	}
	c := &Connector{Named: chat.Named{Settings: o.Settings}, o: o, password: password, log: log.With("connector", o.ID),
		pause: time.Second}
	c.strikes.Log = c.log

	// Strangers are not answered: their address is mostly someone else's.
	c.desk = chat.New(chat.Options{Settings: settings, IgnoreStrangers: true}, host, c, c.log)
	return c, nil
}

// Run receives until the connection or ctx ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() { c.desk.Run(ctx, deliver, c.pause) })
	if err := c.stay(ctx, deliver); ctx.Err() == nil {
		return err
	}

	return nil
}

// clean takes the password out of what a server said.
func (c *Connector) clean(err error) error {
	if err != nil && strings.Contains(err.Error(), c.password) {
		return &cleaned{strings.ReplaceAll(err.Error(), c.password, "[redacted]"), err}
	}
	return err
}

// cleaned is an error whose text has no password in it; what kind of error it is can still be
// asked.
type cleaned struct {
	text string
	err  error
}

func (e *cleaned) Error() string { return e.text }

func (e *cleaned) Unwrap() error { return e.err }

// Direct is the way to a user, which is their address.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	return message.Address{ChannelID: userID, UserID: userID}, true
}

// Loop sends a mail to itself, finds it in the mailbox and deletes it, for `daycare connectors
// test --send`. A running connector does not read it: it says that a program wrote it.
func (c *Connector) Loop(ctx context.Context) (string, error) {
	box, err := c.open(ctx)
	if err != nil {
		return "", err
	}
	defer box.Close()
	defer context.AfterFunc(ctx, func() { box.Close() })()
	id := "test." + strings.ToLower(rand.Text()) + "@" + domain(c.o.Address)
	body, err := c.compose(id, message.Outgoing{To: message.Address{ChannelID: c.o.Address},
		Text: "daycare tests this connector", Parts: 1})
	if err == nil {
		err = c.post(ctx, c.o.Address, body)
	}
	if err != nil {
		return "", c.clean(err)
	}

	for n := 0; ; n++ {
		found, err := box.find(id)
		switch {
		case ctx.Err() != nil:
			return "", fmt.Errorf("%s accepted a mail to %s, which did not arrive in %s: %w", c.o.SMTP, c.o.Address, c.o.Mailbox,
				ctx.Err())
		case err != nil:
			return "", c.clean(err)
		case len(found) > 0:
			return c.o.Address + " sent a mail to itself and found it", c.clean(box.remove(found))
		}
		chat.Rest(ctx, c.pause, n)
	}
}

// Probe logs in at both servers, for `daycare connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	box, err := c.open(ctx)
	if err != nil {
		return "", err
	}
	defer box.Close()
	idle := "reports new mail at once"
	if !box.idles() {
		idle = "is polled for new mail every half minute"
	}

	post, err := c.dial(ctx)
	if err != nil {
		return "", err
	}
	defer post.Close()

	return fmt.Sprintf("both servers accepted the login %s; the IMAP server %s", c.o.User, idle), nil
}
