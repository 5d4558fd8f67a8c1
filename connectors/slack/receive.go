package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
)

// take takes one event, of whichever way in.
func (c *Connector) take(ctx context.Context, deliver message.Deliver, kind string, payload json.RawMessage) error {
	c.order.Lock()
	defer c.order.Unlock()
	var p chat.Post
	ok := false
	err := c.strikes.Guard("", func() error {
		p, ok = c.read(ctx, kind, payload)
		return nil
	})
	if err != nil || !ok {
		return err
	}

	return c.strikes.Guard(p.Key, func() error { return c.desk.Take(ctx, deliver, p) })
}

// read makes a post of what Slack says; false: there is nothing in it for an agent.
func (c *Connector) read(ctx context.Context, kind string, payload json.RawMessage) (chat.Post, bool) {
	switch kind {
	case "events_api":
		var e outer
		if err := json.Unmarshal(payload, &e); err != nil {
			c.log.Warn("cannot read an event", "err", err)
			return chat.Post{}, false
		}
		return c.event(e.Event)
	case "slash_commands":
		var s slash
		if err := json.Unmarshal(payload, &s); err == nil {
			return s.post()
		}
	case "interactive":
		c.pressed(ctx, payload)
	}

	return chat.Post{}, false
}

type outer struct {
	Event event `json:"event"`
}

type event struct {
	Type    string `json:"type"` // message, app_mention, reaction_added
	Subtype string `json:"subtype"`
	User    string `json:"user"`
	Bot     string `json:"bot_id"`
	Text    string `json:"text"`
	position
	Files    []file `json:"files"`
	Message  *event `json:"message"`          // of message_changed
	Previous *event `json:"previous_message"` // of message_deleted
	Reaction string `json:"reaction"`
	Item     struct {
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
	EventTS string `json:"event_ts"`
}

// A position says where a message is in Slack: channel and time stamp together identify it.
type position struct {
	Channel  string `json:"channel"`
	Room     string `json:"channel_type"` // im, mpim, channel, group
	TS       string `json:"ts"`
	ThreadTS string `json:"thread_ts"`
}

type file struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	URL  string `json:"url_private_download"`
}

// event makes a post of an event; false: there is nothing in it for an agent.
func (c *Connector) event(e event) (chat.Post, bool) {
	me := c.self()
	switch {
	case e.Type == "reaction_added" && e.User != me && e.Item.Channel != "":
		return chat.Post{Key: e.Item.Channel + "/" + e.EventTS, Note: true, Sender: e.User, Group: !direct(e.Item.Channel),
			From:    message.Address{ChannelID: e.Item.Channel, UserID: e.User},
			Amended: chat.Amended{Reaction: chat.Reaction{To: e.Item.TS, Emoji: ":" + e.Reaction + ":"}},
			Text:    fmt.Sprintf("The person reacted to message %s with :%s:", e.Item.TS, e.Reaction)}, true
	case e.gone() && e.Previous != nil && e.Previous.User != "" && e.Previous.User != me && e.Previous.Bot == "":
		p := e.amends(e.Previous, me)
		p.Deleted = true
		return p, true
	case e.Subtype == "message_changed" && e.Message != nil && e.Message.User != me && e.Message.Bot == "":
		p := e.amends(e.Message, me)
		p.Text = unmentioned(e.Message.Text, me)
		return p, e.Previous == nil || e.Previous.Text != e.Message.Text // else Slack added a preview
	case e.Type != "message" && e.Type != "app_mention", e.User == "" || e.User == me || e.Bot != "":
		return chat.Post{}, false
	}

	switch e.Subtype {
	case "", "file_share", "thread_broadcast", "me_message":
	default:
		return chat.Post{}, false // joins, topics, and what else is no speech
	}

	p := chat.Post{Key: e.Channel + "/" + e.TS, MessageID: e.TS, Sender: e.User, Group: !direct(e.Channel),
		From: message.Address{ChannelID: e.Channel, UserID: e.User, ThreadID: e.ThreadTS}}
	mention := "<@" + me + ">"
	p.Addressed = strings.Contains(e.Text, mention)
	if p.Group && p.From.ThreadID == "" {
		p.From.ThreadID = e.TS // a channel is answered in a thread
	}

	p.Text = unmentioned(e.Text, me)
	for _, f := range e.Files {
		p.Files = append(p.Files, chat.File{Name: f.Name, Size: f.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			return c.api.download(ctx, f.URL)
		}})
	}

	return p, true
}

