package irc

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
	"daycare/connectors/format"
	"daycare/engine/message"
)

// A Connector is one nick on one network.
type Connector struct {
	chat.Named

	o        Options
	password string
	desk     *chat.Desk
	log      *slog.Logger
	pause    time.Duration // after the first failure of anything that is tried again
	flood    flood

	arrived *chat.Queue // read, and not durable yet

	one   sync.Mutex // held while the connection is made or ended
	live  *session
	users int // of live
}

// Kind is how settings make a connector.
var Kind = connectors.Of("irc", &connectors.Setup{
	Secrets: []connectors.Secret{{What: "Password of the account", Env: "secretEnv", With: "account"}},
}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Secret(o.SecretEnv, o.ID), m.Host, m.Log)
})

// New makes the connector that o describes. password is of SASL; "" goes without.
func New(o Options, password string, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("irc %q: %w", o.ID, err)
	}
	if o.Account != "" && password == "" {
		return nil, fmt.Errorf("irc %q has an account and no password\nset it with: daycare auth set %s", o.ID, o.ID)
	}

	c := &Connector{Named: chat.Named{Settings: o.Settings}, o: o, password: password, log: log.With("connector", o.ID),
		pause: time.Second,
		flood: flood{burst: 5, every: 2 * time.Second}}
	c.desk = chat.New(chat.Options{Settings: o.Settings, Prefix: "!"}, host, c, c.log)
	c.arrived = chat.NewQueue(c.desk, c.pause, nil)

	return c, nil
}

// Split cuts an answer into parts of a few lines.
func (c *Connector) Split(text string) []string {
	return format.Split(text, linesAPart, func(s string) int { return len(lines(format.Plain(s), maxLine)) })
}

// Run receives until the connection or ctx ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() { c.desk.Run(ctx, deliver, c.pause) })
	beside.Go(func() { c.arrived.Run(ctx, deliver) })
	s, err := c.acquire(ctx)
	if ctx.Err() != nil && err != nil {
		return nil // the greeting was cut short
	}
	if err != nil {
		return err
	}
	defer c.release()

	message.Up(ctx)
	select {
	case <-ctx.Done():
		return nil
	case <-s.done:
		return s.err()
	}
}

// acquire returns the connection, connecting if necessary; each acquire needs a
// release.
func (c *Connector) acquire(ctx context.Context) (*session, error) {
	c.one.Lock()
	defer c.one.Unlock()
	if c.live != nil && c.live.ended() {
		c.live.close()
		c.live = nil
	}
	if c.live == nil {
		s, err := c.connect(ctx)
		if err != nil {
			return nil, err
		}
		c.live = s
	}
	c.users++

	return c.live, nil
}

// release ends the connection when nobody needs it.
func (c *Connector) release() {
	c.one.Lock()
	defer c.one.Unlock()
	if c.users--; c.users == 0 && c.live != nil {
		c.live.close()
		c.live = nil
	}
}

// Send says one part and waits until the server has seen all of it. IRC knows no
// idempotency: a part whose confirmation is lost may be said twice.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	text := format.Plain(out.Text)
	for _, f := range out.Files {
		text += fmt.Sprintf("\n[file %s, %d bytes: IRC carries no files]", f.Name, f.Size)
	}

	return "", c.speak(ctx, out.To.ChannelID, text)
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, _, text string) error {
	return c.speak(ctx, to.ChannelID, format.Plain(text))
}

func (c *Connector) speak(ctx context.Context, target, text string) error {
	if strings.ContainsAny(target, " \r\n\x00,:") || target == "" {
		return &message.NotSent{Final: true, Err: fmt.Errorf("%q is not a nick or channel", target)}
	}
	s, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.release()

	return s.say(ctx, target, lines(text, room(s.me(), target)))
}

// beside connects under another nick, without joining channels.
func (c *Connector) beside(ctx context.Context) (*session, error) {
	o := c.o
	o.Channels, o.Nick = nil, o.Nick[:min(len(o.Nick), 8)]+"_"
	probe, err := New(o, c.password, chat.Host{}, c.log)
	if err != nil {
		return nil, err
	}

	return probe.connect(ctx)
}

// Loop says something to itself under another nick, for `daycare connectors test --send`.
func (c *Connector) Loop(ctx context.Context) (string, error) {
	s, err := c.beside(ctx)
	if err != nil {
		return "", err
	}
	defer s.close()
	text := "daycare tests this connector " + rand.Text()
	if err := s.say(ctx, s.me(), []string{text}); err != nil {
		return "", err
	}

	select {
	case got := <-s.echoes:
		if got != text {
			return "", fmt.Errorf("%s changed a message on its way", c.o.Server)
		}
		return s.me() + " sent a message to itself and read it", nil
	case <-s.done:
		return "", s.err()
	case <-ctx.Done():
		return "", fmt.Errorf("%s accepted a message to ourselves and did not deliver it: %w", c.o.Server, ctx.Err())
	}
}

// Probe connects under another nick and leaves, for `daycare connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	s, err := c.beside(ctx)
	if err != nil {
		return "", err
	}
	defer s.close()
	verdict := c.o.Server + " accepts the connection"
	if c.o.Account != "" {
		verdict += " as " + c.o.Account
	}
	if !s.caps["account-tag"] {
		verdict += "; it does not report accounts, so allow needs masks such as *!ada@203.0.113.7"
	}

	return verdict, nil
}
