package xmpp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/message"
)

// A Connector is one account.
type Connector struct {
	pen

	o Options
	account
	host  chat.Host
	log   *slog.Logger
	desk  *chat.Desk
	pause time.Duration // after the first failure of anything that is tried again

	arrived *chat.Queue // read, and not durable yet
	inward
	sent  chat.Progress
	files *files

	line
}

// An account is who we are.
type account struct {
	me       jid
	password string
	resource string
	nick     string
	allow    []string // bare, in the form in which addresses are compared
}

// inward is what is known of messages that were read.
type inward struct {
	marks marks
	saved time.Time // when the marks were saved last
	said  recent    // the numbers that rooms gave messages
}

// line is the connection.
type line struct {
	one     sync.Mutex // held while the connection is made or ended
	live    *session
	users   int   // of live
	flow    *flow // of live, or to be resumed
	current atomic.Pointer[session]
}

// resource is the name of this client at the account.
const resource = "daycare"

// Kind is how settings make a connector.
var Kind = connectors.Of("xmpp", &connectors.Setup{
	Secrets: []connectors.Secret{{What: "Password of the account", Env: "secretEnv"}},
}, func(o Options, m connectors.Making) (connectors.Connector, error) {
	return New(o, m.Secret(o.SecretEnv, o.ID), m.Host, m.Log)
})

// New makes the connector that o describes.
func New(o Options, password string, host chat.Host, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("xmpp %q: %w", o.ID, err)
	}
	if password == "" {
		return nil, fmt.Errorf("xmpp %q has no password\nset it with: daycare auth set %s", o.ID, o.ID)
	}
	me, _ := parseJID(o.JID) // it is valid

	c := &Connector{o: o, host: host, log: log.With("connector", o.ID), pause: time.Second, files: newFiles(o, me),
		account: account{me: me, password: password, resource: resource, nick: o.nickOf(me), allow: bares(o.Allow)},
		inward:  inward{marks: marks{reached: map[string]position{}}}}
	c.o.Rooms = bares(o.Rooms)
	settings := o.Settings
	settings.Allow = c.allow
	c.desk = chat.New(chat.Options{Settings: settings, Prefix: "!"}, host, c, c.log)
	c.pen = pen{c, chat.Named{Settings: o.Settings}}
	c.arrived = chat.NewQueue(c.desk, c.pause, c.taken)

	return c, nil
}

// taken is called with each finished message, to acknowledge it to the server.
func (c *Connector) taken(chat.Post) {
	c.marks.taken()
	for _, then := range c.marks.due() {
		then()
	}
	if s := c.current.Load(); s != nil && !s.ended() {
		s.ack()
	}
	c.save(false)
}

// Run receives until the connection or ctx ends.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer func() {
		cancel()
		beside.Wait()
		c.files.client.CloseIdleConnections()
		c.save(true)
	}()
	if err := c.remember(); err != nil {
		return err
	}
	beside.Go(func() { c.desk.Run(ctx, deliver, c.pause) })
	beside.Go(func() { c.arrived.Run(ctx, deliver) })
	s, err := c.acquire(ctx)
	if ctx.Err() != nil && err != nil {
		return nil // the greeting was cut short
	}
	if err != nil {
		return c.explain(err)
	}
	defer c.release()
	if err := s.listen(ctx); err != nil && ctx.Err() == nil {
		return err
	}

	message.Up(ctx)
	select {
	case <-ctx.Done():
		return nil
	case <-s.done:
		return s.err()
	}
}

// remember reads how far archives were read by the process before. Where that cannot be read now it is
// an error: to go on with new messages would be to miss those that came meanwhile.
func (c *Connector) remember() error {
	if c.host.Waiting == nil {
		return nil
	}
	data, err := c.host.Waiting.Load(c.o.ID, archivesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read how far archives were read: %w", err)
	}
	if err := c.marks.load(data); err != nil {
		c.log.Warn("cannot read how far archives were read; continuing with new messages", "err", err)
	}

	return nil
}

// listen says that we are here, enters the rooms, and reads what was said while we were away.
func (s *session) listen(ctx context.Context) error {
	s.flow.state.Lock()
	before := s.flow.listens
	s.flow.listens = true
	s.flow.state.Unlock()
	if before {
		return nil // the session that was resumed did it
	}

	own := s.flow.me.bare()
	info, err := s.await(ctx, "get", own, node(nsInfo, "query"))
	if err != nil && s.ended() {
		return err
	}
	begin := func(*session, element) {}
	if err == nil && feature(info, nsMAM) {
		if err := (archives{s}).origin(ctx, own); err != nil {
			return err
		}
		a := &archive{address: own, busy: true}
		s.flow.state.Lock()
		s.flow.archives[own] = a
		s.flow.state.Unlock()
		begin = func(s *session, _ element) { archives{s}.catchUp(a) }
	} else {
		s.c.log.Info("the server keeps no archive; messages that come while daycare is away wait only as long as the server keeps them")
	}
	if err := s.put(node(nsClient, "presence")); err != nil {
		return err
	}
	// The answer, whatever it is, comes behind the presence: the archive is read from there.
	if err := s.request("set", "", node(nsCarbons, "enable"), begin); err != nil {
		return err
	}

	for _, address := range s.c.o.Rooms {
		if err := (rooms{s}).join(ctx, address); err != nil {
			if ctx.Err() != nil || s.ended() {
				return err
			}
			s.c.log.Warn("cannot join a room; trying again each minute", "room", address, "err", err)
		}
	}

	return nil
}

