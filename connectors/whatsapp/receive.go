package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// oldest is how old a message may be that is posted: beyond it its dedupe key may be
// forgotten.
const oldest = 6 * 24 * time.Hour

// posted is what Meta posts.
type posted struct {
	Entry []struct {
		Changes []struct {
			Field string `json:"field"`
			Value value  `json:"value"`
		} `json:"changes"`
	} `json:"entry"`
}

type value struct {
	Metadata struct {
		Number string `json:"phone_number_id"`
	} `json:"metadata"`
	Contacts []struct {
		ID      string `json:"wa_id"`
		Profile struct {
			Name string `json:"name"`
		} `json:"profile"`
	} `json:"contacts"`
	Messages []incoming `json:"messages"`
	Statuses []delivery `json:"statuses"`
}

// An incoming is a message.
type incoming struct {
	From    string `json:"from"`
	ID      string `json:"id"`
	Stamp   string `json:"timestamp"` // Unix seconds
	Type    string `json:"type"`
	Text    struct{ Body string }
	Context struct {
		ID        string `json:"id"`
		Forwarded bool   `json:"forwarded"`
	} `json:"context"`
	attachments
	pressed
}

type attachments struct {
	Image, Document, Audio, Video, Sticker *media
	Location                               *struct {
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
		Name      string  `json:"name"`
		Address   string  `json:"address"`
	}
	Contacts []struct {
		Name struct {
			Shown string `json:"formatted_name"`
		} `json:"name"`
		Phones []struct {
			Phone string `json:"phone"`
		} `json:"phones"`
	}
	Reaction *struct {
		Message string `json:"message_id"`
		Emoji   string `json:"emoji"` // "": taken off
	}
}

// pressed is a button, or a line of a list.
type pressed struct {
	Interactive *struct {
		Button struct{ ID string } `json:"button_reply"`
		Row    struct{ ID string } `json:"list_reply"`
	} `json:"interactive"`
	Button *struct{ Text string } `json:"button"` // of a template
}

type media struct {
	ID      string `json:"id"`
	Type    string `json:"mime_type"`
	Name    string `json:"filename"`
	Caption string `json:"caption"`
}

// A delivery is the delivery result of a message that we sent.
type delivery struct {
	ID     string `json:"id"`
	Status string `json:"status"` // sent, delivered, read, failed
	To     string `json:"recipient_id"`
	Key    string `json:"biz_opaque_callback_data"`
	Errors []struct {
		Code  int    `json:"code"`
		Title string `json:"title"`
		Data  struct {
			Details string `json:"details"`
		} `json:"error_data"`
	} `json:"errors"`
}

// take takes all of what was posted, in its order.
func (c *Connector) take(ctx context.Context, deliver message.Deliver, p posted) error {
	for _, entry := range p.Entry {
		for _, change := range entry.Changes {
			v := change.Value
			if change.Field != "messages" || v.Metadata.Number != c.o.Number {
				continue // another number of the same business
			}
			for _, d := range v.Statuses {
				if err := c.delivered(ctx, deliver, d); err != nil {
					return err
				}
			}
			for _, m := range v.Messages {
				err := c.strikes.Guard(m.ID, func() error { return c.message(ctx, deliver, v, m) })
				if err != nil {
					return err
				}
			}
		}
	}

	return nil
}

// message takes one message.
func (c *Connector) message(ctx context.Context, deliver message.Deliver, v value, m incoming) error {
	seconds, _ := strconv.ParseInt(m.Stamp, 10, 64)
	at := time.Unix(seconds, 0)
	if m.From == "" || m.ID == "" || time.Since(at) > oldest || c.state.done(m.ID) {
		return nil
	}
	name := ""
	for _, k := range v.Contacts {
		if k.ID == m.From {
			name = k.Profile.Name
		}
	}
	from := message.Address{ChannelID: m.From, UserID: m.From}
	allowed := slices.Contains(c.o.Allow, m.From)
	if i := m.Interactive; i != nil {
		if !allowed {
			return nil
		}
		c.answer(ctx, from, m.ID, cmp.Or(i.Button.ID, i.Row.ID))
		c.state.wrote(m.From, m.ID, at)
		return c.state.did(m.ID)
	}
	p, ok := c.post(m, from, name)
	if !ok {
		return nil
	}
	if err := c.desk.Take(ctx, deliver, p); err != nil {
		return err
	}
	if !allowed {
		return nil
	}
	c.state.wrote(m.From, m.ID, at)
	c.read(ctx, m.ID)
	if strings.HasPrefix(p.Text, "/") || strings.HasPrefix(p.Text, "!") {
		return c.state.did(m.ID)
	}

	return nil
}

