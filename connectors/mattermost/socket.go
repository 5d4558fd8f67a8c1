package mattermost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

const (
	maxFrame = 4 << 20 // bytes
	dialTime = 30 * time.Second
)

// pings find out when the server is gone without a word.
type pings struct {
	every  time.Duration
	within time.Duration // it answers
}

// An event is what the server tells.
type event struct {
	Event string `json:"event"` // posted, post_edited, post_deleted, reaction_added
	Data  struct {
		Post     string `json:"post"`     // JSON
		Reaction string `json:"reaction"` // JSON
		Room     string `json:"channel_type"`
		Sender   string `json:"sender_name"`
		Status   string `json:"status"`
	} `json:"data"`
	Status string `json:"status"` // of the answer to our challenge
	Error  struct {
		Status int    `json:"status_code"`
		Text   string `json:"message"`
	} `json:"error"`

	post     post
	reaction reaction
}

// dial connects to the server and proves who we are.
func (c *Connector) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	address := "ws" + strings.TrimPrefix(c.api.Base, "http") + "/api/v4/websocket"
	conn, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: c.api.HTTP})
	if err != nil {
		return nil, fmt.Errorf("connect the websocket: %w\nif a proxy is in front of the server, have it pass websockets",
			c.api.Clean(err))
	}
	conn.SetReadLimit(maxFrame)
	body, err := json.Marshal(map[string]any{"seq": 1, "action": "authentication_challenge",
		"data": map[string]string{"token": c.api.token}})
	if err == nil {
		err = conn.Write(ctx, websocket.MessageText, body)
	}
	for err == nil {
		var e event
		if e, err = read(ctx, conn); err != nil {
			break
		}
		switch {
		case e.Event == "hello", e.Status == "OK":
			return conn, nil
		case e.Status == "FAIL":
			err = &apiError{Name: "connect the websocket", Status: http.StatusUnauthorized, Text: c.api.Redact(e.Error.Text)}
		}
	}
	conn.CloseNow()
	if status(err, http.StatusUnauthorized) {
		return nil, err
	}

	return nil, fmt.Errorf("connect the websocket: %w", c.api.Clean(err))
}

func read(ctx context.Context, conn *websocket.Conn) (e event, err error) {
	_, data, err := conn.Read(ctx)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, errors.New("the websocket does not speak JSON")
	}

	return e, nil
}

// listen receives over one connection until it or ctx ends.
func (c *Connector) listen(ctx context.Context) error {
	c.backlog.Known(false)
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	// What was missed is asked for when what comes is heard.
	all, err := c.api.joined(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		c.rooms.learn(r)
		c.backlog.Missed(r.ID, place(r.Last, 0))
	}
	c.backlog.Known(true)
	message.Up(ctx)

	reading, cut := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cut(nil)
	beside.Go(func() { c.pings.send(reading, conn, cut) })
	for {
		e, err := read(reading, conn)
		if err != nil {
			if cause := context.Cause(reading); cause != nil {
				err = cause
			}
			return fmt.Errorf("the websocket ended: %w", c.api.Clean(err))
		}
		c.happened(e)
	}
}

// send pings until ctx ends; one without an answer cuts the connection.
func (p pings) send(ctx context.Context, conn *websocket.Conn, cut context.CancelCauseFunc) {
	for {
		select {
		case <-time.After(p.every):
		case <-ctx.Done():
			return
		}
		waiting, cancel := context.WithTimeout(ctx, p.within)
		err := conn.Ping(waiting)
		cancel()
		if err != nil {
			cut(errors.New("the server does not answer"))
			return
		}
	}
}

// happened puts what an agent may hear of into the backlog.
func (c *Connector) happened(e event) {
	var err error
	a := chat.Arrival[event]{}
	switch e.Event {
	case "posted":
		err = json.Unmarshal([]byte(e.Data.Post), &e.post)
		c.rooms.learn(room{ID: e.post.Channel, Type: e.Data.Room})
		a.At = c.rooms.arrived(e.post)
	case "post_edited", "post_deleted":
		err = json.Unmarshal([]byte(e.Data.Post), &e.post)
	case "reaction_added":
		err = json.Unmarshal([]byte(e.Data.Reaction), &e.reaction)
		e.post.Channel = e.reaction.Channel
	default:
		return
	}
	if err != nil || e.post.Channel == "" && e.reaction.Post == "" {
		c.log.Warn("cannot read an event", "event", e.Event, "err", err)
		return
	}
	a.Channel, a.What = e.post.Channel, e
	c.backlog.Put(a)
}
