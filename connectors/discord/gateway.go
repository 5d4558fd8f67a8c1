package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"daycare/connectors/chat"
)

// Operations of the gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opHeard     = 11 // a heartbeat was received
)

// Intents: what Discord tells the bot of. The text of messages that do not mention the bot is
// privileged, so it is asked for only where it is needed.
const (
	intentGuilds          = 1 << 0
	intentGuildMessages   = 1 << 9
	intentGuildReactions  = 1 << 10
	intentDirectMessages  = 1 << 12
	intentDirectReactions = 1 << 13
	intentMessageContent  = 1 << 15

	intentsMentioned = intentGuilds | intentGuildMessages | intentGuildReactions | intentDirectMessages | intentDirectReactions
)

// Codes with which Discord closes a connection.
const (
	closeUnauthorized = 4004
	closeSequence     = 4007
	closeTimedOut     = 4009
	closeSharding     = 4011
	closeVersion      = 4012
	closeIntents      = 4013
	closeDisallowed   = 4014
)

const (
	maxFrame  = 32 << 20 // bytes: a server comes with all of its channels
	dialTime  = 30 * time.Second
	helloTime = 30 * time.Second
	writeTime = 10 * time.Second
)

// errAgain: the connection ended as connections of Discord do, and the next one continues.
var errAgain = errors.New("discord renews the connection")

// A session is what a connection continues after it was lost.
type session struct {
	id, url string
	last    atomic.Int64 // the number of the newest event, 0: none
}

// A gateway is the connection over which Discord tells what happens.
type gateway struct {
	api     *api
	log     *slog.Logger
	intents int
	pause   time.Duration
	session atomic.Pointer[session] // nil: the next connection begins one
	// dispatch handles an event. It must not wait.
	dispatch func(name string, data json.RawMessage)
}

// A frame is one message of the gateway.
type frame struct {
	Op   int             `json:"op"`
	Name string          `json:"t,omitempty"`
	Seq  *int64          `json:"s,omitempty"`
	Data json.RawMessage `json:"d"`
}

// run receives until ctx ends, or until something is wrong that another connection alone
// does not mend.
func (g *gateway) run(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		if err := g.stay(ctx); !errors.Is(err, errAgain) {
			return err
		}
		if time.Since(began) > time.Minute {
			n = 0
		}
		chat.Rest(ctx, g.pause, n)
	}

	return nil
}

// stay receives over one connection.
func (g *gateway) stay(ctx context.Context) error {
	address, err := g.address(ctx)
	if err != nil {
		return err
	}
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	conn, _, err := websocket.Dial(dialing, address+"/?v=10&encoding=json", &websocket.DialOptions{HTTPClient: g.api.HTTP})
	cancel()
	if err != nil {
		g.session.Store(nil) // its address may be gone
		return fmt.Errorf("connect the gateway: %w", g.api.Clean(err))
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxFrame)
	l := &link{gateway: g, conn: conn}

	// Cut off without a word, so that the session stays and can be continued.
	reading, cut := context.WithCancelCause(ctx)
	var beats sync.WaitGroup
	defer beats.Wait()
	defer cut(nil)
	err = l.begin(reading)
	if err == nil {
		beats.Go(func() { l.beat(reading, cut) })
		err = l.listen(reading)
	}

	switch {
	case ctx.Err() != nil:
		return nil // cut off: a next Run continues
	case context.Cause(reading) != nil:
		return context.Cause(reading)
	}

	return g.ended(err)
}

// address is where to connect to: where a session is continued, else where Discord says.
func (g *gateway) address(ctx context.Context) (string, error) {
	if s := g.session.Load(); s != nil {
		return s.url, nil
	}
	at, err := g.api.starts(ctx)
	if err != nil {
		return "", err
	}
	if at.Limit.Remaining <= 0 && at.Limit.Total > 0 {
		return "", fmt.Errorf("discord accepts no more connections of this bot for %s: it was started %d times within a day\n"+
			"check whether another program uses its token, or daycare restarts again and again",
			(time.Duration(at.Limit.ResetAfter) * time.Millisecond).Round(time.Minute), at.Limit.Total)
	}

	return g.api.safe(at.URL)
}

// A start is where a session begins, and how many more may.
type start struct {
	URL   string `json:"url"`
	Limit struct {
		Total      int   `json:"total"`
		Remaining  int   `json:"remaining"`
		ResetAfter int64 `json:"reset_after"` // ms
	} `json:"session_start_limit"`
}

func (a *api) starts(ctx context.Context) (at start, err error) {
	err = a.call(ctx, request{name: "find the gateway", method: http.MethodGet, path: "/gateway/bot"}, &at)
	return at, err
}

