// Package signal is the connector for Signal, by way of signal-cli's HTTP daemon:
// JSON-RPC to send, server-sent events to receive. There is no library for either
// that is shorter than this.
//
// config.go has the settings, rpc.go calls methods, events.go reads the stream,
// receive.go makes posts of envelopes, send.go answers, child.go starts the
// daemon. What is the same for all chats is in connectors/chat.
// docs/connectors/signal.md is for people.
package signal

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

const (
	// maxText is the longest text that goes as a text, in bytes; what is longer
	// Signal sends as a file, and phones cut it.
	maxText = 2000
	// maxFailures is how many failed connections in a row end Run.
	maxFailures = 8
)

// A Connector is one Signal account.
type Connector struct {
	o       Options
	client  *http.Client
	desk    *chat.Desk
	log     *slog.Logger
	pause   time.Duration // after the first failure of anything that is tried again
	arrived *chat.Queue   // read, and not durable yet

	mu   sync.Mutex
	last string // id of the newest event that was read
}

// New makes the connector that o describes.
func New(o Options, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("signal %q: %w", o.ID, err)
	}
	o.URL = strings.TrimRight(o.URL, "/")
	// An id that the daemon does not know has it repeat all that it remembers:
	// what came while we were away; the rest is dropped by its dedupe key.
	c := &Connector{o: o, log: log.With("connector", o.ID), pause: time.Second, last: "0",
		client: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
	c.desk = chat.New(chat.Options{ID: o.ID, Allow: o.Allow, AgentID: o.AgentID}, host, c, c.log)
	c.arrived = chat.NewQueue(c.desk, c.pause, nil)
	return c, nil
}

// ID is the connector's id in settings.
func (c *Connector) ID() string { return c.o.ID }

// Interim reports whether text beside tool calls is delivered too.
func (c *Connector) Interim() bool { return c.o.Interim }

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int {
		shown, _ := format.Signal(s)
		return len(shown)
	})
}

// Run receives until ctx ends, on a new stream whenever one is lost.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	defer c.client.CloseIdleConnections()
	beside.Go(func() { c.desk.Run(ctx, deliver, c.pause) })
	beside.Go(func() { c.arrived.Run(ctx, deliver) })
	failed := make(chan error, 1)
	if c.o.Command != "" {
		beside.Go(func() { failed <- c.child(ctx) })
	}
	for failures := 0; ctx.Err() == nil; {
		heard, err := c.stream(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if heard {
			failures = 0
		}
		if failures++; failures >= maxFailures {
			return fmt.Errorf("%w\nis signal-cli's daemon running at %s?", err, c.o.URL)
		}
		c.log.Warn("the stream of messages was lost", "err", err)
		select {
		case <-time.After(min(c.pause<<(failures-1), 30*time.Second)):
		case err := <-failed:
			return err
		case <-ctx.Done():
		}
	}
	return nil
}

// Probe asks the daemon whether it serves our account, for `daycare connectors
// test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	var accounts []struct {
		Number string `json:"number"`
	}
	err := c.call(ctx, "listAccounts", nil, &accounts)
	if no, ok := err.(*rpcError); ok && no.Code == notThere {
		return "the daemon answers; it serves one account only, so which one cannot be asked", nil
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
