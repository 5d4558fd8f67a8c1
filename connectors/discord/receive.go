package discord

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
)

type user struct {
	ID     string `json:"id"`
	Name   string `json:"username"`
	Shown  string `json:"global_name"`
	Bot    bool   `json:"bot"`
	Member struct {
		Nick string `json:"nick"`
	} `json:"member"`
}

func (u user) name() string { return cmp.Or(u.Member.Nick, u.Shown, u.Name) }

// An incoming is a message, its edit or deletion, or a reaction to it.
type incoming struct {
	kind string // the name of the event

	ID      string `json:"id"`
	Channel string `json:"channel_id"`
	Guild   string `json:"guild_id"` // "": private
	Type    int    `json:"type"`
	Author  user   `json:"author"`
	Webhook string `json:"webhook_id"`
	content
	addressees
	reaction
	Edited string `json:"edited_timestamp"`
}

// A content is what a message holds.
type content struct {
	Content     string `json:"content"`
	Attachments []file `json:"attachments"`
	Stickers    []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Poll struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
	} `json:"poll"`
	Forwarded []struct {
		Message struct {
			Content     string `json:"content"`
			Attachments []file `json:"attachments"`
		} `json:"message"`
	} `json:"message_snapshots"`
}

// The addressees are whom a message is meant for.
type addressees struct {
	Mentions []user    `json:"mentions"`
	Roles    []string  `json:"mention_roles"`
	ReplyTo  *incoming `json:"referenced_message"`
}

// A reaction is an emoji under a message.
type reaction struct {
	User    string `json:"user_id"`
	Message string `json:"message_id"`
	Writer  string `json:"message_author_id"`
	Emoji   struct {
		Name string `json:"name"`
	} `json:"emoji"`
}

