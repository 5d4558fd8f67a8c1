package signal

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

const (
	// maxText is the longest text that goes as a text, in bytes; what is longer
	// Signal sends as a file, and phones cut it.
	maxText = 2000
	// startTime is how long a daemon that we start has until it answers.
	startTime = 2 * time.Minute
)

// A Connector is one Signal account.
type Connector struct {
	pen

	o       Options
	client  *chat.Client
	desk    *chat.Desk
	log     *slog.Logger
	pause   time.Duration // after the first failure of anything that is tried again
	arrived *chat.Queue   // read, and not durable yet

	mu   sync.Mutex
	last string // id of the newest event that was read
}

// Kind is how settings make a connector.
var Kind = connectors.Of("signal", &connectors.Setup{}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Host, m.Log)
})

// New makes the connector that o describes.
func New(o Options, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("signal %q: %w", o.ID, err)
	}

	// An id that the daemon does not know has it repeat all that it remembers:
	// what came while we were away; the rest is dropped by its dedupe key.
	c := &Connector{o: o, log: log.With("connector", o.ID), pause: time.Second, last: "0", client: chat.NewClient(o.URL)}
	c.desk = chat.New(chat.Options{Settings: o.Settings}, host, c, c.log)
	c.pen = pen{c, chat.Attaching{Desk: c.desk}, chat.Named{Settings: o.Settings}}
	c.arrived = chat.NewQueue(c.desk, c.pause, nil)

	return c, nil
}

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int {
		shown, _ := format.Signal(s)
		return len(shown)
	})
}

// Run receives until ctx or the stream ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	running, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	defer c.client.HTTP.CloseIdleConnections()
	beside.Go(func() { c.desk.Run(running, deliver, c.pause) })
	beside.Go(func() { c.arrived.Run(running, deliver) })
	ended := make(chan error, 1)
	if c.o.Command != "" {
		beside.Go(func() {
			defer cancel()
			ended <- c.child(running)
		})
		c.await(running)
	}

	err := c.stream(running)
	switch {
	case ctx.Err() != nil:
		return nil
	case running.Err() != nil: // the daemon that we started has ended
		return <-ended
	}

	return fmt.Errorf("%w\ncheck that signal-cli's daemon is running at %s", err, c.o.URL)
}

// await waits until the daemon that was just started answers.
func (c *Connector) await(ctx context.Context) {
	var no *rpcError
	for begun := time.Now(); ctx.Err() == nil && time.Since(begun) < startTime; chat.Rest(ctx, c.pause, 0) {
		if err := c.call(ctx, "version", nil, nil); err == nil || errors.As(err, &no) {
			return
		}
	}
}

// Loop sends a note to the account itself, for `daycare connectors test --send`. Signal shows it on
// the other devices of the account, so daycare cannot read it.
func (c pen) Loop(ctx context.Context) (string, error) {
	id, err := c.say(ctx, message.Address{ChannelID: c.o.Account}, "daycare tests this connector", map[string]any{"noteToSelf": true})
	if err != nil {
		return "", err
	}

	return "sent " + c.o.Account + " a note to itself (" + id + "): look for it in Note to Self on your phone", nil
}

// Probe asks the daemon whether it serves our account, for `daycare connectors
// test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	var accounts []struct {
		Number string `json:"number"`
	}
	err := c.call(ctx, "listAccounts", nil, &accounts)
	if no, ok := err.(*rpcError); ok && no.Code == notThere {
		return "the daemon answers; it serves a single account, so it cannot report which", nil
	}
	if err != nil {
		return "", err
	}

	for _, a := range accounts {
		if a.Number == c.o.Account {
			return "the daemon serves " + c.o.Account, nil
		}
	}

	return "", fmt.Errorf("the daemon does not know %s\nregister it, or link it as a device: docs/connectors/signal.md", c.o.Account)
}