// answer takes a pressed button, and says what came of it unless the card did.
func (c *Connector) answer(ctx context.Context, from message.Address, id, data string) {
	before := c.out.settled.Load()
	text := c.desk.Answer(ctx, from, data)
	if c.out.settled.Load() != before {
		return
	}
	if err := c.Say(ctx, from, id, text); err != nil {
		c.log.Warn("cannot answer a pressed button", "err", err)
	}
}

// readTime is how long telling Meta that a message was read may take: it waits for us.
const readTime = 3 * time.Second

// read shows a user that their message was read.
func (c *Connector) read(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := c.out.seen(ctx, id, false); err != nil {
		c.log.Debug("cannot mark a message as read", "err", err)
	}
}

// post makes a post of a message; false: there is nothing in it for an agent.
func (c *Connector) post(m incoming, from message.Address, name string) (chat.Post, bool) {
	p := chat.Post{Key: m.ID, MessageID: m.ID, ReplyTo: m.Context.ID, Sender: name, From: from, Text: strings.TrimSpace(m.Text.Body)}
	if m.Context.Forwarded {
		p.Text = "[forwarded]\n" + p.Text
	}
	if r := m.Reaction; r != nil {
		p.Note, p.Text = true, fmt.Sprintf("The person reacted to message %s with %s", r.Message, r.Emoji)
		if p.Reaction = (chat.Reaction{To: r.Message, Emoji: r.Emoji}); r.Emoji == "" {
			p.Reaction = chat.Reaction{}
			p.Text = fmt.Sprintf("The person took their reaction off message %s", r.Message)
		}
		return p, true
	}
	if m.Button != nil {
		p.Text = m.Button.Text
	}
	if more := m.described(); more != "" {
		p.Text = strings.TrimSpace(p.Text + "\n" + more)
	}
	for _, f := range []struct {
		*media
		name string
	}{{m.Image, "photo.jpg"}, {m.Document, "document"}, {m.Audio, "voice.ogg"}, {m.Video, "video.mp4"}, {m.Sticker, "sticker.webp"}} {
		if f.media == nil {
			continue
		}
		p.Text = strings.TrimSpace(p.Text + "\n" + f.Caption)
		p.Files = append(p.Files, chat.File{Name: cmp.Or(f.Name, f.name),
			Open: func(ctx context.Context) (io.ReadCloser, error) { return c.api.open(ctx, f.ID) }})
	}
	if m.Type == "unsupported" {
		p.Text = "[a message of a kind that WhatsApp does not hand over]"
	}

	return p, p.Text != "" || len(p.Files) > 0
}

// described returns what a message holds beside text and files, in words; "" for nothing.
func (a attachments) described() string {
	if l := a.Location; l != nil {
		return fmt.Sprintf("[location: %s (%.6f, %.6f)]", strings.Trim(l.Name+", "+l.Address, ", "), l.Latitude, l.Longitude)
	}
	var all []string
	for _, k := range a.Contacts {
		text := "[contact: " + k.Name.Shown
		for _, number := range k.Phones {
			text += ", " + number.Phone
		}
		all = append(all, text+"]")
	}

	return strings.Join(all, "\n")
}

// delivered records the delivery result of a message that we sent. The agent is notified of a
// failed one with its next message.
func (c *Connector) delivered(ctx context.Context, deliver message.Deliver, d delivery) error {
	if d.Status != "failed" {
		c.state.confirm(d.Key, d.ID)
		return nil
	}
	reason, hint := "no reason given", ""
	for _, e := range d.Errors {
		reason = fmt.Sprintf("%s (%d)", c.api.Redact(cmp.Or(e.Data.Details, e.Title)), e.Code)
		if e.Code == windowClosed {
			c.state.close(d.To)
			reason, hint = windowText, c.out.advice()
			if err := c.out.closed(ctx, d.To, errors.New(windowText)); err != nil {
				c.log.Debug("the user cannot be written to", "err", err)
			}
		}
	}
	c.log.Warn("WhatsApp did not deliver a message", "to", d.To, "message", d.ID, "reason", reason, "remedy", hint)

	return c.desk.Take(ctx, deliver, chat.Post{Key: "failed/" + d.ID, Note: true, From: message.Address{ChannelID: d.To, UserID: d.To},
		Text: fmt.Sprintf("WhatsApp did not deliver your message %s: %s", d.ID, reason)})
}
