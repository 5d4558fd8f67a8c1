package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// A roomEvent is one thing that happened in a room.
type roomEvent struct {
	ID       string  `json:"event_id"`
	Type     string  `json:"type"`
	Sender   string  `json:"sender"`
	StateKey *string `json:"state_key"`
	Content  content `json:"content"`
	Redacts  string  `json:"redacts"` // of m.room.redaction, where it is not in the content
	raw      json.RawMessage
}

// UnmarshalJSON keeps the event as it came, too.
func (e *roomEvent) UnmarshalJSON(data []byte) error {
	type plain roomEvent
	err := json.Unmarshal(data, (*plain)(e))
	e.raw = slices.Clone(data)
	return err
}

// content is what an event says; which of it is there depends on its type.
type content struct {
	Kind     string          `json:"msgtype"`
	Body     string          `json:"body"`
	FileName string          `json:"filename"`
	URL      string          `json:"url"`  // mxc://
	File     json.RawMessage `json:"file"` // instead of URL: one that is encrypted, with its keys
	Geo      string          `json:"geo_uri"`
	Redacts  string          `json:"redacts"`
	Key      string          `json:"daycare.key"` // of what we sent
	Info     struct {
		Size int64 `json:"size"`
	} `json:"info"`
	Mentions *struct {
		Users []string `json:"user_ids"`
	} `json:"m.mentions"`
	relations
}

// relations are what an event has to do with others.
type relations struct {
	New     *content `json:"m.new_content"`
	Relates struct {
		Type  string `json:"rel_type"`
		ID    string `json:"event_id"`
		Emoji string `json:"key"`
		Reply struct {
			ID string `json:"event_id"`
		} `json:"m.in_reply_to"`
		FallingBack bool `json:"is_falling_back"`
	} `json:"m.relates_to"`
}

// event takes one event. An error asks for it to be taken again.
func (c follower) event(ctx context.Context, deliver message.Deliver, room string, e roomEvent) error {
	me, _ := c.self()
	if e.Sender == me || e.Sender == "" || e.ID == "" {
		return nil
	}
	switch e.Type {
	case "m.room.member":
		return c.moved(ctx, room)
	case "m.room.encrypted":
		opened, ok, err := c.open(ctx, room, e)
		if err != nil || !ok {
			return err
		}
		e = opened
	}
	p, ok := post(room, e)
	if !ok {
		return nil
	}
	var err error
	if p.Group, err = c.group(ctx, room); err != nil {
		return err
	}
	if !p.Group {
		c.met(e.Sender, room)
	}
	if e.Type == "m.room.message" {
		c.meant(ctx, &p, e.Content)
		c.files(&p, e.Content)
	}

	return c.desk.Take(ctx, deliver, p)
}

// post makes a post of an event, as far as the event alone says; false: there is nothing in
// it for an agent.
func post(room string, e roomEvent) (chat.Post, bool) {
	p := chat.Post{Key: e.ID, MessageID: e.ID, Sender: e.Sender, From: message.Address{ChannelID: room, UserID: e.Sender}}
	rel := e.Content.Relates
	switch e.Type {
	case "m.reaction":
		if rel.Type != "m.annotation" || rel.ID == "" {
			return p, false
		}
		p.Reaction = chat.Reaction{To: rel.ID, Emoji: rel.Emoji}
		p.Note, p.Text = true, fmt.Sprintf("The person reacted to message %s with %s", rel.ID, rel.Emoji)
		return p, true
	case "m.room.redaction":
		p.Deleted = true
		if p.Amends = e.Content.Redacts; p.Amends == "" {
			p.Amends = e.Redacts
		}
		return p, p.Amends != ""
	case "m.sticker": // its body says what it shows
		p.Text = "[sticker: " + strings.TrimSpace(e.Content.Body) + "]"
		return p, true
	case "m.room.message":
	default:
		return p, false
	}

	said := e.Content
	switch {
	case rel.Type == "m.replace" && said.New != nil:
		p.Amends, said = rel.ID, *said.New
	case rel.Type == "m.thread":
		p.From.ThreadID = rel.ID
	}
	if rel.Reply.ID != "" && !rel.FallingBack {
		p.ReplyTo = rel.Reply.ID
		p.Quote, said.Body = unquoted(said.Body)
	}
	switch p.Text = strings.TrimSpace(said.Body); said.Kind {
	case "m.text":
	case "m.emote":
		p.Text = "* " + p.Text
	case "m.location":
		p.Text = "[location: " + strings.TrimPrefix(said.Geo, "geo:") + "] " + p.Text
	case "m.image", "m.file", "m.audio", "m.video":
		if said.FileName == "" || said.FileName == said.Body { // else the body is what is said of it
			p.Text = ""
		}
	default: // m.notice is of programs, which do not talk to each other
		return p, false
	}

	return p, true
}

// unquoted takes off the quotation that older clients put before a reply.
func unquoted(body string) (quote, rest string) {
	if !strings.HasPrefix(body, "> <") {
		return "", body
	}
	var quoted []string
	for line := range strings.Lines(body) {
		text, ok := strings.CutPrefix(line, "> ")
		if !ok {
			break
		}
		body = body[len(line):]
		if len(quoted) == 0 {
			if _, text, ok = strings.Cut(text, "> "); !ok {
				text = ""
			}
		}
		quoted = append(quoted, strings.TrimRight(text, "\n"))
	}

	return strings.TrimSpace(strings.Join(quoted, "\n")), strings.TrimLeft(body, "\n")
}

// meant finds out whether a message of a group is for us: it names us, answers us, or all are.
func (c follower) meant(ctx context.Context, p *chat.Post, said content) {
	me, name := c.self()
	if said.New != nil {
		said = *said.New
	}
	local, _, _ := strings.Cut(strings.TrimPrefix(me, "@"), ":")
	for _, ours := range []string{name, me, local} {
		var mentioned bool
		p.Text, mentioned = chat.Mentioned(p.Text, ours)
		p.Addressed = p.Addressed || mentioned
	}
	p.Addressed = p.Addressed || said.Mentions != nil && slices.Contains(said.Mentions.Users, me) ||
		slices.Contains(c.o.Always, p.From.ChannelID)
	if p.ReplyTo == "" {
		return
	}

	var before roomEvent
	at := path(client+"/rooms", p.From.ChannelID, "event", p.ReplyTo)
	if err := c.api.do(ctx, call{name: "event", method: http.MethodGet, path: at}, &before); err != nil {
		c.log.Debug("cannot read the message that was answered", "err", err)
		return
	}
	before = c.peek(ctx, p.From.ChannelID, before)
	p.Addressed = p.Addressed || before.Sender == me
	if p.Quote == "" {
		_, p.Quote = unquoted(before.Content.Body)
	}
}

// files adds the file that a message is.
func (c follower) files(p *chat.Post, said content) {
	if p.Amends != "" || said.URL == "" && len(said.File) == 0 {
		return
	}
	name := said.FileName
	if name == "" {
		name = said.Body
	}
	p.Files = append(p.Files, chat.File{Name: name, Size: said.Info.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
		if len(said.File) > 0 {
			return c.openFile(ctx, said.File)
		}
		return c.api.download(ctx, said.URL)
	}})
}

// met remembers in which room a user is alone with us.
func (c follower) met(user, room string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place.Direct == nil {
		c.place.Direct = map[string]string{}
	}
	if slices.Contains(c.o.Allow, user) {
		c.place.Direct[user] = room
	}
}

// Direct is the room in which a user is alone with us, if they have written there.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room, ok := c.place.Direct[userID]
	return message.Address{ChannelID: room, UserID: userID}, ok
}