// safe refuses a gateway that is less protected than the API: it gets the token.
func (a *api) safe(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "wss" && (u.Scheme != "ws" || !strings.HasPrefix(a.Base, "http:")) {
		return "", errors.New("discord named a gateway that is not encrypted")
	}

	return strings.TrimRight(address, "/"), nil
}

// ended makes an error of how a connection ended, and forgets a session that cannot be
// continued.
func (g *gateway) ended(err error) error {
	switch code := websocket.CloseStatus(err); code {
	case closeUnauthorized, closeIntents, closeDisallowed, closeSharding, closeVersion:
		g.session.Store(nil)
		return &closedError{int(code)}
	case closeSequence, closeTimedOut, websocket.StatusNormalClosure, websocket.StatusGoingAway:
		g.session.Store(nil)
		return errAgain
	}
	if errors.Is(err, errAgain) {
		return err
	}

	return fmt.Errorf("the gateway's connection ended: %w", g.api.Clean(err))
}

// A closedError is why Discord does not want the bot.
type closedError struct{ code int }

func (e *closedError) Error() string {
	switch e.code {
	case closeUnauthorized:
		return "discord does not accept the token (4004)"
	case closeDisallowed:
		return "discord does not let this bot read messages that do not mention it (4014)"
	case closeSharding:
		return "this bot is in too many servers for one connection (4011)"
	}

	return fmt.Sprintf("discord refuses the connection (%d)", e.code)
}

// A link is one connection.
type link struct {
	*gateway
	conn  *websocket.Conn
	every time.Duration // between heartbeats
	owed  atomic.Bool   // a heartbeat was not answered yet
}

func (l *link) read(ctx context.Context) (f frame, err error) {
	_, data, err := l.conn.Read(ctx)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("read the gateway: %w", err)
	}

	return f, nil
}

func (l *link) write(ctx context.Context, op int, data any) error {
	body, err := json.Marshal(map[string]any{"op": op, "d": data})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return l.conn.Write(ctx, websocket.MessageText, body)
}

// begin waits for Discord's hello and says who we are.
func (l *link) begin(ctx context.Context) error {
	greeting, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	f, err := l.read(greeting)
	if err != nil {
		return err
	}
	var hello struct {
		Every int64 `json:"heartbeat_interval"` // ms
	}
	if err := json.Unmarshal(f.Data, &hello); err != nil || f.Op != opHello || hello.Every <= 0 {
		return errors.New("the gateway did not say hello")
	}
	l.every = time.Duration(hello.Every) * time.Millisecond
	if s := l.session.Load(); s != nil {
		return l.write(ctx, opResume, map[string]any{"token": l.api.token, "session_id": s.id, "seq": s.last.Load()})
	}

	return l.write(ctx, opIdentify, map[string]any{"token": l.api.token, "intents": l.intents,
		"properties": map[string]string{"os": "linux", "browser": "daycare", "device": "daycare"}})
}

// beat sends heartbeats. A connection over which none was answered is dead, whatever the
// system thinks of it.
func (l *link) beat(ctx context.Context, cut context.CancelCauseFunc) {
	wait := time.Duration(rand.Float64() * float64(l.every))
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if l.owed.Swap(true) {
			cut(fmt.Errorf("the gateway did not answer for %s", l.every))
			return
		}
		if err := l.heartbeat(ctx); err != nil {
			return // reading fails, too, and says why
		}
		wait = l.every
	}
}

func (l *link) heartbeat(ctx context.Context) error {
	var last any
	if s := l.session.Load(); s != nil && s.last.Load() > 0 {
		last = s.last.Load()
	}

	return l.write(ctx, opHeartbeat, last)
}

// listen handles what Discord says until the connection ends.
func (l *link) listen(ctx context.Context) error {
	for {
		f, err := l.read(ctx)
		if err != nil {
			return err
		}

		switch f.Op {
		case opDispatch:
			if err := l.event(f); err != nil {
				return err
			}
		case opHeartbeat:
			if err := l.heartbeat(ctx); err != nil {
				return err
			}
		case opHeard:
			l.owed.Store(false)
		case opReconnect:
			return errAgain
		case opInvalid:
			if string(f.Data) != "true" { // it cannot be continued
				l.session.Store(nil)
			}
			return errAgain
		}
	}
}

func (l *link) event(f frame) error {
	if f.Name == "READY" {
		var ready struct {
			Session string `json:"session_id"`
			URL     string `json:"resume_gateway_url"`
		}
		if err := json.Unmarshal(f.Data, &ready); err != nil {
			return fmt.Errorf("read the gateway: %w", err)
		}
		address, err := l.api.safe(ready.URL)
		if err != nil {
			return err
		}
		l.session.Store(&session{id: ready.Session, url: address})
	}
	l.dispatch(f.Name, f.Data)
	if s := l.session.Load(); f.Seq != nil && s != nil {
		s.last.Store(*f.Seq)
	}

	return nil
}