// gone reports whether a message was deleted: of one with a thread below it Slack leaves a note of
// its own in the place.
func (e event) gone() bool {
	return e.Subtype == "message_deleted" || e.Subtype == "message_changed" && e.Message != nil && e.Message.Subtype == "tombstone"
}

// amends makes a post of what somebody did to a message of theirs, in the thread of that message.
func (e event) amends(m *event, me string) chat.Post {
	p := chat.Post{Key: e.Channel + "/" + m.TS + "/" + e.EventTS, Sender: m.User, MessageID: m.TS, Group: !direct(e.Channel),
		Addressed: strings.Contains(m.Text, "<@"+me+">"), Amended: chat.Amended{Amends: m.TS},
		From: message.Address{ChannelID: e.Channel, UserID: m.User, ThreadID: m.ThreadTS}}
	if p.Group && p.From.ThreadID == "" {
		p.From.ThreadID = m.TS
	}

	return p
}

// direct reports whether a channel is a conversation with one user.
func direct(channel string) bool { return strings.HasPrefix(channel, "D") }

var (
	marked   = lazyregexp.New(`<([^<>|]*)(?:\|([^<>]*))?>`)
	entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// plain is a text as its writer saw it: links by their address, names by their
// label.
func plain(text string) string {
	text = marked.ReplaceAllStringFunc(text, func(m string) string {
		parts := marked.FindStringSubmatch(m)
		target, label := parts[1], parts[2]
		switch {
		case strings.HasPrefix(target, "@") || strings.HasPrefix(target, "!"):
			if label != "" {
				return "@" + strings.TrimPrefix(label, "@")
			}
			return "@" + target[1:]
		case strings.HasPrefix(target, "#") && label != "":
			return "#" + label
		case label != "" && label != target:
			return label + " (" + target + ")"
		}

		return strings.TrimPrefix(target, "mailto:")
	})

	return entities.Replace(text)
}

// unmentioned is the text of a message without our name at its beginning.
func unmentioned(text, me string) string {
	return plain(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "<@"+me+">")))
}

// slash is a slash command, of which the app may have one: /daycare status.
type slash struct {
	Text    string `json:"text"`
	User    string `json:"user_id"`
	Name    string `json:"user_name"`
	Channel string `json:"channel_id"`
	Trigger string `json:"trigger_id"`
}

func (s slash) post() (chat.Post, bool) {
	text := strings.TrimSpace(s.Text)
	if text == "" {
		text = "help"
	}
	return chat.Post{Key: "slash/" + s.Trigger, Sender: s.Name, Text: "/" + strings.TrimPrefix(text, "/"),
		Group: !direct(s.Channel), Addressed: true,
		From: message.Address{ChannelID: s.Channel, UserID: s.User}}, s.User != "" && s.Channel != ""
}

// pressed handles a pressed button and shows the result to that user only.
func (c *Connector) pressed(ctx context.Context, payload json.RawMessage) {
	var p struct {
		Type    string                   `json:"type"`
		User    struct{ ID string }      `json:"user"`
		Channel struct{ ID string }      `json:"channel"`
		Actions []struct{ Value string } `json:"actions"`
		Message struct {
			TS     string `json:"ts"`
			Thread string `json:"thread_ts"`
		} `json:"message"`
	}
	if json.Unmarshal(payload, &p) != nil || p.Type != "block_actions" || len(p.Actions) == 0 {
		return
	}

	from := message.Address{ChannelID: p.Channel.ID, UserID: p.User.ID}
	text := c.desk.Pressed(ctx, from, p.Actions[0].Value, p.Message.TS)
	answer := map[string]string{"channel": p.Channel.ID, "user": p.User.ID, "text": text}
	if p.Message.Thread != "" {
		answer["thread_ts"] = p.Message.Thread
	}
	if err := c.api.call(ctx, "chat.postEphemeral", answer, nil); err != nil {
		c.log.Warn("cannot answer a pressed button", "err", err)
	}
}