type file struct {
	Name string `json:"filename"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

// position is where a message is in its channel; 0: it is none, but a note.
func (m incoming) position() int64 {
	if m.kind != "MESSAGE_CREATE" {
		return 0
	}
	return number(m.ID)
}

// take takes one message.
func (c *Connector) take(ctx context.Context, deliver message.Deliver, a chat.Arrival[incoming]) error {
	p, ok, err := c.in.post(ctx, a.What)
	if err != nil || !ok {
		return err
	}

	return c.desk.Take(ctx, deliver, p)
}

// A reader makes posts of what Discord tells.
type reader struct {
	*rooms
	o Options
}

// post makes a post of what Discord says; false: there is nothing in it for an agent.
func (r reader) post(ctx context.Context, m incoming) (p chat.Post, ok bool, err error) {
	me := r.self().Bot.ID
	if m.kind == "MESSAGE_REACTION_ADD" {
		if m.User == me || m.Guild != "" && m.Writer != me {
			return p, false, nil // in a channel only what is about our messages is meant for us
		}
		p = chat.Post{Key: "reaction/" + m.Message + "/" + m.User + "/" + m.Emoji.Name, Note: true, Sender: m.User,
			Amended: chat.Amended{Reaction: chat.Reaction{To: m.Message, Emoji: m.Emoji.Name}},
			Group:   m.Guild != "", Addressed: true,
			Text: fmt.Sprintf("The person reacted to message %s with %s", m.Message, m.Emoji.Name)}
		p.From, err = r.from(ctx, m, m.User)
		return p, true, err
	}
	if m.kind == "MESSAGE_DELETE" {
		return r.deleted(m), true, nil
	}
	if m.Author.ID == "" || m.Author.ID == me || m.Author.Bot || m.Webhook != "" || m.Type != 0 && m.Type != 19 {
		return p, false, nil // a program's, or that somebody joined, pinned, began a thread
	}

	p = chat.Post{Key: m.Channel + "/" + m.ID, MessageID: m.ID, Sender: m.Author.name(), Group: m.Guild != ""}
	if m.kind == "MESSAGE_UPDATE" && m.Edited == "" {
		return p, false, nil // Discord added a preview
	}
	p.Addressed = r.addressed(m, me)
	if p.Group && !p.Addressed {
		p.From = message.Address{ChannelID: m.Channel, UserID: m.Author.ID}
		return p, true, nil // the desk drops it; nothing has to be asked for that
	}
	if p.From, err = r.from(ctx, m, m.Author.ID); err != nil {
		return p, false, err
	}

	p.Text = r.text(m, me)
	if m.kind == "MESSAGE_UPDATE" {
		p.Key, p.Amends = p.Key+"/"+m.Edited, m.ID
		return p, true, nil
	}
	if to := m.ReplyTo; to != nil {
		p.ReplyTo, p.Quote = to.ID, named(to.Content, to.Mentions)
	}
	p.Files = r.files(m.Attachments)
	for _, f := range m.Forwarded {
		p.Files = append(p.Files, r.files(f.Message.Attachments)...)
	}

	return p, true, nil
}

// deleted makes a post of a deletion. Discord does not say whose message it was: in a private
// chat it can only be the user's, and in a channel the desk knows.
func (r reader) deleted(m incoming) chat.Post {
	p := chat.Post{Key: m.Channel + "/" + m.ID + "/deleted", MessageID: m.ID, Group: m.Guild != "",
		From: message.Address{ChannelID: m.Channel}, Amended: chat.Amended{Amends: m.ID, Deleted: true}}
	if one, _ := r.seen(m.Channel); one.thread() && one.Parent != "" {
		p.From.ChannelID, p.From.ThreadID = one.Parent, m.Channel
	}
	if !p.Group {
		p.From.UserID = r.user(m.Channel)
	}

	return p
}

// addressed reports whether a message in a channel is meant for us.
func (r reader) addressed(m incoming, me string) bool {
	if r.o.readsAll() || r.ours(m.Roles) || m.ReplyTo != nil && m.ReplyTo.Author.ID == me {
		return true
	}
	if slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID == me }) {
		return true
	}
	one, _ := r.seen(m.Channel)

	return one.thread() && one.Owner == me
}

// from is where a message came from: the channel of a thread, and the thread.
func (r reader) from(ctx context.Context, m incoming, user string) (message.Address, error) {
	from := message.Address{ChannelID: m.Channel, UserID: user}
	if m.Guild == "" {
		return from, nil
	}
	one, err := r.room(ctx, m.Channel)
	switch {
	case err != nil:
		return from, err
	case one.thread() && one.Parent != "":
		from.ChannelID, from.ThreadID = one.Parent, m.Channel
	case r.o.Threads && m.kind == "MESSAGE_CREATE":
		from.ThreadID = m.ID // a thread that is begun from a message has its id
	}

	return from, nil
}

// text is what a message says, in words.
func (r reader) text(m incoming, me string) string {
	text := strings.TrimSpace(m.Content)
	for _, mark := range []string{"<@" + me + ">", "<@!" + me + ">"} {
		text = strings.TrimLeft(strings.TrimPrefix(text, mark), " ,:\n")
	}
	text = named(text, m.Mentions)
	for _, f := range m.Forwarded {
		text += "\n[forwarded]\n" + f.Message.Content
	}
	for _, s := range m.Stickers {
		text += "\n[sticker: " + s.Name + "]"
	}
	if q := m.Poll.Question.Text; q != "" {
		text += "\n[poll: " + q + "]"
	}

	return strings.TrimSpace(text)
}

var marked = lazyregexp.New(`<(@!?|a?:\w+:)([0-9]{15,20})>`)

// named is a text with names in the place of the ids of users and emoji.
func named(text string, mentions []user) string {
	return marked.ReplaceAllStringFunc(text, func(m string) string {
		parts := marked.FindStringSubmatch(m)
		if !strings.HasPrefix(parts[1], "@") {
			return strings.TrimPrefix(parts[1], "a")
		}
		for _, u := range mentions {
			if u.ID == parts[2] {
				return "@" + u.name()
			}
		}
		return m
	})
}

// files are the attachments of a message, not yet downloaded.
func (r reader) files(list []file) (all []chat.File) {
	for _, f := range list {
		all = append(all, chat.File{Name: f.Name, Size: f.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			return r.api.download(ctx, f.URL)
		}})
	}

	return all
}