// origin has the archive count as read up to now, the first time.
func (s archives) origin(ctx context.Context, of string) error {
	if _, ok := s.c.marks.place(of); ok {
		return nil
	}
	found := make(chan position, 1)
	if err := s.newest(ctx, of, func(_ *session, last position, _ element) { found <- last }); err != nil {
		return err
	}

	select {
	case last := <-found:
		s.c.marks.start(of, last)
		s.c.save(true)
		return nil
	case <-s.done:
		return s.err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acquire returns the connection, connecting if necessary; each acquire needs a release.
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
		c.current.Store(s)
		s.ack() // what became durable before it was the current one
	}
	c.users++

	return c.live, nil
}

// release ends the connection when nobody needs it. One that broke is kept in mind, to be
// resumed.
func (c *Connector) release() {
	c.one.Lock()
	defer c.one.Unlock()
	if c.users--; c.users == 0 && c.live != nil {
		c.live.close()
		c.live = nil
		c.current.Store(nil)
	}
}

// explain says what to do about errors that no repetition heals.
func (c *Connector) explain(err error) error {
	var no *refusal
	if errors.As(err, &no) {
		return fmt.Errorf("%w\ncheck the password of %s: daycare auth set %s", err, c.me, c.o.ID)
	}

	return err
}

// beside logs in beside the running connector. The caller releases the one that it returns.
func (c *Connector) beside(ctx context.Context) (*Connector, *session, error) {
	probe, err := New(c.o, c.password, chat.Host{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	probe.resource = "daycare-test-" + strings.ToLower(rand.Text()[:8])
	s, err := probe.acquire(ctx)
	if err != nil {
		return nil, nil, c.explain(err)
	}

	return probe, s, nil
}

// Loop sends a message to this client itself, for `daycare connectors test --send`.
func (c *Connector) Loop(ctx context.Context) (string, error) {
	probe, s, err := c.beside(ctx)
	if err != nil {
		return "", err
	}
	defer probe.release()
	id, text, heard := rand.Text(), "daycare tests this connector", make(chan string, 1)
	s.flow.state.Lock()
	s.flow.awaited[echoOf(id)] = func(_ *session, e element) {
		body, _ := e.kid(nsClient, "body")
		heard <- body.Text
	}
	s.flow.state.Unlock()
	to := target{address: s.flow.me.String()}
	if err := (outbox{s}).tell(ctx, to, id, false, node(nsClient, "body").saying(text), node(nsHints, "no-store")); err != nil {
		return "", err
	}

	select {
	case got := <-heard:
		if got != text {
			return "", fmt.Errorf("the server of %s changed a message on its way", c.me.domain)
		}
		return c.me.bare() + " sent a message to itself and read it", nil
	case <-s.done:
		return "", s.err()
	case <-ctx.Done():
		return "", fmt.Errorf("the server of %s accepted a message to ourselves and did not deliver it: %w", c.me.domain, ctx.Err())
	}
}

// Probe logs in beside the running connector and asks itself something, for `daycare
// connectors test`.
func (c *Connector) Probe(ctx context.Context) (string, error) {
	probe, s, err := c.beside(ctx)
	if err != nil {
		return "", err
	}
	defer probe.release()
	verdict := fmt.Sprintf("%s logs in with %s", c.me, s.how)
	if s.flow.id != "" {
		verdict += "; sessions can be resumed"
	}
	if info, err := s.await(ctx, "get", c.me.bare(), node(nsInfo, "query")); err == nil && feature(info, nsMAM) {
		verdict += "; the server keeps messages while daycare is away"
	} else {
		verdict += "; the server has no archive, so a long absence can lose messages"
	}
	if at, err := (uploads{s}).uploader(ctx); err == nil {
		verdict += "; files go over " + at
	}

	if _, err := s.await(ctx, "get", s.flow.me.String(), node(nsPing, "ping")); err != nil {
		return "", fmt.Errorf("%s, but what it sends to itself does not arrive: %w", verdict, err)
	}

	return verdict, nil
}

// recent remembers the newest pairs of names.
type recent struct {
	mu    sync.Mutex
	names map[string]string
	order []string
}

const maxRecent = 500

func (r *recent) put(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = map[string]string{}
	}
	if _, ok := r.names[key]; !ok {
		r.order = append(r.order, key)
	}
	r.names[key] = value
	if len(r.order) > maxRecent {
		delete(r.names, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recent) get(key string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.names[key]
	return value, ok
}
