package matrix

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// maxText is the longest text of a message, in characters. An event may have 64 KB with both
// of its forms, each character up to four bytes and more with its marks.
const maxText = 4000

// A Connector is one account.
type Connector struct {
	pen

	o     Options
	api   *api
	desk  *chat.Desk
	host  chat.Host
	log   *slog.Logger
	pause time.Duration // after the first failure of anything that is tried again

	strikes chat.Strikes
	sent    chat.Progress

	sealing
	known
}

// known is what is known of the account and its rooms.
type known struct {
	mu      sync.Mutex
	me      string         // the user id
	device  string         // of the token
	name    string         // as rooms show it
	members map[string]int // of rooms
	place   place          // of the sync
}

// Kind is how settings make a connector.
var Kind = connectors.Of("matrix", &connectors.Setup{
	Secrets: []connectors.Secret{{What: "Access token of the account", Env: "tokenEnv"}},
	Person:  "Your own Matrix id, such as @ada:example.org",
}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Secret(o.TokenEnv, o.ID), m.Host, m.Log)
})

// New makes the connector that o describes.
func New(o Options, token string, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("matrix %q: %w", o.ID, err)
	}
	if token == "" {
		return nil, fmt.Errorf("matrix %q has no token\nget one as docs/connectors/matrix.md says, then: daycare auth set %s", o.ID, o.ID)
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return nil, fmt.Errorf("matrix %q: not an access token: it has spaces in it\nset it again: daycare auth set %s", o.ID, o.ID)
	}

	c := &Connector{o: o, api: &api{chat.NewClient(o.Homeserver, token), token}, host: host, log: log.With("connector", o.ID),
		pause: time.Second, known: known{members: map[string]int{}}}
	c.strikes.Log = c.log
	c.desk = chat.New(chat.Options{Settings: o.Settings, Prefix: "!"}, host, c, c.log)
	c.pen = pen{c, chat.Attaching{Desk: c.desk}, chat.Named{Settings: o.Settings}}

	return c, nil
}

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int { return len([]rune(format.Plain(s))) })
}

// Run receives until ctx ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	defer c.api.HTTP.CloseIdleConnections()
	watch.Go(func() { c.desk.Run(ctx, deliver, c.pause) })
	err := c.introduce(ctx)
	if err == nil {
		err = sealed{c}.withKeys(ctx, func() error { return follower{sealed{c}}.follow(ctx, deliver) })
	}
	if ctx.Err() != nil {
		return nil
	}

	return c.explain(err)
}

// introduce learns who we are.
func (c *Connector) introduce(ctx context.Context) error {
	var me struct {
		UserID string `json:"user_id"`
		Device string `json:"device_id"`
	}
	if err := c.api.do(ctx, call{name: "whoami", method: http.MethodGet, path: client + "/account/whoami"}, &me); err != nil {
		return err
	}
	if !userRule.MatchString(me.UserID) {
		return fmt.Errorf("the homeserver does not say who we are")
	}
	var profile struct {
		Name string `json:"displayname"`
	}
	err := c.api.do(ctx, call{name: "profile", method: http.MethodGet, path: path(client+"/profile", me.UserID, "displayname")}, &profile)
	if err != nil && ctx.Err() == nil {
		c.log.Debug("the account has no name", "err", err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.me, c.name, c.device = me.UserID, profile.Name, me.Device

	return nil
}

func (c *Connector) self() (id, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.me, c.name
}

// explain says what to do about errors that no repetition heals.
func (c *Connector) explain(err error) error {
	if is(err, "M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED") {
		return fmt.Errorf("%w\nthe token is not valid any more; get another one, then: daycare auth set %s", err, c.o.ID)
	}
	return err
}

// Probe asks the homeserver who we are, for `daycare connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	if err := c.introduce(ctx); err != nil {
		return "", c.explain(err)
	}
	var joined struct {
		Rooms []string `json:"joined_rooms"`
	}
	if err := c.api.do(ctx, call{name: "joined_rooms", method: http.MethodGet, path: client + "/joined_rooms"}, &joined); err != nil {
		return "", err
	}
	me, _ := c.self()

	return fmt.Sprintf("%s is in %d rooms; invite it to others", me, len(joined.Rooms)), nil
}

// Loop says something in a room of its own, reads it and leaves the room, for
// `daycare connectors test --send`.
func (c pen) Loop(ctx context.Context) (verdict string, err error) {
	if err := c.introduce(ctx); err != nil {
		return "", c.explain(err)
	}
	var made struct {
		ID string `json:"room_id"`
	}
	err = c.api.do(ctx, call{name: "createRoom", method: http.MethodPost, path: client + "/createRoom",
		body: map[string]string{"preset": "private_chat", "name": "daycare tests this connector"}}, &made)
	if err != nil {
		return "", err
	}
	defer func() {
		for _, step := range []string{"leave", "forget"} {
			if gone := c.api.do(ctx, call{name: step, method: http.MethodPost, path: path(client+"/rooms", made.ID, step),
				body: struct{}{}}, nil); err == nil {
				err = gone
			}
		}
	}()
	id, err := c.Post(ctx, message.Address{ChannelID: made.ID}, "", "", "hello")
	if err != nil {
		return "", err
	}
	var back roomEvent
	err = c.api.do(ctx, call{name: "event", method: http.MethodGet, path: path(client+"/rooms", made.ID, "event", id)}, &back)
	if me, _ := c.self(); err == nil && (back.Sender != me || back.Content.Body != "hello") {
		err = errors.New("the homeserver accepted a message and did not keep it")
	}
	me, _ := c.self()

	return me + " sent a message in a room of its own and read it", err
}
