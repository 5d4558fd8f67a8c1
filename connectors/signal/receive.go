package signal

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// oldest is how long ago a message that the daemon repeats may have been handed to it: beyond that
// its dedupe key may be forgotten.
const oldest = 6 * 24 * time.Hour

type envelope struct {
	Number    string `json:"sourceNumber"`
	UUID      string `json:"sourceUuid"`
	Name      string `json:"sourceName"`
	Timestamp int64  `json:"timestamp"` // ms; with the sender the id of a message
	// Delivered is when Signal handed it to the daemon, in ms; a message may wait there for weeks.
	Delivered int64 `json:"serverDeliveredTimestamp"`
	Data      *data `json:"dataMessage"`
	Edit      *struct {
		Target int64 `json:"targetSentTimestamp"`
		Data   *data `json:"dataMessage"`
	} `json:"editMessage"`
}

type data struct {
	Message     string    `json:"message"`
	Mentions    []mention `json:"mentions"`
	Attachments []struct {
		ID   string `json:"id"`
		Name string `json:"filename"`
		Size int64  `json:"size"`
	} `json:"attachments"`
	Group *struct {
		ID   string `json:"groupId"`
		Type string `json:"type"` // DELIVER, UPDATE
	} `json:"groupInfo"`
	Quote *struct {
		ID     int64  `json:"id"`
		Author string `json:"authorNumber"`
		UUID   string `json:"authorUuid"`
		Text   string `json:"text"`
	} `json:"quote"`
	Reaction *struct {
		Emoji  string `json:"emoji"`
		Target int64  `json:"targetSentTimestamp"`
		Remove bool   `json:"isRemove"`
	} `json:"reaction"`
	Deleted *struct {
		Timestamp int64 `json:"timestamp"`
	} `json:"remoteDelete"`
}

// A mention is the place of a name in a text.
type mention struct {
	Name   string `json:"name"`
	Number string `json:"number"`
	UUID   string `json:"uuid"`
	Start  int    `json:"start"` // UTF-16 units
	Length int    `json:"length"`
}

// groupPrefix tells a group's channel from a user's.
const groupPrefix = "group:"

// post makes a post of an envelope; false: there is nothing in it for an agent
// (receipts, typing, what we sent ourselves from another device).
func (c *Connector) post(e envelope) (chat.Post, bool) {
	d, edited := e.Data, e.Edit != nil
	if edited {
		d = e.Edit.Data
	}
	sender := e.UUID
	if sender == "" {
		sender = e.Number
	}
	if d == nil || sender == "" || e.Number == c.o.Account || time.Since(time.UnixMilli(cmp.Or(e.Delivered, e.Timestamp))) > oldest {
		return chat.Post{}, false
	}

	id := messageID(sender, e.Timestamp)
	p := chat.Post{Key: id, MessageID: id, Sender: e.Name,
		From: message.Address{ChannelID: sender, UserID: c.o.identity(e.UUID, e.Number)}}
	var forUs bool
	p.Text, forUs = c.mentioned(d)
	if g := d.Group; g != nil {
		p.Group, p.From.ChannelID = true, groupPrefix+g.ID
		p.Addressed = forUs || d.Quote != nil && d.Quote.Author == c.o.Account
	}
	if q := d.Quote; q != nil {
		p.Quote, p.ReplyTo = q.Text, messageID(q.UUID, q.ID)
	}

	for _, a := range d.Attachments {
		name := a.Name
		if name == "" {
			name = a.ID
		}
		p.Files = append(p.Files, chat.File{Name: name, Size: a.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			return c.fetch(ctx, a.ID, p.From.ChannelID)
		}})
	}

	switch r := d.Reaction; {
	case d.Deleted != nil:
		p.Amended, p.Text, p.Files = chat.Amended{Amends: messageID(sender, d.Deleted.Timestamp), Deleted: true}, "", nil
	case edited:
		p.Amends, p.Files = messageID(sender, e.Edit.Target), nil
	case r != nil && r.Remove:
		p.Note, p.Text = true, fmt.Sprintf("The person took their reaction off message %d", r.Target)
	case r != nil:
		p.Reaction = chat.Reaction{To: strconv.FormatInt(r.Target, 10), Emoji: r.Emoji}
		p.Note, p.Text = true, fmt.Sprintf("The person reacted to message %d with %s", r.Target, r.Emoji)
	}

	return p, true
}

// messageID is how a message is known: by its sender and when they sent it.
func messageID(sender string, timestamp int64) string {
	return sender + "/" + strconv.FormatInt(timestamp, 10)
}

// mentioned puts the names in where Signal has placeholders, and reports whether
// one of them is ours. Ours is taken off the beginning.
func (c *Connector) mentioned(d *data) (text string, forUs bool) {
	units := utf16.Encode([]rune(d.Message))
	slices.SortStableFunc(d.Mentions, func(a, b mention) int { return cmp.Compare(a.Start, b.Start) })
	var named []uint16
	at := 0
	for _, m := range d.Mentions {
		if m.Start < at || m.Length < 0 || m.Start > len(units) || m.Length > len(units)-m.Start {
			continue
		}
		name := "@" + m.Name
		if m.Number == c.o.Account {
			if forUs = true; m.Start == 0 {
				name = ""
			}
		}
		named = append(append(named, units[at:m.Start]...), utf16.Encode([]rune(name))...)
		at = m.Start + m.Length
	}

	return strings.TrimSpace(string(utf16.Decode(append(named, units[at:]...)))), forUs
}

// fetch reads an attachment that the daemon keeps.
func (c *Connector) fetch(ctx context.Context, id, channel string) (io.ReadCloser, error) {
	params := map[string]any{"id": id}
	addressee(params, channel)
	var got struct {
		Data string `json:"data"` // base64
	}
	if err := c.call(ctx, "getAttachment", params, &got); err != nil {
		return nil, err
	}
	if got.Data == "" {
		return nil, errors.New("fetch attachment: the daemon sent nothing")
	}

	return io.NopCloser(base64.NewDecoder(base64.StdEncoding, strings.NewReader(got.Data))), nil
}
