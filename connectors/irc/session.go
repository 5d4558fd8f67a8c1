package irc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ergochat/irc-go/ircmsg"
	"github.com/ergochat/irc-go/ircreader"
	"golang.org/x/time/rate"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

const (
	greetTime = 30 * time.Second  // from the call to the welcome
	pingEvery = 60 * time.Second  // when nothing is said
	silence   = 150 * time.Second // after which a connection counts as lost
	writeTime = 20 * time.Second
	byeTime   = 2 * time.Second
	// maxLength is of a line with its tags.
	maxLength = 16 << 10
)

// flood is how fast we may speak: burst lines at once, then one every so often.
type flood struct {
	burst int
	every time.Duration
}

// wanted are the abilities of a server that we use, all optional but sasl.
var wanted = []string{"account-tag", "message-tags", "server-time", "sasl"}

// A session is one connection.
type session struct {
	c       *Connector
	conn    net.Conn
	caps    map[string]bool
	nick    atomic.Value // string: the one that we have, which may not be the one that we want
	reader  ircreader.Reader
	limiter *rate.Limiter

	writing  sync.Mutex
	speaking sync.Mutex // one part at a time, so that errors are its own
	heard    chan ircmsg.Message
	echoes   chan string // what we said to ourselves
	ending
}

// ending is how a session is ended, and how its end is known.
type ending struct {
	done    chan struct{}
	wg      sync.WaitGroup
	stopped context.Context
	stop    context.CancelCauseFunc
}

// connect calls the server, greets it, and joins the channels.
func (c *Connector) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	var conn net.Conn
	var err error
	if c.o.Plaintext {
		conn, err = dialer.DialContext(ctx, "tcp", c.o.Server)
	} else {
		conn, err = (&tls.Dialer{NetDialer: dialer}).DialContext(ctx, "tcp", c.o.Server)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.o.Server, err)
	}

	s := &session{c: c, conn: conn, caps: map[string]bool{},
		limiter: rate.NewLimiter(rate.Every(c.flood.every), c.flood.burst),
		heard:   make(chan ircmsg.Message, 16), echoes: make(chan string, 1), ending: ending{done: make(chan struct{})}}
	s.nick.Store(c.o.Nick)
	s.reader.Initialize(conn, 512, maxLength)
	s.stopped, s.stop = context.WithCancelCause(context.Background())
	unwatch := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	err = s.greet()
	if !unwatch() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("greet %s: %w", c.o.Server, err)
	}

	s.wg.Go(s.read)
	s.wg.Go(s.ping)
	for _, channel := range c.o.Channels {
		if err := s.write("JOIN", channel); err != nil {
			s.close()
			return nil, err
		}
	}

	return s, nil
}

// me is the nick that we have.
func (s *session) me() string { return s.nick.Load().(string) }

func last(m ircmsg.Message) string {
	if len(m.Params) == 0 {
		return ""
	}
	return m.Params[len(m.Params)-1]
}

func (s *session) next() (ircmsg.Message, error) {
	for {
		line, err := s.reader.ReadLine()
		if err != nil {
			return ircmsg.Message{}, err
		}
		if m, err := ircmsg.ParseLine(string(line)); err == nil {
			return m, nil
		}
	}
}

// write sends one command.
func (s *session) write(command ...string) error {
	m := ircmsg.MakeMessage(nil, "", command[0], command[1:]...)
	line, err := m.LineBytesStrict(true, 512)
	if err != nil {
		return fmt.Errorf("write %s: %w", command[0], err)
	}

	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := s.conn.Write(line); err != nil {
		return fmt.Errorf("write to %s: %w", s.c.o.Server, err)
	}

	return nil
}

