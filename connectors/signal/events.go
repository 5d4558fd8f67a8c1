package signal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"daycare/engine/message"
)

const (
	// silence is how long the daemon may say nothing; it sends a comment every 15
	// seconds.
	silence  = time.Minute
	maxEvent = 8 << 20 // bytes
)

// stream reads one stream of events to its end.
func (c *Connector) stream(ctx context.Context) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(reading, http.MethodGet,
		c.client.Base+"/api/v1/events?account="+url.QueryEscape(c.o.Account), nil)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}

	c.mu.Lock()
	req.Header.Set("Last-Event-ID", c.last)
	c.mu.Unlock()
	resp, err := c.client.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("listen: the daemon answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}

	message.Up(ctx)
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	var id string
	var data strings.Builder
	for lines.Scan() {
		watchdog.Reset(silence)
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "data":
			data.WriteString(value + "\n")
		}

		if lines.Text() == "" && data.Len() > 0 {
			if !c.event(ctx, data.String()) {
				return ctx.Err()
			}
			c.passed(id)
			data.Reset()
		}
	}

	if err := lines.Err(); err != nil {
		return fmt.Errorf("listen: %w", err)
	}

	return errors.New("listen: the daemon ended the stream")
}

func (c *Connector) passed(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" {
		c.last = id
	}
}

// event puts the message of one event into the queue; false: ctx ended.
func (c *Connector) event(ctx context.Context, data string) bool {
	var e struct {
		Envelope envelope `json:"envelope"`
		Account  string   `json:"account"`
		// In some versions the event is a whole JSON-RPC notification.
		Params *struct {
			Envelope envelope `json:"envelope"`
			Account  string   `json:"account"`
		} `json:"params"`
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		c.log.Warn("cannot read an event of signal-cli", "err", err)
		return true
	}
	if e.Params != nil {
		e.Envelope, e.Account = e.Params.Envelope, e.Params.Account
	}
	if e.Account != "" && e.Account != c.o.Account {
		return true
	}

	p, ok := c.post(e.Envelope)
	return !ok || c.arrived.Put(ctx, p)
}
