package xmpp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// maxText is the longest text of a message, in characters: servers take some hundred KB,
// people less.
const maxText = 5000

// Split cuts an answer into messages.
func (c *Connector) Split(text string) []string {
	return format.Split(text, maxText, func(s string) int { return len([]rune(format.Plain(s))) })
}

// Send delivers one part: its text, then its files. A message carries the part's key as its
// id. One that may have arrived before is looked for in the archive first.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	remoteID, shown, err := c.desk.Finish(ctx, out)
	if err != nil {
		return "", err
	}
	s, err := c.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer c.release()
	to, err := outbox{s}.target(ctx, out.To)
	if err != nil {
		return "", err
	}

	text := format.Plain(out.Text)
	var steps []func() error
	for i, f := range out.Files {
		key := out.Key() + "." + "f" + strconv.Itoa(i)
		steps = append(steps, func() error {
			address, err := c.upload(ctx, s, f)
			if errors.Is(err, errNoUpload) {
				return outbox{s}.tell(ctx, to, key, out.Retry, node(nsClient, "body").saying(
					fmt.Sprintf("[file %s, %d bytes: this server carries no files]", f.Name, f.Size)))
			}
			if err != nil {
				return err
			}
			return outbox{s}.tell(ctx, to, key, out.Retry, node(nsClient, "body").saying(address),
				node(nsOOB, "x").with(node(nsOOB, "url").saying(address)))
		})
	}

	if text != "" && !shown {
		parts := []element{node(nsClient, "body").saying(text)}
		if !to.room {
			parts = append(parts, node(nsStates, "active"))
		}
		if out.ReplyTo != "" && out.Part == 0 && to.room && out.To.UserID != "" {
			parts = append(parts, node(nsReply, "reply", "to", to.address, "id", out.ReplyTo))
		}
		steps = slices.Insert(steps, 0, func() error { return outbox{s}.tell(ctx, to, out.Key(), out.Retry, parts...) })
	}

	if err := c.sent.Send(out.Key(), steps); err != nil {
		return "", err
	}

	return out.Key(), nil
}

// A target is who a message goes to.
type target struct {
	address string
	room    bool
}

func (t target) kind() string {
	if t.room {
		return "groupchat"
	}
	return "chat"
}

// outbox is a session that answers.
type outbox struct{ *session }

// target finds who an address means, and enters the room that it is.
func (s outbox) target(ctx context.Context, to message.Address) (target, error) {
	j, err := parseJID(to.ChannelID)
	if err != nil {
		return target{}, &message.NotSent{Final: true, Err: err}
	}
	t := target{address: j.bare(), room: contains(s.c.o.Rooms, j.bare())}
	if !t.room {
		return t, nil
	}

	return t, rooms{s.session}.join(ctx, t.address)
}

// tell sends a message under a key, once if that can be known.
func (s outbox) tell(ctx context.Context, to target, key string, retry bool, parts ...element) error {
	if _, has := s.flow.known(key); has {
		return nil
	}
	if retry && s.arrived(ctx, to, key) {
		return nil
	}
	m := node(nsClient, "message", "to", to.address, "type", to.kind(), "id", key).with(parts...)
	return s.say(ctx, m.with(node(nsSID, "origin-id", "id", key)))
}

// lookBack is how many of the newest messages with somebody are searched for one of ours.
const lookBack = 50

// arrived looks in the archive for a message of ours. Without an archive nobody knows.
func (s outbox) arrived(ctx context.Context, to target, key string) bool {
	of, form := s.flow.me.bare(), []element{field("with", to.address)}
	if to.room {
		of, form = to.address, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if !s.archived(ctx, of) {
		return false
	}
	found, over := false, make(chan struct{})
	look := func(s *session, n uint32, _ position, m element) bool {
		from, err := parseJID(m.attr("from"))
		ours := err == nil && (from.bare() == s.flow.me.bare() || to.room && from.resource == intake{s}.nickIn(of))
		found = found || ours && m.attr("id") == key
		return intake{s}.pass(n)
	}
	err := archives{s.session}.page(ctx, of, form, rsm(lookBack, "", true), query{each: look}, func(*session, element) { close(over) })
	if err != nil {
		return false
	}

	select {
	case <-over:
		return found
	case <-s.done:
	case <-ctx.Done():
	}

	return false
}

// archived reports whether there is an archive at an address. A session that did not say yet that
// it is here, or never does, has to ask.
func (s outbox) archived(ctx context.Context, of string) bool {
	s.flow.state.Lock()
	known := s.flow.archives[of] != nil
	s.flow.state.Unlock()
	if known {
		return true
	}
	info, err := s.await(ctx, "get", of, node(nsInfo, "query"))

	return err == nil && feature(info, nsMAM)
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, _, text string) error {
	_, err := c.Post(ctx, to, "", "", text)
	return err
}

// A pen writes messages that can be changed later.
type pen struct {
	*Connector
	chat.Named
}

// Post says something that can be edited, and reacted to.
func (c pen) Post(ctx context.Context, to message.Address, key, _, text string) (string, error) {
	before := key != "" // another process may have posted it
	if key == "" {
		key = "notice-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	}

	return key, c.speak(ctx, to, key, before, node(nsClient, "body").saying(format.Plain(text)))
}

// Edit replaces the text of a message of ours.
func (c pen) Edit(ctx context.Context, to message.Address, id, text string) error {
	key := "edit-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	return c.speak(ctx, to, key, false, node(nsClient, "body").saying(format.Plain(text)), node(nsCorrect, "replace", "id", id))
}

// speak says something under a key; before: it may have been said.
func (c pen) speak(ctx context.Context, to message.Address, key string, before bool, parts ...element) error {
	s, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.release()
	t, err := outbox{s}.target(ctx, to)
	if err != nil {
		return err
	}

	return outbox{s}.tell(ctx, t, key, before, parts...)
}

// Typing shows that somebody writes, to a single user and while we are connected.
func (c *Connector) Typing(_ context.Context, to message.Address) error {
	s := c.current.Load()
	if s == nil || s.ended() || contains(c.o.Rooms, to.ChannelID) {
		return nil
	}

	return s.put(node(nsClient, "message", "to", to.ChannelID, "type", "chat").with(node(nsStates, "composing"), node(nsHints, "no-store")))
}

// React puts an emoji under a message, in the place of the one before.
func (c *Connector) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	s, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.release()
	t, err := outbox{s}.target(ctx, to)
	if err != nil {
		return err
	}
	key := "reaction-" + strconv.FormatInt(time.Now().UnixNano(), 36)

	return outbox{s}.tell(ctx, t, key, false, node(nsReact, "reactions", "id", messageID).with(node(nsReact, "reaction").saying(emoji)),
		node(nsHints, "store"))
}

// Direct is the chat with a user, which has their address.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	return message.Address{ChannelID: userID, UserID: userID}, true
}

var _ chat.TypingNotifier = (*Connector)(nil)