// read reads until the connection ends.
func (s *session) read() {
	defer close(s.done)
	for {
		_ = s.conn.SetReadDeadline(time.Now().Add(silence))
		m, err := s.next()
		if err != nil {
			s.stop(fmt.Errorf("read from %s: %w", s.c.o.Server, err))
			return
		}

		switch m.Command {
		case "PING":
			_ = s.write("PONG", last(m))
		case "NICK":
			if strings.EqualFold(m.Nick(), s.me()) {
				s.nick.Store(last(m))
			}
		case "PRIVMSG":
			if strings.EqualFold(m.Nick(), s.me()) {
				select {
				case s.echoes <- last(m):
				default:
				}
				continue
			}
			if p, ok := s.post(m); ok && !s.c.arrived.Put(s.stopped, p) {
				return
			}
		case "PONG", "401", "403", "404", "407", "437", "477", "489":
			select {
			case s.heard <- m:
			default:
			}
		case "471", "473", "474", "475", "476":
			s.c.log.Warn("cannot join a channel", "why", last(m))
		case "KICK":
			if len(m.Params) > 1 && strings.EqualFold(m.Params[1], s.me()) {
				s.c.log.Warn("kicked from a channel", "channel", m.Params[0])
			}
		}
	}
}

// ping keeps the connection alive, and notices when it is not.
func (s *session) ping() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.write("PING", "daycare")
			if s.me() != s.c.o.Nick { // the one who had it, perhaps we before a crash, may be gone
				_ = s.write("NICK", s.c.o.Nick)
			}
		case <-s.stopped.Done():
			return
		}
	}
}

// post makes a message of a line; false: it is not for us.
func (s *session) post(m ircmsg.Message) (chat.Post, bool) {
	if len(m.Params) < 2 || m.Source == "" {
		return chat.Post{}, false
	}
	target, text := m.Params[0], strings.ToValidUTF8(m.Params[1], "\uFFFD")
	if ctcp, ok := strings.CutPrefix(text, "\x01"); ok {
		action, ok := strings.CutPrefix(strings.TrimSuffix(ctcp, "\x01"), "ACTION ")
		if !ok {
			return chat.Post{}, false
		}
		text = "* " + action
	}

	_, account := m.GetTag("account")
	p := chat.Post{Sender: m.Nick(), Text: text, MessageID: id(m)}
	p.Key = p.MessageID
	p.From = message.Address{ChannelID: strings.ToLower(m.Nick()), UserID: s.c.o.identity(account, m.Source)}
	if channelRule.MatchString(target) {
		p.Group, p.From.ChannelID = true, strings.ToLower(target)
		p.Text, p.Addressed = chat.Mentioned(text, s.me())
	}

	return p, true
}

// id is the network's id of a message; without one it is when it came, because
// nothing comes twice there.
func id(m ircmsg.Message) string {
	if ok, id := m.GetTag("msgid"); ok && id != "" {
		return id
	}
	return "at" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// say says lines and waits until the server has seen them: it answers a ping
// after all that came before it.
func (s *session) say(ctx context.Context, target string, lines []string) error {
	s.speaking.Lock()
	defer s.speaking.Unlock()
	for len(s.heard) > 0 {
		<-s.heard
	}

	for _, line := range lines {
		if err := s.limiter.Wait(ctx); err != nil {
			return fmt.Errorf("wait for the flood limit: %w", err)
		}
		if err := s.write("PRIVMSG", target, line); err != nil {
			return err
		}
	}

	mark := "said" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if err := s.write("PING", mark); err != nil {
		return err
	}

	for {
		select {
		case m := <-s.heard:
			if m.Command == "PONG" && last(m) == mark {
				return nil
			}
			if m.Command != "PONG" && len(m.Params) > 1 && strings.EqualFold(m.Params[1], target) {
				return &message.NotSent{Final: true, Err: fmt.Errorf("say to %s: %s", target, last(m))}
			}
		case <-s.done:
			return s.err()
		case <-ctx.Done():
			return fmt.Errorf("wait for the server: %w", ctx.Err())
		}
	}
}

func (s *session) ended() bool { return s.stopped.Err() != nil }

// err is why the connection ended.
func (s *session) err() error { return context.Cause(s.stopped) }

// close says goodbye and waits until all has ended.
func (s *session) close() {
	if !s.ended() {
		_ = s.write("QUIT", "daycare is stopping")
		s.stop(errors.New("connection closed"))
		_ = s.conn.SetReadDeadline(time.Now().Add(byeTime)) // the server closes first, so that what we said is read
		select {
		case <-s.done:
		case <-time.After(byeTime):
		}
	}

	s.conn.Close()
	s.wg.Wait()
}
