package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coder/websocket"

	"daycare/engine/message"
)

const (
	maxFrame = 4 << 20 // bytes
	// silence is how long the socket may say nothing, not even a ping, which Slack sends every few
	// seconds. A ping is no message: the websocket answers it while a message is waited for.
	silence   = 2 * time.Minute
	ackWithin = 10 * time.Second
	dialTime  = 30 * time.Second
)

// errRefresh: Slack ended a connection and wants a new one.
var errRefresh = errors.New("slack renews the connection")

// A socket takes events over a websocket.
type socket struct {
	api     *api
	log     *slog.Logger
	take    take
	silence time.Duration
}

// open asks for the address of a socket.
func (s *socket) open(ctx context.Context) (string, error) {
	var at struct {
		URL string `json:"url"`
	}
	err := s.api.post(ctx, "apps.connections.open", s.api.secrets.App, "application/x-www-form-urlencoded", strings.NewReader(""), &at)
	return at.URL, err
}

// A frame is one message of the socket.
type frame struct {
	Type     string          `json:"type"` // hello, events_api, interactive, slash_commands, disconnect
	Envelope string          `json:"envelope_id"`
	Payload  json.RawMessage `json:"payload"`
}

// read takes events from one socket until it or ctx ends. An envelope is
// acknowledged when it is done with; one that is not comes again within minutes.
func (s *socket) read(ctx context.Context, deliver message.Deliver) error {
	address, err := s.open(ctx)
	if err != nil {
		return err
	}
	reading, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	watch := time.AfterFunc(s.silence, func() { cut(fmt.Errorf("slack said nothing for %s", s.silence)) })
	defer watch.Stop()
	pinged := func(context.Context, []byte) bool {
		watch.Reset(s.silence)
		return true
	}
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	conn, _, err := websocket.Dial(dialing, address, &websocket.DialOptions{HTTPClient: s.api.HTTP, OnPingReceived: pinged})
	cancel()
	if err != nil {
		return errors.New("connect the socket: refused") // the address holds a ticket
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxFrame)

	for {
		watch.Reset(s.silence)
		_, data, err := conn.Read(reading)
		watch.Stop()
		switch {
		case ctx.Err() != nil:
			_ = conn.Close(websocket.StatusNormalClosure, "")
			return nil
		case context.Cause(reading) != nil:
			err = context.Cause(reading)
		}
		if err != nil {
			return fmt.Errorf("read the socket: %w", s.api.Clean(err))
		}

		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			s.log.Warn("cannot read a socket frame", "err", err)
			continue
		}
		if f.Type == "hello" {
			message.Up(ctx)
		}
		if f.Type == "disconnect" {
			return errRefresh
		}
		if f.Envelope == "" {
			continue
		}
		if err := s.take(ctx, deliver, f.Type, f.Payload); err != nil {
			s.log.Warn("event not accepted; Slack will send it again", "err", err)
			continue
		}
		if err := acknowledge(ctx, conn, f.Envelope); err != nil {
			return fmt.Errorf("acknowledge: %w", s.api.Clean(err))
		}
	}
}

func acknowledge(ctx context.Context, conn *websocket.Conn, envelope string) error {
	body, err := json.Marshal(map[string]string{"envelope_id": envelope})
	if err != nil {
		return err
	}

	// What is durable is acknowledged, also when we end now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackWithin)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, body)
}
